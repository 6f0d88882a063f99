"""The indexes of Protobuf message types in Confluent's framing.

A count and that many indexes, as zigzag varints: of the message type in the file, then of the type nested in it, and so
on. A count of 0 stands for the first type. Source: "Wire format" in Confluent's Schema Registry documentation.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

import numpy as np
import numpy.typing as npt

from kafkacodec.records._varint import decode_varint
from kafkacodec.values.payloads import Payloads

__all__ = ["message_index", "message_indexes"]

MAX_MESSAGE_DEPTH = 32
"""Limit on the nesting of a message type in a file."""

Group = tuple[tuple[int, ...], int, npt.NDArray[np.int64]]
"""The indexes of a message type, their size in bytes, and the rows."""


def message_index(data: bytes) -> tuple[tuple[int, ...], int]:
    """The indexes at the start of the data, and their size in bytes.

    Raises:
        ValueError: there are none, or too many.
    """
    count, at = decode_varint(data, 0)
    if not 0 <= count <= MAX_MESSAGE_DEPTH:
        raise ValueError(f"{count} message indexes, not 0 to {MAX_MESSAGE_DEPTH}")
    numbers = []
    for _ in range(count):
        number, at = decode_varint(data, at)
        numbers.append(number)
    return tuple(numbers) or (0,), at


def message_indexes(payloads: Payloads, rows: npt.NDArray[np.int64]) -> tuple[list[Group], dict[int, str]]:
    """The rows by message type, and those whose indexes are damaged, with the reason.

    Types that are not nested take no step per row.
    """
    sizes = payloads.sizes[rows]
    first, second = (_byte(payloads, rows, i) for i in range(2))
    top = first == 0
    single = (first == 2) & (second < 0x80) & (sizes >= 2)
    groups: list[Group] = [((0,), 1, rows[top])] if top.any() else []
    for byte in np.unique(second[single]).tolist():
        groups.append((((byte >> 1) ^ -(byte & 1),), 2, rows[single & (second == byte)]))
    others, problems = _one_by_one(payloads, rows[~top & ~single].tolist())
    return groups + others, problems


def _byte(payloads: Payloads, rows: npt.NDArray[np.int64], at: int) -> npt.NDArray[np.int64]:
    """Byte `at` of each row, -1 after the end."""
    found = np.full(len(rows), -1, np.int64)
    long = payloads.sizes[rows] > at
    found[long] = payloads.data[payloads.starts[rows[long]] + at]
    return found


def _one_by_one(payloads: Payloads, rows: Collection[int]) -> tuple[list[Group], dict[int, str]]:
    found: dict[tuple[tuple[int, ...], int], list[int]] = defaultdict(list)
    problems = {}
    for row in rows:
        try:
            found[message_index(payloads.value(row)[: 10 * (MAX_MESSAGE_DEPTH + 1)])].append(row)
        except ValueError as error:
            problems[row] = f"message indexes: {error}"
    return [(message, size, np.array(members, np.int64)) for (message, size), members in found.items()], problems
