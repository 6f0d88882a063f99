"""Exceptions of kafkacodec.

Invalid bytes, and values that a format cannot represent, raise a subclass of `KafkaCodecError` and no other type of
exception, except MemoryError. Wrong arguments raise ValueError or TypeError.
"""

from __future__ import annotations

import os.path
from functools import cache, lru_cache
from operator import index
from typing import TYPE_CHECKING, Any, ClassVar, Self

if TYPE_CHECKING:
    from kafkacodec.error_codes import *  # noqa: F403

__all__ = [
    "CODES",
    "AuthenticationFailed",
    "BrokerError",
    "CheckpointWarning",
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
    "error",
]


class KafkaCodecError(Exception):
    """Base class of every error that kafkacodec raises on purpose."""


class _Located(KafkaCodecError):
    """An error with a reason, a byte position and a path, which together form its message; advice may follow."""

    advice = ""

    def __init__(self, reason: str, *, position: int | None = None, path: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.position = position
        self.path = path

    def __str__(self) -> str:
        path = f"{self.path}: " if self.path else ""
        position = f" (byte {self.position})" if self.position is not None else ""
        return f"{path}{self.reason}{position}{self.advice and f'; {self.advice}'}"

    def advised(self, advice: str) -> Self:
        """Puts what to do, an option of the caller's, at the end of the message; returns the error."""
        self.advice = advice
        return self

    def within(self, place: str) -> Self:
        """Puts `place` (a file, partition or row) before the path, unless it is there; returns the error."""
        if not self.path:
            self.path = place
        elif self.path != place and not self.path.startswith(f"{place}: "):
            self.path = f"{place}: {self.path}"
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.reason, self.position, self.path, self.advice)


def _rebuild(cls: type[_Located], reason: str, position: int | None, path: str | None, advice: str = "") -> _Located:
    found = cls(reason, position=position, path=path)
    return found.advised(advice) if advice else found


class DecodeError(_Located, ValueError):
    """Bytes that are not valid in the format they are read as.

    Attributes:
        reason (str): what is wrong, without position and path.
        position (int | None): offset in bytes from the start of the input.
        path (str | None): the field, such as ``topics[3].partitions[0].records``.
    """


class Truncated(DecodeError):
    """The bytes end before the structure does."""


class MissingOffsets(Truncated):
    """A gap in a log's offsets that compaction does not explain: a segment is missing or truncated.

    Attributes:
        first_offset, end_offset (int): the first missing offset and the one after the last. The number of lost
            records may be smaller: compaction may have removed some before. Byte offsets in logs of Kafka 0.6 and 0.7.
        certain (bool): True if records were lost; False if compaction may have removed all of them.
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
        """The number of missing offsets."""
        return self.end_offset - self.first_offset

    def __reduce__(self) -> tuple[object, ...]:
        offsets = {name: getattr(self, name) for name in ("first_offset", "end_offset", "certain")}
        return (*super().__reduce__(), offsets)


class CorruptRecord(DecodeError):
    """A record set with invalid lengths, counts or compressed data."""


class _OutOfOrder(CorruptRecord):
    """A batch's offsets contradict what surrounds it. Readers of logs turn this into what is wrong."""


class _Unreadable(CorruptRecord):
    """A file that the system does not read, which readers of logs treat as damage."""


class CheckpointWarning(RuntimeWarning):
    """A broker's checkpoint cannot be read, so that its logs are read with fewer checks; the message says which."""


class CorruptIndex(DecodeError):
    """An index file whose entries contradict one another or the segment."""


class CrcMismatch(CorruptRecord):
    """The stored checksum does not match the data."""


class UnsupportedMagic(DecodeError):
    """The magic byte is not one of a supported record format."""


class LimitExceeded(DecodeError):
    """The data needs more memory than a limit allows; none was allocated for it."""


class EncodeError(_Located, ValueError):
    """Values that the format, or this version of it, cannot represent. Attributes as in `DecodeError`."""


class UnsupportedVersion(_Located, ValueError):
    """A message version outside the valid range of its API."""


class UnsupportedCodec(DecodeError):
    """A compression codec that is unknown or not allowed here."""


class SchemaError(_Located, ValueError):
    """A schema of values that is invalid, or that columns cannot represent. Attributes as in `DecodeError`."""


class SchemaNotFound(SchemaError):
    """The source of schemas does not have this one."""


class RegistryError(KafkaCodecError):
    """A schema registry cannot be reached, refuses the request or answers with something else than a schema."""


class LocalProtocolError(KafkaCodecError):
    """The caller asked for something that the protocol does not allow."""


class RemoteProtocolError(KafkaCodecError):
    """The peer sent something that the protocol does not allow.

    Attributes:
        events (list[Any]): the events of the complete frames before the fault in the same call of `receive`.
    """

    def __init__(self, reason: str, *, events: list[Any] | None = None) -> None:
        super().__init__(reason)
        self.events = [] if events is None else events


class _Unanswered(KafkaCodecError):
    """A request that gets no answer; `sent` is whether the broker may have got it."""

    def __init__(self, reason: str, *, sent: bool = False) -> None:
        super().__init__(reason)
        self.sent = sent


