"""A connection that a thread uses past the loop, while that sleeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from kafkacodec.client.core.calls import Machine, Send
    from kafkacodec.client.driver.link import Link
    from kafkacodec.client.driver.node import Node

__all__ = ["Line"]


class _Network(Protocol):
    """What is needed of a `Network`."""

    answered_at: float

    def adopt(
        self, node: Node, send: Send, machine: Machine, number: int, sent_at: float, size: int, rest: bytes | None
    ) -> None:
        """See `Network`."""


class Line:
    """See `kafkacodec.client.producing.shortcuts.Line`.

    Args:
        network: the client's.
        node: the broker.
        link: its connection, which is ready.
        fd, epoll: the file descriptors of its socket, and of what the loop sleeps in.
    """

    __slots__ = ("_link", "connection", "epoll", "fd", "is_free", "network", "node", "number")

    def __init__(self, network: _Network, node: Node, link: Link, fd: int, epoll: int) -> None:
        self.network, self.node, self._link = network, node, link
        self.fd, self.epoll = fd, epoll
        self.number, self.connection = node.number, link.opening.connection
        self.is_free = False

    @property
    def is_over(self) -> bool:
        """Whether the connection has ended."""
        return self.node.link is not self._link

    def look(self, now: float) -> None:
        """Note in `is_free` whether nothing is under way, and a request may be written."""
        node = self.node
        self.is_free = not self.is_over and not node.load and node.muted_until <= now and self._link.is_free

    def adopt(self, send: Send, machine: Machine, number: int, sent_at: float, size: int, rest: bytes | None) -> None:
        """Wait for the answer to a request of `size` bytes that was written past the loop, but for `rest`."""
        self.network.adopt(self.node, send, machine, number, sent_at, size, rest)
