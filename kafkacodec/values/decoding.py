"""Decoding a column of keys or values to typed columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkacodec.arguments import limit, one_of
from kafkacodec.errors import DecodeError, LimitExceeded, SchemaError, SchemaNotFound
from kafkacodec.lazy import missing_package
from kafkacodec.named_rows import Tabular
from kafkacodec.questions import leave_loop
from kafkacodec.records.plan import DEFAULT_MAX_TOTAL_BYTES
from kafkacodec.shown import counted, repr_of
from kafkacodec.signatures import suggests_options
from kafkacodec.values.framing import FRAMINGS, UNKNOWN, Framed, Framing, Part, framed, with_message_indexes
from kafkacodec.values.payloads import payloads_of
from kafkacodec.values.plans import Plan, ResolvedSchema
from kafkacodec.values.schemas import FORMATS, Format, Schema, SchemaKey, SchemaSource, resolved_references
from kafkacodec.values.sources import has_any, is_one, may_wait, place_in, source_of

__all__ = ["DecodedValues", "OnValueError", "ValueDecoder", "decode", "require_packages"]

OnValueError = Literal["raise", "null"]

# Format -> the module and function that plans its decoders. Modules are loaded when a column needs them.
_PLANNERS = {
    "avro": ("kafkacodec.values.avro.decoders", "plan_avro"),
    "protobuf": ("kafkacodec.values.protobuf.decoders", "plan_protobuf"),
    "json": ("kafkacodec.values.json.values", "plan_json"),
}

_PACKAGES = {
    "avro": ("polars_avro", "fastavro"),
    "protobuf": ("google", "ptars", "grpc_tools"),
    "json": ("orjson",),
}

_MOST_PLANS = 64

_ONE = SchemaKey("given", 0)  # the schema of all values

_CHUNK_BYTES = 64 << 20
_CHUNK_ROWS = 1 << 20


@lru_cache(maxsize=64)
def _schema_of(kind: pa.DataType) -> pa.Schema:
    return pa.schema([("value", kind), ("schema_id", pa.int64()), ("schema_uuid", pa.string()), ("error", pa.string())])


class DecodedValues(Tabular):
    """Decoded keys or values, a row for each. Offers ``__arrow_c_stream__`` of the Arrow PyCapsule interface.

    Notebooks show the first rows as a table.

    Attributes:
        values (pa.ChunkedArray): the values, null where the input is null or a row has an error.
        schema_ids (pa.ChunkedArray): int64, the number of each row's schema; null if it has none, or a UUID.
        schema_uuids (pa.ChunkedArray): string, the GUID or UUID of each row's schema; null if it has none.
        errors (pa.ChunkedArray): string, why a row was not decoded; null if it was.
    """

    def __init__(self, table: pa.Table) -> None:
        self._table = table
        self.values, self.schema_ids, self.schema_uuids, self.errors = table.columns

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pa.Table:
        """The columns ``value``, ``schema_id``, ``schema_uuid`` and ``error`` as a table, without a copy."""
        return self._table

    def _columns(self) -> Mapping[str, Any]:
        return {"value": Any, "schema_id": int, "schema_uuid": str, "error": str}

    def _rows(self) -> Iterator[dict[str, Any]]:
        for batch in self._table.to_batches(max_chunksize=_SHOWN_AT_ONCE):
            columns = [map(_plain, column) for column in batch.columns]
            yield from (dict(zip(self._columns(), row, strict=True)) for row in zip(*columns, strict=True))

    def _num_rows(self) -> int:
        return len(self)

    def _caption(self) -> str:
        return f"DecodedValues of {self.values.type}, {counted(self.num_errors, 'error')}"

    @property
    def num_errors(self) -> int:
        """The number of rows with an error."""
        return int(len(self.errors) - self.errors.null_count)

    def __repr__(self) -> str:
        return repr_of(self, f"{counted(len(self), 'row')} of {self.values.type}", counted(self.num_errors, "error"))


_SHOWN_AT_ONCE = 50


def _plain(scalar: pa.Scalar) -> Any:
    """A value of a column as Python's objects; as a number where these have no nanoseconds, or no such year."""
    if isinstance(scalar, pa.StructScalar) and scalar.is_valid:
        return {name: _plain(part) for name, part in scalar.items()}
    if isinstance(scalar, pa.ListScalar) and scalar.is_valid:
        return [_plain(part) for part in scalar.values]
    try:
        return scalar.as_py()
    except (ValueError, OverflowError):
        return scalar.value


