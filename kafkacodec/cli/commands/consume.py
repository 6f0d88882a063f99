"""``kafkacodec consume``: print the records of topics from brokers, or write them to a file."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Literal

import click

from kafkacodec.cli.completion import complete_topic
from kafkacodec.cli.console import ending, is_file, note
from kafkacodec.cli.files.destination import Destination, RecordDestination, destination_options
from kafkacodec.cli.files.standard_input import STANDARD
from kafkacodec.cli.options.inputs import TIMES, broker_moment, check_times
from kafkacodec.cli.options.numbers import Number
from kafkacodec.cli.options.printing import Printing, print_options
from kafkacodec.cli.options.search import Wanted, search_options
from kafkacodec.cli.options.servers import Servers, legal_topic, made, server_options
from kafkacodec.cli.options.values import ValueOptions, value_options
from kafkacodec.cli.output import Advance, counted, full_option, progress
from kafkacodec.cli.rows.kafka07_brokers import Reading, kafka07_servers
from kafkacodec.cli.warnings import show_warnings

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkacodec.cli.rows.consume_range import Plan, Range, Start
    from kafkacodec.cli.rows.consumed import Consumed
    from kafkacodec.cli.rows.record_output import Printer
    from kafkacodec.cli.rows.record_rows import Page
    from kafkacodec.client import Consumer

_STORED = "stored"
_PATTERN = "^"
_LEAVE_SECONDS = 5.0


@click.command()
@click.argument("topics", metavar="TOPIC...", nargs=-1, shell_complete=complete_topic)
@server_options()
@click.option(
    "-t", "--topic", "more", metavar="TOPIC", multiple=True, shell_complete=complete_topic, help="As an argument TOPIC."
)
@click.option("-q", "--quiet", is_flag=True, help="No warnings of the client on standard error.")
@click.option(
    "-p", "--partition", "numbers", metavar="N", type=int, multiple=True, help="Only partition N; repeatable."
)
@click.option(
    "-o",
    "--offset",
    default=None,
    help="Start at the beginning (default), the end, an offset, -N for the last N of each partition, s@TIME; "
    "with --group: stored (default).",
)
@click.option(
    "--start-time",
    "--from-time",
    "start_time",
    metavar="TIME",
    callback=broker_moment,
    help=f"Start at the first record of this time or later: {TIMES}.",
)
@click.option(
    "--end-time", metavar="TIME", callback=broker_moment, help="Stop before the first record of this time or later."
)
@click.option("-G", "--group", help="Join this group, start at its committed offsets, and commit what was printed.")
@click.option(
    "--follow/--exit-at-end",
    " /-e",
    "follow",
    default=True,
    help="Wait for new records until Ctrl-C (default), or stop where the partitions ended at the start.",
)
@click.option("-n", "-c", "--limit", metavar="N", type=Number(min=0), help="Print at most N records.")
@search_options
@click.option(
    "--isolation-level",
    type=click.Choice(["read_uncommitted", "read_committed"]),
    help="read_committed excludes aborted and open transactions; read_uncommitted (default) does not.",
)
@full_option
@print_options(batch_columns=False)
@value_options
@destination_options(RecordDestination)
def consume(
    topics: tuple[str, ...],
    servers: Servers,
    more: tuple[str, ...],
    quiet: bool,
    numbers: tuple[int, ...],
    offset: str | None,
    start_time: int | None,
    end_time: int | None,
    group: str | None,
    follow: bool,
    limit: int | None,
    wanted: Wanted,
    isolation_level: Literal["read_uncommitted", "read_committed"] | None,
    printing: Printing,
    typed: ValueOptions,
    output: Destination,
) -> None:
    """Print the records of topics from brokers, as `kafkacodec dump` prints those of files.

    Reads all partitions from their beginning and goes on until Ctrl-C (exit code 130, as of tail -f). With
    --exit-at-end it stops at the end. With --group several consumers share the partitions. A TOPIC that begins with ^
    is a regular expression: '^t' is all topics whose names begin with t, without --group those that are there at the
    start. Options of the client come from -F and -X, also those of security.

    With --values and --keys, Avro, Protobuf and JSON are printed as JSON; --schemas is a registry's URL, for instance.

    With --output it writes one file of Parquet, Arrow IPC, CSV or JSON, as `kafkacodec convert` does, and needs
    --exit-at-end or --limit. The file appears when it is complete; a group commits after that. Typed keys and values
    are columns then; records are kept in a temporary file until all their schemas are known.

    With -b kafka07://HOST:PORT it reads from a broker of Kafka 0.7, with -b kafka07+zookeeper://HOST:PORT and --group
    from all that are registered there.
    """
    topics += more
    if not topics:
        raise click.UsageError("Missing argument 'TOPIC...'.")
    if quiet:
        show_warnings(quiet=True)
    ending.by_interrupt = follow and limit is None
    old = kafka07_servers(servers.bootstrap)
    if old is not None:
        reading = Reading(old, topics, numbers, offset, group, follow=follow, limit=limit)
        _print(printing.printer(several=True, headers=False), reading.pages())
        return
    from kafkacodec.cli.rows.consume_range import Plan
    from kafkacodec.cli.rows.consumed import Consumed
    from kafkacodec.client import Consumer

    for topic in topics:
        if not topic.startswith(_PATTERN):
            legal_topic(topic)
    start = _start(offset, start_time, group)
    check_times(start.time, end_time, "--start-time" if offset is None else "--offset")
    if group is not None and (numbers or end_time is not None):
        raise click.UsageError("--group assigns the partitions; --partition and --end-time do not apply")
    if output:
        _check_output(output, printing, follow and limit is None)
    printer = printing.printer(several=True, headers=True)
    options = _options(servers, group, offset, isolation_level, start)
    plan = Plan({})
    if group is None:
        plan = _plan(servers, topics, numbers, start, end_time, not follow, options["isolation_level"])
        if output and plan.unread:
            raise click.ClickException("; ".join(plan.unread.values()) + "; --partition selects others")
    else:
        _require_topics(servers, topics, follow)
    grouped = group is not None
    to_file = output.path not in (None, STANDARD) or is_file(sys.stdout)
    with made(Consumer, options) as consumer, _leaving(consumer), _progress(plan.ranges, limit, to_file) as advance:
        _begin(consumer, topics, plan)
        commits = grouped and not output
        search, records = wanted.search(), None if output else typed.typed_records()
        consumed = Consumed(consumer, plan.ranges, grouped and not follow, search, limit, commits, advance, records)
        if output:
            count = _write(output, consumed, typed)
            if grouped:
                consumed.commit()
            note(f"{output.shown}: {counted(count, 'record')}")
        else:
            _print(printer, consumed.pages())
    unread = plan.unread | consumed.unread
    if unread:
        names = ", ".join(f"{topic}-{number}" for topic, number in unread)
        raise click.ClickException(f"{counted(len(unread), 'partition')} could not be read: {names}")


def _options(
    servers: Servers, group: str | None, offset: str | None, isolation_level: str | None, start: Start
) -> dict[str, Any]:
    """The consumer's options."""
    from kafkacodec.client.consuming.settings import ConsumerSettings

    own: dict[str, tuple[str, Any]] = {}
    decided = {
        "enable_auto_commit": "with --group, the offsets of printed records are committed",
        "group_id": "use --group",
    }
    if isolation_level is not None:
        own["isolation_level"] = ("--isolation-level", isolation_level)
    if group is None:
        decided["auto_offset_reset"] = "use --offset"
    elif offset not in (None, _STORED):
        own["auto_offset_reset"] = ("--offset", start.spec)
    # To read a topic that is deleted meanwhile would create it again.
    return {
        "auto_offset_reset": "earliest",
        "isolation_level": "read_uncommitted",
        "allow_auto_create_topics": False,
        **servers.options(ConsumerSettings, own, decided),
        "enable_auto_commit": False,
        "group_id": group,
    }