class ConnectionFailed(_Unanswered, ConnectionError):
    """A broker cannot be reached, or the connection to it ended before the answer.

    Attributes:
        sent (bool): whether the broker may have got the request that waited for its answer.
        closed_unanswered (bool): whether the peer accepted the connection and closed it before it answered a request,
            as a listener with another security protocol does.
    """

    def __init__(self, reason: str, *, sent: bool = False, closed_unanswered: bool = False) -> None:
        super().__init__(reason, sent=sent)
        self.closed_unanswered = closed_unanswered


class AuthenticationFailed(ConnectionFailed):
    """TLS or SASL was refused by one of both sides. The same settings fail again: clients do not retry."""


class DeadlineExceeded(_Unanswered, TimeoutError):
    """An answer did not come in time, or an operation not succeed; its cause is the last error, if there was one.

    Attributes:
        sent (bool): as in `ConnectionFailed`.
    """


class QueueFull(KafkaCodecError):
    """A producer's queue has no room for a record, and got none in time."""


class NoOffset(KafkaCodecError):
    """A consumer's partition has no position: nothing is committed, and ``auto_offset_reset`` is ``"none"``."""


class LogTruncated(KafkaCodecError):
    """Records that a consumer has read are no longer in the partition: an unclean leader election lost them (KIP-320).

    Attributes:
        divergent_offset (int | None): the first offset at which the partition is another; None if unknown.
    """

    def __init__(self, reason: str, *, divergent_offset: int | None = None) -> None:
        super().__init__(reason)
        self.divergent_offset = divergent_offset


class ClientClosed(LocalProtocolError):
    """The client is closed, or belongs to another event loop, or to the process that this one was forked from."""


class ItemErrors(KafkaCodecError, ExceptionGroup[Exception]):
    """Some items of an operation on several failed; the others were done. ``except*`` selects errors by type.

    Attributes:
        errors (dict[Any, Exception]): the error of each item that failed.
        results (dict[Any, Any]): the results of the others.
    """

    errors: dict[Any, Exception]
    results: dict[Any, Any]

    def __new__(cls, message: str, errors: dict[Any, Exception], results: dict[Any, Any]) -> Self:
        """Make the group of these errors."""
        found = super().__new__(cls, message, list(errors.values()))
        found.errors = errors
        found.results = results
        return found

    def __init__(self, message: str, errors: dict[Any, Exception], results: dict[Any, Any]) -> None:
        super().__init__(message, list(errors.values()))

    def __str__(self) -> str:
        shown = [f"{item}: {found}" for item, found in list(self.errors.items())[:_SHOWN_ITEMS]]
        more = len(self.errors) - len(shown)
        return f"{self.message}: {'; '.join(shown)}{f'; and {more} more' if more else ''}"

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.message, self.errors, self.results)


_SHOWN_ITEMS = 5


class BrokerError(KafkaCodecError):
    """An error code from a broker's response. Each code has a subclass; see `error`.

    Attributes:
        code (int): the number in the response.
        name (str): Kafka's name for it, such as ``NOT_LEADER_OR_FOLLOWER``.
        retriable (bool): whether the same request may succeed later.
        stale_metadata (bool): whether the caller's cluster metadata is out of date.
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

    An unknown code gets a new class, with ``retriable`` and ``stale_metadata`` False. Code 0 (NONE) has a class too,
    so that every code of a response has a name. Raises TypeError if `code` is not an integer.
    """
    number = index(code)
    return _codes().get(number) or _unknown(number)


_known: dict[str, dict[int, type[BrokerError]]] = {}


def _codes() -> dict[int, type[BrokerError]]:
    """The classes of ``broker_errors.txt`` by code. Threads may make them at the same time; all use those of one."""
    return _known.get("codes") or _known.setdefault("codes", _read_codes())


def _read_codes() -> dict[int, type[BrokerError]]:
    return {code: _make(code, name, _class_name(name), words) for code, name, words in _rows()}


@cache
def _rows() -> list[tuple[int, str, list[str]]]:
    """Code, name and the words about it, of each line of ``broker_errors.txt``."""
    with open(os.path.join(os.path.dirname(__file__), "broker_errors.txt"), encoding="ascii") as table:
        lines = [line.split() for line in table if not line.startswith("#")]
    return [(int(code), name, words) for code, name, *words in lines]


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
def _numbers() -> dict[str, int]:
    """The codes by Kafka's names."""
    return {name: code for code, name, _ in _rows()}


@cache
def _classes() -> dict[str, type[BrokerError]]:
    """The classes by their names."""
    return {cls.__name__: cls for cls in _codes().values()}


def __getattr__(name: str) -> Any:
    """`CODES`, the classes of the error codes, and the codes by name: ``NOT_COORDINATOR`` is 16.

    A name of a code makes no classes, so that a module that imports it is not slower to import.
    """
    if name == "CODES":
        return _codes()
    if not name.startswith("_"):
        if name in _numbers():
            globals()[name] = code = _numbers()[name]  # the next time without this function
            return code
        if name in _classes():
            return _classes()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