@suggests_options
def decode(
    column: Any,
    schemas: SchemaSource | Schema | Mapping[int | UUID, Schema | str] | str,
    *,
    format: Format | None = None,
    reader_schema: Schema | str | None = None,
    framing: Framing | None = None,
    headers: Any = None,
    part: Part = "value",
    on_error: OnValueError = "raise",
    max_total_bytes: int = DEFAULT_MAX_TOTAL_BYTES,
) -> DecodedValues:
    """Decode a column of keys or values in Avro, Protobuf or JSON to a typed column.

    Rows may have different schemas. The column has the type of the reader's schema; without one, it has the fields of
    all schemas of the rows, and a field that only some have is null in the others.

    Args:
        column: bytes or text: ``columns["value"]`` of decoded or consumed records, or another numpy array of objects; a
            column of pandas; any column with the Arrow interface, in chunks, as views or dictionaries; or a list.
        schemas: where schemas come from: a `SchemaDirectory` or the path of one, a `Registry` or its URL (``http:`` or
            ``https:``), a `SchemaTopic`, a dict of schemas by number or UUID, or a `Schema` that all values have.
        format: ``avro``, ``protobuf`` or ``json``: the format of schemas given as text. Rows of another format have an
            error. Default: whatever the source says.
        reader_schema: the schema of the result, with fields, defaults and aliases as Avro's rules of schema resolution
            have them; for Protobuf and JSON, the fields to read.
        framing: where values have the number of their schema: ``confluent``, ``glue``, ``apicurio`` (numbers of eight
            bytes), ``none``, or ``auto`` for the first two and for all headers. Default: ``none`` if `schemas` is a
            `Schema`, else ``auto``.
        headers: the column ``headers`` of the records, in which newer serializers have the schema; in the same forms.
        part: ``value`` or ``key``, for the names of headers.
        on_error: ``raise``, or ``null`` to make a row that cannot be decoded null and give the reason in ``errors``.
        max_total_bytes: limit on the memory of the columns, in bytes.

    Raises:
        DecodeError: a value does not match its schema, or has none, and `on_error` is ``raise``; `path` names the row,
            and the reason the field and byte.
        SchemaError: a schema is missing or cannot be used, and `on_error` is ``raise``; or the reader's is wrong.
        RegistryError: the registry does not answer, for any `on_error`.
        LimitExceeded: the columns need more memory than the limit, for any `on_error`.
        ImportError: a package of the extra ``values`` is missing.
        ValueError, TypeError: an argument is wrong.
    """
    decoder = ValueDecoder(
        schemas,
        format=format,
        reader_schema=reader_schema,
        framing=framing,
        part=part,
        on_error=on_error,
        max_total_bytes=max_total_bytes,
    )
    return decoder.decode(column, headers=headers)


