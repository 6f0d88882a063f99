"""Confluent's framing of values: a zero byte and the schema id (big-endian int32) before the payload.

Source: "Wire format" in the Confluent Schema Registry's documentation.
"""

from __future__ import annotations

from typing import Any

from kafkacodec.arrow._reader import ArrowReader
from kafkacodec.arrow._single_column import SingleColumn
from kafkacodec.datatypes import NamedTuple
from kafkacodec.records._confluent import Values

__all__ = ["ConfluentColumns", "split_confluent"]


class ConfluentColumns(NamedTuple):
    """The result of `split_confluent`. Both columns have ``__arrow_c_array__`` and one row for each value.

    Attributes:
        schema_ids (SingleColumn): int32, null where a value has no framing.
        payloads (SingleColumn): binary_view, null where the value is.
    """

    schema_ids: SingleColumn
    payloads: SingleColumn


def split_confluent(values: Any) -> ConfluentColumns:
    """Split a column of values into schema ids and payloads, without copying the payloads.

    ``pyarrow.array(x)`` and ``polars.Series(x)`` take the results without a copy. The payloads are a binary_view
    column, the only Arrow layout that can skip five bytes of each value: the views point into the memory of `values`,
    which they keep alive. (Payloads of up to 12 bytes are stored inside the view.)

    Args:
        values: a binary or string column, in chunks or not, with the Arrow interface; or a list of bytes and None.

    Returns:
        (schema_ids, payloads). A value that does not start with a zero byte, or is shorter than five bytes, is not
        framed: it has a null id and is its own payload.

    Raises:
        TypeError: `values` is neither a list nor an Arrow column of type binary or string.
        EncodeError: a value is not bytes, str or None, or the Arrow array is inconsistent; `path` names the row.
        ValueError: the Arrow data is damaged or was already consumed.
    """
    held = Values()
    if isinstance(values, (list, tuple)):
        held.add_list(list(values))
    else:
        for array in ArrowReader(values):
            held.add_array(array)
    return ConfluentColumns(*held.split())
