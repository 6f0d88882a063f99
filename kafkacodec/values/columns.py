"""The result of every format's decoders: a column, and the problems of rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkacodec.datatypes import NamedTuple
from kafkacodec.values.payloads import Payloads

__all__ = ["Decoded", "Decoder", "spread"]


class Decoded(NamedTuple):
    """A column of values, null where a row has a problem, and the problems by row."""

    column: pa.Array
    problems: Mapping[int, str]


class Decoder(Protocol):
    """Decodes values of one schema to columns of one type."""

    type: pa.DataType

    def decode(self, payloads: Payloads, max_bytes: int) -> Decoded:
        """The values, which are not null; `max_bytes` limits the memory of their columns."""


def spread(column: pa.Array, rows: npt.NDArray[np.int64], count: int) -> pa.Array:
    """The column with its values at `rows` of `count`, and null elsewhere."""
    if len(rows) == count and (np.diff(rows) > 0).all():
        return column
    places = np.zeros(count, np.int64)
    places[rows] = np.arange(len(rows))
    missing = np.ones(count, bool)
    missing[rows] = False
    return column.take(pa.array(places, mask=missing))
