"""One timer of an event loop for many deadlines, and the alarm for new ones."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

__all__ = ["Alarm", "DeadlineTimer"]


class Alarm:
    """Whether there may be a deadline earlier than all known ones, so that the timer must ask again.

    Owners of deadlines ring it for each new one. A removed or later deadline needs no ring: a timer that is too early
    costs one call.
    """

    __slots__ = ("rung",)

    def __init__(self) -> None:
        self.rung = True

    def ring(self) -> None:
        """Note a new deadline."""
        self.rung = True


class DeadlineTimer:
    """Calls a function at or before the earliest deadline; the function checks deadlines and sets the timer again.

    Args:
        loop: the event loop.
        due: the function to call.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, due: Callable[[], None]) -> None:
        self._loop = loop
        self._due = due
        self._handle: asyncio.Handle | None = None
        self._at = 0.0

    def set(self, at: float) -> None:
        """Set the earliest deadline, in ms of the loop's clock.

        A timer that is too early costs one call; a new timer for each change would cost more.
        """
        if self._handle is not None:
            if self._at <= at:
                return
            self._handle.cancel()
        self._at = at
        # uvloop rounds to whole ms: a timer that fires early would be set again without delay until its time comes.
        self._handle = self._loop.call_at((at + 0.5) / 1000, self._called)

    def cancel(self) -> None:
        """Stop the timer."""
        if self._handle is not None:
            self._handle.cancel()

    def _called(self) -> None:
        self._handle = None
        self._due()