def _print(printer: Printer, pages: Iterator[Page | None]) -> None:
    from kafkacodec.cli.rows.record_rows import Counted

    shown = Counted(pages)
    try:
        printer(shown)
    finally:
        pages.close()  # type: ignore[attr-defined]
        shown.tell()


@contextmanager
def _leaving(consumer: Consumer) -> Iterator[None]:
    """Wait for a coordinator that hangs only for a moment where someone waits for the end."""
    try:
        yield
    except KeyboardInterrupt:
        consumer.close(_LEAVE_SECONDS)
        raise


def _check_output(output: Destination, printing: Printing, endless: bool) -> None:
    if endless:
        raise click.UsageError("--output needs an end: --exit-at-end or --limit")
    if printing.columns is not None or printing.template is not None or printing.raw:
        raise click.UsageError("--output writes all columns as they are: --columns, --format and --raw do not apply")
    output.check([], as_json=printing.as_json)


def _write(output: Destination, consumed: Consumed, typed: ValueOptions) -> int:
    """Write the records as a table; returns their number."""
    import pyarrow as pa

    from kafkacodec.cli.files.typed_output import write_typed
    from kafkacodec.log.segments.kinds import BATCHES
    from kafkacodec.records.plan import PLACE_COLUMNS, RECORD_COLUMNS

    schema = pa.record_batch(BATCHES.nothing({"columns": PLACE_COLUMNS + RECORD_COLUMNS})).schema

    def batches() -> Iterator[pa.RecordBatch]:
        for table in consumed.tables():
            yield pa.record_batch(table)

    record_values = typed.record_values()
    if record_values is None:
        return output.write(schema, batches())
    count = write_typed(output, schema, batches(), record_values)
    if record_values.num_errors:
        note(f"{counted(record_values.num_errors, 'value')} could not be decoded; the column of errors says why")
    return count


