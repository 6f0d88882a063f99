"""Options of the reader: allowed values, their meaning, and contradictions.

Options that Spark's own Kafka source has too have the same name and meaning. Unlike in Spark, an unknown option is an
error, since a misspelt one would silently change the result.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from urllib.parse import unquote, urlsplit

from kafkacodec.arguments import columns_hint
from kafkacodec.datatypes import dataclass, field
from kafkacodec.log.opening import is_url
from kafkacodec.log.order.continuity import Gaps
from kafkacodec.log.partitions.each_once import REPLICAS, Replicas
from kafkacodec.log.storage.access import ENVIRONMENT, S3Access
from kafkacodec.log.storage.objects import SCHEMES
from kafkacodec.spark.errors import OptionError
from kafkacodec.spark.foreign import is_foreign, warn_foreign
from kafkacodec.spark.object_access import ACCESS_OPTIONS, access_of
from kafkacodec.spark.option_values import (
    boolean,
    comma_names,
    one_of,
    parse_json,
    positive,
    refuse_unknown,
    take,
    whole_number,
)
from kafkacodec.spark.reading.bounds import (
    EARLIEST,
    LATEST,
    Bound,
    Selection,
    TopicPartition,
    parse_end,
    parse_selection,
    parse_start,
)
from kafkacodec.spark.schema import LOG_COLUMNS

__all__ = [
    "EARLIEST",
    "LATEST",
    "Bound",
    "ReadOptions",
    "Selection",
    "TopicPartition",
    "boolean",
    "one_of",
    "parse_columns",
    "parse_json",
    "parse_read_options",
    "positive",
    "refuse_unknown",
    "take",
    "whole_number",
]

MEBIBYTE = 1 << 20
MAX_PARTITION_BYTES = 128 * MEBIBYTE

_READ_OPTIONS = (
    "path",
    "paths",
    "subscribe",
    "subscribePattern",
    "assign",
    "startingOffsets",
    "endingOffsets",
    "startingTimestamp",
    "endingTimestamp",
    "startingOffsetsByTimestamp",
    "endingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "includeHeaders",
    "columns",
    "mode",
    "gaps",
    "isolationLevel",
    "minPartitions",
    "maxRecordsPerPartition",
    "maxPartitionBytes",
    "endAt",
    "failOnDataLoss",
    "replicas",
    "view",
    *ACCESS_OPTIONS,
)
_STREAM_OPTIONS = (*_READ_OPTIONS, "maxOffsetsPerTrigger")

_COMMA = re.compile(r",(?![^{}]*\})")  # not one inside of braces
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")

_NO_TABLES = (
    "Spark passes no options when a table of a Python data source is read; "
    "use CREATE TEMPORARY VIEW name USING kafkalog OPTIONS (path '...')"
)


@dataclass(frozen=True)
class ReadOptions:
    """The reader's options, checked."""

    paths: tuple[str, ...]
    selection: Selection
    start: Bound
    end: Bound
    columns: tuple[str, ...] | None
    headers: bool
    permissive: bool
    gaps: Gaps
    read_committed: bool
    latest_when_no_later_record: bool
    min_partitions: int | None
    max_records: int | None
    max_partition_bytes: int
    to_high_watermark: bool
    fail_on_data_loss: bool
    replicas: Replicas = "error"
    max_offsets_per_trigger: int | None = None
    access: S3Access = field(default=ENVIRONMENT, repr=False)


def parse_read_options(options: Mapping[str, str], *, streaming: bool = False) -> ReadOptions:
    """Check the options of ``spark.read`` or ``spark.readStream``.

    Raises:
        OptionError: an option is unknown, malformed or contradicts another one.
    """
    given = refuse_unknown(options, _STREAM_OPTIONS if streaming else _READ_OPTIONS)
    warn_foreign(options)
    if given.get("view", "records").strip().lower() != "records":
        raise OptionError(f"view: expected records here, not {given['view']!r}; read other views with spark.read")
    if streaming and given.get("replicas", "").strip().lower() == "all":
        raise OptionError("replicas: a stream reads each partition once; expected error or merge, not 'all'")
    columns, headers = parse_columns(given)
    start, end = parse_start(given, streaming), parse_end(given, streaming)
    strategy = take(given, "startingOffsetsByTimestampStrategy", one_of("error", "latest"), None)
    if strategy is not None and not start.by_timestamp:
        raise OptionError(
            "startingOffsetsByTimestampStrategy: requires startingTimestamp or startingOffsetsByTimestamp"
        )
    permissive = take(given, "mode", one_of("FAILFAST", "PERMISSIVE"), "FAILFAST") == "PERMISSIVE"
    fail_on_data_loss = take(given, "failOnDataLoss", boolean, None)
    gaps = take(given, "gaps", one_of("error", "accept"), "accept" if fail_on_data_loss is False else "error")
    end_at = take(given, "endAt", one_of("highWatermark", "logEnd"), "highWatermark" if streaming else "logEnd")
    return ReadOptions(
        paths=_paths(given),
        selection=parse_selection(given),
        start=start,
        end=end,
        columns=columns,
        headers=headers,
        permissive=permissive,
        gaps="accept" if gaps == "accept" else "error",
        read_committed=take(given, "isolationLevel", one_of("read_uncommitted", "read_committed"), None)
        == "read_committed",
        latest_when_no_later_record=strategy == "latest",
        min_partitions=take(given, "minPartitions", positive, None),
        max_records=take(given, "maxRecordsPerPartition", positive, None),
        max_partition_bytes=take(given, "maxPartitionBytes", positive, MAX_PARTITION_BYTES),
        to_high_watermark=end_at == "highWatermark",
        # A permissive batch reads what there is; a stream would never know of what it has left out.
        fail_on_data_loss=(streaming or not permissive) if fail_on_data_loss is None else fail_on_data_loss,
        replicas=take(given, "replicas", one_of(*REPLICAS), "error"),  # type: ignore[arg-type]
        access=access_of(given),
        max_offsets_per_trigger=take(given, "maxOffsetsPerTrigger", positive, None),
    )


