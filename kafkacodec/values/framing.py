"""Framing: how values identify their schema, before the payload or in a header of the record.

| framing | bytes before the payload, or header | source |
|---|---|---|
| confluent | 0 and the schema's number (int32); or 1 and its GUID (16 bytes) | "Wire format" in Confluent's Schema Registry documentation |
| confluent, in headers | ``__value_schema_id``, ``__key_schema_id``: the same bytes | ``SchemaId`` and ``HeaderSchemaIdSerializer`` of Confluent's clients, 2.11 |
| glue | 3, compression (0 none, 5 zlib) and the UUID of the schema's version | ``SerializationDataEncoder`` of aws-glue-schema-registry |
| apicurio | 0 and the global id (int64) | ``DefaultIdHandler`` of Apicurio Registry 2 |
| apicurio, in headers | ``apicurio.value.globalId``, ``apicurio.value.contentId`` (int64), the same with ``key`` | ``SerdeHeaders`` and ``KafkaSerdeHeaders`` of Apicurio Registry |

Numbers are big-endian. Protobuf values of Confluent have the indexes of the message type after the number or GUID.
"""  # noqa: E501

from __future__ import annotations

import zlib
from typing import Any, Literal, get_args
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kafkacodec.datatypes import NamedTuple
from kafkacodec.errors import LimitExceeded
from kafkacodec.values.payloads import Payloads, arrow_column
from kafkacodec.values.protobuf.message_indexes import message_index, message_indexes
from kafkacodec.values.schemas import SchemaKey

__all__ = ["FRAMINGS", "UNKNOWN", "Framed", "Framing", "Part", "framed", "with_message_indexes"]

Framing = Literal["auto", "confluent", "glue", "apicurio", "none"]

FRAMINGS: tuple[str, ...] = get_args(Framing)

Part = Literal["value", "key"]
"""Which part of a record a column is: it determines the names of headers."""

MAX_INFLATED_BYTES = 64 << 20
"""Limit on the decompressed size of one value in Glue's framing."""

_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))

UNKNOWN = -1
"""The number of the key of a row that is null or has a problem."""


class Framed(NamedTuple):
    """Rows with what identifies their schemas.

    Attributes:
        keys (list[SchemaKey]): all different ones.
        key_of (npt.NDArray[np.int64]): for each row, the number of its key; `UNKNOWN` for null and for problems.
        payloads (Payloads): the bytes without framing.
        problems (dict[int, str]): what is wrong with rows, by row.
    """

    keys: list[SchemaKey]
    key_of: npt.NDArray[np.int64]
    payloads: Payloads
    problems: dict[int, str]


class _Rows:
    """The rows of a column while their framing is found."""

    def __init__(self, payloads: Payloads, nulls: npt.NDArray[np.bool_]) -> None:
        self.payloads = payloads
        self.key_of = np.full(len(nulls), UNKNOWN, np.int64)
        self.open = ~nulls  # rows without a key or problem
        self.keys: dict[SchemaKey, int] = {}
        self.problems: dict[int, str] = {}
        self.skipped = np.zeros(len(nulls), np.int64)

    def assign(
        self, rows: npt.NDArray[np.int64], keys: list[SchemaKey], places: npt.NDArray[np.int64], skip: int
    ) -> None:
        """Row ``rows[i]`` has the key ``keys[places[i]]`` and `skip` bytes of framing."""
        numbers = np.array([self.keys.setdefault(key, len(self.keys)) for key in keys], np.int64)
        self.key_of[rows] = numbers[places]
        self.skipped[rows] = skip
        self.open[rows] = False

    def refuse(self, rows: npt.NDArray[np.int64], reason: str) -> None:
        """The rows have a problem."""
        self.problems |= dict.fromkeys(rows.tolist(), reason)
        self.open[rows] = False

    def starting(self, first: int, least: int) -> npt.NDArray[np.int64]:
        """Open rows of at least `least` bytes that start with the byte `first`."""
        rows = np.flatnonzero(self.open & (self.payloads.sizes >= max(least, 1)))
        return rows[self.payloads.data[self.payloads.starts[rows]] == first] if len(rows) else rows

    def by_number(self, kind: Literal["id", "global"], first: int, size: int) -> None:
        """Rows that start with the byte `first` and a number of `size` bytes."""
        rows = self.starting(first, 1 + size)
        if len(rows):
            numbers = self.payloads.head(rows, 1 + size)[:, 1:].copy().view(f">i{size}").ravel()
            unique, places = np.unique(numbers, return_inverse=True)
            self.assign(rows, [SchemaKey(kind, int(number)) for number in unique], places, 1 + size)

    def by_uuid(self, kind: Literal["guid", "glue"], rows: npt.NDArray[np.int64], at: int) -> None:
        """Rows with 16 bytes of a UUID from byte `at`."""
        if len(rows):
            heads = self.payloads.head(rows, at + 16)[:, at:].copy().view("V16").ravel()
            unique, places = np.unique(heads, return_inverse=True)
            self.assign(rows, [SchemaKey(kind, UUID(bytes=each.tobytes())) for each in unique], places, at + 16)

    def done(self) -> Framed:
        """The result; rows that are still open have no framing."""
        for row in np.flatnonzero(self.open).tolist():
            self.problems[row] = _unframed(self.payloads.value(row)[:1])
        return Framed(list(self.keys), self.key_of, self.payloads.without(self.skipped), self.problems)