class ValueDecoder:
    """Decodes many columns with the same schemas, which are looked up and parsed once. Arguments as in `decode`.

    Pass one to ``columns`` of a consumer, or as its ``value_deserializer`` for records one by one.

    A consumer for asyncio lets it ask a registry in a thread, so that the event loop goes on meanwhile; elsewhere its
    methods wait, up to the registry's ``timeout`` for each attempt.

    Without a reader's schema, the type of a column depends on the schemas of its rows; after `prepare` it is that of
    all schemas given there, for every column.
    """

    @suggests_options
    def __init__(
        self,
        schemas: SchemaSource | Schema | Mapping[int | UUID, Schema | str] | str,
        *,
        format: Format | None = None,
        reader_schema: Schema | str | None = None,
        framing: Framing | None = None,
        part: Part = "value",
        on_error: OnValueError = "raise",
        max_total_bytes: int = DEFAULT_MAX_TOTAL_BYTES,
    ) -> None:
        if format is not None:
            one_of("format", format, FORMATS)
        one_of("on_error", on_error, ("raise", "null"))
        one_of("part", part, ("value", "key"))
        self._framing = framing if framing is not None else "none" if isinstance(schemas, Schema) else "auto"
        one_of("framing", self._framing, FRAMINGS)
        self._source = source_of(schemas, format or "avro")
        if self._framing == "none" and not has_any(self._source):
            wanted = "pass the one that all have, as kc.values.Schema(text)"
            raise ValueError(f"framing='none': values have no number of a schema; {wanted}")
        self._format = format
        self._part = part
        self._on_error = on_error
        self._max_bytes = limit("max_total_bytes", max_total_bytes)
        self._reader_schema = reader_schema
        self._found: dict[SchemaKey, ResolvedSchema | SchemaError] = {}
        self._absent: dict[SchemaKey, SchemaNotFound] = {}
        self._plans: dict[tuple[SchemaKey, ...], Plan] = {}
        self._prepared: Plan | None = None
        self._prepared_for: tuple[SchemaKey, ...] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what was looked up: a copy in another process does that again, also the schemas of `prepare`."""
        kept = {name: value for name, value in self.__dict__.items() if name != "_reader"}
        return {**kept, "_found": {}, "_absent": {}, "_plans": {}, "_prepared": None}

    def __repr__(self) -> str:
        return repr_of(self, self._part, f"framing {self._framing}", self._source)

    def keys(self, column: Any, *, headers: Any = None) -> list[SchemaKey]:
        """What identifies the schemas of a column's rows, each once."""
        return self._framed(column, headers).keys

    def prepare(self, keys: Iterable[SchemaKey]) -> pa.DataType:
        """Fix the type of columns to that of these schemas, and return it. Rows of other schemas then have an error.

        With a reader's schema, the type is fixed already, and rows of any schema are read.

        Raises:
            SchemaError: none of the schemas can be used, and `on_error` is ``raise``.
        """
        keys = tuple(keys)
        plan = self._plan(keys)
        if self._reader is None:
            self._prepared, self._prepared_for = plan, keys
        if plan.type is None and plan.failures and self._on_error == "raise":
            raise next(iter(plan.failures.values()))
        return pa.null() if plan.type is None else plan.type

    def decode(self, column: Any, *, headers: Any = None) -> DecodedValues:
        """Decode a column. Raises as `kafkacodec.values.decode`."""
        try:
            found = self._decoded(column, headers)
        except Exception:
            self._absent.clear()
            raise
        self._absent.clear()
        return found

    def __call__(self, value: Any) -> Any:
        """A key or value as Python's objects, None for None: for a ``value_deserializer`` or ``key_deserializer``.

        Much slower than `decode` and the ``columns`` of a consumer. Schemas in headers are not found, since a
        deserializer does not get these. Raises as `kafkacodec.values.decode`.
        """
        return None if value is None else _plain(self.decode([bytes(value)]).values[0])

    def _decoded(self, column: Any, headers: Any) -> DecodedValues:
        rows = self._framed(column, headers)
        if self._prepared is None and self._prepared_for is not None:
            self.prepare(self._prepared_for)
        plan = self._prepared or self._plan(tuple(rows.keys))
        kind = pa.null() if plan.type is None else plan.type
        pieces: list[pa.RecordBatch] = []
        left = self._max_bytes
        for part in _chunks(rows.payloads.sizes):
            pieces.append(self._piece(rows, part, plan, kind, left))
            left -= pieces[-1].get_total_buffer_size()
            if left < 0:
                raise LimitExceeded(f"the columns need more than {self._max_bytes} bytes (max_total_bytes)")
        return DecodedValues(pa.Table.from_batches(pieces, schema=_schema_of(kind)))

    # --- schemas ------------------------------------------------------------------------------------------------------

    @cached_property
    def _reader(self) -> ResolvedSchema | None:
        reader = self._reader_schema
        if reader is None:
            return None
        if isinstance(reader, str):
            reader = Schema(reader, self._format or "avro")
        return ResolvedSchema(reader, resolved_references(reader, self._source))

    def _schema(self, key: SchemaKey) -> ResolvedSchema | SchemaError:
        """The schema of a key, or what is wrong with it; looked up once."""
        key = key._replace(message=())
        if key not in self._found:
            if key in self._absent:
                return self._absent[key]
            try:
                schema = self._source.find(key)
                self._found[key] = ResolvedSchema(schema, resolved_references(schema, self._source))
            except SchemaNotFound as error:
                return error  # it may be registered later
            except SchemaError as error:
                self._found[key] = error
        return self._found[key]

    def _leave_loop(self, keys: Iterable[SchemaKey]) -> None:
        """Let an event loop go on while a registry is asked for the schemas of these keys."""
        if not may_wait(self._source):
            return
        wanted = dict.fromkeys(key._replace(message=()) for key in keys)
        unknown = tuple(key for key in wanted if key not in self._found and key not in self._absent)
        if unknown or (self._reader_schema is not None and "_reader" not in self.__dict__):
            leave_loop(self._look_up, unknown)

    def _look_up(self, keys: tuple[SchemaKey, ...]) -> None:
        """Ask for schemas. What is missing is so for the next `decode`."""
        _ = self._reader
        for key in keys:
            found = self._schema(key)
            if isinstance(found, SchemaNotFound):
                self._absent[key] = found

    def _plan(self, keys: tuple[SchemaKey, ...]) -> Plan:
        if keys in self._plans:
            return self._plans[keys]
        plan = self._new_plan(keys)
        if not any(isinstance(failure, SchemaNotFound) for failure in plan.failures.values()):
            if len(self._plans) >= _MOST_PLANS:
                self._plans.clear()
            self._plans[keys] = plan
        return plan

    def _new_plan(self, keys: tuple[SchemaKey, ...]) -> Plan:
        schemas: dict[SchemaKey, ResolvedSchema] = {}
        failures: dict[SchemaKey, SchemaError] = {}
        for key in sorted(keys, key=_age):
            found = self._schema(key)
            if isinstance(found, SchemaError):
                failures[key] = found
            else:
                schemas[key] = found
        reader = self._reader
        wanted = self._format or (reader.schema.format if reader else _only_format(schemas))
        for key in [key for key, found in schemas.items() if found.schema.format != wanted]:
            failures[key] = SchemaError(f"{key} is {schemas.pop(key).schema.format}, not {wanted}")
        if wanted is None:
            return Plan(None, {}, failures)
        require_packages(wanted)
        module, name = _PLANNERS[wanted]
        plan: Plan = getattr(import_module(module), name)(schemas, reader)
        failures |= {key: failure.within(place_in(self._source, key)) for key, failure in plan.failures.items()}
        return plan._replace(failures=failures)

    # --- rows ---------------------------------------------------------------------------------------------------------

    def _framed(self, column: Any, headers: Any) -> Framed:
        payloads, nulls = payloads_of(column)
        rows = framed(payloads, nulls, self._framing, headers=headers, part=self._part)
        self._leave_loop(rows.keys)
        return with_message_indexes(rows, [i for i, key in enumerate(rows.keys) if self._has_indexes(key)])

    def _has_indexes(self, key: SchemaKey) -> bool:
        """Whether payloads start with message indexes: Protobuf's do in Confluent's framing, if no header has them."""
        if key.kind not in ("id", "guid") or key.message:
            return False
        found = self._schema(key)
        return isinstance(found, ResolvedSchema) and found.schema.format == "protobuf"

    def _of_all(self, key: SchemaKey) -> SchemaKey:
        """The key of the one schema of all values, which has the values of this key too; else the key."""
        same = is_one(self._source) and not any(key.message)
        if same and isinstance(found := self._schema(_ONE), ResolvedSchema) and found.schema.message is None:
            return _ONE
        return key

    def _piece(self, rows: Framed, part: slice, plan: Plan, kind: pa.DataType, max_bytes: int) -> pa.RecordBatch:
        """The rows of a slice."""
        key_of = rows.key_of[part]
        problems = {row - part.start: text for row, text in rows.problems.items() if part.start <= row < part.stop}
        failures: dict[int, SchemaError] = {}
        groups: list[tuple[pa.Array, npt.NDArray[np.int64]]] = []
        for number, members in _members(key_of):
            key = rows.keys[number]
            decoder = plan.decoders.get(key) or plan.decoders.get(self._of_all(key))
            if decoder is None:
                failures[int(members[0])] = failure = plan.failures.get(key) or _unprepared(key, plan)
                problems |= dict.fromkeys(members.tolist(), str(failure))
                continue
            everything = len(members) == len(rows.key_of)
            decoded = decoder.decode(
                rows.payloads if everything else rows.payloads.take(members + part.start), max_bytes
            )
            problems |= {int(members[row]): text for row, text in decoded.problems.items()}
            groups.append((decoded.column, members))
        if problems and self._on_error == "raise":
            first = min(problems)
            place = f"values[{part.start + first}]"
            if first in failures:
                failure = failures[first]
                raise type(failure)(failure.reason, path=failure.path).within(place)
            raise DecodeError(problems[first], path=place)
        column = _placed(groups, len(key_of), kind)
        return pa.record_batch([column, *_descriptions(rows.keys, key_of, problems)], schema=_schema_of(kind))


