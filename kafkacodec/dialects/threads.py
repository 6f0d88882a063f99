"""Common parts of the dialects' clients for threads: an asyncio client on its own thread."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

from kafkacodec.client.lifecycle import BlockingClient
from kafkacodec.errors import ClientClosed
from kafkacodec.net.loop import LoopThread

if TYPE_CHECKING:
    import asyncio

__all__ = ["ThreadClient", "copy_outcome"]

T = TypeVar("T")


class ThreadClient(BlockingClient):
    """A client on its own thread; a context manager. Threads may share it."""

    def _begin(self, face: Any, name: str) -> None:
        self._face = face
        face._made_in, face._made = face._made, None
        self._thread = LoopThread(name)


def copy_outcome(sent: asyncio.Future[T], delivery: Future[T]) -> None:
    """Pass the outcome of a send to a waiter in another thread."""
    if sent.cancelled():
        delivery.set_exception(ClientClosed("the producer was closed meanwhile"))
    elif (error := sent.exception()) is not None:
        delivery.set_exception(error)
    else:
        delivery.set_result(sent.result())
