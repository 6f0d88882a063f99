"""Kafka 0.6 and 0.7: the log and wire formats before 0.8.

`decode` and `encode_messages` are for message sets and segment files, the requests and responses with
`decode_request` and `decode_response` for the wire, `Connection` for one side of a connection without I/O; `driver`
has what the format leaves to the client.
"""

from kafkacodec.dialects.kafka07 import driver
from kafkacodec.dialects.kafka07.connection import Connection, RequestReceived, ResponseReceived
from kafkacodec.dialects.kafka07.message_set import (
    COLUMNS,
    DecodeOptions,
    decode,
    encode_messages,
    iter_columns,
    valid_bytes,
)
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
    "DecodeOptions",
    "ErrorCode",
    "FetchRequest",
    "FetchResponse",
    "MultiFetchRequest",
    "MultiFetchResponse",
    "MultiProduceRequest",
    "OffsetsRequest",
    "OffsetsResponse",
    "ProduceRequest",
    "Request",
    "RequestReceived",
    "Response",
    "ResponseReceived",
    "decode",
    "decode_request",
    "decode_response",
    "driver",
    "encode_messages",
    "iter_columns",
    "valid_bytes",
]
