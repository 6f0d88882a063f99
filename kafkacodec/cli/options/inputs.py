"""Paths and options that commands share: which partitions, offsets and records to read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal

import click

from kafkacodec.cli.advice import advised
from kafkacodec.cli.completion import complete_topic
from kafkacodec.cli.console import note
from kafkacodec.cli.files.standard_input import paths_with_copy
from kafkacodec.cli.options.checkpoints import warn_of_checkpoints_beside
from kafkacodec.cli.options.gathering import Command, gathered
from kafkacodec.cli.options.globs import matches, refuse_strangers
from kafkacodec.cli.options.log_path import LogPath
from kafkacodec.datatypes import dataclass
from kafkacodec.errors import DecodeError, MissingOffsets
from kafkacodec.internal_records import INTERNAL_TOPICS
from kafkacodec.moments import are_seconds, milliseconds

if TYPE_CHECKING:  # the log's modules take longer to import than --help and completions may take
    from kafkacodec import Problem, RecordColumns
    from kafkacodec.cli.output import Advance
    from kafkacodec.log import LogDirectory, Partition, SegmentRange
    from kafkacodec.log.partitions.each_once import Replicas
    from kafkacodec.records.plan import DecodeOptions

_START = 4096
_SMALLEST_UNUSED = 12  # bytes of zeros that cannot be the start of a batch


TREE_LEVELS = 2
"""How deep in a tree of directories log directories are looked for."""


@dataclass(frozen=True)
class Choice:
    """The partitions to read."""

    paths: tuple[str, ...]
    topics: tuple[str, ...]
    numbers: tuple[int, ...]

    def partitions(self, levels: int = 0) -> list[Partition]:
        """The chosen partitions, within a directory by topic and number; `levels` as in `discover`.

        Prints a warning for each checkpoint beside them that cannot be read.
        """
        chosen = self.unwarned(levels)
        warn_of_checkpoints_beside(chosen)
        return chosen

    def unwarned(self, levels: int = 0) -> list[Partition]:
        """The same without the warnings, for a command that reports on checkpoints itself."""
        from kafkacodec.log import discover

        found = discover(self.paths, levels=levels)
        chosen = [partition for partition in found if self.wants(partition)]
        place = ", ".join(self.paths)
        refuse_strangers("topic", self.topics, {partition.topic for partition in found if partition.topic}, place)
        there = sorted(
            {one.partition for one in found if one.partition is not None and matches(one.topic or "", self.topics)}
        )
        if not chosen:
            given = " and ".join(name for name, of in (("--topic", self.topics), ("--partition", self.numbers)) if of)
            raise click.ClickException(f"{place}: no partition matches {given}{_which(there)}")
        self.refuse_missing((partition.partition for partition in chosen), place, there)
        return chosen

    def without_internal(self) -> tuple[list[Partition], list[str]]:
        """The chosen partitions without those of internal topics that were not asked for, and the names of these.

        A topic is asked for by --topic, or by the path of its partition.
        """
        chosen = self.partitions()
        given = {path.rstrip("/") for path in self.paths} | {os.path.dirname(path) for path in self.paths}
        unasked = {
            partition.topic
            for partition in chosen
            if partition.topic in INTERNAL_TOPICS and not self.topics and partition.path.rstrip("/") not in given
        }
        kept = [partition for partition in chosen if partition.topic not in unasked]
        return (kept, sorted(filter(None, unasked))) if kept else (chosen, [])

    def log_directories(self, levels: int = 0) -> list[LogDirectory]:
        """The data directories, not partitions or segments, among the paths or up to `levels` below them."""
        from kafkacodec.log import LogDirectory, discover
        from kafkacodec.log.opening import is_directory
        from kafkacodec.log.opening.listing import segment_files

        given = [path for path in self.paths if is_directory(path) and not segment_files(path)]
        if levels:
            given = sorted({os.path.dirname(found.path) for path in given for found in discover(path, levels=levels)})
        return [LogDirectory(path) for path in given]

    def refuse_missing(self, chosen: Iterable[int | None], place: str = "", there: Sequence[int] = ()) -> None:
        """Raise click.ClickException if a number of --partition is that of none of the chosen partitions.

        The error names the partitions that are `there`.
        """
        missing = sorted(set(self.numbers) - set(chosen))
        if missing:
            where = f"{place}: " if place else ""
            raise click.ClickException(f"{where}no partition {', '.join(map(str, missing))}{_which(there)}")

    def wants(self, partition: Partition) -> bool:
        """Whether --topic and --partition choose it."""
        topic = matches(partition.topic or "", self.topics)
        return topic and (not self.numbers or partition.partition in self.numbers)


def _which(numbers: Sequence[int]) -> str:
    """The end of an error about partitions that are not there: which are."""
    if not numbers:
        return ""
    if len(numbers) > 1 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"; there are {numbers[0]} to {numbers[-1]}"
    return f"; there {'is' if len(numbers) == 1 else 'are'} {', '.join(map(str, numbers))}"


@dataclass(frozen=True)
class Span(Choice):
    """The offsets to read, and which checks to make."""

    start_offset: int | None
    end_offset: int | None
    verify_crc: bool
    gaps: Literal["error", "accept"]


@dataclass(frozen=True)
class Reading(Span):
    """The records to read, and how to decode them."""

    start_time: int | None
    end_time: int | None
    isolation_level: Literal["read_uncommitted", "read_committed"]
    include_control: bool
    on_error: Literal["raise", "stop", "skip"]

    def ranges(self, partitions: list[Partition] | None = None) -> list[SegmentRange]:
        """The ranges of segments to read, in order: of `partitions`, by default of all that are chosen."""
        partitions = self.partitions() if partitions is None else partitions
        if self.start_time is not None or self.end_time is not None:
            for partition in partitions:
                if partition.is_kafka07:
                    reason = "logs of Kafka 0.6 and 0.7 have no timestamps; choose records by offset"
                    raise click.UsageError(f"{partition.path}: {reason}")
        return [
            piece
            for partition in partitions
            for piece in partition.ranges(
                start_offset=self.start_offset,
                end_offset=self.end_offset,
                start_timestamp=self.start_time,
                end_timestamp=self.end_time,
                isolation_level=self.isolation_level,
            )
        ]

    def read(
        self,
        piece: SegmentRange,
        advance: Advance,
        *,
        max_rows: int = 8192,
        max_bytes: int | None = None,
        columns: DecodeOptions | None = None,
        threads: int | None = 1,
    ) -> Iterator[RecordColumns]:
        """The records of a range, in chunks. Prints a warning for each fault that is skipped."""
        options: DecodeOptions = {
            "verify_crc": self.verify_crc,
            "include_control": self.include_control,
            "on_error": self.on_error,
            **(columns or {}),
        }
        done, damaged = piece.start_position, False
        try:
            for chunk in piece.read(gaps=self.gaps, max_rows=max_rows, max_bytes=max_bytes, threads=threads, **options):
                yield chunk
                advance(chunk.consumed - done)
                done, damaged = chunk.consumed, damaged or bool(chunk.problems)
                self.warn(piece, chunk.problems)
        except DecodeError:
            if done == 0 and piece.kind.has_batches:
                self._check_begin(piece)
            raise
        if done == 0 and piece.kind.has_batches and not damaged:
            self._check_without_batches(piece)
        elif done < piece.end_position and piece.base_offset is None and not damaged:
            self._note_rest(piece, done)
        advance(piece.end_position - done)

    @staticmethod
    def _check_begin(piece: SegmentRange) -> None:
        """Raise if the file does not begin like a segment: then no other fault matters."""
        from kafkacodec.log.opening import open_file
        from kafkacodec.log.partitions.segment import check_is_segment

        with open_file(piece.path) as file:
            check_is_segment(file, 0)

    def _check_without_batches(self, piece: SegmentRange) -> None:
        """Raise if the file does not begin like a segment; warn if it has no more than the start of a batch."""
        from kafkacodec.log import Segment
        from kafkacodec.log.opening import open_file

        on_error: Literal["raise", "stop"] = "raise" if self.on_error == "raise" else "stop"
        headers = Segment(piece.path).scan(verify_crc=False, on_error=on_error, max_batches=1)
        if headers.consumed or headers.problems or not piece.size_in_bytes:
            return
        with open_file(piece.path) as file:
            start = file.read(0, _START)
        if any(start) or piece.size_in_bytes < _SMALLEST_UNUSED:  # else it is preallocated
            note(f"kafkacodec: warning: {piece.path}: no complete batch in {piece.size_in_bytes:,} bytes")

    def _note_rest(self, piece: SegmentRange, end: int) -> None:
        """Warn of a partial batch at the end of a file that may be a copy which ended early, such as a pipe's."""
        from kafkacodec.log.opening import open_file

        if self.end_offset is not None or self.end_time is not None:
            return
        with open_file(piece.path) as file:
            rest = file.read(end, _START)
        if any(rest):
            size = piece.end_position - end
            note(f"kafkacodec: warning: {piece.path}: the last {size:,} bytes, of a partial batch, are not read")

    @staticmethod
    def warn(piece: SegmentRange, problems: list[Problem]) -> None:
        """Print a warning on standard error for each problem."""
        from kafkacodec.log.formats.layout import stands_for_log

        for problem in problems:
            skipped = (
                "" if isinstance(problem.exception, MissingOffsets) else f"{problem.size_in_bytes:,} bytes skipped: "
            )
            path = os.path.dirname(piece.path) if stands_for_log(piece.path) else piece.path
            reason = advised(problem.exception, ["--gaps"]).removeprefix(f"{path}: ")
            note(f"kafkacodec: warning: {path}: {skipped}{reason}")


