"""The error codes and the exception of the line protocol."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from kafkacodec.errors import DecodeError, KafkaCodecError

__all__ = ["IS_FOLLOWER", "NOT_ELECTED", "TOO_MANY_WAIT", "ErrorCode", "LineProtocolError", "RequestRefused"]

# Texts of NOT_LEADER for a record that was not stored; with other texts it may be.
IS_FOLLOWER: Final = "this broker is a follower of the partition"
NOT_ELECTED: Final = "too few replicas can be reached to lead the partition"
TOO_MANY_WAIT: Final = "too many records wait until the partition is led"


class ErrorCode(StrEnum):
    """The error codes of the line protocol V1, and STORAGE_ERROR of this broker."""

    BAD_REQUEST = "BAD_REQUEST"
    UNKNOWN_COMMAND = "UNKNOWN_COMMAND"
    REPLICATION_TIMEOUT = "REPLICATION_TIMEOUT"
    NOT_LEADER = "NOT_LEADER"
    GENERATION_MISMATCH = "GENERATION_MISMATCH"
    STORAGE_ERROR = "STORAGE_ERROR"


class LineProtocolError(DecodeError):
    """A line that the line protocol V1 does not allow.

    Attributes:
        code (ErrorCode | None): the error code for the response; None for a response line.
        correlation_id (str): the id for the response: that of the request, or ``"0"`` if the envelope is invalid.
        path (str | None): the invalid section, such as ``version`` or ``args.partition``.
        position (int | None): for a line that could not be read, the offset in bytes from the first byte received.
    """

    def __init__(
        self,
        reason: str,
        *,
        code: ErrorCode | None,
        correlation_id: str = "0",
        path: str | None = None,
        position: int | None = None,
    ) -> None:
        super().__init__(reason, path=path, position=position)
        self.code = code
        self.correlation_id = correlation_id

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self.reason, self.code, self.correlation_id, self.path, self.position)


def _rebuild(
    reason: str, code: ErrorCode | None, correlation_id: str, path: str | None, position: int | None
) -> LineProtocolError:
    return LineProtocolError(reason, code=code, correlation_id=correlation_id, path=path, position=position)


class RequestRefused(KafkaCodecError):
    """A server answered a request with an error.

    Attributes:
        code (str): the error's code; `ErrorCode` has those of V1.
        message (str): its text.
        sent (bool): whether the record of a PRODUCE may be stored anyway.
    """

    def __init__(self, code: str, message: str, *, sent: bool | None = None) -> None:
        super().__init__(f"{code}: {message}")
        self.code, self.message = code, message
        self.sent = _may_be_stored(code, message) if sent is None else sent

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild_refusal, (self.code, self.message, self.sent)


def _may_be_stored(code: str, message: str) -> bool:
    if code == ErrorCode.NOT_LEADER:
        return message not in (IS_FOLLOWER, NOT_ELECTED, TOO_MANY_WAIT)
    return code in (ErrorCode.REPLICATION_TIMEOUT, ErrorCode.STORAGE_ERROR)


def _rebuild_refusal(code: str, message: str, sent: bool) -> RequestRefused:
    return RequestRefused(code, message, sent=sent)
