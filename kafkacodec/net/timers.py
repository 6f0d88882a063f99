"""One timer of an event loop for all deadlines of what runs in it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

__all__ = ["DeadlineTimer"]


class DeadlineTimer:
    """Calls a function at the earliest deadline, or before it: who is called looks at what is due, and sets it again.

    Args:
        loop: whose timers it uses.
        due: what it calls.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, due: Callable[[], None]) -> None:
        self._loop = loop
        self._due = due
        self._handle: asyncio.Handle | None = None
        self._at = 0.0

    def set(self, at: float) -> None:
        """The earliest deadline is now this, in ms of the loop's clock.

        A timer that is too early costs one call; making a new one for each change costs more.
        """
        if self._handle is not None:
            if self._at <= at:
                return
            self._handle.cancel()
        self._at = at
        # uvloop rounds to whole ms: a timer that is too early would be set again, for at once, until its time has come.
        self._handle = self._loop.call_at((at + 0.5) / 1000, self._called)

    def cancel(self) -> None:
        """Call nothing any more."""
        if self._handle is not None:
            self._handle.cancel()

    def _called(self) -> None:
        self._handle = None
        self._due()
