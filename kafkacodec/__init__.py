"""Kafka bytes to columns and back, and every message of the Kafka protocol.

Names load on first use, so that importing the package alone stays cheap.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

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
from kafkacodec.lazy import at_first_use
from kafkacodec.version import __version__ as __version__


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

# Public name -> the module that holds it; "" for modules.
_HOMES = {
    "BatchHeaders": "records.columns",
    "Problem": "records.columns",
    "Record": "records.record",
    "RecordColumns": "records.columns",
    "decode": "records.decode",
    "decode_batches": "records.blobs",
    "iter_columns": "records.decode",
    "iter_records": "records.decode",
    "Decoder": "records.decoder",
    "scan": "records.headers",
    "Search": "records.searching",
    "sample": "log.sample",
    "MemoryInUse": "memory",
    "memory_in_use": "memory",
    "trim_memory": "memory",
    "broker": "",
    "client": "",
    "dialects": "",
    "errors": "",
    "log": "",
    "messages": "",
    "protocol": "",
    "spark": "",
    "values": "",
    "crc32c": "records._crc",
    "decode_uvarint": "records._varint",
    "decode_varint": "records._varint",
    "encode_uvarint": "records._varint",
    "encode_varint": "records._varint",
    "control_batch": "records.broker_batches",
    "empty_batch": "records.broker_batches",
    "EncodedBatch": "records.encode",
    "encode": "records.encode",
    "Encoder": "records.encode",
    "encode_rows": "records.blobs",
    "iter_encoded": "records.encode",
    "ConfluentColumns": "records.confluent",
    "murmur2": "records.partition",
    "partition": "records.partition",
    "split_confluent": "records.confluent",
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
        broker as broker,
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
    from kafkacodec.records.decode import decode as decode, iter_columns as iter_columns, iter_records as iter_records
    from kafkacodec.records.decoder import Decoder as Decoder
    from kafkacodec.records.encode import (
        EncodedBatch as EncodedBatch,
        Encoder as Encoder,
        encode as encode,
        iter_encoded as iter_encoded,
    )
    from kafkacodec.records.headers import scan as scan
    from kafkacodec.records.partition import murmur2 as murmur2, partition as partition
    from kafkacodec.records.record import Record as Record
    from kafkacodec.records.searching import Search as Search


__getattr__ = at_first_use(__name__, _HOMES)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
