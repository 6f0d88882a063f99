"""Keys and values of records that are printed, decoded by their schemas, as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from kafkacodec.arrow._rows import cells
from kafkacodec.cli.output import json_line
from kafkacodec.errors import DecodeError, SchemaError

if TYPE_CHECKING:
    from kafkacodec import RecordColumns
    from kafkacodec.cli.rows.record_rows import Decoded, Given
    from kafkacodec.values.decoding import ValueDecoder
    from kafkacodec.values.framing import Part
    from kafkacodec.values.json.infer import JsonInference

__all__ = ["TypedRecords"]


class TypedRecords:
    """Decodes the keys and values of tables of records.

    Args:
        decoders: of ``key``, of ``value`` or of both.

    Attributes:
        bad_row (int | None): the row of the error that was raised last; None: it is about no single row.
    """

    def __init__(self, decoders: Mapping[Part, ValueDecoder | JsonInference]) -> None:
        self._decoders = decoders
        self.bad_row: int | None = None

    def of(self, table: RecordColumns, place: str | None = None) -> Iterator[tuple[RecordColumns, Decoded]]:
        """The records with JSON text in place of decoded keys and values, and what that is as values.

        Unless the decoder raises, what cannot be decoded is null, and ``key_error`` or ``value_error`` has the reason.
        Control records stay as they are. Errors name the `place`, if there is one.

        Raises:
            DecodeError, SchemaError, RegistryError: as `kafkacodec.values.decode` does, after the records before.
        """
        from kafkacodec.values.record_values import before_error

        try:
            decoded, rows, error = before_error(table, self._decoded, self)
            yield table[:rows], decoded
            if error is not None:
                raise error
        except (DecodeError, SchemaError) as error:
            if place is not None:
                error.within(place)
            raise

    def _decoded(self, table: RecordColumns) -> Decoded:
        import pyarrow as pa

        batch = pa.record_batch(table)
        control = cells(table, "is_control") if "is_control" in table.column_names else [False] * len(table)
        typed: dict[str, list[Any]] = {}
        given: Given = {}
        for part in self._decoders:
            values, reasons = self._column(part, batch)
            typed[part] = values
            found = zip(typed[part], cells(table, part), control, strict=True)
            given[part] = [_shown(value, data if is_control else None) for value, data, is_control in found]
            if any(reasons):
                given[f"{part}_error"] = [None if reason is None else reason.encode() for reason in reasons]
        return given, typed

    def _column(self, part: Part, batch: Any) -> tuple[list[Any], list[str | None]]:
        """The decoded keys or values, and why they could not be."""
        from kafkacodec.cli.files.json_columns import nested_values
        from kafkacodec.values.json.infer import JsonInference
        from kafkacodec.values.record_values import placed, row_of

        headers = batch.column("headers") if "headers" in batch.schema.names else None
        decoder, column = self._decoders[part], _without_control(batch, part)
        self.bad_row = None
        try:
            if isinstance(decoder, JsonInference):
                decoder.prepare(decoder.keys(column))
            decoded = decoder.decode(column, headers=headers)
            values = [value for chunk in decoded.values.chunks for value in nested_values(chunk)]
            return values, decoded.errors.to_pylist()
        except (DecodeError, SchemaError) as error:
            self.bad_row = row_of(error)
            error.path = placed(error.path or "", batch, part)
            raise


def _shown(value: Any, data: bytes | None) -> bytes | None:
    """JSON text of a value; the data if there is none."""
    return data if value is None else json_line(value).encode()


def _without_control(batch: Any, part: Part) -> Any:
    """Keys or values; null for control records, which have a format of their own."""
    import pyarrow.compute

    column = batch.column(part)
    if "is_control" not in batch.schema.names:
        return column
    return pyarrow.compute.if_else(batch.column("is_control"), None, column)
