"""``kafkacodec stats``: what other codecs would save, the keys with most records, sizes and times of records."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any

import click

from kafkacodec.cli.console import note, say, say_json
from kafkacodec.cli.options.inputs import TREE_LEVELS, Reading, reading_options
from kafkacodec.cli.options.numbers import Number
from kafkacodec.cli.output import (
    DAYS,
    MINUTES,
    SECONDS,
    Advance,
    Column,
    counted,
    full_option,
    interval,
    json_value,
    print_table,
    progress,
    round_size,
    size,
    text,
    timestamp,
)

if TYPE_CHECKING:  # importing the log's modules takes longer than completing an option may
    from kafkacodec import RecordColumns
    from kafkacodec.log import CodecTrial, Partition, RecordStatistics, SizeHistogram, TimeHistogram
    from kafkacodec.log.analysis.recompression import CodecAndLevel

_TIME_ROWS = 24
_JSON_TIMES = 500
_BAR = 24


def _codec(context: click.Context, option: click.Parameter, values: tuple[str, ...]) -> list[CodecAndLevel]:
    """NAME or NAME:LEVEL."""
    from kafkacodec.log.analysis.recompression import DEFAULT_CODECS
    from kafkacodec.records.compression import CODECS, compressor

    found: list[CodecAndLevel] = []
    for value in values:
        name, _, level = value.partition(":")
        try:
            if name not in CODECS:
                raise ValueError(f"unknown codec {name!r}; use one of {', '.join(CODECS)}")
            if level and not level.removeprefix("-").isdecimal():
                raise ValueError(f"the level {level!r} is not a number")
            found.append((name, int(level) if level else None))
            compressor(CODECS.index(name), level=found[-1][1])
        except ValueError as error:
            raise click.BadParameter(str(error), context, option) from None
    return found or list(DEFAULT_CODECS)


@click.command()
@reading_options
@full_option
@click.option("--top", metavar="K", type=Number(0, 1000), default=10, show_default=True, help="Number of keys to list.")
@click.option(
    "--codec",
    "codecs",
    metavar="NAME[:LEVEL]",
    multiple=True,
    callback=_codec,
    help="Codec to try, such as zstd:19; repeatable. Default: all, with Kafka's default levels.",
)
@click.option(
    "--sample",
    metavar="MIB",
    type=Number(1),
    default=16,
    show_default=True,
    help="How much of the logs to compress with each codec, in MiB.",
)
@click.option("--json", "as_json", is_flag=True, help="JSON lines: one for each topic, then one for the codecs.")
def stats(reading: Reading, top: int, codecs: list[CodecAndLevel], sample: int, as_json: bool) -> None:
    """Show what other codecs would save, the keys with most records, and the sizes and times of records.

    The codecs compress a sample of batches, spread over the logs. All else comes from all chosen records. Sizes of
    records are those of key and value before compression.
    """
    from kafkacodec.log import SizeHistogram, TimeHistogram, codec_trial
    from kafkacodec.log.analysis.copies import copies_of, copies_sentence

    partitions = reading.partitions(levels=TREE_LEVELS)
    topics: list[dict[str, Any]] = []
    values, times = SizeHistogram(), TimeHistogram()
    total = sum(partition.size_in_bytes for partition in partitions)
    with progress("reading", total) as advance:
        for topic, part in _by_topic(partitions):
            found = _statistics(reading, part, advance)
            if as_json:
                more = {"times": found.times.between(_JSON_TIMES).to_dict(), "copies": copies_of(part)}
                say_json(_plain(topic, found, top, json_value) | more)
            else:
                values.merge(found.value_sizes)
                times.merge(found.times)
                topics.append(_plain(topic, found, top, text))
    sentence = copies_sentence(copies_of(partitions))
    if sentence:
        note(f"kafkacodec: warning: {sentence}")
    with progress("compressing", min(sample << 20, total)) as advance:
        trial = codec_trial(partitions, codecs=codecs, sample_bytes=sample << 20, advance=advance)
    if as_json:
        say_json({"codecs": trial.to_dict()})
        return
    _print_topics(topics)
    _print_trial(trial)
    _print_sizes(values)
    _print_times(times)
    if top:
        _print_keys(topics, top, "records")
        _print_keys(topics, top, "bytes")


def _by_topic(partitions: list[Partition]) -> Iterator[tuple[str | None, list[Partition]]]:
    ordered = sorted(partitions, key=lambda partition: partition.topic or "")
    for topic, group in groupby(ordered, key=lambda partition: partition.topic):
        yield topic, list(group)


def _statistics(reading: Reading, partitions: list[Partition], advance: Advance) -> RecordStatistics:
    from kafkacodec.log.analysis.contents import CHUNK_BYTES, CHUNK_ROWS, COLUMNS, record_statistics

    def chunks() -> Iterator[RecordColumns]:
        for piece in reading.ranges(partitions):
            yield from reading.read(
                piece, advance, max_rows=CHUNK_ROWS, max_bytes=CHUNK_BYTES, columns={"columns": COLUMNS}
            )

    return record_statistics(chunks())


def _plain(topic: str | None, found: RecordStatistics, top: int, shown: Callable[[bytes], Any]) -> dict[str, Any]:
    """What is printed of a topic, without its time histogram; small, since there may be many topics."""
    plain = found.to_dict(top=top)
    del plain["times"]
    for name in ("by_records", "by_bytes"):
        plain["keys"][name] = [key | {"key": shown(key["key"])} for key in plain["keys"][name]]
    return {"topic": topic} | plain


def _heading(title: str) -> None:
    say("")
    say(title, bold=True)


def _print_topics(topics: list[dict[str, Any]]) -> None:
    columns = [
        Column("topic", stretch=True),
        Column("records", right=True),
        Column("keys", right=True),
        Column("values", right=True),
        Column("different keys", right=True),
        Column("no key", right=True, optional=True),
        Column("tombstones", right=True, optional=True),
    ]
    print_table(columns, map(_topic_row, topics))


def _topic_row(topic: dict[str, Any]) -> list[str]:
    keys = topic["keys"]
    return [
        topic["topic"] or "-",
        f"{topic['num_records']:,}",
        size(topic["key_bytes"]),
        size(topic["value_bytes"]),
        f"{'' if keys['exact'] else 'over '}{keys['num_keys']:,}",
        f"{keys['keyless_records']:,}",
        f"{topic['tombstones']:,}",
    ]


def _print_trial(trial: CodecTrial) -> None:
    _heading("Codecs")
    if not trial.sample_bytes:
        say("no batches to compress")
        return
    batches = counted(trial.num_batches, "batch", "batches")
    sample = f"a sample of {size(trial.sample_bytes)} of {size(trial.log_bytes)}: {batches}"
    places = f" from {counted(trial.num_stretches, 'place')}"
    say(f"Compressed again: {f'all {batches}' if trial.complete else sample + places}.")
    shares = sorted(((count / trial.sample_bytes * 100, name) for name, count in trial.codecs.items()), reverse=True)
    say(f"Stored as {', '.join(f'{name} {share:.0f} %' for share, name in shares)}.")
    columns = [
        Column("codec"),
        Column("size of all", right=True),
        Column("±", right=True, optional=True),
        Column("change", right=True),
        Column("compress", right=True),
        Column("decompress", right=True),
    ]
    rows = [["as stored", size(trial.log_bytes), "", "", "", ""]]
    for result in trial.results:
        change = result.estimated_bytes / trial.log_bytes - 1
        rows.append(
            [
                result.codec if result.level is None else f"{result.codec} {result.level}",
                size(result.estimated_bytes),
                "" if trial.complete else _rounded(result.margin * 100, ".1f", " %"),
                f"{change * 100:+.1f} %",
                _rounded(result.compress_speed / 1e6, ",.0f", " MB/s"),
                _rounded(result.decompress_speed / 1e6, ",.0f", " MB/s"),
            ]
        )
    print_table(columns, rows)
    say("Speeds are bytes of uncompressed records on one thread of this machine.")
    if trial.unreadable_bytes:
        say(f"Left out: {size(trial.unreadable_bytes)} that are not intact batches.")


def _rounded(value: float, how: str, unit: str) -> str:
    return "-" if value != value else f"{value:{how}}{unit}"


def _print_sizes(values: SizeHistogram) -> None:
    _heading("Sizes of values")
    if not values.count:
        say("no values")
        return
    rows = [
        [_size_range(start, end), f"{count:,}", f"{count / values.count * 100:.1f} %", count]
        for start, end, count in values.buckets()
    ]
    _print_bars([Column("size", right=True), Column("values", right=True), Column("share", right=True)], rows)
    mean = values.total / values.count
    say(f"smallest {size(values.smallest or 0)}, mean {size(mean)}, largest {size(values.largest or 0)}")


def _size_range(start: int, end: int) -> str:
    return "0 B" if not start else f"{round_size(start)} to {round_size(end)}"


def _print_times(times: TimeHistogram) -> None:
    _heading("Records by time (UTC)")
    shown, outside = times.without_outliers()
    shown = shown.between(_TIME_ROWS)
    if not len(shown.starts):
        say("no records with a timestamp")
    else:
        rows = [
            [_time(start, shown.width), f"{records:,}", size(count), records]
            for start, records, count in zip(*(part.tolist() for part in shown.filled()), strict=True)
        ]
        columns = [Column(f"each {interval(shown.width)}"), Column("records", right=True), Column("bytes", right=True)]
        _print_bars(columns, rows)
    if outside:
        say(f"{counted(outside, 'record')} before or after these times")
    if times.without_time:
        say(f"{counted(times.without_time, 'record')} without a timestamp")


def _time(milliseconds: int, width: int) -> str:
    """As precise as the buckets are wide."""
    for least, digits in ((86_400_000, DAYS), (60_000, MINUTES), (1000, SECONDS)):
        if width >= least:
            return timestamp(milliseconds, digits)
    return timestamp(milliseconds)


def _print_bars(columns: list[Column], rows: list[list[Any]]) -> None:
    """A table with a bar for the number at the end of each row."""
    largest = max(row[-1] for row in rows) or 1
    block = "█" if (getattr(sys.stdout, "encoding", None) or "").lower().startswith("utf") else "#"
    bars = ([*row[:-1], block * -(-row[-1] * _BAR // largest)] for row in rows)
    print_table([*columns, Column("", optional=True)], bars)


def _print_keys(topics: list[dict[str, Any]], top: int, by: str) -> None:
    _heading(f"Keys with most {by}")
    name = "records" if by == "records" else "size_in_bytes"
    keys = [(topic, key) for topic in topics for key in topic["keys"][f"by_{by}"]]
    keys.sort(key=lambda entry: -entry[1][name])
    if not keys:
        some = any(topic["keys"]["num_keys"] for topic in topics)
        say("no key has many more than the others" if some else "no record has a key")
        return
    columns = [
        Column("key", stretch=True),
        Column("topic", stretch=True),
        Column("records", right=True),
        Column("share", right=True, optional=True),
        Column("bytes", right=True),
    ]
    print_table(columns, (_key_row(*entry) for entry in keys[:top]))
    for topic in topics:
        if not topic["keys"]["exact"]:
            records, count = topic["keys"]["records_error"], topic["keys"]["bytes_error"]
            most = f"{counted(records, 'record')} or {size(count)}"
            say(f"{topic['topic'] or '-'} has too many keys to count all: the numbers may be too small by up to {most}")


def _key_row(topic: dict[str, Any], key: dict[str, Any]) -> list[str]:
    inexact = "" if topic["keys"]["exact"] else "at least "
    return [
        key["key"] or "(empty)",
        topic["topic"] or "-",
        f"{inexact}{key['records']:,}",
        f"{key['records'] / topic['num_records'] * 100:.1f} %",
        f"{inexact}{size(key['size_in_bytes'])}",
    ]
