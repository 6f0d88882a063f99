"""The error codes and the exception of the line protocol."""

from __future__ import annotations

from enum import StrEnum

from kafkacodec.errors import DecodeError, KafkaCodecError

__all__ = ["ErrorCode", "LineProtocolError", "RequestRefused"]


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
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code, self.message = code, message

    def __reduce__(self) -> tuple[object, ...]:
        return RequestRefused, (self.code, self.message)