def parse_columns(
    options: Mapping[str, str],
    known: Iterable[str] = _STREAM_OPTIONS,
    ignored: Callable[[str], bool] = is_foreign,
    names: Iterable[str] = LOG_COLUMNS,
) -> tuple[tuple[str, ...] | None, bool]:
    """The value of `columns`, and whether to read headers, of a batch or a stream.

    `known` are the options of both, `ignored` tells those that are checked elsewhere, and `names` are the columns.

    Raises:
        OptionError: an option is unknown to both, `columns` or `includeHeaders` is malformed, or they contradict; or
            these are the properties of a table in a catalog.
    """
    if {"owner", "provider"} <= options.keys():
        raise OptionError(f"CREATE TABLE: {_NO_TABLES}")
    given = refuse_unknown(options, known, ignored)
    columns = _columns(given, names)
    headers = take(given, "includeHeaders", boolean, None)
    if columns is not None and headers is not None and headers != ("headers" in columns):
        listed = "lists" if "headers" in columns else "does not list"
        raise OptionError(f"includeHeaders: {str(headers).lower()} contradicts columns, which {listed} headers")
    return columns, bool(headers) or (columns is not None and "headers" in columns)


def _paths(given: Mapping[str, str]) -> tuple[str, ...]:
    """From `path`, separated by commas, or `paths`, which Spark sets for a list given to ``load``; without braces.

    A path of this machine that is there is one, whatever its name has.
    """
    if "path" in given and "paths" in given:
        raise OptionError("path: given twice, as an option and to load()")
    if "paths" in given:
        listed = parse_json("paths", given["paths"])
        if not isinstance(listed, list) or not all(isinstance(path, str) for path in listed):
            raise OptionError("paths: expected a JSON list of strings")
        paths = tuple(listed)
    else:
        text = given.get("path", "")
        paths = (text,) if _is_there(text) else tuple(filter(None, map(str.strip, _COMMA.split(text))))
    if not paths:
        hint = f" (for a table of a catalog: {_NO_TABLES})" if not given else ""
        raise OptionError(f"path: missing; pass a directory, a glob or segment files{hint}")
    return tuple(each for path in paths for each in _alternatives(path))


def _alternatives(path: str) -> list[str]:
    """The paths that ``{a,b}`` stands for, each of which has to be there, unlike the matches of ``*``."""
    braces = _BRACES.search(path)
    if braces is None or _is_there(path):
        return [path]
    start, end = path[: braces.start()], path[braces.end() :]
    return [each for word in braces[1].split(",") for each in _alternatives(start + word + end)]


def _is_there(path: str) -> bool:
    return bool(path) and not is_url(path) and os.path.lexists(path)


def readable_path(path: str) -> str:
    """The path of files to read: the URL of objects, or a local path.

    Raises:
        OptionError: the path has the scheme of another file system.
    """
    if not is_url(path) or urlsplit(path).scheme not in SCHEMES:
        return local_path(path)
    scheme, place = path.split("://", 1)
    return f"{'s3' if scheme == 's3a' else scheme}://{place}".rstrip("/")


def local_path(path: str, option: str = "path") -> str:
    """The local path of a plain or ``file:`` path, for what is written.

    Raises:
        OptionError: the path has another scheme.
    """
    scheme = urlsplit(path).scheme
    if scheme == "file":
        return unquote(urlsplit(path).path)
    if "://" in path or (len(scheme) > 1 and path[len(scheme) :].startswith(":/")):  # Hadoop's may have no authority
        raise OptionError(f"{option}: {path} is not a local path; mount the {scheme}: file system")
    return path


def _columns(given: Mapping[str, str], known: Iterable[str]) -> tuple[str, ...] | None:
    if "columns" not in given:
        return None
    names = {name.lower(): name for name in known}
    columns = []
    for part in comma_names("columns", given["columns"]):
        name = names.get(part.lower())
        if name is None:
            raise OptionError(f"columns: unknown column {part!r}; {columns_hint(part, names.values())}")
        if name in columns:
            raise OptionError(f"columns: {name} is listed twice")
        columns.append(name)
    return tuple(columns)
