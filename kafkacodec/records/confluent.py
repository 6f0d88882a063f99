"""Confluent's framing of values: a zero byte and the schema's id, a big-endian int32, in front of the payload.

Source: "Wire format" in the Confluent Schema Registry's documentation.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kafkacodec.arrow._reader import ArrowReader
from kafkacodec.arrow._single_column import SingleColumn
from kafkacodec.records._confluent import Values

__all__ = ["ConfluentColumns", "split_confluent"]


class ConfluentColumns(NamedTuple):
    """What `split_confluent` gives; both have ``__arrow_c_array__`` and one row for every value.

    Attributes:
        schema_ids (SingleColumn): int32, null where a value has no framing.
        payloads (SingleColumn): binary_view, null where the value is.
    """

    schema_ids: SingleColumn
    payloads: SingleColumn


def split_confluent(values: Any) -> ConfluentColumns:
    """Take the schema ids off a column of values, without copying the payloads.

    ``pyarrow.array(x)`` and ``polars.Series(x)`` take the results as they are. The payloads are a binary_view column,
    the one layout of Arrow that can leave out five bytes of each value: its views point into the memory of `values`,
    which lives as long as they do. (Arrow keeps payloads of up to 12 bytes inside the view itself.)

    Args:
        values: a binary or string column, in chunks or not, with the Arrow interface; or a list of bytes and None.

    Returns:
        (schema_ids, payloads). A value that does not start with a zero byte, or is shorter than five bytes, is not
        framed: it has a null id and is its own payload.

    Raises:
        TypeError: `values` is neither a list nor an Arrow column of bytes or text.
        EncodeError: a value is neither bytes, text nor None, or the array contradicts itself; `path` names its row.
        ValueError: the Arrow data is damaged or used up.
    """
    held = Values()
    if isinstance(values, (list, tuple)):
        held.add_list(list(values))
    else:
        for array in ArrowReader(values):
            held.add_array(array)
    return ConfluentColumns(*held.split())
