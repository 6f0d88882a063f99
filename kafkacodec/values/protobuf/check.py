"""A check in C that finds the Protobuf values that all decoders read alike."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kafkacodec.values.payloads import Joined
from kafkacodec.values.protobuf._check import Sorter
from kafkacodec.values.protobuf.types import ProtoEnum, ProtoField, ProtoMessage, messages_of

__all__ = ["DAMAGED", "LARGE", "ODD", "PLAIN", "ProtoSorter"]

PLAIN, ODD, DAMAGED, LARGE = range(4)
"""The forms of values; csrc/values/kc_protobuf.h describes them."""

_FIELD = np.dtype([("number", "u4"), *((name, "i4") for name in ("kind", "repeated", "once", "child", "width"))])
_MESSAGE = np.dtype([("first", "i4"), ("count", "i4"), ("closed", "i4")])
_ROW = np.dtype([("form", "i4"), ("field", "i4"), ("position", "i8")])

# The kinds of csrc/values/kc_protobuf.h.
_ENUM, _SECONDS, _NANOS, _MESSAGE_KIND, _MAP, _GROUP = 4, 5, 6, 11, 12, 13
_KINDS = {
    "int32": 0,
    "enum": 0,
    "int64": 1,
    "uint64": 1,
    "sint64": 1,
    "uint32": 2,
    "sint32": 2,
    "bool": 3,
    "fixed32": 7,
    "sfixed32": 7,
    "float": 7,
    "fixed64": 8,
    "sfixed64": 8,
    "double": 8,
    "bytes": 9,
    "string": 10,
    "message": _MESSAGE_KIND,
    "map": _MAP,
    "group": _GROUP,
}


_OFFSET = 4  # bytes of a list in columns, without its items

_MOST_WIDTH = 2**31 - 1


class ProtoSorter:
    """Sorts values of a message type by their form.

    Attributes:
        width (int): the most memory that two bytes of a value take in columns.
    """

    def __init__(self, message: ProtoMessage) -> None:
        tables = _Tables(message)
        self.width = _width(message) + 2 * sum(tables.widths)
        self._names = tables.names
        self._sorter = Sorter(*tables.packed(), tables.marks, min(_width(message), _MOST_WIDTH))

    def sort(self, joined: Joined, budget: int) -> tuple[npt.NDArray[np.void], int]:
        """For each value its ``form``, and if it is damaged the number of the ``field`` and the ``position``.

        Also what the columns of plain values leave of the budget, in bytes of memory.
        """
        rows = np.empty(len(joined.ends), _ROW)
        left = self._sorter.sort(joined.data, joined.ends, budget, rows.view(np.uint8))
        return rows, left

    def place(self, row: np.void) -> str:
        """Where a damaged value is."""
        name = f"field {self._names[row['field']]}, " if row["field"] >= 0 else ""
        return f"{name}byte {row['position']}"


class _Tables:
    """The tables of a schema."""

    def __init__(self, root: ProtoMessage) -> None:
        messages = messages_of(root)
        self._places = {message: i for i, message in enumerate(messages)}
        self._messages: list[tuple[int, int, int]] = []
        self._fields: list[tuple[int, ...]] = []
        self._enums: list[tuple[int, int]] = []
        self._enum_places: dict[ProtoEnum, int] = {}
        self._numbers: list[int] = []
        self.marks = 0
        self.names: list[str] = []
        self.widths: list[int] = []
        entries = {f.message for message in messages for f in message.fields if f.kind == "map"}
        for message in messages:
            self._add(message, message in entries, "" if message is root else f"{message.name.rpartition('.')[2]}.")

    def packed(self) -> tuple[bytes, bytes, bytes, bytes]:
        """The tables of messages, fields, enums and numbers."""
        return (
            np.array(self._messages, _MESSAGE).tobytes(),
            np.array(self._fields, _FIELD).tobytes(),
            np.array(self._enums, "i4").tobytes(),
            np.array(self._numbers, "i4").tobytes(),
        )

    def _add(self, message: ProtoMessage, is_entry: bool, prefix: str) -> None:
        closed = is_entry or message.is_extended
        self._messages.append((len(self._fields), len(message.fields), closed))
        choices: dict[int, int] = {}
        for f in message.fields:
            kind = self._kind(message, f)
            mark = self._mark(f, is_entry or (f.message is not None and not f.is_repeated), choices)
            child = self._enum(f) if kind == _ENUM else self._child(f) if kind in (_MESSAGE_KIND, _MAP) else 0
            width = min(_item_width(f), _MOST_WIDTH) if f.is_repeated else 0
            self._fields.append((f.number, kind, f.is_repeated, mark, child, width))
            self.names.append(prefix + f.name)
            self.widths.append(width)

    def _mark(self, field: ProtoField, is_single: bool, choices: dict[int, int]) -> int:
        """The mark of a field that may occur once in a message, alone or with the others of its oneof."""
        if field.choice in choices:
            return choices[field.choice]
        if field.choice < 0 and not is_single:
            return -1
        if field.choice >= 0:
            choices[field.choice] = self.marks
        self.marks += 1
        return self.marks - 1

    def _kind(self, message: ProtoMessage, field: ProtoField) -> int:
        if message.form in ("timestamp", "duration"):
            return _SECONDS if field.number == 1 else _NANOS
        return _ENUM if field.enum is not None and field.enum.is_closed else _KINDS[field.kind]

    def _child(self, field: ProtoField) -> int:
        assert field.message is not None
        return self._places[field.message]

    def _enum(self, field: ProtoField) -> int:
        assert field.enum is not None
        if field.enum not in self._enum_places:
            self._enum_places[field.enum] = len(self._enums)
            self._enums.append((len(self._numbers), len(field.enum.names)))
            self._numbers += sorted(field.enum.names)
        return self._enum_places[field.enum]


def _width(message: ProtoMessage) -> int:
    """Bytes of a message in columns, without the items of lists and those of text and bytes."""
    return 1 + sum(_OFFSET if f.is_repeated else _item_width(f) for f in message.fields)


def _item_width(field: ProtoField) -> int:
    if field.message is not None:
        return _width(field.message)
    if field.enum is not None:
        return _OFFSET + max(len(name) for name in field.enum.names.values())
    return 8
