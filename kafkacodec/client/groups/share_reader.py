"""Reading records of a share group (KIP-932): acquired by a fetch, each to be accepted, released or rejected.

reader = ShareReader(cluster, lambda: membership.metadata, backoff=Backoff())
reader.assign(partitions)                  # after each Assigned
reader.fetch()                             # the application wants records; then wake the network
for fetched in reader.take():
    counts = reader.delivered(fetched, offsets)     # the offsets of the decoded records
    ...                                    # deliver those in `counts`; they are this member's for some time
    reader.acknowledge(fetched.partition, offset, AcknowledgeType.ACCEPT)
reader.fetch()                             # carries the acknowledgements; or reader.flush()
reader.take_results()                      # which acknowledgements reached the broker
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from kafkacodec.assignment.partitions import TopicPartition
from kafkacodec.client.core.backoff import Backoff
from kafkacodec.client.core.calls import Answer, Send
from kafkacodec.client.core.cluster import Cluster
from kafkacodec.client.core.coordinators import MOST_BROKEN
from kafkacodec.client.groups.membership import GroupMetadata
from kafkacodec.client.groups.share_records import Acknowledged, HeldRecords, ShareFetched, counts_and_gaps
from kafkacodec.client.groups.share_session import (
    AcknowledgeType,
    Acquired,
    Run,
    ShareLimits,
    ShareSession,
    packed,
)
from kafkacodec.datatypes import replace
from kafkacodec.errors import (
    INVALID_SHARE_SESSION_EPOCH,
    SHARE_SESSION_LIMIT_REACHED,
    SHARE_SESSION_NOT_FOUND,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_ID,
    LocalProtocolError,
    RemoteProtocolError,
    error,
)

__all__ = ["ShareReader"]

_SESSION_LOST: Final = frozenset({SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH, SHARE_SESSION_LIMIT_REACHED})


class ShareReader:
    """Fetches from the leaders of a share group's partitions and acknowledges to them. A machine.

    Args:
        cluster: the cluster's metadata.
        member: gives the membership's metadata, or None while there is none.
        limits: of each fetch.
        implicit: whether `fetch` and `flush` accept all that was delivered and not acknowledged otherwise. Without it,
            `fetch` refuses to go on until all is acknowledged.
        backoff: the wait before a broker is asked again that failed.

    Attributes:
        errors: permanent errors by partition; temporary errors are retried without an entry.
        closed: whether all sessions have ended after `close`.
        losses: the number of losses of delivered records with their session.
    """

    def __init__(
        self,
        cluster: Cluster,
        member: Callable[[], GroupMetadata | None],
        *,
        limits: ShareLimits | None = None,
        implicit: bool = True,
        backoff: Backoff | None = None,
    ) -> None:
        self.errors: dict[TopicPartition, Exception] = {}
        self._cluster = cluster
        self._member = member
        self._limits = limits or ShareLimits()
        self._implicit = implicit
        self._backoff = backoff or Backoff()
        self._assigned: set[TopicPartition] = set()
        self._sessions: dict[int, ShareSession] = {}
        self._asking: dict[int, Send] = {}
        self._failures: dict[int, int] = {}
        self._next_at: dict[int, float] = {}
        self._held = HeldRecords()
        self._fetched: list[ShareFetched] = []
        self._results: list[Acknowledged] = []
        self.losses = 0
        self._now = 0.0
        self._hungry: set[int] | None = set()  # the brokers still to be asked; None: all
        self._flushing = False
        self._ending = False

    # For the consumer

    @property
    def closed(self) -> bool:
        """Whether all sessions have ended after `close`."""
        return self._ending and not self._sessions

    @property
    def flushed(self) -> bool:
        """Whether no acknowledgement waits to be sent or answered."""
        return self._said and not any(session.sent for session in self._sessions.values())

    @property
    def fetching(self) -> bool:
        """Whether a `fetch` is not over: brokers are still to be asked, or to answer."""
        return self._hungry is None or bool(self._hungry) or bool(self._asking)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read from exactly these."""
        self._assigned = {TopicPartition(*place) for place in partitions}

    def fetch(self) -> None:
        """Ask each leader once for records, with the acknowledgements so far.

        Raises:
            LocalProtocolError: without `implicit`, delivered records are not acknowledged; or the reader is closed.
        """
        if self._ending:
            raise LocalProtocolError("the share consumer is closed")
        for place, offsets in self._held if not self._implicit else ():
            raise LocalProtocolError(
                f"{len(offsets)} records of {place.topic}-{place.partition} are not acknowledged, from offset "
                f"{min(offsets)} on: accept, release or reject them first"
            )
        self._accept_rest()
        self._hungry = None

    def flush(self) -> None:
        """Send the acknowledgements so far, without a fetch."""
        self._accept_rest()
        self._flushing = True

    def take(self) -> list[ShareFetched]:
        """Return fetched records since the last call."""
        fetched, self._fetched = self._fetched, []
        return fetched

    def take_results(self) -> list[Acknowledged]:
        """The results of acknowledgements since the last call."""
        results, self._results = self._results, []
        return results

    def delivered(
        self, fetched: ShareFetched, offsets: Iterable[int], *, damaged_from: int | None = None
    ) -> dict[int, int]:
        """Return which records of `fetched` to deliver, from the offsets of all decoded records.

        Args:
            fetched: the fetch.
            offsets: of its records.
            damaged_from: the first undecodable offset; None if there is none.

        Returns:
            The delivery count by offset. Acquired offsets without a record are acknowledged as gaps; those from
            `damaged_from` on are released.
        """
        counts, gaps = counts_and_gaps(fetched.acquired, offsets, damaged_from)
        session = self._sessions.get(fetched.node)
        if session is None or session.epoch == 0:
            return {}  # the session was lost meanwhile, and others get these records
        if gaps:
            session.acknowledge(fetched.partition, gaps)
        if counts:
            self._held.add(fetched.partition, fetched.node, counts)
        return counts

    def holds(self, partition: TopicPartition, offset: int) -> bool:
        """Whether a delivered record waits for an acknowledgement, as far as the reader knows."""
        return self._held.has(partition, offset)

    def acknowledge(self, partition: TopicPartition, offset: int, kind: AcknowledgeType) -> None:
        """Acknowledge a delivered record, with the next `fetch` or `flush`.

        After RENEW, which needs Kafka 4.2 and is sent by `flush`, the record needs another acknowledgement (KIP-1222).

        Raises:
            LocalProtocolError: the record was not delivered, is acknowledged already, or its time is over.
        """
        partition = TopicPartition(*partition)
        if not self.holds(partition, offset):
            topic, number = partition
            raise LocalProtocolError(f"offset {offset} of {topic}-{number} does not wait for an acknowledgement")
        if kind == AcknowledgeType.RENEW:
            self._held.renew(partition, offset)
        else:
            self._say(partition, {offset}, AcknowledgeType(kind))

    def close(self) -> None:
        """Release unacknowledged records and end all sessions; `closed` is true when that is done."""
        for place, offsets in self._held:
            self._say(place, offsets, AcknowledgeType.RELEASE)
        self._ending = True

    # A machine

    def poll(self, now: float) -> list[Send]:
        """The requests that are due, one per broker at a time."""
        self._now = now
        member = self._member()
        if member is None:
            self._drop_sessions()
            return []
        if self._ending:
            return self._end(member)
        leaders = self._leaders()
        if self._hungry is not None:
            self._hungry &= leaders.keys()
        elif leaders:
            self._hungry = set(leaders)
        sends = []
        for node in sorted(leaders.keys() | self._sessions.keys()):
            session = self._sessions.setdefault(node, ShareSession())
            if node in self._asking or now < self._next_at.get(node, now):
                continue
            if self._hungry is not None and node in self._hungry and node in leaders:
                self._hungry.discard(node)
                self._lose_replaced(session, leaders[node])
                request = session.fetch(member, leaders[node], self._limits)
            elif self._says(node, session) and (self._flushing or node not in leaders):
                for place, offsets in self._held.take_renewals(node):  # not before: there may be more until then
                    session.acknowledge(place, packed(dict.fromkeys(offsets, AcknowledgeType.RENEW)))
                request = session.acknowledgement(member)
            else:
                continue
            sends.append(self._ask(node, request))
        self._flushing = self._flushing and not self._said
        return sends

    def next_deadline(self) -> float | None:
        """Return when to ask a failed broker again."""
        return min(
            (at for node, at in self._next_at.items() if at > self._now and node not in self._asking), default=None
        )

    def answered(self, send: Send, answer: Answer, now: float) -> None:
        """Take the records, and the results of acknowledgements."""
        node = self._node_of(send)
        if node is None:
            return
        response, session = answer.message, self._sessions[node]
        if response.error_code:
            self._lose(node, error(response.error_code)(response.error_message), now)
            self._cluster.hindrances.refused(f"broker {node} cannot be read from", response.error_code, now)
            return
        ids, sent = session.sent_ids, session.succeeded()
        before, refused = len(self._fetched), False
        for topic in response.responses:
            name = session.names.get(topic.topic_id)
            for partition in topic.partitions if name is not None else ():
                place = TopicPartition(name or "", partition.partition_index)
                runs = sent.pop(place, []) if ids.get(place) == topic.topic_id else []
                refused = self._read(place, partition, response, runs, answer) or refused
        if refused and len(self._fetched) == before:
            self._wait(node, now)  # a broker answers errors at once
        else:
            self._failures.pop(node, None)
            self._next_at.pop(node, None)
        for place, runs in sent.items():  # without an answer
            self._results.append(Acknowledged(place, tuple(runs), error(UNKNOWN_SERVER_ERROR)()))
        if session.closing:
            del self._sessions[node]

    def failed(self, send: Send, error: Exception, now: float) -> None:
        """The session is over."""
        node = self._node_of(send)
        if node is not None:
            self._lose(node, error, now)

    # Steps

    def _ask(self, node: int, request: Any) -> Send:
        self._asking[node] = Send(node, request, context=node)
        return self._asking[node]

    def _node_of(self, send: Send) -> int | None:
        node: int = send.context
        if self._asking.get(node) is not send:
            return None
        del self._asking[node]
        return node

    def _read(self, place: TopicPartition, partition: Any, response: Any, runs: list[Run], answer: Answer) -> bool:
        """A partition of a response to either request; returns whether it refuses to be read."""
        fetching = hasattr(partition, "acquired_records")
        code = partition.acknowledge_error_code if fetching else partition.error_code
        if runs:
            self._results.append(Acknowledged(place, tuple(runs), error(code)() if code else None))
        if partition.error_code:
            self._refused(place, partition, response, fetching)
            if fetching:
                what = f"{place.topic}-{place.partition} cannot be fetched"
                self._cluster.hindrances.refused(what, partition.error_code, self._now)
        elif fetching and partition.acquired_records:
            self.errors.pop(place, None)
            acquired = tuple(
                Acquired(r.first_offset, r.last_offset, r.delivery_count) for r in partition.acquired_records
            )
            self._fetched.append(ShareFetched(place, partition.records, acquired, answer.node, answer.frame))
        return fetching and bool(partition.error_code)

    def _refused(self, place: TopicPartition, partition: Any, response: Any, fetching: bool) -> None:
        refusal, leader = error(partition.error_code), partition.current_leader
        moved = leader.leader_id >= 0 and self._cluster.leader_changed(
            place.topic, place.partition, leader.leader_id, leader.leader_epoch, response.node_endpoints
        )
        if refusal.stale_metadata and not moved:
            self._cluster.refresh()
        if fetching and not refusal.retriable:
            self.errors[place] = refusal(partition.error_message)

    def _lose(self, node: int, fault: Exception, now: float) -> None:
        """Note the end of a session: other members get its unacknowledged records."""
        session = self._sessions[node]
        for place, runs in session.lost().items():
            self._results.append(Acknowledged(place, tuple(runs), fault))
        self._lose_delivered(lambda _, of: of == node, fault)
        if session.closing or self._ending:
            del self._sessions[node]
        if getattr(fault, "code", None) not in _SESSION_LOST:
            self._cluster.refresh()
        self._wait(node, now)
        if isinstance(fault, RemoteProtocolError) and self._failures[node] >= MOST_BROKEN:
            self.errors |= dict.fromkeys(sorted(self._leaders().get(node, ()))[:1], fault)  # to be raised once
        if self._hungry is not None:
            self._hungry.add(node)

    def _wait(self, node: int, now: float) -> None:
        """Ask a broker later."""
        self._failures[node] = self._failures.get(node, 0) + 1
        self._next_at[node] = now + self._backoff.after(self._failures[node])

    def _lose_replaced(self, session: ShareSession, wanted: Mapping[TopicPartition, uuid.UUID]) -> None:
        """Drop records of deleted topics whose names new topics have: they cannot be acknowledged."""
        gone = {place for place, topic_id in wanted.items() if session.ids.get(place, topic_id) != topic_id}
        if gone:
            self._lose_delivered(lambda place, node: place in gone, error(UNKNOWN_TOPIC_ID)())

    def _lose_delivered(self, lost: Callable[[TopicPartition, int], bool], fault: Exception) -> None:
        """Drop fetched and delivered records that this member has lost; `lost` decides by partition and broker."""
        self._fetched = [
            replace(each, acquired=()) if lost(each.partition, each.node) else each for each in self._fetched
        ]
        for place, offsets in self._held.lose(lost):
            runs = packed(dict.fromkeys(offsets, AcknowledgeType.RELEASE))
            self._results.append(Acknowledged(place, tuple(runs), fault))
            self.losses += 1

    def _drop_sessions(self) -> None:
        """Drop all sessions, since the coordinator ends them at the brokers without a membership."""
        for node, session in self._sessions.items():
            self._asking.pop(node, None)  # the answer would be of the session that is over
            for place, runs in session.lost().items():
                self._results.append(Acknowledged(place, tuple(runs), error(SHARE_SESSION_NOT_FOUND)()))
        self._lose_delivered(lambda _, node: node in self._sessions, error(SHARE_SESSION_NOT_FOUND)())
        if self._ending:
            self._sessions.clear()

    def _end(self, member: GroupMetadata) -> list[Send]:
        """The last request of each session."""
        sends = []
        for node, session in list(self._sessions.items()):
            if node in self._asking:
                continue
            if session.epoch == 0:
                del self._sessions[node]
            else:
                sends.append(self._ask(node, session.acknowledgement(member, close=True)))
        return sends

    def _leaders(self) -> dict[int, dict[TopicPartition, uuid.UUID]]:
        """Return the partitions to read from each broker, with the ids of their topics.

        It leaves out partitions without a known leader or id, and asks for these.
        """
        found: dict[int, dict[TopicPartition, uuid.UUID]] = {}
        for place in self._assigned:
            leader, topic_id = self._cluster.leader(*place), self._cluster.topic_id(place.topic)
            if leader is None or topic_id is None:
                self._cluster.refresh()
            else:
                found.setdefault(leader, {})[place] = topic_id
        return found

    def _says(self, node: int, session: ShareSession) -> bool:
        """Whether there is something to send to a broker."""
        return bool(session.acknowledging) or self._held.renews(node)

    @property
    def _said(self) -> bool:
        return not any(self._says(node, session) for node, session in self._sessions.items())

    def _accept_rest(self) -> None:
        for place, offsets in self._held if self._implicit else ():
            self._say(place, offsets, AcknowledgeType.ACCEPT)

    def _say(self, place: TopicPartition, offsets: set[int], kind: AcknowledgeType) -> None:
        node = self._held.take(place, offsets)
        self._sessions[node].acknowledge(place, packed(dict.fromkeys(offsets, kind)))
