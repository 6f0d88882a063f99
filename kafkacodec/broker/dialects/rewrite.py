"""The client rewrite's groups as a service of the host: calls in, replies out."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

from kafkacodec.broker.dialects.rewrite_store import LOG, GroupStore
from kafkacodec.datatypes import NamedTuple
from kafkacodec.dialects.rewrite.controller import Broker, GroupController, Reply as GroupReply
from kafkacodec.dialects.rewrite.frames import MAX_REQUEST_BYTES, Request, decode_request, encode_reply
from kafkacodec.dialects.rewrite.rpcs import (
    CommitOffsets,
    ErrorCode,
    Heartbeat,
    ListGroups,
    RegisterConsumer,
    Rpc,
    refusal,
)
from kafkacodec.dialects.rewrite.server import GroupServer
from kafkacodec.errors import LimitExceeded
from kafkacodec.internal_records import INTERNAL_TOPICS
from kafkacodec.net.addresses import EVERYWHERE
from kafkacodec.net.frames import FrameBuffers, FrameReader
from kafkacodec.net.requests import received_requests
from kafkacodec.net.service import NOTHING, Effect, Reply

if TYPE_CHECKING:
    from kafkacodec.broker.dialects.inside import Inside
    from kafkacodec.dialects.rewrite.server import Ask
    from kafkacodec.dialects.rewrite.settings import ServerSettings

__all__ = ["RewriteCodec", "RewriteService"]

_log = logging.getLogger("kafkacodec.broker")
_MOST_PARTITIONS: Final = 1 << 15  # the layout has int16 partitions
_LOOK_MS: Final = 100  # how long heartbeats may miss new partitions
_MANY_CLIENTS: Final = 100  # of one connection: beyond that, clients that are not members are forgotten


class RewriteRequest:
    """A call with the memory that it keeps.

    Attributes:
        request: the call.
        nbytes: the size of that memory.
    """

    __slots__ = ("nbytes", "request")

    def __init__(self, request: Request, nbytes: int) -> None:
        self.request, self.nbytes = request, nbytes


class RewriteCodec:
    """The codec of a connection.

    Args:
        buffers: memory for large frames, which all connections share.
    """

    in_order = False  # a registration waits for the other members
    answers_last = False  # a member leaves when its connection ends

    def __init__(self, buffers: FrameBuffers) -> None:
        self._reader = FrameReader(buffers, MAX_REQUEST_BYTES)

    @property
    def waits(self) -> bool:
        """Whether a request that begins waits for memory."""
        return self._reader.waits

    def buffer(self) -> memoryview:
        """Return memory for the next received bytes."""
        return self._reader.buffer()

    def received(self, count: int) -> list[RewriteRequest]:
        """Return the calls that are now complete.

        Raises:
            RemoteProtocolError: a frame or a call is invalid; `events` are the calls before it.
        """
        return received_requests(
            self._reader, count, lambda frame: RewriteRequest(decode_request(frame.view), frame.nbytes)
        )

    def response(self, request: RewriteRequest, response: Rpc) -> list[bytes | memoryview]:
        """The bytes of a reply; one that is too large is replaced by an error."""
        try:
            return [encode_reply(response)]
        except LimitExceeded:
            return [encode_reply(refusal(request.request.call, ErrorCode.LIMIT_EXCEEDED))]

    def settled(self, request: Any) -> bool:
        """Requests of a connection are served beside one another."""
        return True

    def rest(self, request: Any) -> float:
        """The connection never rests."""
        return 0.0

    def release(self, request: Any) -> None:
        """Calls keep their memory: their arrays are decoded late."""

    def drop(self) -> None:
        """Free the memory of an incomplete call."""
        self._reader.drop()


class _Asked(NamedTuple):
    """A call that waits: the address of its reply."""

    call: Rpc
    to: Any


class RewriteService:
    """A `kafkacodec.net.service.Service` for members of groups.

    Args:
        inside: the part of the broker that it uses.
        settings: its properties.

    Attributes:
        store: has the groups.
        ask: called with calls to other servers; `answered` takes their replies.

    Raises:
        CorruptRecord: the file of the groups is damaged.
        OSError: it cannot be read.
    """

    def __init__(self, inside: Inside, settings: ServerSettings) -> None:
        self._inside, self._settings = inside, settings
        self.store = GroupStore(inside.path)
        self.ask: Callable[[list[Ask]], None] = _nowhere
        self._address = ("", 0)
        self._now = 0
        self._looked_at: float | None = None  # by the host's clock
        self._topics: dict[str, tuple[Any, int]] = {}  # id and number of partitions, as the controller knows them
        self._sessions: dict[str, Any] = {}  # by client id: the connection of its registration

    @cached_property
    def _server(self) -> GroupServer:
        """The state machine, which the first call starts, once the topics are loaded."""
        own = self._inside.broker_id
        self._topics = self._counted()
        counts = {name: count for name, (_, count) in self._topics.items()}
        controller = GroupController(
            Broker(own, *self._address), counts, strategy=self._settings.strategy, now=self._now,
            groups=self.store.groups,
        )  # fmt: skip
        return GroupServer(controller, own, list(self._settings.servers) or [own])

    def listens(self, address: tuple[str, int]) -> None:
        """Set the address of this controller for members."""
        self._address = address
        if "_server" in self.__dict__:
            self._server.controller.broker = Broker(self._inside.broker_id, *address)

    # Of the host

    def receive(self, request: RewriteRequest, session: Any, to: Any, now: float) -> Effect:
        """Answer a call, or keep it until others have answered."""
        self._clock(now)
        call = request.request.call
        if isinstance(call, CommitOffsets) and self._is_late(call, session):
            return Effect((), [Reply(to, refusal(call, ErrorCode.NOT_OWNER))])
        if isinstance(call, ListGroups) and self._address[0] in EVERYWHERE:
            address = session.reached_at or self._address[0], self._address[1]  # where this member can reach it
            self._server.controller.broker = Broker(self._inside.broker_id, *address)
        replies = self._look(now, at_once=not isinstance(call, (Heartbeat, ListGroups)))
        done = self._server.receive(request.request, self._now, _Asked(call, to))
        if isinstance(call, RegisterConsumer):
            self._remember(call, session)
        if done.asks:
            self.ask(done.asks)
        return self._effect([*replies, *done.replies])

    def answered(self, token: int, reply: Rpc | None, now: float) -> Effect:
        """Take the reply of another server; None: it was not reached."""
        self._clock(now)
        return self._effect(self._server.answered(token, reply))

    def disconnected(self, session: Any, now: float) -> Effect:
        """End the memberships of a connection."""
        self._clock(now)
        replies: list[GroupReply] = []
        for client_id in session.state or ():
            if self._sessions.get(client_id) is session:
                del self._sessions[client_id]
                replies += self._server.controller.disconnect(client_id, self._now)
        return self._effect(replies) if replies or session.state else NOTHING

    def tick(self, now: float) -> Effect:
        """Do what is due."""
        self._clock(now)
        return self._effect(self._server.controller.tick(self._now))

    def next_deadline(self) -> float | None:
        """Return when `tick` is needed."""
        deadline = self._server.controller.due_at
        return None if deadline is None else self._inside.clock.of_host(deadline)

    def appended(self, token: Any, result: Any, now: float) -> Effect:
        """Nothing is appended by effects."""
        return NOTHING

    def not_appended(self, token: Any, error: Exception, now: float) -> Effect:
        """Nothing is appended by effects."""
        return NOTHING

    def close(self, *, keeps: bool) -> None:
        """Do nothing: everything answered is on the disk."""

    # Inside

    def _remember(self, call: Any, session: Any) -> None:
        """Note the connection of a member's last registration."""
        controller = self._server.controller
        if controller.membership(call.client_id) != (call.consumer_group, call.consumer_id):
            return
        own: set[str] = session.state or set()
        if len(own) >= _MANY_CLIENTS:
            gone = {name for name in own if controller.membership(name) is None}
            own -= gone
            for name in gone:
                if self._sessions.get(name) is session:
                    del self._sessions[name]
        own.add(call.client_id)
        session.state = own
        self._sessions[call.client_id] = session

    def _is_late(self, call: Any, session: Any) -> bool:
        """Whether a member commits on another connection than its last registration: its partitions may have changed.

        Calls of one connection arrive in order; calls of an earlier connection may arrive late.
        """
        is_member = self._server.controller.membership(call.client_id) is not None
        return is_member and self._sessions.get(call.client_id) is not session

    def _clock(self, now: float) -> None:
        """Set the broker's time by that of the host."""
        self._now = max(self._now, int(self._inside.clock(now)))

    def _look(self, now: float, *, at_once: bool) -> list[GroupReply]:
        """Tell the controller about new, grown and deleted topics."""
        controller = self._server.controller
        if not at_once and self._looked_at is not None and now - self._looked_at < _LOOK_MS:
            return []
        self._looked_at = now
        found, known = self._counted(), self._topics
        if found == known:
            return []
        self._topics = found
        replies: list[GroupReply] = []
        for name, (topic_id, _) in known.items():
            if name not in found or found[name][0] != topic_id:
                replies += controller.remove_topic(name, self._now)
        for name, (_, count) in found.items():
            if known.get(name) != found[name]:
                replies += controller.set_partitions(name, count, self._now)
        return replies

    def _counted(self) -> dict[str, tuple[Any, int]]:
        topics = self._inside.catalog.metadata.topics.items()
        return {
            name: (topic["topic_id"], min(len(topic["partitions"]), _MOST_PARTITIONS))
            for name, topic in topics
            if name not in INTERNAL_TOPICS
        }

    def _effect(self, found: Sequence[GroupReply]) -> Effect:
        """Return the replies, which leave once the file has their state."""
        self.store.take(self._server.controller)
        asked: list[tuple[_Asked, Rpc]] = [(reply.connection, reply.message) for reply in found]  # type: ignore[misc]
        replies = [Reply(one.to, message) for one, message in asked]
        if self.store.is_saved:
            return Effect((), replies)
        return Effect((), replies, (), (LOG,), partial(_not_saved, [one for one, _ in asked]))


def _nowhere(asks: list[Ask]) -> None:
    """There are no other servers."""


def _not_saved(asked: Iterable[_Asked]) -> list[Reply]:
    """The replies if the disk does not take the groups."""
    _log.warning("rewrite-groups.json could not be written; members get errors, and the write will be tried again")
    return [Reply(one.to, refusal(one.call, ErrorCode.STORAGE_ERROR)) for one in asked]
