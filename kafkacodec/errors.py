"""Exceptions of kafkacodec.

Everything that bytes or values can do wrong ends in a subclass of `KafkaCodecError`; no other exception type
escapes from bad input (running out of memory excepted).
"""

from __future__ import annotations

import os.path
from functools import cache, lru_cache
from operator import index
from typing import Any, ClassVar

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
    "MissingOffsets",
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


class MissingOffsets(Truncated):
    """Offsets of a log that no batch has, where a segment was cut or is not there and compaction does not explain it.

    Attributes:
        first_offset, end_offset (int): from the first missing one to the one after the last. At most so many records
            are missing: some may have been removed by compaction before. Bytes in logs of Kafka 0.6 and 0.7.
        certain (bool): records were lost; False: compaction may have removed all of them.
    """

    def __init__(
        self,
        reason: str,
        *,
        position: int | None = None,
        path: str | None = None,
        first_offset: int = 0,
        end_offset: int = 0,
        certain: bool = True,
    ) -> None:
        super().__init__(reason, position=position, path=path)
        self.first_offset = first_offset
        self.end_offset = end_offset
        self.certain = certain

    @property
    def missing_offsets(self) -> int:
        """How many offsets are missing."""
        return self.end_offset - self.first_offset

    def __reduce__(self) -> tuple[object, ...]:
        offsets = {name: getattr(self, name) for name in ("first_offset", "end_offset", "certain")}
        return (*super().__reduce__(), offsets)


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
    """The peer sent something that the protocol does not allow.

    Attributes:
        events (list[Any]): the events of whole frames that came before it in the same read, which a connection's
            `receive` had made by then.
    """

    def __init__(self, reason: str, *, events: list[Any] | None = None) -> None:
        super().__init__(reason)
        self.events = [] if events is None else events


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
    return error(code)(message)


CODES: dict[int, type[BrokerError]]
"""The class of every known error code, from the table ``broker_errors.txt``."""


def error(code: int) -> type[BrokerError]:
    """The exception class of an error code, with ``code``, ``name``, ``retriable`` and ``stale_metadata``.

    A code that is not known gets a class of its own, which is neither retriable nor a sign of stale metadata.
    Code 0 (NONE) has a class too, so that every code of a response has a name. Raises TypeError for what is no integer.
    """
    number = index(code)
    return _codes().get(number) or _unknown(number)


@cache
def _codes() -> dict[int, type[BrokerError]]:
    """The table, read when a code is asked for."""
    with open(os.path.join(os.path.dirname(__file__), "broker_errors.txt"), encoding="ascii") as table:
        rows = [line.split() for line in table if not line.startswith("#")]
    return {int(code): _make(int(code), name, _class_name(name), words) for code, name, *words in rows}


@lru_cache(maxsize=1024)
def _unknown(code: int) -> type[BrokerError]:
    return _make(code, f"UNKNOWN_CODE_{code}", "UnknownCodeError", [])


def _make(code: int, name: str, class_name: str, words: list[str]) -> type[BrokerError]:
    attributes = {
        "__module__": __name__,
        "__doc__": f"Error code {code}, {name}.",
        "code": code,
        "name": name,
        "retriable": "retriable" in words,
        "stale_metadata": "stale-metadata" in words,
    }
    return type(class_name, (BrokerError,), attributes)


def _class_name(name: str) -> str:
    """``NOT_CONTROLLER`` becomes NotControllerError."""
    camel = "".join(word.capitalize() for word in name.split("_"))
    return camel if camel.endswith("Error") else camel + "Error"


@cache
def _classes() -> dict[str, type[BrokerError]]:
    return {cls.__name__: cls for cls in _codes().values()}


def __getattr__(name: str) -> Any:
    """`CODES` and the classes of the error codes."""
    if name == "CODES":
        return _codes()
    if name.startswith("_") or name not in _classes():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _classes()[name]
