"""A broker's sessions without sockets: what a request costs beside the system's calls for its connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks import broker_load

_TOPIC = "counted"


class _Transport:
    """Takes what is written, and forgets it."""

    def __init__(self) -> None:
        self.written = 0

    def get_extra_info(self, name: str) -> Any:
        """An address of the client; nothing else is known."""
        return ("127.0.0.1", 1) if name == "peername" else None

    def write(self, data: bytes) -> None:
        """Count bytes."""
        self.written += len(data)

    def is_closing(self) -> bool:
        """The client stays."""
        return False

    def set_write_buffer_limits(self, high: int) -> None:
        """There is no buffer."""

    def pause_reading(self) -> None:
        """What is given is read."""

    resume_reading = close = abort = pause_reading


@contextmanager
def producing(records: int, value_bytes: int) -> Iterator[Callable[[], int]]:
    """A function that gives a broker one Produce request as a socket would, and returns the bytes of the answer.

    The broker has its defaults and a temporary directory; every request has the same batch.
    """
    import kafkacodec as kc

    loop = asyncio.new_event_loop()
    broker = kc.broker.aio.serve(topics=[_TOPIC])
    loop.run_until_complete(broker.__aenter__())
    try:
        yield _asking(broker, broker_load.produce_frame(_TOPIC, broker_load.batch(records, value_bytes)))
    finally:
        loop.run_until_complete(broker.stop())
        loop.close()


def _asking(broker: Any, frame: bytearray) -> Callable[[], int]:
    from kafkacodec.broker.host.sessions import Session

    transport = _Transport()
    session = Session(broker._serving._host.listeners[0])
    session.connection_made(transport)

    def ask() -> int:
        before, left = transport.written, memoryview(frame)
        while left:
            room = session.get_buffer(-1)
            count = min(len(room), len(left))
            room[:count] = left[:count]
            left = left[count:]
            session.buffer_updated(count)
        return transport.written - before

    return ask