def _start(offset: str | None, start_time: int | None, group: str | None) -> Start:
    from kafkacodec.cli.rows.consume_range import Start, parse_start

    if offset is not None and start_time is not None:
        raise click.UsageError("--offset and --start-time exclude each other")
    if group is None and offset == _STORED:
        raise click.UsageError("--offset stored needs --group")
    if group is not None and (start_time is not None or offset not in (None, _STORED, "beginning", "end")):
        raise click.UsageError("--group starts at committed offsets; with it, --offset can be stored, beginning or end")
    if start_time is not None:
        return Start(start_time)
    try:
        return Start() if offset in (None, _STORED) else parse_start(offset or "")
    except ValueError as error:
        raise click.UsageError(f"--offset: {error}") from None


def _require_topics(servers: Servers, topics: tuple[str, ...], follow: bool) -> None:
    """Refuse topics that are not there: a group would wait for them. It may wait for those of a pattern."""
    from kafkacodec.cli.rows.consume_range import described

    patterns = _patterns(topics)
    with servers.topic_admin(others=True) as admin:
        described(admin, [topic for topic in topics if topic not in patterns])
        names = admin.list_topics() if patterns else []
    for pattern in patterns:
        if not any(re.search(pattern, name) for name in names):
            if not follow:
                raise click.ClickException(f"no topic matches {pattern}")
            note(f"no topic matches {pattern} yet")


def _patterns(topics: tuple[str, ...]) -> list[str]:
    """The regular expressions among the topics. Raises click.UsageError: one is none."""
    patterns = [topic for topic in topics if topic.startswith(_PATTERN)]
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise click.UsageError(f"{pattern}: {error}") from None
    return patterns


def _plan(servers: Servers, topics: tuple[str, ...], *arguments: Any) -> Plan:
    from kafkacodec.cli.rows.consume_range import partition_ranges

    numbers, start, end_time, to_end, isolation_level = arguments
    with servers.topic_admin(others=True) as admin:
        patterns = _patterns(topics)
        names = list(admin.list_topics()) if patterns else []
        for pattern in patterns:
            if not any(re.search(pattern, name) for name in names):
                raise click.ClickException(f"no topic matches {pattern}")
        fitting = [name for name in names if any(re.search(pattern, name) for pattern in patterns)]
        topics = tuple(dict.fromkeys([*(topic for topic in topics if topic not in patterns), *fitting]))
        return partition_ranges(admin, topics, numbers, start, end_time, to_end=to_end, isolation_level=isolation_level)


def _progress(
    ranges: Mapping[tuple[str, int], Range], limit: int | None, to_file: bool
) -> AbstractContextManager[Advance]:
    """A bar while records go to a file. Its total is the limit, or the number of offsets if there is an end."""
    if not to_file:
        return nullcontext(lambda count: None)
    ends = [part.end - part.start for part in ranges.values() if part.end is not None]
    total = sum(ends) if ends and len(ends) == len(ranges) else None
    return progress("consume", total if limit is None else limit, records=True)


def _begin(consumer: Any, topics: tuple[str, ...], plan: Plan) -> None:
    """Assign the partitions with their starts, or subscribe to the topics."""
    if plan.ranges or plan.later:
        consumer.assign([*plan.ranges, *plan.later])
        for (topic, number), part in plan.ranges.items():
            consumer.seek(topic, number, part.start)
        for key, start in plan.later.items():
            start.seek(consumer, key)
    elif any(topic.startswith(_PATTERN) for topic in topics):
        # As in librdkafka, a pattern may match a part; a consumer's has to match in full.
        consumer.subscribe(
            pattern="|".join(f".*(?:{topic}).*" if topic.startswith(_PATTERN) else re.escape(topic) for topic in topics)
        )
    else:
        consumer.subscribe(list(topics))
