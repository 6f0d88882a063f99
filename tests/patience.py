"""How long tests wait for what is to happen: much longer than a busy machine takes, and never for a fixed time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

SOON = 60
"""Seconds; where the limit of a client is shorter, and would end a wait that is to end by itself, half of that."""

LATE = 5 * SOON
"""Seconds, for what another process does: a broker's JVM may share two processors with twenty others."""


def eventually(holds: Callable[[], object]) -> None:
    """Returns as soon as it holds."""
    end = time.monotonic() + LATE
    while not holds():
        assert time.monotonic() < end, "that does not come about"
        time.sleep(0.005)


async def until(holds: Callable[[], object], seconds: float = LATE) -> None:
    """The same in an event loop."""
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.005)