@dataclass(frozen=True)
class OnceReading(Reading):
    """The same, with each record of replicas once, unless the user wants each of them."""

    replicas: Replicas

    def partitions(self, levels: int = 0) -> list[Partition]:
        """As `Choice.partitions`, with replicas as one partition if they are merged."""
        from kafkacodec.log.partitions.each_once import CopiesRefused, each_once

        try:
            return each_once(
                super().partitions(levels), self.replicas, merge="--replicas merge", every="--replicas all"
            )
        except CopiesRefused as error:
            raise click.ClickException(str(error)) from None


def moment(context: click.Context, option: click.Parameter, value: str | None) -> int | None:
    """A time by its text, in milliseconds since 1970."""
    try:
        time = None if value is None else milliseconds(value, "the time")
    except ValueError as error:
        raise click.BadParameter(str(error), context, option) from None
    if value is not None and are_seconds(value):
        note(f"kafkacodec: warning: {option.opts[0]} {value} is in 1970, in milliseconds; for seconds, add 000")
    return time


def broker_moment(context: click.Context, option: click.Parameter, value: str | None) -> int | None:
    """The same, for brokers, to which negative numbers are no times."""
    time = moment(context, option, value)
    if time is not None and time < 0:
        raise click.BadParameter(f"{value} is before 1970", context, option)
    return time


