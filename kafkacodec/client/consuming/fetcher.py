"""Fetching ahead of the user: choosing partitions and brokers, and handling the answers."""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any, Final

from kafkacodec.client.consuming.fetch_errors import FetchErrors
from kafkacodec.client.consuming.fetch_request import fetch_request
from kafkacodec.client.consuming.looking import Look, Looking
from kafkacodec.client.consuming.positions import PartitionState, Position, Positions
from kafkacodec.client.consuming.received import Extent, Frame, Part, extent_of
from kafkacodec.client.consuming.rounds import Contents, FetchNode, Round
from kafkacodec.client.consuming.session import Wanted, names_of, without_session
from kafkacodec.client.consuming.settings import ConsumerSettings
from kafkacodec.client.consuming.validation import Validation
from kafkacodec.client.core.backoff import Backoff
from kafkacodec.client.core.calls import Answer, Send, Versions
from kafkacodec.client.core.cluster import Cluster
from kafkacodec.client.core.coordinators import MOST_BROKEN
from kafkacodec.client.core.metrics import Metrics
from kafkacodec.client.core.retrying import worth_repeating
from kafkacodec.errors import (
    FETCH_SESSION_ID_NOT_FOUND,
    INVALID_FETCH_SESSION_EPOCH,
    ClientClosed,
    CorruptRecord,
    KafkaCodecError,
    LimitExceeded,
    RemoteProtocolError,
    error,
)
from kafkacodec.messages.keys import FETCH
from kafkacodec.protocol.fetch import aborted_transactions
from kafkacodec.protocol.versions import highest_common

__all__ = ["Fetcher"]

_FIRST_WITH_IDS: Final = 13
_SESSION_GONE: Final = frozenset({FETCH_SESSION_ID_NOT_FOUND})
_SESSION_ENDED: Final = frozenset({FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH})
_UNKNOWN: Final = -1
_QUIET_MS: Final = 10.0


