"""The views of `kafkalog` other than records: the state of a cluster, read from its log directories, as tables.

`VIEWS` has their columns, options and tasks; `view_rows` makes the rows.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructField, StructType

from kafkacodec.arguments import columns_hint
from kafkacodec.datatypes import dataclass, replace
from kafkacodec.errors import KafkaCodecError
from kafkacodec.internal_records import CLUSTER_METADATA, CONSUMER_OFFSETS
from kafkacodec.log import Partition
from kafkacodec.log.state.tables import GROUPS, LAG, METADATA, OFFSETS
from kafkacodec.log.storage.access import S3Access
from kafkacodec.log.storage.stores import use
from kafkacodec.spark.environment.workers import settle
from kafkacodec.spark.errors import OptionError, without_traceback
from kafkacodec.spark.foreign import warn_foreign
from kafkacodec.spark.headers import HEADER, arrow_type
from kafkacodec.spark.object_access import ACCESS_OPTIONS
from kafkacodec.spark.option_values import comma_names, one_of, refuse_unknown
from kafkacodec.spark.reading import view_rows
from kafkacodec.spark.reading.discovery import partitions_of
from kafkacodec.spark.reading.options import ReadOptions, parse_read_options

__all__ = ["VIEWS", "ViewReader", "refuse_stream", "shows_records", "view_schema"]

RECORDS = "records"

_SELECTION = ("subscribe", "subscribePattern", "assign")

T = TypeVar("T")
Task = tuple[Any, ...]


@dataclass(frozen=True)
class View:
    """A view.

    Attributes:
        columns: its columns, with `kafkacodec`'s types.
        options: its options besides those that every view has.
        plan: the tasks; raises OptionError if the paths do not have what the view shows.
        rows: the rows of a task, with at least the columns that are named.
    """

    columns: pa.Schema
    options: Sequence[str]
    plan: Callable[[list[Partition], ReadOptions], list[Task]]
    rows: Callable[[Task, ReadOptions, Sequence[str]], Iterable[pa.Table]]

    def schema(self, names: Sequence[str]) -> StructType:
        """Spark's schema of these columns."""
        return StructType([StructField(field.name, from_arrow_type(field.type)) for field in self.arrow(names)])

    def arrow(self, names: Sequence[str]) -> pa.Schema:
        """The Arrow schema that Spark expects for these columns."""
        return pa.schema([(name, arrow_type(self.columns.field(name).type)) for name in names])


def shows_records(options: Mapping[str, str]) -> bool:
    """Whether these options ask for records, as without the option ``view``.

    Raises:
        OptionError: an unknown view.
    """
    return _view_name(options) == RECORDS


def refuse_stream(options: Mapping[str, str]) -> None:
    """Raises OptionError: there are no streams of this view."""
    raise OptionError(f"view: {_view_name(options)} cannot be read as a stream; use spark.read")


def view_schema(options: Mapping[str, str]) -> StructType:
    """The schema of the view that the options name.

    Raises:
        OptionError: an option is unknown or malformed.
    """
    view, _, names = _parse(options)
    return view.schema(names)