def _unframed(first: bytes) -> str:
    start = f"starts with the byte 0x{first.hex()}" if first else "is empty"
    return f"no schema id: the value {start}"


def framed(
    payloads: Payloads,
    nulls: npt.NDArray[np.bool_],
    framing: Framing,
    *,
    headers: Any = None,
    part: Part = "value",
) -> Framed:
    """The schema key and the payload of each value.

    Args:
        payloads: the values.
        nulls: which of them are null.
        framing: ``auto`` reads headers and tells the others by the first byte; numbers of eight bytes need
            ``apicurio``. ``none`` gives all rows the key ``given``.
        headers: the column ``headers`` of the records.
        part: whether the values are keys or values of records.

    Message indexes before Protobuf payloads are left there; see `with_message_indexes`.
    """
    if framing in ("auto", "confluent") and headers is None:
        head = payloads.common_head(5)
        if head is not None and head[0] == 0:
            key = SchemaKey("id", int.from_bytes(head[1:], signed=True))
            return Framed([key], np.zeros(len(nulls), np.int64), payloads.without(5), {})
    rows = _Rows(payloads, nulls)
    if framing == "none":
        whole = np.flatnonzero(rows.open)
        rows.assign(whole, [SchemaKey("given", 0)], np.zeros(len(whole), np.int64), 0)
        return rows.done()
    if headers is not None:
        _take_headers(rows, headers, framing, part)
    if framing == "apicurio":
        rows.by_number("global", 0, 8)
    if framing in ("auto", "confluent"):
        rows.by_number("id", 0, 4)
        rows.by_uuid("guid", rows.starting(1, 17), 1)
    if framing in ("auto", "glue"):
        _take_glue(rows)
    return rows.done()


# --- AWS Glue ---------------------------------------------------------------------------------------------------------


def _take_glue(rows: _Rows) -> None:
    framed_rows = rows.starting(3, 18)
    if not len(framed_rows):
        return
    compression = rows.payloads.data[rows.payloads.starts[framed_rows] + 1]
    rows.refuse(framed_rows[(compression != 0) & (compression != 5)], "unknown compression in Glue's framing")
    rows.by_uuid("glue", framed_rows[(compression == 0) | (compression == 5)], 2)
    compressed = framed_rows[compression == 5].tolist()
    if compressed:
        _inflate(rows, compressed)


def _inflate(rows: _Rows, compressed: list[int]) -> None:
    """Puts the decompressed payloads after the data."""
    data, starts, sizes = rows.payloads
    pieces, at = [data], len(data)
    starts, sizes = starts.copy(), sizes.copy()
    for row in compressed:
        try:
            piece = _inflated(rows.payloads.value(row)[18:])
        except (zlib.error, LimitExceeded) as error:
            rows.problems[row] = f"zlib: {error}"
            rows.key_of[row] = UNKNOWN
            continue
        pieces.append(np.frombuffer(piece, np.uint8))
        starts[row], sizes[row] = at, len(piece)
        rows.skipped[row] = 0
        at += len(piece)
    rows.payloads = Payloads(np.concatenate(pieces), starts, sizes)


