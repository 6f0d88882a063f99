"""Where errors and warnings that the library raises on purpose begin: in the application that calls it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from kafkacodec.errors import KafkaCodecError

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["is_for_user", "level_outside"]

_INSIDE: Final = ("kafkacodec.", "asyncio.", "concurrent.", "contextlib", "functools")
_CHECKS: Final = (ValueError, TypeError, OSError, ImportError)
_NO_SUCH_PATH: Final = (FileNotFoundError, NotADirectoryError, IsADirectoryError)


def is_for_user(error: Exception) -> bool:
    """Whether an error tells the application what is wrong outside the library, so that the frames inside do not help.

    It is an error of this library, or of a check: a ``raise`` statement has raised it; or the system's for a path that
    is not there. An error that goes through a function of the application, or that Python or another library raises, is
    none. Its frames go to the log ``kafkacodec`` at DEBUG, since the caller raises it again without them.
    """
    trace = error.__traceback__
    if not isinstance(error, (KafkaCodecError, *_CHECKS)) or trace is None or not _is_inside(trace):
        return False
    if not isinstance(error, (KafkaCodecError, *_NO_SUCH_PATH)) and not _is_raised(trace):
        return False
    import logging  # an error is seldom, and this takes longer than the rest of the module

    logging.getLogger("kafkacodec").debug("%s was raised here", type(error).__name__, exc_info=error)
    return True


def level_outside() -> int:
    """The ``stacklevel`` of a warning about what the application gave, for the function that calls this."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith(_INSIDE):
        level, frame = level + 1, frame.f_back
    return level


def _is_inside(trace: TracebackType | None) -> bool:
    while trace is not None:
        if not str(trace.tb_frame.f_globals.get("__name__")).startswith(_INSIDE):
            return False
        trace = trace.tb_next
    return True


def _is_raised(trace: TracebackType) -> bool:
    from opcode import opmap

    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code.co_code
    return 0 <= trace.tb_lasti < len(code) and code[trace.tb_lasti] == opmap["RAISE_VARARGS"]
