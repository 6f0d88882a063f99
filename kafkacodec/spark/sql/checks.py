"""Checks of the columns that functions get: Spark tells their types only to the tasks."""

from __future__ import annotations

import pyarrow as pa

from kafkacodec.spark.errors import OptionError

__all__ = ["require_bytes"]

_BYTES = pa.BinaryArray | pa.LargeBinaryArray | pa.BinaryViewArray | pa.StringArray | pa.LargeStringArray


def require_bytes(name: str, values: pa.Array, also: tuple[pa.DataType, ...] = ()) -> None:
    """Raise OptionError if a column has neither bytes nor text, nor one of the types `also`.

    Args:
        name: the function's argument.
        values: the column.
        also: further types that it may have.
    """
    if isinstance(values, _BYTES) or values.type in also or pa.types.is_null(values.type):
        return
    others = "".join(f", {kind}" for kind in also)
    raise OptionError(f"{name}: must be a column of binary{others} or string, not {values.type}")
