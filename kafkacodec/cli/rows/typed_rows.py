"""Keys and values of records that are printed, decoded by their schemas, as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from kafkacodec.arrow._rows import cells
from kafkacodec.cli.output import json_line, json_tree
from kafkacodec.errors import DecodeError, SchemaError

if TYPE_CHECKING:
    from kafkacodec import RecordColumns
    from kafkacodec.cli.rows.record_rows import Decoded
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

        What cannot be decoded stays as it is, unless the decoder raises. Errors name the `place`, if there is one.

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
        typed: dict[str, list[Any]] = {part: self._column(part, batch) for part in self._decoders}
        given = {}
        for part, values in typed.items():
            typed[part] = [None if value is None else json_tree(value) for value in values]
            found = zip(typed[part], cells(table, part), strict=True)
            given[part] = [data if value is None else json_line(value).encode() for value, data in found]
        return given, typed

    def _column(self, part: Part, batch: Any) -> list[Any]:
        from kafkacodec.values.record_values import placed, row_of

        headers = batch.column("headers") if "headers" in batch.schema.names else None
        decoder, column = self._decoders[part], _without_control(batch, part)
        self.bad_row = None
        try:
            decoder.prepare(decoder.keys(column, headers=headers))
            values: list[Any] = decoder.decode(column, headers=headers).values.to_pylist()
        except (DecodeError, SchemaError) as error:
            self.bad_row = row_of(error)
            error.path = placed(error.path or "", batch, part)
            raise
        return values


def _without_control(batch: Any, part: Part) -> Any:
    """Keys or values; null for control records, which have a format of their own."""
    import pyarrow.compute

    column = batch.column(part)
    if "is_control" not in batch.schema.names:
        return column
    return pyarrow.compute.if_else(batch.column("is_control"), None, column)
