"""The exception of the rewrite's clients."""

from __future__ import annotations

from kafkacodec.dialects.rewrite.rpcs import ErrorCode
from kafkacodec.errors import KafkaCodecError

__all__ = ["GroupError", "code_name"]


class GroupError(KafkaCodecError):
    """A server has refused a call.

    Attributes:
        code (int): the error code; `ErrorCode` lists them.
    """

    def __init__(self, what: str, code: int) -> None:
        super().__init__(f"{what}: {code_name(code)}")
        self.what, self.code = what, code

    def __reduce__(self) -> tuple[object, ...]:
        return GroupError, (self.what, self.code)


def code_name(code: int) -> str:
    """The name of an error code."""
    return ErrorCode(code).name if code in list(ErrorCode) else f"error {code}"
