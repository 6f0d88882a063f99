"""Exports to a Delta table: one commit per run, with the position in each partition as its transactions' versions.

The protocol keeps the last version of each application's transactions for as long as the table exists, and refuses a
commit if another one with the same application was made in the meantime, so offsets are neither lost nor used twice.
The identity of the log at that offset is kept in separate transactions, since a version is one number.
"""

from __future__ import annotations

import json
import os
import secrets
import struct
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import pyarrow as pa

from kafkacodec.errors import KafkaCodecError
from kafkacodec.log.opening import is_url
from kafkacodec.log.storage.access import S3Access
from kafkacodec.log.storage.objects import files_below
from kafkacodec.spark.errors import OptionError
from kafkacodec.spark.exporting.destination import Destination, Table
from kafkacodec.spark.exporting.options import DATE, target_path
from kafkacodec.spark.exporting.report import ExportedFile, ExportReport
from kafkacodec.spark.exporting.run_files import RunFiles, partition_values
from kafkacodec.spark.reading.checkpoint import Position
from kafkacodec.spark.reading.options import TopicPartition

__all__ = ["DeltaDirectory"]

# The package is optional: type checkers may not find it.
deltalake: Any = import_module("deltalake")
transactions: Any = import_module("deltalake.transaction")
CommitFailedError: Any = import_module("deltalake.exceptions").CommitFailedError
DeltaError: Any = import_module("deltalake.exceptions").DeltaError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# What follows the name of a partition in the names of its transactions: the offset, and what identifies the log there.
_PARTS = ("", ":leaderEpoch", ":crc", ":topicId.high", ":topicId.low")
_ID = struct.Struct(">qq")

# The transactions of a table whose version is the isolation level of all runs. No partition has it: each has a topic.
_ISOLATION = "kafkacodec:isolationLevel"
_LEVELS = ("read_uncommitted", "read_committed")


class DeltaDirectory(Destination):
    """A Delta table. It is created, without rows, before the first run reads anything."""

    def __init__(self, target: str | os.PathLike[str], table: Table, access: S3Access) -> None:
        root = target_path("target", target)
        self.access = access
        self._schema = deltalake.Schema.from_arrow(_arrow_schema(table))
        self._options = _storage_options(root, access)
        # In this order: our client says in one sentence, and soon, that a store cannot be reached.
        empty = _is_empty(root, access)
        self._delta: Any = None if empty else self._existing(root)
        if self._delta is not None:
            _check("partition_by", root, self._delta.metadata().partition_columns, list(table.partition_by))
            _check("columns", root, _fields(self._delta.schema()), _fields(self._schema))
            table.check_isolation(self._isolation(), root)
        super().__init__(root, table, {} if self._delta is None else _Positions(self._delta, table))

    def _existing(self, root: str) -> Any:
        if not deltalake.DeltaTable.is_deltatable(root, self._options):
            raise OptionError(f"target: {root} is not empty and is not a Delta table")
        return deltalake.DeltaTable(root, storage_options=self._options)

    def _isolation(self) -> str | None:
        version = None if self._delta is None else self._delta.transaction_version(_ISOLATION)
        return None if version is None else _LEVELS[version]

    def new_run(self) -> str:
        """A random name. The table is there from now on, so that a commit of another run is one that came meanwhile.

        Raises:
            KafkaCodecError: another run has created it meanwhile.
        """
        self._delta = self._delta or self._created()
        return secrets.token_hex(16)

    def _created(self) -> Any:
        by = list(self.table.partition_by)
        try:
            return deltalake.DeltaTable.create(
                self.root, schema=self._schema, partition_by=by, mode="error", storage_options=self._options
            )
        except DeltaError as error:
            if not deltalake.DeltaTable.is_deltatable(self.root, self._options):
                raise
            raise self._overtaken(error) from None

    def commit(self, files: RunFiles, report: ExportReport, positions: Mapping[TopicPartition, Position]) -> None:
        """Move the files into the table's directory, then commit them together with the positions."""
        by = list(self.table.partition_by)
        delta = self._delta
        files.publish()
        now = int(time.time() * 1000)
        actions = [
            transactions.AddAction(
                os.path.join(files.run, file.path),
                file.size_in_bytes,
                partition_values(by, file),
                now,
                True,
                self._stats(file),
            )
            for file in report.files
        ]
        # Once: runs of other partitions, which are no conflict, would have this one in common.
        level = [] if self._isolation() else [(_ISOLATION, _LEVELS.index(self.table.isolation_level))]
        changed = {key: position for key, position in positions.items() if self.positions.get(key) != position}
        properties = deltalake.CommitProperties(
            custom_metadata={"kafkacodec.run": files.run},
            app_transactions=[
                deltalake.Transaction(application, version)
                for versions in (level, *(_versions(*item).items() for item in sorted(changed.items())))
                for application, version in versions
            ],
        )
        try:
            delta.create_write_transaction(
                actions, mode="append", schema=delta.schema(), partition_by=by, commit_properties=properties
            )
        except CommitFailedError as error:  # it is certain that nothing was committed
            files.withdraw()
            raise self._overtaken(error) from None

    def _overtaken(self, error: BaseException) -> KafkaCodecError:
        return KafkaCodecError(
            f"another commit to {self.root} was made during this export ({error}), which wrote nothing; run it again"
        )

    def _stats(self, file: ExportedFile) -> str:
        """A file's number of rows and ranges, by which readers skip files."""
        least: dict[str, object] = {}
        most: dict[str, object] = {}
        if "offset" in self.stored.names:
            least["offset"], most["offset"] = file.first_offset, file.last_offset
        first, last = _named(file.min_timestamp), _named(file.max_timestamp)
        if "timestamp" in self.stored.names and first is not None and last is not None:
            least["timestamp"], most["timestamp"] = first, last
        nulls = {"timestamp": file.null_timestamps} if "timestamp" in self.stored.names else {}
        return json.dumps({"numRecords": file.rows, "minValues": least, "maxValues": most, "nullCount": nulls})