def _check_span(span: Span) -> None:
    if span.start_offset is not None and span.end_offset is not None and span.end_offset < span.start_offset:
        raise click.UsageError("--end-offset is below --start-offset: no record is between them")


def _check_reading(reading: Reading) -> None:
    _check_span(reading)
    check_times(reading.start_time, reading.end_time)


def check_times(start: int | None, end: int | None, name: str = "--start-time") -> None:
    """Refuse an ``--end-time`` before the start, which is given by the option `name`. Raises click.UsageError."""
    if start is not None and end is not None and end < start:
        raise click.UsageError(f"--end-time is before {name}: no record is between them")


TIMES = "milliseconds since 1970, ISO 8601 (UTC by default), today, yesterday, or -1h for an hour ago"
"""What a TIME may be, for the help of options."""


topics_option = click.option(
    "--topic",
    "topics",
    metavar="GLOB",
    multiple=True,
    shell_complete=complete_topic,
    help="Only topics matching GLOB; repeatable.",
)
"""For commands that take globs for `matches`."""


def _paths(required: bool) -> Callable[[Command], Command]:
    return click.argument(
        "paths",
        metavar="PATH...",
        nargs=-1,
        required=required,
        type=LogPath(exists=True, readable=True, allow_dash=True),
        callback=paths_with_copy,
    )


def _use_keys(context: click.Context, option: click.Parameter, value: tuple[str, ...]) -> None:
    if value:
        from kafkacodec.log.tiered.keys import KEYS_VARIABLE, named_file

        missing = [path for _, path in map(named_file, value) if not os.path.exists(path)]
        if missing:
            raise click.BadParameter(f"{missing[0]}: there is no such file", context, option)
        os.environ[KEYS_VARIABLE] = os.pathsep.join(value)


tiered_key_option = click.option(
    "--tiered-key",
    metavar="[ID=]FILE",
    multiple=True,
    expose_value=False,
    is_eager=True,
    callback=_use_keys,
    help="Private key (PEM) of segments in tiered storage, of the key pair ID; repeatable.",
)
"""For commands that read logs: sets the environment variable for this process and those that it starts."""


