"""Exceptions of kafkacodec.

Everything that bytes or values can do wrong ends in a subclass of `KafkaCodecError`; no other exception type
escapes from bad input (running out of memory excepted).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from kafkacodec.broker_errors import CODES, error

__all__ = [
    "CODES",
    "BrokerError",
    "CorruptRecord",
    "CrcMismatch",
    "DecodeError",
    "EncodeError",
    "KafkaCodecError",
    "LimitExceeded",
    "LocalProtocolError",
    "RemoteProtocolError",
    "Truncated",
    "UnsupportedCodec",
    "UnsupportedMagic",
    "UnsupportedVersion",
    "error",
]


class KafkaCodecError(Exception):
    """Base class of every error that kafkacodec raises on purpose."""


class _Located(KafkaCodecError):
    """An error with a reason, a byte position and a path; the message is put together from the three."""

    def __init__(self, reason: str, *, position: int | None = None, path: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.position = position
        self.path = path

    def __str__(self) -> str:
        path = f"{self.path}: " if self.path else ""
        position = f" (byte {self.position})" if self.position is not None else ""
        return f"{path}{self.reason}{position}"

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.reason, self.position, self.path)


def _rebuild(cls: type[_Located], reason: str, position: int | None, path: str | None) -> _Located:
    return cls(reason, position=position, path=path)


class DecodeError(_Located, ValueError):
    """Bytes that cannot be what they are read as.

    Attributes:
        reason (str): what is wrong, without the position.
        position (int | None): bytes from the start of the data that was handed in.
        path (str | None): the place inside the structure, such as ``topics[3].partitions[0].records``.
    """


class Truncated(DecodeError):
    """The bytes end before the structure does."""


class CorruptRecord(DecodeError):
    """A record set that contradicts its format: lengths, counts, compressed data."""


class CrcMismatch(CorruptRecord):
    """The stored checksum is not that of the bytes."""


class UnsupportedMagic(DecodeError):
    """The magic byte names a record format that cannot be read here."""


class LimitExceeded(DecodeError):
    """The bytes ask for more memory than the stated limit allows; nothing was allocated for them."""


class EncodeError(_Located, ValueError):
    """Values that the format, or this version of it, cannot hold. Attributes as in `DecodeError`."""


class UnsupportedVersion(_Located, ValueError):
    """A message version outside the valid range of its API."""


class UnsupportedCodec(DecodeError):
    """A compression codec that is unknown, or not allowed at this place."""


class LocalProtocolError(KafkaCodecError):
    """The caller asked a connection for something that the protocol does not allow."""


class RemoteProtocolError(KafkaCodecError):
    """The peer sent something that the protocol does not allow."""


class BrokerError(KafkaCodecError):
    """An error code from a broker's response; there is a subclass for each code, see `error`.

    Attributes:
        code (int): the number in the response.
        name (str): Kafka's name of it, such as ``NOT_LEADER_OR_FOLLOWER``.
        retriable (bool): whether the same request may succeed later.
        stale_metadata (bool): whether the caller's picture of the cluster is out of date.
    """

    code: ClassVar[int] = -1
    name: ClassVar[str] = "UNKNOWN_SERVER_ERROR"
    retriable: ClassVar[bool] = False
    stale_metadata: ClassVar[bool] = False

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message if message else self.name)

    def __reduce__(self) -> tuple[object, ...]:
        return _broker_error, (self.code, str(self))


def _broker_error(code: int, message: str) -> BrokerError:
    made: BrokerError = __getattr__("error")(code)(message)
    return made


def __getattr__(name: str) -> Any:
    """`error`, `CODES` and the classes of the error codes, from a table that is read when one is asked for."""
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    table = importlib.import_module("kafkacodec.broker_errors")
    if name in ("CODES", "error"):
        return getattr(table, name)
    try:
        return table.CLASSES[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
