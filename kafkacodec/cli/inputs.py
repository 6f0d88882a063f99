"""From the paths and options of a command to segment files."""

from __future__ import annotations

import dataclasses
import fnmatch
import functools
import mmap
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

import click

from kafkacodec.errors import KafkaCodecError
from kafkacodec.log import layout

if TYPE_CHECKING:
    from kafkacodec import Problem
    from kafkacodec.records.decode import DecodeOptions

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True)
class Source:
    """A segment file. Topic and partition come from the directory's name and are None when it is not a partition's."""

    path: str
    size: int
    topic: str | None
    partition: int | None

    @contextmanager
    def data(self) -> Iterator[mmap.mmap | bytes]:
        """The file's bytes, mapped; errors about them name the file."""
        with open(self.path, "rb") as file:
            # An empty file cannot be mapped.
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if self.size else None
        try:
            yield b"" if mapped is None else mapped
        except KafkaCodecError as error:
            raise click.ClickException(f"{self.path}: {error}") from None


@dataclass(frozen=True)
class Choice:
    """Which segments and offsets a command is about."""

    paths: tuple[str, ...]
    topics: tuple[str, ...]
    partitions: tuple[int, ...]
    start_offset: int | None
    end_offset: int | None
    verify_crc: bool

    def sources(self) -> list[Source]:
        """The segments, in the order of the paths; those below a directory by topic, partition and base offset."""
        found = [source for path in self.paths for source in _below(path)]
        chosen = [source for source in found if self._wanted(source)]
        if not chosen:
            reason = "no segment is of the chosen topics and partitions" if found else "no segments (*.log) found"
            raise click.ClickException(f"{', '.join(self.paths)}: {reason}")
        return chosen

    def _wanted(self, source: Source) -> bool:
        topic = not self.topics or any(fnmatch.fnmatchcase(source.topic or "", pattern) for pattern in self.topics)
        return topic and (not self.partitions or source.partition in self.partitions)


@dataclass(frozen=True)
class Reading(Choice):
    """How to decode what was chosen."""

    include_control: bool
    on_error: Literal["raise", "stop", "skip"]

    def options(self) -> DecodeOptions:
        """Arguments for the functions that decode."""
        return {
            "start_offset": self.start_offset,
            "end_offset": self.end_offset,
            "verify_crc": self.verify_crc,
            "include_control": self.include_control,
            "on_error": self.on_error,
        }


_CHOICE_OPTIONS = (
    click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(exists=True, readable=True)),
    click.option("--topic", "topics", metavar="GLOB", multiple=True, help="Only topics that match; may be repeated."),
    click.option(
        "--partition", "partitions", metavar="N", type=int, multiple=True, help="Only this partition; may be repeated."
    ),
    click.option("--start-offset", metavar="N", type=int, help="Only from this offset on."),
    click.option("--end-offset", metavar="N", type=int, help="Only what is before this offset."),
    click.option("--crc/--no-crc", "verify_crc", default=True, help="Check the checksums (the default) or not."),
)
_READING_OPTIONS = (
    click.option("--control", "include_control", is_flag=True, help="Include control records (transaction markers)."),
    click.option(
        "--on-error",
        type=click.Choice(["raise", "stop", "skip"]),
        default="raise",
        show_default=True,
        help="At damaged data: fail; end that segment with a warning; or go on behind it with a warning.",
    ),
)


def choice_options(command: Command) -> Command:
    """Give a command PATH... and the options of `Choice`; it gets them as one argument, ``choice``."""
    return _gathered(command, "choice", Choice, _CHOICE_OPTIONS)


def reading_options(command: Command) -> Command:
    """Give a command PATH... and the options of `Reading`; it gets them as one argument, ``reading``."""
    return _gathered(command, "reading", Reading, _CHOICE_OPTIONS + _READING_OPTIONS)


def _gathered(command: Command, name: str, kind: type[Choice], options: tuple[Callable[..., Any], ...]) -> Command:
    @functools.wraps(command)
    def wrapped(**arguments: Any) -> Any:
        taken = {field.name: arguments.pop(field.name) for field in dataclasses.fields(kind)}
        return command(**{name: kind(**taken)}, **arguments)

    result = cast(Command, wrapped)
    for option in reversed(options):
        result = option(result)
    return result


def warn(source: Source, problems: list[Problem]) -> None:
    """A line on standard error for everything that was passed over."""
    for problem in problems:
        note = f"{problem.num_bytes:,} bytes passed over: {problem.exception}"
        click.echo(f"kafkacodec: warning: {source.path}: {note}", err=True)


def require_batches(source: Source, data: mmap.mmap | bytes, consumed: int) -> None:
    """Fail for a file that has bytes but not one whole batch. Zeros alone are a preallocated segment."""
    if consumed == 0 and any(data[:4096]):
        raise click.ClickException(f"{source.path}: not a log segment: no whole batch in its {source.size:,} bytes")


def _below(path: str) -> Iterator[Source]:
    if not os.path.isdir(path):
        yield _source(path)
        return
    found = []
    for directory, _, names in os.walk(path):
        partition = layout.parse_directory_name(os.path.basename(os.path.abspath(directory)))
        if partition is None or partition.state == "current":
            found += [os.path.join(directory, name) for name in names if _is_segment(name)]
    yield from sorted(map(_source, found), key=lambda s: (s.topic or "", s.partition or 0, s.path))


def _is_segment(name: str) -> bool:
    parsed = layout.parse_file_name(name)
    return parsed is not None and parsed.suffix == layout.LOG_SUFFIX


def _source(path: str) -> Source:
    place = layout.parse_directory_name(os.path.basename(os.path.dirname(os.path.abspath(path))))
    topic, partition = (place.topic, place.partition) if place else (None, None)
    return Source(path, os.path.getsize(path), topic, partition)
