"""Options of an export: allowed values, and contradictions. All are checked before a job starts."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

from kafkacodec.arguments import is_integer, suggestion
from kafkacodec.datatypes import dataclass
from kafkacodec.log.opening import is_url
from kafkacodec.log.storage.objects import SCHEMES
from kafkacodec.spark.errors import OptionError
from kafkacodec.spark.reading.options import ReadOptions, local_path, parse_read_options, readable_path
from kafkacodec.spark.schema import column_names

__all__ = ["DATE", "ExportFormat", "FileOptions", "columns_of", "partitioning", "source_options"]

ExportFormat = Literal["parquet", "iceberg", "delta"]

DATE = "date"
"""The partition column that is made from the timestamp; the others are columns of the records."""

_PARTITION_COLUMNS = ("topic", "partition", DATE)

# Codec -> the compression levels that it takes, from the least to the most.
_LEVELS: Mapping[str, tuple[int, int] | None] = {
    "zstd": (1, 22),
    "snappy": None,
    "gzip": (1, 9),
    "lz4": None,
    "none": None,
}


@dataclass(frozen=True)
class FileOptions:
    """How Parquet files are written, checked.

    Attributes:
        compression: the codec.
        compression_level: its level; None for the codec's default.
        file_bytes: a file that has this many bytes is closed, and another one begun.
        row_group_rows: rows of a row group.
    """

    compression: str = "zstd"
    compression_level: int | None = None
    file_bytes: int = 256 << 20
    row_group_rows: int = 131_072

    def __post_init__(self) -> None:
        one_of("compression", self.compression, _LEVELS)
        levels, level = _LEVELS[self.compression], self.compression_level
        if level is not None:
            if levels is None:
                raise OptionError(f"compression_level: {self.compression} has no levels; remove it")
            _integer("compression_level", level, *levels)
        _integer("file_bytes", self.file_bytes, 1 << 20, 1 << 40)
        _integer("row_group_rows", self.row_group_rows, 1, 1 << 24)


def one_of(name: str, value: object, words: Iterable[str]) -> None:
    """Check that an option is one of these words.

    Raises:
        OptionError: it is another one; the message names the nearest.
    """
    known = tuple(words)
    if value not in known:
        raise OptionError(f"{name}: {value!r} is unknown; {suggestion(str(value), known, 'these')}")


def _integer(name: str, value: object, least: int, most: int) -> None:
    if not is_integer(value) or not least <= value <= most:  # type: ignore[operator]
        raise OptionError(f"{name}: expected a number from {least} to {most}, not {value!r}")


def check_format(value: str) -> None:
    """Check the name of a format.

    Raises:
        OptionError: there is no such format.
    """
    one_of("format", value, get_args(ExportFormat))


def source_options(source: str | os.PathLike[str] | Mapping[str, Any]) -> ReadOptions:
    """Check the source to read: a path, or options of the format `kafkalog`.

    Raises:
        OptionError: an option is unknown, malformed, contradicts another one or does not apply to exports.
    """
    asked: object = source
    if not isinstance(asked, Mapping | str | os.PathLike):
        kind = type(asked).__name__
        raise OptionError(f"source: expected a path or options of kafkalog, not {kind}; df.write writes a data frame")
    given = dict(source) if isinstance(source, Mapping) else {"path": os.fspath(source)}
    given = {"paths" if n.lower() == "path" and isinstance(v, list | tuple) else n: v for n, v in given.items()}
    if not {"path", "paths"} & {name.lower() for name in given}:
        for name in given:
            if name.lower() == "kafka.bootstrap.servers":
                raise OptionError(
                    f"{name}: an export reads log directories, not brokers; pass path, or read the format kafkabroker "
                    "as a stream and write that"
                )
    options = parse_read_options({name: _text(name, value) for name, value in given.items()})
    if options.replicas == "all":
        raise OptionError("replicas: an export reads each partition once; use merge or error, not all")
    return options


def _text(name: str, value: object) -> str:
    if name.lower() == "paths" and isinstance(value, list | tuple):
        return json.dumps([os.fspath(path) for path in value])
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | os.PathLike | date) or is_integer(value):
        return str(value)
    if isinstance(value, Mapping):
        raise OptionError(f"{name}: expected text; json.dumps makes it of a {type(value).__name__}")
    if isinstance(value, list | tuple | set):
        raise OptionError(f"{name}: expected text, such as {','.join(map(str, value))!r}, not {type(value).__name__}")
    raise OptionError(f"{name}: expected text, a whole number or a boolean, not {type(value).__name__}")


def columns_of(options: ReadOptions) -> tuple[str, ...]:
    """The columns of the exported table, in order, without the date."""
    return options.columns or column_names(headers=options.headers)


def partitioning(partition_by: str | Sequence[str], columns: Sequence[str]) -> tuple[str, ...]:
    """Check by which columns the files are partitioned.

    Raises:
        OptionError: one is unknown, listed twice or made from a column that is not exported; or there is nothing left.
    """
    names = (partition_by,) if isinstance(partition_by, str) else tuple(partition_by)
    for name in names:
        if name not in _PARTITION_COLUMNS:
            hint = suggestion(str(name), _PARTITION_COLUMNS, "these")
            raise OptionError(f"partition_by: {name!r} is no column to partition by; {hint}")
        if names.count(name) > 1:
            raise OptionError(f"partition_by: {name} is listed twice")
        needed = "timestamp" if name == DATE else name
        if needed not in columns:
            raise OptionError(f"partition_by: {name} needs the column {needed}, which columns does not list")
    if not set(columns) - set(names):
        raise OptionError("columns: all of them are in partition_by; add one that the files can hold")
    return names


def target_path(name: str, target: str | os.PathLike[str]) -> str:
    """The absolute path of a table's directory, or the URL of objects.

    Raises:
        OptionError: as `local_target`.
    """
    text = os.fspath(target)
    if is_url(text) and urlsplit(text).scheme in SCHEMES:
        return readable_path(text)
    return local_target(name, text)


def local_target(name: str, target: str | os.PathLike[str]) -> str:
    """The absolute path of a target directory.

    Raises:
        OptionError: it is empty, not on a local file system, or a file.
    """
    text = os.fspath(target)
    if not text.strip():
        raise OptionError(f"{name}: missing; pass the directory to write to")
    path = os.path.abspath(local_path(text, name))
    if os.path.exists(path) and not os.path.isdir(path):
        raise OptionError(f"{name}: {path} is not a directory")
    return path
