"""Keys and values of records as typed Arrow columns: Avro, Protobuf and JSON, with schemas from files or a registry.

Needs the extra ``values``: ``pip install 'kafkacodec[values]'``. Names load on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkacodec.lazy import at_first_use

if TYPE_CHECKING:
    from kafkacodec.values.decoding import DecodedValues, ValueDecoder, decode
    from kafkacodec.values.directory import SchemaDirectory
    from kafkacodec.values.encoding import Encoder
    from kafkacodec.values.json.infer import infer_json
    from kafkacodec.values.registry import Registry
    from kafkacodec.values.schemas import Reference, Schema, SchemaKey, Schemas, SchemaSource
    from kafkacodec.values.topic import SchemaTopic

# Public name -> its module.
_HOMES = {
    "DecodedValues": "decoding",
    "Encoder": "encoding",
    "Reference": "schemas",
    "Registry": "registry",
    "Schema": "schemas",
    "SchemaDirectory": "directory",
    "SchemaKey": "schemas",
    "SchemaSource": "schemas",
    "SchemaTopic": "topic",
    "Schemas": "schemas",
    "ValueDecoder": "decoding",
    "decode": "decoding",
    "infer_json": "json.infer",
}

__all__ = [
    "DecodedValues",
    "Encoder",
    "Reference",
    "Registry",
    "Schema",
    "SchemaDirectory",
    "SchemaKey",
    "SchemaSource",
    "SchemaTopic",
    "Schemas",
    "ValueDecoder",
    "decode",
    "infer_json",
]


__getattr__ = at_first_use(__name__, _HOMES, "'kafkacodec[values]'")


def __dir__() -> list[str]:
    return list(__all__)
