"""KeyboardInterrupt at each of the lines that a thread runs through, one after the other, as Ctrl-C raises it."""

from __future__ import annotations

import gc
import sys
from types import FrameType
from typing import Any


class Interrupts:
    """For a ``with`` block: raises KeyboardInterrupt at the step of this number, where there are so many.

    No garbage is collected in the block: a generator of an earlier run, closed by a collection, would be interrupted
    instead. CPython 3.11 goes on to call the trace function that it has freed then, where it was about to trace another
    function: ``TypeError: 'traceback' object is not callable``, or a crash.
    """

    def __init__(self, at: int) -> None:
        self.left = at
        self._function = self._trace

    def __enter__(self) -> None:
        self._collects = gc.isenabled()
        gc.disable()
        sys.settrace(self._function)

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)
        if self._collects:
            gc.enable()

    def steps(self, frame: FrameType, event: str) -> int | None:
        """How many steps an event is; None: nothing in this function is one."""
        raise NotImplementedError

    def _trace(self, frame: FrameType, event: str, _: object) -> Any:
        steps = self.steps(frame, event)
        if steps is None:
            return None
        self.left -= steps
        if self.left == 0 and steps:
            raise KeyboardInterrupt
        return self._function
