"""Tables of a consumer with keys and values as typed columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kafkacodec.lazy import import_extra
from kafkacodec.records.columns import RecordColumns

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkacodec.values.decoding import ValueDecoder
    from kafkacodec.values.framing import Part

__all__ = ["typing_of"]


def typing_of(
    names: tuple[str, ...], keys: ValueDecoder | None, values: ValueDecoder | None
) -> Callable[[RecordColumns], pa.RecordBatch] | None:
    """What makes typed tables of those that have these columns; None without decoders.

    Raises:
        TypeError: a decoder is none.
        ValueError: what it decodes is not among the columns.
    """
    given: dict[Part, ValueDecoder | None] = {"key": keys, "value": values}
    decoders = {part: decoder for part, decoder in given.items() if decoder is not None}
    if not decoders:
        return None
    arrow = import_extra("pyarrow")
    from kafkacodec.values.decoding import ValueDecoder as Decoder
    from kafkacodec.values.record_values import RecordValues

    for part, decoder in decoders.items():
        if not isinstance(decoder, Decoder):
            raise TypeError(f"{part}s must be a kafkacodec.values.ValueDecoder, not {type(decoder).__name__}")
        if part not in names:
            raise ValueError(f"{part}s decodes the column {part!r}, which is not among columns")
    typed = RecordValues(decoders)
    return lambda table: typed.decoded(arrow.record_batch(table))
