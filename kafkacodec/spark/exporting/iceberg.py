"""Exports to an Iceberg table: one snapshot per run; the offsets are a property that is set in the same commit."""

from __future__ import annotations

import itertools
import json
import logging
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import pyarrow as pa

from kafkacodec.errors import KafkaCodecError
from kafkacodec.log.storage.access import S3Access
from kafkacodec.spark.errors import OptionError
from kafkacodec.spark.exporting.days import DAY_MICROSECONDS, FIRST_DAY, LAST_DAY
from kafkacodec.spark.exporting.destination import Destination, Table
from kafkacodec.spark.exporting.options import DATE, target_path
from kafkacodec.spark.exporting.report import ExportReport
from kafkacodec.spark.exporting.run_files import RunFiles
from kafkacodec.spark.reading.checkpoint import Offsets, Position, dump, parse
from kafkacodec.spark.reading.options import TopicPartition

__all__ = ["ISOLATION_LEVEL", "OFFSETS", "IcebergDirectory"]

# The package is optional: type checkers may not find it.
catalogs: Any = import_module("pyiceberg.catalog")
errors: Any = import_module("pyiceberg.exceptions")
arrow: Any = import_module("pyiceberg.io.pyarrow")
partitioning: Any = import_module("pyiceberg.partitioning")
transforms: Any = import_module("pyiceberg.transforms")

OFFSETS = "kafkacodec.offsets"
"""The table property with the next offset of each partition, as JSON."""

ISOLATION_LEVEL = "kafkacodec.isolation-level"
"""The table property with the isolation level of all runs."""

_TRIES = 5
"""How often a commit is tried if other writers, such as compaction, commit at the same time."""

# pyiceberg's names -> S3A's, without its prefix.
_S3_PROPERTIES = {
    "s3.endpoint": "endpoint",
    "s3.region": "endpoint.region",
    "s3.access-key-id": "access.key",
    "s3.secret-access-key": "secret.key",
    "s3.session-token": "session.token",
}

_ID = re.compile(r"\d+: ")
_FIELD_ID = "PARQUET:field_id"


class IcebergDirectory(Destination):
    """An Iceberg table. It is created, without rows, if it does not exist."""

    def __init__(self, target: str | os.PathLike[str], table: Table, catalog: object, access: S3Access) -> None:
        self._name = os.fspath(target)
        with _told(OptionError):
            self._catalog = _catalog(catalog)
        with _told(KafkaCodecError):
            self._iceberg = self._load_or_create(table)
        _check(self._iceberg, table)
        table.check_isolation(self._iceberg.properties.get(ISOLATION_LEVEL), self._name)
        location = target_path("target", self._iceberg.location())
        super().__init__(os.path.join(location, "data"), table, parse(_offsets(self._iceberg)))
        self.access = _access(self._iceberg.io.properties).over(access)

    @property
    def stored(self) -> pa.Schema:
        """All columns: Iceberg's readers take none from the names of directories."""
        return self.table.schema

    def new_run(self) -> str:
        """A random name."""
        return secrets.token_hex(16)

    def commit(self, files: RunFiles, report: ExportReport, positions: Mapping[TopicPartition, Position]) -> None:
        """Move the files into the table's directory, then add them and set the offsets in one commit."""
        _refuse_unnamed_times(report)
        files.publish()
        place = f"{self._iceberg.location()}/data/{files.run}"
        try:
            self._add([f"{place}/{file.path}" for file in report.files], files.run, json.dumps(dump(positions)))
        except KafkaCodecError:  # it is certain that nothing was committed
            files.withdraw()
            raise

    def _add(self, paths: list[str], run: str, offsets: str) -> None:
        before = _offsets(self._iceberg)
        for _ in range(_TRIES):
            if not paths:  # such a commit comes after any other, so look before
                self._iceberg = self._catalog.load_table(self._name)
                if _offsets(self._iceberg) != before:
                    break
            # pyiceberg would try again whatever the other commit was: an export of the same offsets must end this one.
            self._iceberg.metadata.properties["commit.retry.num-retries"] = "0"
            try:
                with _without_warnings(), self._iceberg.transaction() as transaction:
                    if paths:
                        transaction.add_files(paths, {"kafkacodec.run": run, OFFSETS: offsets}, False)
                    transaction.set_properties({OFFSETS: offsets, ISOLATION_LEVEL: self.table.isolation_level})
                return
            except errors.CommitFailedException:
                self._iceberg = self._catalog.load_table(self._name)
            if _offsets(self._iceberg) != before:
                break
        raise KafkaCodecError(
            f"another commit to {self._name} was made during this export, which wrote nothing; run it again"
        )

    def _load_or_create(self, table: Table) -> Any:
        namespace, _, name = self._name.rpartition(".")
        if not namespace or not name:
            raise OptionError(f"target: expected namespace.table for Iceberg, not {self._name!r}")
        try:
            return self._catalog.load_table(self._name)
        except errors.NoSuchTableError:
            self._catalog.create_namespace_if_not_exists(namespace)
            schema = _schema(table)
            return self._catalog.create_table_if_not_exists(self._name, schema, partition_spec=_spec(table, schema))