def require_packages(format: str, *more: str) -> None:
    """Raise ImportError if a package for the format, or one of `more`, is missing."""
    for package in (*_PACKAGES[format], *more):
        if find_spec(package) is None:
            raise missing_package(f"{format} values need", package, "values")


def _unprepared(key: SchemaKey, plan: Plan) -> SchemaError:
    known = ", ".join(str(each.value) for each in plan.decoders if each.kind == key.kind)
    return SchemaError(f"{key} is not one of the schemas that were prepared{known and f': {known}'}")


def _age(key: SchemaKey) -> tuple[str, int, tuple[int, ...]]:
    """Sorts older schemas first, as far as their numbers tell."""
    return key.kind, key.value if isinstance(key.value, int) else 0, key.message


def _only_format(schemas: Mapping[SchemaKey, ResolvedSchema]) -> str | None:
    """The one format of the schemas; None if there are no schemas.

    Raises:
        SchemaError: there are several.
    """
    formats = sorted({found.schema.format for found in schemas.values()})
    if len(formats) > 1:
        raise SchemaError(f"rows have schemas of {' and '.join(formats)}; choose one with format=")
    return formats[0] if formats else None


def _chunks(sizes: npt.NDArray[np.int64]) -> Iterable[slice]:
    """Runs of rows of a limited total size."""
    if len(sizes) <= _CHUNK_ROWS and sizes.sum() <= _CHUNK_BYTES:
        return [slice(0, len(sizes))] if len(sizes) else []
    return _cut(sizes)


