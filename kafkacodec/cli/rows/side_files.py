"""The small files beside segments as rows: indexes, producers' snapshots, checkpoints, properties."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from kafkacodec.cli.console import say, say_json
from kafkacodec.cli.output import Column, print_table, timestamp
from kafkacodec.datatypes import NamedTuple
from kafkacodec.errors import CorruptRecord
from kafkacodec.log.formats import layout
from kafkacodec.log.formats.indexes import IndexFile
from kafkacodec.log.opening import read_file
from kafkacodec.log.opening.checkpoints import (
    MAX_BYTES,
    read_checkpoint,
    read_leader_epochs,
    read_producer_snapshot,
    read_properties,
)
from kafkacodec.log.opening.indexes import read_offset_index, read_time_index, read_transaction_index

__all__ = ["SideFile", "print_side_files", "side_file"]

Row = dict[str, Any]


class SideFile(NamedTuple):
    """A file, the names of what each of its rows has, and how it is read.

    `read` returns the rows and the fault that they end before, if there is one.
    """

    path: str
    names: Sequence[str]
    read: Callable[[str], tuple[Iterable[Row], Exception | None]]


def _index(read: Callable[..., IndexFile]) -> Callable[[str], tuple[Iterable[Row], Exception | None]]:
    def rows(path: str) -> tuple[Iterable[Row], Exception | None]:
        found = read(path, on_error="stop")
        names = found.entries.dtype.names or ()
        every = (dict(zip(names, entry, strict=True)) for entry in found.entries.tolist())
        return every, next(iter(found.problems), None)

    return rows


def _producers(path: str) -> tuple[Iterable[Row], None]:
    found = read_producer_snapshot(path)
    names = found.entries.dtype.names or ()
    return (_producer(dict(zip(names, entry, strict=True))) for entry in found.entries.tolist()), None


def _producer(entry: Row) -> Row:
    """As Kafka's tool shows it: a snapshot holds the last batch of each producer; sequences go on at 0."""
    first, last = entry["current_txn_first_offset"], entry["last_sequence"]
    begun = (last - entry["offset_delta"]) % 2**31 if last >= 0 else last
    return entry | {"first_sequence": begun, "current_txn_first_offset": None if first < 0 else first}


def _epochs(path: str) -> tuple[Iterable[Row], None]:
    return (epoch._asdict() for epoch in read_leader_epochs(path)), None


def _offsets(path: str) -> tuple[Iterable[Row], None]:
    found = read_checkpoint(path).items()
    return ({"topic": topic, "partition": number, "offset": offset} for (topic, number), offset in found), None


def _properties(path: str) -> tuple[Iterable[Row], None]:
    return ({"name": name, "value": value} for name, value in read_properties(path).items()), None


def _state(path: str) -> tuple[Iterable[Row], None]:
    """A file of JSON, as a controller keeps its vote in."""
    try:
        found = json.loads(read_file(path, MAX_BYTES))
        return [{"name": name, "value": value} for name, value in found.items()], None
    except (ValueError, AttributeError, RecursionError):
        raise CorruptRecord("not a JSON object", path=path) from None


def _mark(path: str) -> tuple[Iterable[Row], None]:
    """What a broker leaves when it stops cleanly: JSON, or nothing as Kafka 0.8 does."""
    return _state(path) if read_file(path, MAX_BYTES) else ([], None)


_OF_SUFFIX = {
    layout.OFFSET_INDEX_SUFFIX: (("offset", "position"), _index(read_offset_index)),
    layout.TIME_INDEX_SUFFIX: (("timestamp", "offset"), _index(read_time_index)),
    layout.TRANSACTION_INDEX_SUFFIX: (
        ("version", "producer_id", "first_offset", "last_offset", "last_stable_offset"),
        _index(read_transaction_index),
    ),
    layout.PRODUCER_SNAPSHOT_SUFFIX: (
        (
            *("producer_id", "producer_epoch", "coordinator_epoch", "current_txn_first_offset", "first_sequence"),
            *("last_sequence", "last_offset", "offset_delta", "timestamp"),
        ),
        _producers,
    ),
}
_PAIRS = ("name", "value")
_OF_NAME = {
    layout.LEADER_EPOCH_CHECKPOINT: (("epoch", "start_offset"), _epochs),
    **dict.fromkeys(layout.OFFSET_CHECKPOINTS, (("topic", "partition", "offset"), _offsets)),
    **dict.fromkeys((layout.PARTITION_METADATA, "meta.properties"), (_PAIRS, _properties)),
    "quorum-state": (_PAIRS, _state),
    layout.CLEAN_SHUTDOWN: (_PAIRS, _mark),
}


def side_file(path: str) -> SideFile | None:
    """How to read a file that is none of records, by its name; None for segments, directories and other files."""
    name = os.path.basename(path)
    known = _OF_NAME.get(name) or _OF_SUFFIX.get(os.path.splitext(name)[1])
    return None if known is None or os.path.isdir(path) else SideFile(path, *known)


def print_side_files(files: Sequence[SideFile], *, as_json: bool, limit: int | None, titles: bool) -> None:
    """Print their rows, as a table or as JSON lines; with the path above each.

    Raises:
        KafkaCodecError: a file is damaged; rows before the fault are printed.
    """
    for file in files:
        if titles and not as_json:
            say(f"{file.path}:")
        rows, problem = file.read(file.path)
        shown = _limited(rows, limit)
        if as_json:
            for row in shown:
                say_json({**({"file": file.path} if titles else {}), **{name: row[name] for name in file.names}})
        else:
            print_table(
                [_column(name) for name in file.names],
                ([_cell(name, row[name]) for name in file.names] for row in shown),
            )
        if problem is not None:
            raise problem


def _limited(rows: Iterable[Row], limit: int | None) -> Iterator[Row]:
    for number, row in enumerate(rows):
        if number == limit:
            return
        yield row


def _column(name: str) -> Column:
    title = "timestamp (UTC)" if name == "timestamp" else name.replace("_", " ")
    return Column(title, right=name not in (*_PAIRS, "topic"), stretch=name in ("value", "topic"))


def _cell(name: str, value: Any) -> str:
    if name == "timestamp":
        return timestamp(value)
    return "-" if value is None else value if isinstance(value, str) else json.dumps(value)
