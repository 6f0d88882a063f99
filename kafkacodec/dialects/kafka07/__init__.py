"""The log and wire formats of Kafka 0.6 and 0.7.

`decode` and `encode_messages` are for message sets and segment files; the request and response classes,
`decode_request` and `decode_response` for the wire; `Connection` for one side of a connection without I/O; `driver`
for the tasks that the protocol leaves to the client. `Producer`, `Consumer` and `SimpleConsumer` are clients for
threads, those in `aio` for asyncio. Only the names for message sets are loaded on import.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkacodec.dialects.kafka07.message_set import (
    COLUMNS,
    DecodeOptions,
    decode,
    encode_messages,
    iter_columns,
    valid_bytes,
)
from kafkacodec.lazy import at_first_use

if TYPE_CHECKING:
    from kafkacodec.dialects.kafka07 import aio, driver
    from kafkacodec.dialects.kafka07.aio import Message, Place, Sent
    from kafkacodec.dialects.kafka07.blocking import Consumer, Producer, SimpleConsumer
    from kafkacodec.dialects.kafka07.connection import Connection, RequestReceived, ResponseReceived
    from kafkacodec.dialects.kafka07.wire import (
        EARLIEST,
        LATEST,
        RANDOM_PARTITION,
        ErrorCode,
        FetchRequest,
        FetchResponse,
        MultiFetchRequest,
        MultiFetchResponse,
        MultiProduceRequest,
        OffsetsRequest,
        OffsetsResponse,
        ProduceRequest,
        Request,
        Response,
        decode_request,
        decode_response,
    )

__all__ = [
    "COLUMNS",
    "EARLIEST",
    "LATEST",
    "RANDOM_PARTITION",
    "Connection",
    "Consumer",
    "DecodeOptions",
    "ErrorCode",
    "FetchRequest",
    "FetchResponse",
    "Message",
    "MultiFetchRequest",
    "MultiFetchResponse",
    "MultiProduceRequest",
    "OffsetsRequest",
    "OffsetsResponse",
    "Place",
    "ProduceRequest",
    "Producer",
    "Request",
    "RequestReceived",
    "Response",
    "ResponseReceived",
    "Sent",
    "SimpleConsumer",
    "aio",
    "decode",
    "decode_request",
    "decode_response",
    "driver",
    "encode_messages",
    "iter_columns",
    "valid_bytes",
]

_CONNECTION = ("Connection", "RequestReceived", "ResponseReceived")
_HOMES = (
    dict.fromkeys(__all__, "wire")
    | dict.fromkeys(_CONNECTION, "connection")
    | dict.fromkeys(("Message", "Place", "Sent"), "aio")
    | dict.fromkeys(("Consumer", "Producer", "SimpleConsumer"), "blocking")
    | {"aio": "", "driver": ""}
)

__getattr__ = at_first_use(__name__, _HOMES)


def __dir__() -> list[str]:
    return list(__all__)