_CHOICE_OPTIONS = (
    _paths(True),
    topics_option,
    click.option("--partition", "numbers", metavar="N", type=int, multiple=True, help="Only partition N; repeatable."),
    tiered_key_option,
)
gaps_option = click.option(
    "--gaps",
    type=click.Choice(["error", "accept"]),
    default="error",
    show_default=True,
    help="Offsets missing between segments that compaction does not explain: treat as damage, or read on.",
)
_SPAN_OPTIONS = (
    click.option("--start-offset", "--offset", "start_offset", metavar="N", type=int, help="Start at this offset."),
    click.option("--end-offset", metavar="N", type=int, help="Stop before this offset."),
    click.option("--crc/--no-crc", "verify_crc", default=True, help="Verify checksums (default) or not."),
    gaps_option,
)
_READING_OPTIONS = (
    click.option(
        "--start-time",
        "--from-time",
        "start_time",
        metavar="TIME",
        callback=moment,
        help=f"Start at the first record of this time or later: {TIMES}.",
    ),
    click.option(
        "--end-time", metavar="TIME", callback=moment, help="Stop before the first record of this time or later."
    ),
    click.option(
        "--isolation-level",
        type=click.Choice(["read_uncommitted", "read_committed"]),
        default="read_uncommitted",
        show_default=True,
        help="read_committed excludes aborted and open transactions.",
    ),
    click.option("--control", "include_control", is_flag=True, help="Include control records (transaction markers)."),
    click.option(
        "--on-error",
        type=click.Choice(["raise", "stop", "skip"]),
        default="raise",
        show_default=True,
        help="At damaged data: fail; stop reading the segment, with a warning; or skip the data, with a warning.",
    ),
)


_REPLICAS_OPTIONS = (
    click.option(
        "--replicas",
        type=click.Choice(["error", "merge", "all"]),
        default="error",
        show_default=True,
        help="If several directories have a partition: fail; read them as one log; or read each of them.",
    ),
)

on_error_option = click.option(
    "--on-error",
    "problems",
    type=click.Choice(["raise", "skip"]),
    default="raise",
    show_default=True,
    callback=lambda context, option, value: [] if value == "skip" else None,
    help="At a batch or record that cannot be read: fail, or skip it with a warning.",
)
"""For commands that read stored records: ``problems`` is a list to collect skipped faults in, or None."""


def _threads(context: click.Context, option: click.Parameter, value: str) -> int | None:
    from kafkacodec.arguments import MAX_THREADS, num_threads

    try:
        return None if value == "all" else num_threads(int(value))
    except ValueError:
        reason = f"{value!r} is neither a number from 1 to {MAX_THREADS} nor all"
        raise click.BadParameter(reason, context, option) from None


threads_option = click.option(
    "--threads",
    metavar="N|all",
    default="1",
    show_default=True,
    callback=_threads,
    help="How many threads read; all is one for each processor.",
)
"""For commands that decode or check much data: they get the number, or None for all."""


def size_of(partition: Partition) -> int:
    """The bytes of a partition, for showing progress; 0 for an upload with a damaged manifest, which is reported."""
    try:
        return partition.size_in_bytes
    except DecodeError:
        return 0


def warn(problems: list[DecodeError] | None) -> None:
    """Print a warning on standard error for each problem."""
    for problem in problems or ():
        note(f"kafkacodec: warning: skipped: {problem}")


def choice_options(command: Command) -> Command:
    """Add PATH... and the options of `Choice` to a command, as one argument, ``choice``."""
    return gathered(command, "choice", Choice, _CHOICE_OPTIONS)


def optional_choice_options(command: Command) -> Command:
    """The same for a command that may do without PATH."""
    return gathered(command, "choice", Choice, (_paths(False), *_CHOICE_OPTIONS[1:]))


def span_options(command: Command) -> Command:
    """Add PATH... and the options of `Span` to a command, as one argument, ``span``."""
    return gathered(command, "span", Span, _CHOICE_OPTIONS + _SPAN_OPTIONS, _check_span)


def once_reading_options(command: Command) -> Command:
    """Add PATH... and the options of `OnceReading` to a command, as one argument, ``reading``."""
    options = _CHOICE_OPTIONS + _SPAN_OPTIONS + _READING_OPTIONS + _REPLICAS_OPTIONS
    return gathered(command, "reading", OnceReading, options, _check_reading)


def reading_options(command: Command) -> Command:
    """Add PATH... and the options of `Reading` to a command, as one argument, ``reading``."""
    options = _CHOICE_OPTIONS + _SPAN_OPTIONS + _READING_OPTIONS
    return gathered(command, "reading", Reading, options, _check_reading)


def place(topic: str | None, partition: int | None, path: str) -> str:
    """A partition's name in tables: ``orders-3``, or the file's name if the topic is unknown."""
    return os.path.basename(path) if topic is None else f"{topic}-{partition}"