def _cut(sizes: npt.NDArray[np.int64]) -> Iterator[slice]:
    ends = np.cumsum(sizes)
    start = 0
    while start < len(sizes):
        before = int(ends[start - 1]) if start else 0
        stop = int(np.searchsorted(ends, before + _CHUNK_BYTES, "right"))
        stop = min(max(stop, start + 1), start + _CHUNK_ROWS)
        yield slice(start, stop)
        start = stop


def _members(key_of: npt.NDArray[np.int64]) -> list[tuple[int, npt.NDArray[np.int64]]]:
    """The number of each key that rows have, with the rows; mostly all have the same."""
    if len(key_of) and key_of[0] != UNKNOWN and (key_of == key_of[0]).all():
        return [(int(key_of[0]), np.arange(len(key_of)))]
    numbers = np.unique(key_of[key_of != UNKNOWN]).tolist()
    return [(number, np.flatnonzero(key_of == number)) for number in numbers]


def _placed(groups: list[tuple[pa.Array, npt.NDArray[np.int64]]], rows: int, kind: pa.DataType) -> pa.Array:
    """A column with the values of each group in its rows, and null elsewhere."""
    if not groups:
        return pa.nulls(rows, kind)
    if len(groups) == 1 and len(groups[0][0]) == rows:
        return groups[0][0]
    places = np.full(rows, -1, np.int64)
    places[np.concatenate([members for _, members in groups])] = np.arange(sum(len(column) for column, _ in groups))
    return pa.concat_arrays([column for column, _ in groups]).take(pa.array(places, mask=places < 0))


def _descriptions(keys: list[SchemaKey], key_of: npt.NDArray[np.int64], problems: Mapping[int, str]) -> list[pa.Array]:
    """The columns of numbers, UUIDs and errors."""
    rows = len(key_of)
    numbers = [key.value if isinstance(key.value, int) and key.kind != "given" else None for key in keys]
    uuids = [str(key.value) if isinstance(key.value, UUID) else None for key in keys]
    if len(keys) == 1 and (key_of == 0).all():
        described = [_repeated(numbers[0], pa.int64(), rows), _repeated(uuids[0], pa.string(), rows)]
    else:
        known = pa.array(key_of, mask=key_of == UNKNOWN)
        described = [pa.array(numbers, pa.int64()).take(known), pa.array(uuids, pa.string()).take(known)]
    if problems:
        return [*described, pa.array([problems.get(row) for row in range(rows)], pa.string())]
    return [*described, pa.nulls(rows, pa.string())]


def _repeated(value: int | str | None, kind: pa.DataType, rows: int) -> pa.Array:
    return pa.nulls(rows, kind) if value is None else pa.repeat(pa.scalar(value, kind), rows)
