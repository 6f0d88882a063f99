"""Parquet files of records: row groups of a set size, statistics and encodings that fit Kafka's columns."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kafkacodec.spark.exporting.options import FileOptions
from kafkacodec.spark.exporting.report import ExportedFile
from kafkacodec.spark.times import bounds

__all__ = ["RecordFile"]

# Few values each. Keys and values mostly differ: to look for equal ones took half of the time, and gained nothing.
_DICTIONARY = ("topic", "partition", "timestampType", "headers.list.element.key")
# Offsets and times grow by small steps. The bytes of values are compressed to less without the length of each between
# them. Spark reads these encodings since 3.3.
_ENCODINGS = {
    "value": "DELTA_LENGTH_BYTE_ARRAY",
    "offset": "DELTA_BINARY_PACKED",
    "timestamp": "DELTA_BINARY_PACKED",
}
# By what readers look for records. Values are large, and have no order.
_STATISTICS = ("key", "topic", "partition", "offset", "timestamp", "timestampType")

_PAGE_BYTES = 4 << 20
"""What is compressed at once: of 1 MiB, the codec takes a fifth more time, and finds less that is equal."""

_ROW_GROUP_BYTES = 128 << 20
"""A row group of large records ends here: it is in memory until it is written."""


class RecordFile:
    """A new file, which gets records in the order of offsets."""

    def __init__(self, path: str, schema: pa.Schema, options: FileOptions) -> None:
        self.path = path
        self._schema = schema
        self._options = options
        self._sink = pa.OSFile(path, "wb")
        self._writer = pq.ParquetWriter(self._sink, self._schema, **_settings(schema, options))
        self._most_bytes = min(_ROW_GROUP_BYTES, options.file_bytes)  # a file's size is known by whole row groups
        self._batches: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0
        self._seen = _Seen()

    def write(self, batch: pa.RecordBatch) -> int:
        """Append records, which may have more columns. Returns how many bytes the file has so far."""
        self._seen.look(batch)
        self._batches.append(batch.select(self._schema.names))
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._rows >= self._options.row_group_rows or self._bytes >= self._most_bytes:
            self._flush()
        return int(self._sink.tell())

    def close(self, topic: str, partition: int, day: int | None) -> ExportedFile:
        """Complete the file, and keep it even if the machine stops.

        Raises:
            OSError: it cannot be written.
        """
        self._flush()
        with self._named():
            self._writer.close()
            self._sink.close()
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
            size = os.fstat(descriptor).st_size
        finally:
            os.close(descriptor)
        return ExportedFile(self.path, topic, partition, day, size_in_bytes=size, **self._seen.totals())

    def _flush(self) -> None:
        if self._rows:
            rows = min(self._rows, self._options.row_group_rows)
            with self._named():
                self._writer.write_table(pa.Table.from_batches(self._batches, self._schema), row_group_size=rows)
            self._batches, self._rows, self._bytes = [], 0, 0

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Name the file in the system's errors, as of a full disk; pyarrow says what it did with the bytes instead."""
        try:
            yield
        except OSError as error:
            if error.errno is None or error.filename is not None:
                raise
            raise OSError(error.errno, os.strerror(error.errno), self.path) from error


class _Seen:
    """The number of records, and the ranges of their offsets and timestamps."""

    def __init__(self) -> None:
        self.rows = self.null_timestamps = 0
        self._ranges: dict[str, tuple[int, int]] = {}

    def look(self, batch: pa.RecordBatch) -> None:
        """Include these records."""
        self.rows += batch.num_rows
        self._include("offset", batch.column("offset"))
        if "timestamp" in batch.schema.names:
            timestamps = batch.column("timestamp")
            self.null_timestamps += timestamps.null_count
            self._include("timestamp", timestamps)

    def _include(self, name: str, numbers: pa.Array) -> None:
        found = bounds(numbers)
        if found is not None:
            least, most = self._ranges.get(name, found)
            self._ranges[name] = min(least, found[0]), max(most, found[1])

    def totals(self) -> dict[str, Any]:
        """As the fields of `ExportedFile`."""
        first, last = self._ranges["offset"]
        least, most = self._ranges.get("timestamp", (None, None))
        return {
            "rows": self.rows,
            "first_offset": first,
            "last_offset": last,
            "min_timestamp": least,
            "max_timestamp": most,
            "null_timestamps": self.null_timestamps,
        }


def _settings(schema: pa.Schema, options: FileOptions) -> dict[str, Any]:
    """The settings of pyarrow's writer."""
    columns = schema.names
    nested = [*columns, *(["headers.list.element.key"] if "headers" in columns else [])]
    before = schema.types[: columns.index("offset")] if "offset" in columns else None
    sorted_by = None if before is None else [pq.SortingColumn(sum(map(_leaves, before)))]
    return {
        "compression": "NONE" if options.compression == "none" else options.compression,
        "compression_level": options.compression_level,
        "use_dictionary": [name for name in nested if name in _DICTIONARY],
        "column_encoding": {field.name: _ENCODINGS[field.name] for field in schema if _is_encoded(field)},
        "write_statistics": [name for name in columns if name in _STATISTICS],
        "data_page_size": _PAGE_BYTES,
        "write_page_index": True,
        "sorting_columns": sorted_by,
        "store_schema": False,  # types are then the same for every reader, by the Parquet schema alone
    }


def _is_encoded(field: pa.Field) -> bool:
    """Whether the column has an encoding of its own; typed values do not."""
    is_bytes = pa.types.is_binary(field.type) or pa.types.is_string(field.type)
    return field.name in _ENCODINGS and (field.name != "value" or is_bytes)


def _leaves(kind: pa.DataType) -> int:
    """How many of Parquet's columns a column has."""
    return sum(_leaves(kind.field(i).type) for i in range(kind.num_fields)) or 1
