"""``kafkacodec dump``: print records, all or those that are searched for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import click

from kafkacodec.cli.inputs import Reading, place, reading_options
from kafkacodec.cli.output import full_option
from kafkacodec.cli.search_options import Wanted, search_options

if TYPE_CHECKING:
    from kafkacodec import RecordColumns, Search
    from kafkacodec.cli.record_output import Printer
    from kafkacodec.cli.record_rows import Place, Row
    from kafkacodec.log import Growth, Partition, SegmentRange
    from kafkacodec.records.decode import DecodeOptions

# Few rows without a search, so that the first ones appear at once.
_CHUNK_ROWS, _SEARCHED_ROWS = 1024, 8192

_RECORD = ("offset", "timestamp", "key", "value")


def _columns(context: click.Context, option: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    from kafkacodec.cli.record_rows import COLUMNS

    if value is None:
        return None
    names = tuple(name.strip() for name in value.split(","))
    wrong = [name for name in names if name not in COLUMNS]
    if wrong:
        raise click.BadParameter(f"unknown column {wrong[0]!r}; columns are {', '.join(COLUMNS)}", context, option)
    return names


@click.command()
@reading_options
@search_options
@full_option
@click.option("-n", "--limit", metavar="N", type=click.IntRange(min=0), help="Print at most N records.")
@click.option("--tail", metavar="N", type=click.IntRange(min=0), help="Only the last N records of each partition.")
@click.option("--follow", is_flag=True, help="Go on with new records as they are written, until Ctrl-C.")
@click.option(
    "--columns",
    metavar="NAME,...",
    callback=_columns,
    help="Print these: topic, partition, offset, timestamp, key, value, headers, or columns of the batch.",
)
@click.option("--json", "as_json", is_flag=True, help="JSON lines instead of a table.")
@click.option(
    "-f",
    "--format",
    "template",
    metavar="FORMAT",
    help=r"Print by a format string, such as '%t %p %o %k %s\n'. The searching page of the docs lists the fields.",
)
@click.option("--raw", is_flag=True, help="Show bytes of internal topics and control records, not their fields.")
@click.option(
    "--log-format",
    type=click.Choice(["kafka", "kafka07"]),
    help="Fail if a segment has another format. kafka07: Kafka 0.6 and 0.7 (*.kafka).",
)
def dump(
    reading: Reading,
    wanted: Wanted,
    limit: int | None,
    tail: int | None,
    follow: bool,
    columns: tuple[str, ...] | None,
    as_json: bool,
    template: str | None,
    raw: bool,
    log_format: str | None,
) -> None:
    """Print records.

    The table shows keys and values as text if they are printable, else as hex, and is cut to the terminal's width. In
    JSON they are strings if they are UTF-8, else {"base64": "..."}; timestamps are milliseconds since 1970. Records of
    internal topics, such as __consumer_offsets, and control records are shown by the names of their fields.
    """
    if follow and (reading.end_offset is not None or reading.end_time is not None):
        raise click.UsageError("--follow reads on: --end-offset and --end-time do not apply")
    partitions = reading.partitions()
    if log_format is not None:
        _require_kind(partitions, log_format)
    printer = _printer(partitions, columns, as_json, template, raw)
    source = _Source(reading, wanted.search(), _batch_fields(reading, columns, raw))
    if follow:
        rows: Iterator[Row | None] = source.followed(partitions, tail)
    elif tail is not None:
        rows = (row for partition in partitions for row in source.last(partition, tail))
    else:
        rows = source.all(partitions)
    printer(_limited(rows, limit))


def _require_kind(partitions: list[Partition], name: str) -> None:
    from kafkacodec.log.kinds import kind_of

    for path in (segment.path for partition in partitions for segment in partition.segments):
        if kind_of(path).name != name:
            raise click.ClickException(
                f"{path}: not a segment of format {name}; the suffix decides, .kafka for kafka07, or else the content"
            )


def _table(partitions: list[Partition], raw: bool) -> tuple[str, ...]:
    """The columns of a table. Records of internal topics have no headers."""
    from kafkacodec.messages.stored import INTERNAL_TOPICS

    plain = raw or any(partition.topic not in INTERNAL_TOPICS for partition in partitions)
    return ("place",) * (len(partitions) > 1) + _RECORD + ("headers",) * plain


def _printer(
    partitions: list[Partition], columns: tuple[str, ...] | None, as_json: bool, template: str | None, raw: bool
) -> Printer:
    import os

    from kafkacodec.cli.record_format import compiled
    from kafkacodec.cli.record_output import print_formatted, print_json, print_rows

    if template is not None:
        if as_json or columns is not None:
            raise click.UsageError("--format prints by its string: --json and --columns do not apply")
        try:
            compiled(os.fsencode(template))
        except ValueError as error:
            raise click.UsageError(f"--format: {error}") from None
        return partial(print_formatted, template=os.fsencode(template))
    if as_json:
        return partial(print_json, columns=columns, raw=raw)
    return partial(print_rows, columns=columns or _table(partitions, raw), raw=raw)


def _batch_fields(reading: Reading, columns: tuple[str, ...] | None, raw: bool) -> tuple[str, ...]:
    """The fields of the batch that are shown, or needed to show a control record."""
    from kafkacodec.cli.record_rows import FIELDS
    from kafkacodec.cli.stored_records import BATCH_FIELDS

    named = BATCH_FIELDS if reading.include_control and not raw else ()
    return tuple({name: None for name in (*named, *(columns or ())) if name not in FIELDS})


def _limited(rows: Iterator[Row | None], limit: int | None) -> Iterator[Row | None]:
    """At most so many records; what is None does not count."""
    if limit is None:
        yield from rows
        return
    found = 0
    while found < limit:
        row = next(rows, ...)
        if row is ...:
            return
        found += row is not None
        yield row


@dataclass(frozen=True)
class _Source:
    """The records to print."""

    reading: Reading
    search: Search | None
    batch_fields: tuple[str, ...]

    def all(self, partitions: list[Partition]) -> Iterator[Row]:
        """All records, partition by partition."""
        from kafkacodec.cli.record_rows import rows

        for piece in self.reading.ranges(partitions):
            yield from rows(_place(piece), self._chunks(piece, self.reading), self.batch_fields)

    def last(self, partition: Partition, count: int) -> Iterator[Row]:
        """The last records of a partition."""
        from kafkacodec.cli.record_rows import rows
        from kafkacodec.log.from_end import last_chunks

        def read(span: tuple[int | None, int | None]) -> Iterator[RecordColumns]:
            part = replace(self.reading, start_offset=span[0], end_offset=span[1])
            return (chunk for piece in part.ranges([partition]) for chunk in self._chunks(piece, part))

        bounds = self.reading.start_offset, self.reading.end_offset
        return rows(_place(partition), last_chunks(partition, count, bounds, read), self.batch_fields)

    def followed(self, partitions: list[Partition], count: int | None) -> Iterator[Row | None]:
        """All records, or the last ones, then new ones as they are written."""
        from kafkacodec.cli.following import follow
        from kafkacodec.log import Follower

        followers = []
        for partition in partitions:
            if partition.is_kafka07:
                raise click.UsageError(f"{partition.path}: --follow does not support logs of Kafka 0.6 and 0.7")
            follower = Follower(partition, self._start(partition), isolation_level=self.reading.isolation_level)
            if count is not None:
                growth = follower.poll()
                if growth is not None:
                    until = replace(self, reading=replace(self.reading, end_offset=growth.end_offset))
                    yield from until.last(growth.partition, count)
            followers.append(follower)
        yield from follow(followers, self._new)

    def _start(self, partition: Partition) -> int | None:
        """The first offset to print, by --start-offset and --start-time."""
        if self.reading.start_time is None:
            return self.reading.start_offset
        found = partition.offset_of_timestamp(self.reading.start_time)
        found = partition.end_offset() if found is None else found
        return max(found, self.reading.start_offset or 0)

    def _new(self, growth: Growth) -> Iterator[Row]:
        start, end = growth.start_offset, growth.end_offset
        part = replace(self, reading=replace(self.reading, start_offset=start, end_offset=end, start_time=None))
        return part.all([growth.partition])

    def _chunks(self, piece: SegmentRange, reading: Reading) -> Iterator[RecordColumns]:
        """The records of a range, or those that are searched for."""
        options: DecodeOptions = {"batch_columns": bool(self.batch_fields)}
        rows = _CHUNK_ROWS if self.search is None else _SEARCHED_ROWS
        for chunk in reading.read(piece, lambda count: None, max_rows=rows, columns=options):
            yield chunk if self.search is None else self.search.select(chunk)


def _place(where: SegmentRange | Partition) -> Place:
    from kafkacodec.cli.record_rows import Place

    return Place(where.topic, where.partition, place(where.topic, where.partition, where.path))
