"""Kafka bytes to columns and back, and every message of the Kafka protocol.

Names load on first use, so that importing the package alone stays cheap.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from kafkacodec.errors import (
    AuthenticationFailed,
    BrokerError,
    ClientClosed,
    ConnectionFailed,
    CorruptIndex,
    CorruptRecord,
    CrcMismatch,
    DeadlineExceeded,
    DecodeError,
    EncodeError,
    ItemErrors,
    KafkaCodecError,
    LimitExceeded,
    LocalProtocolError,
    LogTruncated,
    MissingOffsets,
    NoOffset,
    QueueFull,
    RegistryError,
    RemoteProtocolError,
    SchemaError,
    SchemaNotFound,
    Truncated,
    UnsupportedCodec,
    UnsupportedMagic,
    UnsupportedVersion,
)

__version__ = "0.1.0"


def _require_compiled(package: str) -> None:
    """Raise ImportError in a source tree that is not compiled: Python finds it before an installed package."""
    compiled = any(os.path.exists(os.path.join(package, "_core", f"libkafkacodec.{end}")) for end in ("so", "dylib"))
    if not compiled and os.path.isdir(package):  # in a zip file it is not a directory
        raise ImportError(
            f"{package} has the sources of kafkacodec, which are not compiled: to use an installed kafkacodec, run "
            f"Python in another directory; to use these sources, run `make build` in {os.path.dirname(package)}",
            name="kafkacodec",
            path=package,
        )


_require_compiled(__path__[0])

# Public name -> the module that holds it. Names under None are submodules.
_HOMES: dict[str, str | None] = {
    "BatchHeaders": "kafkacodec.records.columns",
    "Problem": "kafkacodec.records.columns",
    "Record": "kafkacodec.records.record",
    "RecordColumns": "kafkacodec.records.columns",
    "decode": "kafkacodec.records.decode",
    "decode_batches": "kafkacodec.records.blobs",
    "iter_columns": "kafkacodec.records.decode",
    "iter_records": "kafkacodec.records.decode",
    "scan": "kafkacodec.records.headers",
    "Search": "kafkacodec.records.searching",
    "sample": "kafkacodec.log.sample",
    "MemoryInUse": "kafkacodec.memory",
    "memory_in_use": "kafkacodec.memory",
    "trim_memory": "kafkacodec.memory",
    "client": None,
    "dialects": None,
    "errors": None,
    "log": None,
    "messages": None,
    "protocol": None,
    "spark": None,
    "values": None,
    "crc32c": "kafkacodec.records._crc",
    "decode_uvarint": "kafkacodec.records._varint",
    "decode_varint": "kafkacodec.records._varint",
    "encode_uvarint": "kafkacodec.records._varint",
    "encode_varint": "kafkacodec.records._varint",
    "control_batch": "kafkacodec.records.broker_batches",
    "empty_batch": "kafkacodec.records.broker_batches",
    "EncodedBatch": "kafkacodec.records.encode",
    "encode": "kafkacodec.records.encode",
    "encode_rows": "kafkacodec.records.blobs",
    "iter_encoded": "kafkacodec.records.encode",
    "ConfluentColumns": "kafkacodec.records.confluent",
    "murmur2": "kafkacodec.records.partition",
    "partition": "kafkacodec.records.partition",
    "split_confluent": "kafkacodec.records.confluent",
}

__all__ = [
    "AuthenticationFailed",
    "BrokerError",
    "ClientClosed",
    "ConnectionFailed",
    "CorruptIndex",
    "CorruptRecord",
    "CrcMismatch",
    "DeadlineExceeded",
    "DecodeError",
    "EncodeError",
    "ItemErrors",
    "KafkaCodecError",
    "LimitExceeded",
    "LocalProtocolError",
    "LogTruncated",
    "MissingOffsets",
    "NoOffset",
    "QueueFull",
    "RegistryError",
    "RemoteProtocolError",
    "SchemaError",
    "SchemaNotFound",
    "Truncated",
    "UnsupportedCodec",
    "UnsupportedMagic",
    "UnsupportedVersion",
    *_HOMES,
]

if TYPE_CHECKING:  # `x as x` makes a name public for type checkers
    from kafkacodec import (
        client as client,
        dialects as dialects,
        errors as errors,
        log as log,
        messages as messages,
        protocol as protocol,
        spark as spark,
        values as values,
    )
    from kafkacodec.log.sample import sample as sample
    from kafkacodec.memory import (
        MemoryInUse as MemoryInUse,
        memory_in_use as memory_in_use,
        trim_memory as trim_memory,
    )
    from kafkacodec.records._crc import crc32c as crc32c
    from kafkacodec.records._varint import (
        decode_uvarint as decode_uvarint,
        decode_varint as decode_varint,
        encode_uvarint as encode_uvarint,
        encode_varint as encode_varint,
    )
    from kafkacodec.records.blobs import decode_batches as decode_batches, encode_rows as encode_rows
    from kafkacodec.records.broker_batches import control_batch as control_batch, empty_batch as empty_batch
    from kafkacodec.records.columns import (
        BatchHeaders as BatchHeaders,
        Problem as Problem,
        RecordColumns as RecordColumns,
    )
    from kafkacodec.records.confluent import ConfluentColumns as ConfluentColumns, split_confluent as split_confluent
    from kafkacodec.records.decode import (
        decode as decode,
        iter_columns as iter_columns,
        iter_records as iter_records,
    )
    from kafkacodec.records.encode import (
        EncodedBatch as EncodedBatch,
        encode as encode,
        iter_encoded as iter_encoded,
    )
    from kafkacodec.records.headers import scan as scan
    from kafkacodec.records.partition import murmur2 as murmur2, partition as partition
    from kafkacodec.records.record import Record as Record
    from kafkacodec.records.searching import Search as Search


def __getattr__(name: str) -> Any:
    try:
        home = _HOMES[name]
    except KeyError:
        raise AttributeError(f"module 'kafkacodec' has no attribute {name!r}") from None
    value = (
        importlib.import_module(f"kafkacodec.{name}") if home is None else getattr(importlib.import_module(home), name)
    )
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