def _storage_options(root: str, access: S3Access) -> dict[str, str]:
    """How deltalake reaches S3, whose client has the same options as the one that reads objects."""
    parts = urlsplit(root)
    if parts.scheme != "s3":
        return {}
    given = {**access.client_options(parts.netloc), **(access.credentials(parts.netloc) or {})}
    address = given.get("endpoint", os.environ.get("AWS_ENDPOINT_URL", ""))
    if address.startswith("http://"):
        given["allow_http"] = True
    return {name: str(value) for name, value in given.items() if value is not None}


def _is_empty(root: str, access: S3Access) -> bool:
    """Whether there are no files in a directory, which may not exist."""
    if is_url(root):
        return next(files_below(root, access), None) is None
    return not os.path.isdir(root) or not os.listdir(root)


class _Positions(Mapping[TopicPartition, Position]):
    """The positions in a table, by partition; listed are those that the table's partitions name."""

    def __init__(self, delta: Any, table: Table) -> None:
        self._delta = delta
        self._listed = {"topic", "partition"} <= set(table.partition_by)
        self._known: dict[TopicPartition, Position | None] = {}

    def __getitem__(self, key: TopicPartition) -> Position:
        if key not in self._known:  # looking up versions takes time
            found = [self._delta.transaction_version(_application(key) + part) for part in _PARTS]
            self._known[key] = None if found[0] is None else _position(*found)
        position = self._known[key]
        if position is None:
            raise KeyError(key)
        return position

    def __iter__(self) -> Iterator[TopicPartition]:
        found = {(p["topic"], int(p["partition"])) for p in self._delta.partitions()} if self._listed else set()
        return (key for key in sorted(found) if self._delta.transaction_version(_application(key)) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _application(key: TopicPartition) -> str:
    return f"kafkacodec:{key[0]}-{key[1]}"


def _versions(key: TopicPartition, position: Position) -> dict[str, int]:
    """A position as the versions of the partition's transactions; -1 and an id of 0 stand for what is unknown."""
    epoch, crc = (-1 if value is None else value for value in (position.leader_epoch, position.crc))
    halves = _ID.unpack(UUID(position.topic_id).bytes if position.topic_id else bytes(_ID.size))
    values = (position.offset, epoch, crc, *halves)
    return {_application(key) + part: value for part, value in zip(_PARTS, values, strict=True)}


def _position(offset: int, epoch: int | None, crc: int | None, high: int | None, low: int | None) -> Position:
    """The inverse of `_versions`; earlier tables have the offset only."""
    topic_id = UUID(bytes=_ID.pack(high or 0, low or 0))
    known = [None if value is None or value < 0 else value for value in (epoch, crc)]
    return Position(offset, str(topic_id) if topic_id.int else None, *known)


def _arrow_schema(table: Table) -> pa.Schema:
    schema = table.schema
    return schema.append(pa.field(DATE, pa.date32())) if DATE in table.partition_by else schema


def _fields(schema: Any) -> list[str]:
    return [f"{field.name} {_type(field.type)}" for field in schema.fields]


def _type(kind: Any) -> str:
    return str(kind.type if isinstance(kind, deltalake.schema.PrimitiveType) else kind.to_json())


def _check(name: str, root: str, found: list[str], wanted: list[str]) -> None:
    if found != wanted:
        raise OptionError(f"{name}: {', '.join(wanted)}, but the table {root} has {', '.join(found)}")


def _named(microseconds: int | None) -> str | None:
    """A timestamp as Delta's statistics have it, in milliseconds, which is all that Kafka has."""
    try:
        time = None if microseconds is None else _EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        return None
    return None if time is None else time.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