class ViewReader(DataSourceReader):
    """Reads a view. The options decide how to reach S3, else `access`."""

    @without_traceback()
    def __init__(self, options: Mapping[str, str], schema: StructType, access: S3Access) -> None:
        self.view = _view_name(options)
        view, parsed, _ = _parse(options)
        self.options = replace(parsed, access=parsed.access.over(access))
        warn_foreign(options)
        self.names = tuple(_checked(schema, view))
        self.schema = view.arrow(self.names)

    @without_traceback()
    def partitions(self) -> list[InputPartition]:
        """An input partition for each task; at least one."""
        tasks = VIEWS[self.view].plan(partitions_of(self.options), self.options)
        return [InputPartition(task) for task in tasks or [()]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task as Arrow batches."""
        settle()
        use(self.options.access)
        with without_traceback():
            for table in VIEWS[self.view].rows(partition.value, self.options, self.names):
                yield from view_rows.as_batches(table, self.schema, self.options)


def _view_name(options: Mapping[str, str]) -> str:
    given = [value for name, value in options.items() if name.lower() == "view"]
    return one_of(*VIEWS, RECORDS)("view", given[0]) if given else RECORDS


def _parse(options: Mapping[str, str]) -> tuple[View, ReadOptions, tuple[str, ...]]:
    """The view, its options and the names of its columns."""
    view = VIEWS[_view_name(options)]
    selecting = () if "subscribe" in view.options else tuple(name.lower() for name in _SELECTION)
    for name in options:
        if name.lower() in selecting:
            raise OptionError(f"{name}: the view {_view_name(options)} takes no selection; use where() on its rows")
    given = refuse_unknown(options, ("view", "path", "paths", "columns", *view.options, *ACCESS_OPTIONS))
    names = tuple(view.columns.names)
    if "columns" in given:
        names = tuple(one_of(*names)("columns", part) for part in comma_names("columns", given["columns"]))
        if len(set(names)) < len(names):
            raise OptionError(f"columns: a column is listed twice in {given['columns']!r}")
    rest = {name: value for name, value in given.items() if name not in ("view", "columns")}
    return view, parse_read_options(rest | {"replicas": "all"}), names


def _checked(schema: StructType, view: View) -> list[str]:
    """The names of the columns that Spark asks for; a user's schema may have fewer than the view."""
    for field in schema.fields:
        if field.name not in view.columns.names:
            raise OptionError(f"schema: unknown column {field.name!r}; {columns_hint(field.name, view.columns.names)}")
        expected = view.schema([field.name])[0]
        if field != expected:
            raise OptionError(f"schema: column {field.name!r} must be {expected.dataType.simpleString()} and nullable")
    return list(schema.fieldNames())


def _segments(partitions: list[Partition], options: ReadOptions) -> list[Task]:
    found = []
    for partition in partitions:
        if partition.is_kafka07:
            raise OptionError(f"view: {partition.path} is a log of Kafka 0.6 or 0.7, which has no batches")
        found += [(partition.topic, partition.partition, s.path, s.size_in_bytes) for s in partition.segments]
    return [tuple(piece[:3] for piece in task) for task in _packed(found, lambda piece: piece[3], options)]


def _by_partition(partitions: list[Partition], options: ReadOptions) -> list[Task]:
    return _packed(partitions, lambda partition: partition.size_in_bytes, options)


def _problems(partitions: list[Partition], options: ReadOptions) -> list[Task]:
    """Also a task for each log directory, with its partitions, for what its checkpoints say about them."""
    directories: dict[str, list[Partition]] = {}
    for partition in partitions:
        if partition.has_all and partition.state == "current" and partition.topic is not None:
            directories.setdefault(os.path.dirname(partition.path), []).append(partition)
    checkpoints: list[Task] = [((path, tuple(found)),) for path, found in directories.items()]
    return _by_partition(partitions, options) + checkpoints


def _packed(items: Iterable[T], size: Callable[[T], int], options: ReadOptions) -> list[tuple[T, ...]]:
    """Neighbours together, up to `maxPartitionBytes`."""
    tasks: list[list[T]] = []
    room = 0
    for item in items:
        if size(item) > room or not tasks:
            tasks.append([])
            room = options.max_partition_bytes
        tasks[-1].append(item)
        room -= size(item)
    return [tuple(task) for task in tasks]


def _brokers(partitions: list[Partition], _options: ReadOptions) -> list[Task]:
    """One task, with the log directories; if a path was that of a partition, with the partition."""
    if not any(partition.topic == CONSUMER_OFFSETS for partition in partitions):
        raise OptionError(f"view: path has no partition of {CONSUMER_OFFSETS}, in which brokers keep groups")
    directories: dict[str, list[Partition]] = {}
    for partition in partitions:
        directories.setdefault(os.path.dirname(partition.path), []).append(partition)
    paths: list[str] = []
    for directory, found in directories.items():
        alone = all(partition.topic == CONSUMER_OFFSETS for partition in found)
        paths += [partition.path for partition in found] if alone else [directory]
    return [(tuple(paths),)]


def _metadata_log(partitions: list[Partition], _options: ReadOptions) -> list[Task]:
    """One task, with the longest metadata log."""
    logs = [partition for partition in partitions if partition.topic == CLUSTER_METADATA]
    if not logs:
        raise OptionError(
            f"view: path has no {CLUSTER_METADATA}-0, which is in the directories of KRaft controllers and brokers"
        )
    try:
        return [(max(logs, key=Partition.end_offset).path,)]
    except KafkaCodecError as error:
        raise OptionError(f"view: the metadata log cannot be read: {error}") from None


_PLACE = {"topic": pa.string(), "partition": pa.int32()}

VIEWS = {
    "batches": View(
        pa.schema({**_PLACE, "file": pa.string(), **HEADER}),
        (*_SELECTION, "mode", "maxPartitionBytes"),
        _segments,
        view_rows.batches,
    ),
    "problems": View(
        pa.schema({**_PLACE, **view_rows.PROBLEM}), (*_SELECTION, "maxPartitionBytes"), _problems, view_rows.problems
    ),
    "transactions": View(
        pa.schema({**_PLACE, **view_rows.TRANSACTION}),
        (*_SELECTION, "mode", "maxPartitionBytes"),
        _by_partition,
        view_rows.transactions,
    ),
    "offsets": View(OFFSETS, ("mode",), _brokers, view_rows.offsets),
    "groups": View(GROUPS, ("mode",), _brokers, view_rows.groups),
    "lag": View(LAG, ("mode", "isolationLevel"), _brokers, view_rows.lag),
    **{name: View(columns, ("mode",), _metadata_log, view_rows.METADATA[name]) for name, columns in METADATA.items()},
}
"""The views by name."""