def _inflated(data: bytes) -> bytes:
    inflater = zlib.decompressobj()
    piece = inflater.decompress(data, MAX_INFLATED_BYTES)
    if inflater.unconsumed_tail:
        raise LimitExceeded(f"the value has more than {MAX_INFLATED_BYTES} bytes")
    if not inflater.eof:
        raise zlib.error("the data ends early")
    return piece


# --- headers ----------------------------------------------------------------------------------------------------------


def _take_headers(rows: _Rows, headers: Any, framing: Framing, part: Part) -> None:
    """Reads the headers of open rows: the last of each name, as consumers do."""
    column = _header_column(headers, len(rows.open))
    if framing in ("auto", "confluent"):
        _take_header(rows, column, f"__{part}_schema_id", _confluent_key)
    if framing in ("auto", "apicurio"):
        _take_header(rows, column, f"apicurio.{part}.globalId", _apicurio_key("global"))
        _take_header(rows, column, f"apicurio.{part}.contentId", _apicurio_key("content"))


def _header_column(headers: Any, count: int) -> pa.Array:
    column = arrow_column(headers, _HEADERS, "headers")
    if len(column) != count:
        raise ValueError(f"headers has {len(column)} rows, the values have {count}")
    try:
        return column.cast(_HEADERS)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise TypeError(f"headers: expected {_HEADERS}, not {column.type}") from None


def _take_header(rows: _Rows, column: pa.Array, name: str, key_of: Any) -> None:
    entries = column.values
    matches = pc.equal(entries.field("key"), name).fill_null(False).to_numpy(zero_copy_only=False)
    places = np.flatnonzero(matches)
    offsets = column.offsets.to_numpy()
    places = places[(places >= offsets[0]) & (places < offsets[-1])]
    if not len(places):
        return
    owners = np.searchsorted(offsets, places, "right") - 1
    last = dict(zip(owners.tolist(), places.tolist(), strict=True))
    found = np.array([row for row in last if rows.open[row]], np.int64)
    encoded = (
        entries.field("value").take(pa.array([last[row] for row in found.tolist()], pa.int64())).dictionary_encode()
    )
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    for code, value in enumerate(encoded.dictionary.to_pylist()):
        same = found[codes == code]
        key = key_of(value)
        if key is None:
            rows.refuse(same, f"the header {name} is not a schema id")
        else:
            rows.assign(same, [key], np.zeros(len(same), np.int64), 0)
    rows.refuse(found[codes < 0], f"the header {name} is null")


def _confluent_key(value: bytes) -> SchemaKey | None:
    if value[:1] == b"\x00" and len(value) >= 5:
        return SchemaKey("id", int.from_bytes(value[1:5], signed=True), _message(value[5:]))
    if value[:1] == b"\x01" and len(value) >= 17:
        return SchemaKey("guid", UUID(bytes=value[1:17]), _message(value[17:]))
    return None


def _message(data: bytes) -> tuple[int, ...]:
    """The indexes of the message type in a header, which only Protobuf values have."""
    try:
        return message_index(data)[0]
    except ValueError:
        return ()


def _apicurio_key(kind: Literal["global", "content"]) -> Any:
    def key(value: bytes) -> SchemaKey | None:
        return SchemaKey(kind, int.from_bytes(value, signed=True)) if len(value) == 8 else None

    return key


def with_message_indexes(found: Framed, numbers: list[int]) -> Framed:
    """The rows whose keys have these numbers with keys for their message types, and payloads without the indexes."""
    if not numbers and len(found.keys) == 1 and not found.problems:
        return found
    keys, problems = dict(zip(found.keys, range(len(found.keys)), strict=True)), dict(found.problems)
    key_of, skipped = found.key_of.copy(), np.zeros(len(found.key_of), np.int64)
    for number in numbers:
        groups, bad = message_indexes(found.payloads, np.flatnonzero(found.key_of == number))
        problems |= bad
        key_of[list(bad)] = UNKNOWN
        for message, size, rows in groups:
            key_of[rows] = keys.setdefault(found.keys[number]._replace(message=message), len(keys))
            skipped[rows] = size
    used, key_of[key_of != UNKNOWN] = np.unique(key_of[key_of != UNKNOWN], return_inverse=True)
    names = list(keys)
    return Framed([names[number] for number in used], key_of, found.payloads.without(skipped), problems)
