"""Protobuf values to columns.

A check in C finds the plain values, which ptars decodes; protobuf's own library decodes the others, and says what is
wrong with those that are no message.

A field without presence has its default where it is not set; others (messages, wrappers, ``optional``, ``oneof``) are
null. Enums are their names, or the number as text if the schema lacks it. ``google.protobuf.Timestamp`` and
``Duration`` have nanoseconds; values that 64 bits cannot hold are errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkacodec.errors import SchemaError
from kafkacodec.values.columns import Decoded, Decoder, spread
from kafkacodec.values.payloads import Joined, Payloads
from kafkacodec.values.plans import Plan, ResolvedSchema
from kafkacodec.values.protobuf.check import DAMAGED, LARGE, PLAIN, ProtoSorter
from kafkacodec.values.protobuf.compile import compiled_files, message_type
from kafkacodec.values.protobuf.library import ProtoLibrary
from kafkacodec.values.protobuf.messages import COST, ProtoMessages
from kafkacodec.values.protobuf.types import ProtoMessage, arrow_type, proto_message
from kafkacodec.values.schemas import SchemaKey
from kafkacodec.values.unify import conformed, unified

__all__ = ["plan_protobuf"]

_GROUP_ROWS = 4096

_BATCH_BYTES = 1 << 20
"""About the bytes of values that are objects at the same time."""

Rows = npt.NDArray[np.int64]


def plan_protobuf(schemas: Mapping[SchemaKey, ResolvedSchema], reader: ResolvedSchema | None) -> Plan:
    """Decoders of the schemas. Fields have the same numbers in a reader's schema, so it reads all values."""
    failures: dict[SchemaKey, SchemaError] = {}
    readers: dict[SchemaKey, _Message] = {}
    common = None if reader is None else _Message(reader, ())
    files: dict[int, Any] = {}
    kind: pa.DataType | None = None
    for key in reversed(list(schemas)):
        try:
            readers[key] = common or _Message(schemas[key], key.message, files)
            kind = readers[key].type if kind is None else unified(kind, readers[key].type)
        except SchemaError as error:
            failures[key] = error
            readers.pop(key, None)
    decoders: dict[SchemaKey, Decoder] = {key: _ProtobufDecoder(each, kind) for key, each in readers.items()}
    return Plan(common.type if common else kind, decoders, failures)


class _Message:
    """A message type, and what decodes it."""

    def __init__(self, schema: ResolvedSchema, indexes: tuple[int, ...], files: dict[int, Any] | None = None) -> None:
        known = {} if files is None else files
        if id(schema) not in known:
            known[id(schema)] = compiled_files(*schema)
        descriptor = message_type(known[id(schema)][-1], indexes, schema.schema.message)
        message = proto_message(descriptor)
        self.type = arrow_type(message)
        self.sorter = ProtoSorter(message)
        self.messages = ProtoMessages(message, descriptor)
        self._library = _library(message)

    def plain(self, joined: Joined) -> pa.Array | None:
        """Plain values as a struct column; None if ptars does not decode them."""
        if self._library is None:
            return None
        try:
            return self._library.read(joined.column().cast(pa.binary()))
        except MemoryError:
            raise
        except Exception:
            return None


def _library(message: ProtoMessage) -> ProtoLibrary | None:
    """What decodes plain values of the type, if ptars takes it."""
    try:
        return ProtoLibrary(message)
    except MemoryError:
        raise
    except Exception:
        return None


class _ProtobufDecoder:
    """Decodes values of one message type to columns of the common type."""

    def __init__(self, message: _Message, kind: pa.DataType) -> None:
        self.type = kind
        self._message = message

    def decode(self, payloads: Payloads, max_bytes: int) -> Decoded:
        """The values; one that is not a message of the type is null."""
        rows, own = len(payloads.starts), self._message.type
        parts: list[tuple[pa.Array, Rows]] = []
        problems: dict[int, str] = {}
        budget = max_bytes
        for start in range(0, rows, _GROUP_ROWS):
            group = _Group(self._message, payloads.take(np.arange(start, min(start + _GROUP_ROWS, rows))), budget)
            budget = group.budget
            parts += [(column, start + places) for column, places in group.parts]
            problems |= {start + row: reason for row, reason in group.problems.items()}
        column = pa.concat_arrays([column for column, _ in parts]) if parts else pa.array([], own)
        places = np.concatenate([places for _, places in parts]) if parts else np.empty(0, np.int64)
        return Decoded(spread(conformed(column, self.type), places, rows), problems)


class _Group:
    """Some values, decoded.

    Attributes:
        parts (list[tuple[pa.Array, Rows]]): columns of messages, each with the rows of its values.
        problems (dict[int, str]): what is wrong with the other rows.
        budget (int): what the columns leave of the memory that they may take, in bytes.
    """

    def __init__(self, message: _Message, payloads: Payloads, budget: int) -> None:
        self.parts: list[tuple[pa.Array, Rows]] = []
        self.problems: dict[int, str] = {}
        self._message, self._payloads = message, payloads
        joined = payloads.joined()
        forms, self.budget = message.sorter.sort(joined, max(budget, 0))
        plain = forms["form"] == PLAIN
        rows = np.arange(len(plain))
        column = message.plain(joined if plain.all() else payloads.take(rows[plain]).joined())
        if column is None:
            plain[:] = False
        else:
            self.parts.append((column, rows[plain]))
        if not plain.all():
            large = forms["form"] == LARGE
            self._refuse(rows[large])
            self._add_others(rows[~plain & ~large])
            self._name_places(forms)

    def _add_others(self, rows: Rows) -> None:
        """Decode values that are not plain, each two bytes of which may be a message; few of them at a time."""
        cost = COST + self._message.sorter.width
        ends = np.cumsum(self._payloads.sizes[rows])
        for batch in np.split(rows, np.flatnonzero(np.diff(ends // _BATCH_BYTES)) + 1):
            large = self._payloads.sizes[batch] // 2 > max(self.budget, 0) // cost
            self._refuse(batch[large])
            batch = batch[~large]
            column, good, problems = self._message.messages.read([self._payloads.value(row) for row in batch.tolist()])
            self.budget -= column.nbytes
            self.parts.append((column, batch[good]))
            self.problems |= {int(batch[row]): reason for row, reason in problems.items()}

    def _refuse(self, rows: Rows) -> None:
        reason = (
            f"the value may need more than the {max(self.budget, 0)} bytes of memory that are left (max_total_bytes)"
        )
        self.problems |= dict.fromkeys(rows.tolist(), reason)

    def _name_places(self, forms: npt.NDArray[np.void]) -> None:
        """Add to what is wrong with values where it is, as far as the check has found it."""
        for row in np.flatnonzero(forms["form"] == DAMAGED).tolist():
            if row in self.problems:
                self.problems[row] += f" ({self._message.sorter.place(forms[row])})"
