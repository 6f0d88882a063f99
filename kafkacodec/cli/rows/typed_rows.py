"""Keys and values of records that are printed, decoded by their schemas, as JSON."""

from __future__ import annotations

from collections.abc import Mapping
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
    """

    def __init__(self, decoders: Mapping[Part, ValueDecoder | JsonInference]) -> None:
        self._decoders = decoders

    def of(self, table: RecordColumns) -> Decoded:
        """JSON text in place of decoded keys and values, and what that is as values.

        What cannot be decoded stays as it is, unless the decoder raises.

        Raises:
            DecodeError, SchemaError, RegistryError: as `kafkacodec.values.decode` does.
        """
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
        from kafkacodec.values.record_values import placed

        headers = batch.column("headers") if "headers" in batch.schema.names else None
        decoder = self._decoders[part]
        try:
            decoder.prepare(decoder.keys(batch.column(part), headers=headers))
            values: list[Any] = decoder.decode(batch.column(part), headers=headers).values.to_pylist()
        except (DecodeError, SchemaError) as error:
            error.path = placed(error.path or "", batch, part)
            raise
        return values
