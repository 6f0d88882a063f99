"""The line protocol V1: requests and responses of one line of text, and a broker.

`parse_request`, `parse_response`, `Request` and `Response` are the codec. `Broker` is the broker's state machine
without network I/O: lines and a clock go in, lines come out; a `Storage` keeps records, groups and offsets. `Producer`
and `Consumer` are clients for threads, those in `aio` for asyncio.
"""

from typing import TYPE_CHECKING

from kafkacodec.dialects.line.broker import Broker, Reply
from kafkacodec.dialects.line.commands import COMMANDS, Command, Slot, command
from kafkacodec.dialects.line.config import BrokerConfig
from kafkacodec.dialects.line.errors import ErrorCode, LineProtocolError, RequestRefused
from kafkacodec.dialects.line.file_storage import FileStorage
from kafkacodec.dialects.line.parsing import Request, Response, parse_request, parse_response
from kafkacodec.dialects.line.reading import MAX_LINE_BYTES, LineReader, split_lines
from kafkacodec.dialects.line.storage import MemoryStorage, Storage
from kafkacodec.lazy import at_first_use

if TYPE_CHECKING:
    from kafkacodec.dialects.line import aio as aio
    from kafkacodec.dialects.line.aio import Message as Message, Produced as Produced
    from kafkacodec.dialects.line.blocking import Consumer as Consumer, Producer as Producer

# The clients, which need an event loop: public name -> its module; "" for a module.
_HOMES = {"Consumer": "blocking", "Message": "aio", "Produced": "aio", "Producer": "blocking", "aio": ""}

__all__ = [
    "COMMANDS",
    "MAX_LINE_BYTES",
    "Broker",
    "BrokerConfig",
    "Command",
    "Consumer",
    "ErrorCode",
    "FileStorage",
    "LineProtocolError",
    "LineReader",
    "MemoryStorage",
    "Message",
    "Produced",
    "Producer",
    "Reply",
    "Request",
    "RequestRefused",
    "Response",
    "Slot",
    "Storage",
    "aio",
    "command",
    "parse_request",
    "parse_response",
    "split_lines",
]


__getattr__ = at_first_use(__name__, _HOMES)


def __dir__() -> list[str]:
    return list(__all__)
