"""The line protocol V1: requests and responses of one line of text, and a broker.

`parse_request`, `parse_response`, `Request` and `Response` are the codec. `Broker` is the broker's state machine
without network I/O: lines and a clock go in, lines come out; a `Storage` keeps records, groups and offsets.
"""

from kafkacodec.dialects.line.broker import Broker, Reply
from kafkacodec.dialects.line.commands import COMMANDS, Command, Slot, command
from kafkacodec.dialects.line.config import BrokerConfig
from kafkacodec.dialects.line.errors import ErrorCode, LineProtocolError
from kafkacodec.dialects.line.file_storage import FileStorage
from kafkacodec.dialects.line.parsing import Request, Response, parse_request, parse_response
from kafkacodec.dialects.line.reading import MAX_LINE_BYTES, LineReader, split_lines
from kafkacodec.dialects.line.storage import MemoryStorage, Storage

__all__ = [
    "COMMANDS",
    "MAX_LINE_BYTES",
    "Broker",
    "BrokerConfig",
    "Command",
    "ErrorCode",
    "FileStorage",
    "LineProtocolError",
    "LineReader",
    "MemoryStorage",
    "Reply",
    "Request",
    "Response",
    "Slot",
    "Storage",
    "command",
    "parse_request",
    "parse_response",
    "split_lines",
]


def __dir__() -> list[str]:
    return list(__all__)