class Fetcher:
    """A machine that keeps one fetch under way to each broker that has assigned partitions, while there is room.

    Each broker has an equal share of `prefetch_bytes`, and all together never exceed it, even while shares change.

    A fetch that waits at the ends of partitions is sent only when nothing is left to read and the user asks for more,
    or has not come back for a moment. So a user that seeks after each record does not wait for it.

    Attributes:
        ready: fetched parts in order; the reader takes them from the left and returns them with `done`.
        hungry: returns whether the user's last read found nothing.
        held_back: whether partitions are to be fetched as soon as the user is hungry.
    """

    def __init__(
        self,
        cluster: Cluster,
        positions: Positions,
        validation: Validation,
        settings: ConsumerSettings,
        *,
        backoff: Backoff,
        metrics: Metrics,
    ) -> None:
        self.ready: deque[Part] = deque()
        self.hungry: Callable[[], bool] = lambda: True
        self.held_back = False
        self._cluster = cluster
        self._positions = positions
        self._settings = settings
        self._backoff = backoff
        self._nodes: dict[int, FetchNode] = {}
        self._errors = FetchErrors(cluster, positions, backoff, settings)
        self._looking = Looking(cluster, positions, validation, self._errors, settings)
        self._turn = 0
        self._now = 0.0
        self._read = False  # parts returned since the last poll
        self._quiet_at = 0.0
        self._share = settings.prefetch_bytes
        self._bytes = metrics.counter("consumer.bytes")
        self._fetch_bytes = metrics.histogram("consumer.fetch_bytes")

    @property
    def kept_bytes(self) -> int:
        """The memory of frames with parts in `ready` or in use by the reader."""
        return sum(node.kept_bytes for node in self._nodes.values())

    # The reader's side, in the driver's thread

    def done(self, parts: list[Part]) -> bool:
        """Take back parts that the reader has read or dropped. Returns whether to poll before the next answer."""
        self._read = True
        poll = False
        for part in parts:
            if part.given_back:
                continue
            if part.current:
                part.state.kept -= 1
                part.state.draining = part.state.draining and part.state.kept > 0
            part.forget()
            poll = poll or not self._answers_soon(self._looking.node(part.state))
            part.frame.parts -= 1
            if not part.frame.parts:
                self._nodes[part.frame.node].kept_bytes -= part.frame.nbytes
                part.frame.release()
        return poll

    def asks(self, state: PartitionState) -> bool:
        """Whether a fetch under way will soon report the partition's end."""
        return any(
            one is not None and one.has(state) for node in self._nodes.values() for one in (node.asking, node.beside)
        )

    def close(self) -> None:
        """Give all memory back."""
        self.done(list(self.ready))
        self.ready.clear()

    # A machine

    def poll(self, now: float) -> list[Send]:
        """Fetches from brokers that have partitions to fetch and none under way."""
        self._now = now
        look = self._looking.look(now)
        sources = look.sources
        self._share = self._settings.prefetch_bytes // max(len(sources), 1)
        wait_ms = self._wait_ms(now, look)
        taken, begun = self._taken(), []
        for number in sorted(sources):
            node = self._nodes.get(number)
            if node is None:
                node = self._nodes[number] = FetchNode()
            if now < node.next_at:
                continue
            asked = self._next_round(number, node, look, wait_ms)
            if asked is not None and self._has_room(node, taken, asked.max_bytes):
                self._begin(node, asked)
                taken += asked.max_bytes
                begun.append(asked)
        if sources and all(map(self._answers_soon, sources)):
            self.held_back = False
        return [asked.send for asked in begun if asked.send is not None]

    def next_deadline(self) -> float | None:
        """When to retry a partition or broker after an error, or to send what is held back."""
        times = [state.next_at for state in self._looking.waiting if state.failures]
        times += [node.next_at for node in self._nodes.values() if node.failures and node.asking is None]
        times += [self._quiet_at] if self.held_back else []
        return min((at for at in times if at > self._now), default=None)

    def answered(self, send: Send, answer: Answer, now: float) -> None:
        """Keep the records of an answer, and handle its errors."""
        asked: Round = send.context
        node = self._nodes[asked.node]
        response = answer.message
        frame = Frame(answer.frame, asked.node)
        if not node.landed(asked):
            frame.release()
            return
        if response.error_code:
            self._refused(asked, node, response.error_code, now)
        else:
            node.failures = 0
            self._take_all(asked, response, frame, now)
            if asked.aside:
                node.answered_beside(bool(frame.parts))
            else:
                node.session.answered(response.session_id)
        if frame.parts:
            self._bytes.add(frame.nbytes)
            self._fetch_bytes.add(frame.nbytes)
            frame.nbytes = answer.frame.nbytes if answer.frame is not None else frame.nbytes
            node.kept_bytes += frame.nbytes
        else:
            frame.release()

    def failed(self, send: Send, error: Exception, now: float) -> None:
        """Ask again after a wait; from the leader, if a follower failed.

        The user gets what does not pass: a refusal, and answers that break the protocol `MOST_BROKEN` times in a row.
        """
        asked: Round = send.context
        node = self._nodes[asked.node]
        if not node.landed(asked):
            return
        if not asked.aside:
            node.session.lost()
        if isinstance(error, ClientClosed):
            return
        node.failures += 1
        node.next_at = now + self._backoff.after(node.failures)
        self._cluster.refresh()
        broken = isinstance(error, RemoteProtocolError) and node.failures >= MOST_BROKEN
        for state in self._positions.partitions.values():
            if state.preferred == asked.node:
                state.preferred = None
            if (broken or not worth_repeating(error)) and self._looking.source(state, now) == asked.node:
                self._errors.for_user(state, error)

    # Asking

    def _wait_ms(self, now: float, look: Look) -> float:
        """How long brokers may wait for records; 0 while there are some to read, or the user may seek next."""
        if self._read:
            self._read, self._quiet_at = False, now + _QUIET_MS
        self.held_back = True  # before reading `hungry`, which the reader sets before it reads this
        waits = self._settings.fetch_max_wait_ms
        if look.kept:
            return 0
        if self.hungry() or now >= self._quiet_at:
            self.held_back = False
            return waits
        return 0

    def _next_round(self, number: int, node: FetchNode, look: Look, wait_ms: float) -> Round | None:
        """The next request to a broker, if one is useful."""
        wanted: Collection[PartitionState]
        states = look.sources[number]
        if node.asking is None:
            wanted = node.not_beside(states, self._now)
            asked = Round(number, self._most(), wait_ms)
        else:
            left_ms = node.wait_left(self._now)
            if left_ms is None or (node.beside is not None and node.beside.until is None):
                return None  # an unwritten request includes later changes
            wanted = node.missed(state for state in look.changed.get(number, ()) if state in states)
            wait_ms = min(wait_ms, left_ms, node.patience_ms)
            asked = Round(number, max(self._most() // 4, 1), wait_ms, aside=True)
        # Partitions without records wait until the user reads, or for the other fetch, which is answered at once.
        useful = wanted if asked.wait_ms or not wanted else look.ahead.intersection(wanted)
        return asked if useful else None

    def _begin(self, node: FetchNode, asked: Round) -> None:
        timeout = self._settings.fetch_max_wait_ms + self._settings.request_timeout_ms
        request = partial(self._request, asked)
        asked.send = Send(asked.node, request, timeout_ms=timeout, context=asked, holds=asked.wait_ms > 0)
        if asked.aside:
            node.give_up_beside()
            node.beside = asked
        else:
            node.asking = asked

    def _states(self, asked: Round, look: Look) -> list[PartitionState]:
        """Return the partitions of a request, in order of their waits."""
        node, states = self._nodes[asked.node], look.sources.get(asked.node, {})
        if asked.aside:
            chosen: Collection[PartitionState] = node.not_asking(
                state for state in look.changed.get(asked.node, ()) if state in states
            )
        else:
            chosen = node.not_beside(states, self._now)
        return sorted(chosen, key=lambda state: state.turn)

    def _answers_soon(self, number: int | None) -> bool:
        node = None if number is None else self._nodes.get(number)
        return node is not None and node.answers_soon

    def _taken(self) -> int:
        """The memory of kept records and of the answers under way."""
        asking = [one for node in self._nodes.values() for one in (node.asking, node.beside) if one is not None]
        return self.kept_bytes + sum(one.max_bytes for one in asking)

    def _has_room(self, node: FetchNode, taken: int, most: int) -> bool:
        """Whether another answer fits into the memory and into a broker's share of it; the first one always does."""
        fits = not node.kept_bytes or node.kept_bytes + most <= self._share
        return not taken or (fits and taken + most <= self._settings.prefetch_bytes)

    def _most(self) -> int:
        """The size limit of a response: two fit into a broker's share."""
        return max(min(self._settings.fetch_max_bytes, self._share // 2), 1)

    def _request(self, asked: Round, versions: Versions) -> tuple[Any, int]:
        """The request, made when it is sent."""
        version = highest_common(FETCH, versions)
        contents = self._contents(asked, version)
        wanted = contents.wanted
        plan = without_session(wanted) if asked.aside else self._nodes[asked.node].session.plan(wanted)
        asked.asked, asked.names = contents.asked, contents.names
        asked.max_bytes = max(asked.max_bytes, contents.least_bytes)
        asked.until = self._now + asked.wait_ms
        return fetch_request(plan, self._settings, asked.max_bytes, asked.wait_ms), min(version, contents.most)

    def _contents(self, asked: Round, version: int) -> Contents:
        """Return the contents of a request: the last contents with changes."""
        look, node, number = self._looking.look(self._now), self._nodes[asked.node], asked.node
        if asked.aside or node.beside is not None:
            return self._whole(self._states(asked, look), version)
        of, before = look.contents.get(number, (-1, None))
        changed = look.changed.pop(number, {})
        if before is None or of != version:
            contents = self._whole(self._states(asked, look), version)
        elif changed:
            contents = self._changed(before, look.sources.get(number, {}), changed, version)
        else:
            return before
        look.contents[number] = version, contents
        return contents

    def _whole(self, states: Iterable[PartitionState], version: int) -> Contents:
        ids = {state.topic: self._cluster.topic_id(state.topic) for state in states}
        if version >= _FIRST_WITH_IDS and None in ids.values():
            version = _FIRST_WITH_IDS - 1
        wanted = {s.key: self._wanted(s, ids[s.topic] if version >= _FIRST_WITH_IDS else None) for s in states}
        return Contents(
            wanted,
            {s.key: (s, s.version, s.fetching) for s in states if s.fetching is not None},
            names_of(wanted),
            max((state.partition_bytes for state in states), default=0),
            version,
        )

    def _changed(
        self, before: Contents, states: Collection[PartitionState], changed: Iterable[PartitionState], version: int
    ) -> Contents:
        """Return contents with changed or removed partitions; partitions with records come last."""
        wanted, asked = dict(before.wanted), dict(before.asked)
        least, most = before.least_bytes, before.most
        for state in sorted(changed, key=lambda state: state.turn):
            had = asked.pop(state.key, None)
            was = wanted.get(state.key)
            if state not in states or state.fetching is None:
                wanted.pop(state.key, None)
                continue
            topic_id = self._cluster.topic_id(state.topic)
            by_id = most >= _FIRST_WITH_IDS
            if state.partition_bytes or least or (by_id and topic_id not in before.names):
                return self._whole(sorted(states, key=lambda state: state.turn), version)
            entry = self._wanted(state, topic_id if by_id else None)
            asked[state.key] = state, state.version, state.fetching
            if had is None or had[2] != state.fetching:
                wanted.pop(state.key, None)
            if entry != was or state.key not in wanted:
                wanted[state.key] = entry
        return Contents(wanted, asked, before.names, least, most)

    def _wanted(self, state: PartitionState, topic_id: uuid.UUID | None) -> Wanted:
        known = self._cluster.partition(*state.key)
        assert state.fetching is not None
        return Wanted(
            topic_id,
            state.fetching.offset,
            -1 if known is None else known.leader_epoch,
            state.partition_bytes or self._usual_bytes(state),
        )

    def _usual_bytes(self, state: PartitionState) -> int:
        most = self._settings.max_partition_fetch_bytes
        return min(state.first_bytes, most) if state.first_bytes else most

    # Answers

    def _refused(self, asked: Round, node: FetchNode, code: int, now: float) -> None:
        """Retry a request that was refused as a whole, unless that cannot help."""
        node.session.lost(known=code not in _SESSION_GONE)
        if code not in _SESSION_ENDED:
            self._cluster.refresh()
            self._cluster.hindrances.refused(f"broker {asked.node} cannot be read from", code, now)
            if not error(code).retriable and code != _UNKNOWN:
                for state, version, _ in asked.asked.values():
                    if state.version == version:
                        self._errors.for_user(state, error(code)(f"{state.topic}-{state.number}: {error(code).name}"))
        node.failures += 1
        # An ended session starts again at once, but not in an endless loop.
        node.next_at = now + self._backoff.after(node.failures - (code in _SESSION_ENDED))

    def _take_all(self, asked: Round, response: Any, frame: Frame, now: float) -> None:
        """Process each partition of an answer. Partitions that are not in it have no records."""
        silent = dict(asked.asked)
        for topic in response.responses:
            name = topic.topic or asked.names.get(topic.topic_id)
            for entry in topic.partitions:
                found = asked.asked.get((name, entry.partition_index)) if name is not None else None
                if found is None:
                    continue
                if entry.records or entry.error_code or entry.preferred_read_replica >= 0:
                    del silent[found[0].key]
                self._take(found, entry, response, frame, asked.node, now)
        if not asked.wait_ms:
            for state, version, position in silent.values():
                if state.version == version and state.fetching is position is not state.empty_at:
                    state.empty_at = position

    def _take(
        self,
        found: tuple[PartitionState, int, Position],
        entry: Any,
        response: Any,
        frame: Frame,
        source: int,
        now: float,
    ) -> None:
        state, version, asked_for = found
        if state.version != version or state.fetching != asked_for:
            return
        if entry.error_code:
            self._errors.act(state, entry, response.node_endpoints, source, now)
            return
        state.high_watermark = entry.high_watermark
        state.last_stable_offset = entry.last_stable_offset
        state.log_start_offset = entry.log_start_offset
        if entry.preferred_read_replica >= 0 and entry.preferred_read_replica != source:
            self._prefer(state, entry.preferred_read_replica, now)
        else:
            state.failures = 0
        if entry.records is not None and len(entry.records):
            self._keep(state, entry, memoryview(entry.records), asked_for, frame)

    def _prefer(self, state: PartitionState, replica: int, now: float) -> None:
        """Read from the nearer follower that the leader names instead of sending records (KIP-392)."""
        node = self._nodes.get(replica)
        if self._cluster.address(replica) is None or (node is not None and now < node.next_at):
            # Asking the leader at once would bring the same answer.
            self._cluster.refresh()
            state.failures += 1
            state.next_at = now + self._backoff.after(state.failures)
        else:
            state.preferred = replica
            state.preferred_until = now + self._settings.metadata_max_age_ms

    def _keep(self, state: PartitionState, entry: Any, records: memoryview, start: Position, frame: Frame) -> None:
        extent = extent_of(records)
        end: Position | None = Position(extent.next_offset, extent.leader_epoch)
        if not extent.size:
            if not extent.damaged:
                self._enlarge(state, extent, start)
                return
            end = None
        elif extent.next_offset <= start.offset:
            text = f"offset {start.offset}: the broker sent records up to offset {extent.next_offset - 1} only"
            self._errors.for_user(state, CorruptRecord(text, path=f"{state.topic}-{state.number}"))
            return
        if end is None and state.kept:
            state.draining = True
            return
        committed = self._settings.isolation_level == "read_committed"
        aborted = aborted_transactions(entry) if committed and entry.aborted_transactions else b""
        used = records[: extent.size] if end is not None else records
        self.ready.append(Part(state, state.version, used, start, end, extent.epochs, aborted, frame))
        self._turn += 1
        state.turn, state.partition_bytes = self._turn, 0
        state.first_bytes = 8 * state.first_bytes
        if state.first_bytes >= self._settings.max_partition_fetch_bytes:
            state.first_bytes = 0
        state.kept += 1
        frame.parts += 1
        frame.nbytes += records.nbytes
        if end is None:
            state.draining = True
        else:
            state.fetching = end

    def _enlarge(self, state: PartitionState, extent: Extent, start: Position) -> None:
        """Fetch a batch that exceeds the limit again with a larger one, up to the largest response."""
        before = state.partition_bytes or self._usual_bytes(state)
        most = self._settings.receive_message_max_bytes - 4096
        needed = max(2 * before, extent.needed_bytes)
        place = f"{state.topic}-{state.number}"
        problem: KafkaCodecError
        if extent.needed_bytes > most or before >= most:
            problem = LimitExceeded(
                f"the batch at offset {start.offset} has {extent.needed_bytes} bytes, and "
                f"receive_message_max_bytes is {self._settings.receive_message_max_bytes}",
                path=place,
            )
            self._errors.for_user(state, problem)
        else:
            state.partition_bytes = min(needed, most)