@contextmanager
def _told(kind: type[KafkaCodecError]) -> Iterator[None]:
    """Raise what a catalog raises as an error of this kind: its errors are those of databases and of other services."""
    try:
        yield
    except (KafkaCodecError, ImportError, OSError):
        raise
    except Exception as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise kind(f"catalog: {reason}") from error


@contextmanager
def _without_warnings() -> Iterator[None]:
    """pyiceberg warns of each file that values have no statistics, which they have not on purpose."""

    def wanted(record: logging.LogRecord) -> bool:
        return not record.getMessage().startswith("PyArrow statistics missing")

    log = logging.getLogger("pyiceberg.io.pyarrow")
    log.addFilter(wanted)
    try:
        yield
    finally:
        log.removeFilter(wanted)


def _catalog(given: object) -> Any:
    """The catalog itself, by its properties, or by its name."""
    if isinstance(given, catalogs.Catalog):
        return given
    if isinstance(given, Mapping):
        properties: dict[str, Any] = dict(given)
        return catalogs.load_catalog(properties.pop("name", "default"), **properties)
    if isinstance(given, str) and given:
        return catalogs.load_catalog(given)
    raise OptionError("catalog: missing; pass a catalog, its properties or its name in pyiceberg's configuration")


def _access(properties: Mapping[str, Any]) -> S3Access:
    """The properties with which pyiceberg reaches S3; a catalog may add to them."""
    found = {ours: str(properties[name]) for name, ours in _S3_PROPERTIES.items() if properties.get(name)}
    in_host = str(properties.get("s3.force-virtual-addressing", "")).lower() == "true"
    return S3Access.of({**found, "path.style.access": "false"} if in_host else found)


def _refuse_unnamed_times(report: ExportReport) -> None:
    """Refuse timestamps after the year 9999, which pyiceberg cannot read in a file's statistics.

    Raises:
        KafkaCodecError: a file has one; the message says which offsets it has.
    """
    for file in report.files:
        times = [time for time in (file.min_timestamp, file.max_timestamp) if time is not None]
        if any(not FIRST_DAY <= time // DAY_MICROSECONDS <= LAST_DAY for time in times):
            raise KafkaCodecError(
                f"a timestamp from offset {file.first_offset} to {file.last_offset} of {file.topic}-{file.partition} "
                "is not in the years 1 to 9999, which pyiceberg cannot add; export to Parquet or Delta, or leave out "
                "the column timestamp"
            )


def _offsets(table: Any) -> Offsets:
    """The offsets that the last run has left in the table."""
    found: Offsets = json.loads(table.properties.get(OFFSETS, "{}"))
    return found


def _schema(table: Table) -> Any:
    """The columns as Iceberg has them."""
    numbers = itertools.count(1)
    return arrow.pyarrow_to_schema(pa.schema([_numbered(field, numbers) for field in table.schema]))


def _numbered(field: pa.Field, numbers: Iterator[int]) -> pa.Field:
    """A field with a number for itself and for those inside of it, as Iceberg needs them."""
    number, kind = next(numbers), field.type
    if pa.types.is_struct(kind):
        kind = pa.struct([_numbered(inner, numbers) for inner in kind])
    elif pa.types.is_map(kind):
        kind = pa.map_(_numbered(kind.key_field, numbers), _numbered(kind.item_field, numbers))
    elif pa.types.is_list(kind):
        kind = pa.list_(_numbered(kind.value_field, numbers))
    return pa.field(field.name, kind, field.nullable, {_FIELD_ID: str(number)})


def _spec(table: Table, schema: Any) -> Any:
    """The topic and the partition by their values, the date as the day of the timestamp, which Iceberg computes."""
    fields = []
    for number, name in enumerate(table.partition_by, 1000):
        source, transform, title = (
            ("timestamp", transforms.DayTransform(), "timestamp_day")
            if name == DATE
            else (name, transforms.IdentityTransform(), name)
        )
        fields.append(partitioning.PartitionField(schema.find_field(source).field_id, number, transform, title))
    return partitioning.PartitionSpec(*fields)


def _check(iceberg: Any, table: Table) -> None:
    """Refuse a table with other columns or another partitioning.

    Raises:
        OptionError: it has.
    """
    schema = iceberg.schema()
    columns = tuple(field.name for field in schema.fields)
    if columns != table.columns:
        raise OptionError(f"columns: {', '.join(table.columns)}, but the table has {', '.join(columns)}")
    for field, wanted in zip(schema.fields, _schema(table).fields, strict=True):
        if _shape(field) != _shape(wanted):
            raise OptionError(f"columns: {field.name} is {_shape(field)} in the table, not {_shape(wanted)}")
    found = [f"{f.transform}({schema.find_column_name(f.source_id)})" for f in iceberg.spec().fields]
    by = ["day(timestamp)" if name == DATE else f"identity({name})" for name in table.partition_by]
    if found != by:
        raise OptionError(f"partition_by: {', '.join(by)}, but the table is partitioned by {', '.join(found)}")


def _shape(field: Any) -> str:
    """A field's type without the numbers of fields, which others may have given."""
    return _ID.sub("", str(field.field_type))
