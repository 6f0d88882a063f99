"""The interface between a consumer and its membership of a group.

A membership is a machine (`kafkacodec.client.core.calls.Machine`). Besides requests it produces events, which the
consumer takes in order after each change::

    group = ClassicMembership(GroupSettings("billing"), cluster)
    group.subscribe(Subscription(["orders"]), now)
    network.add(group, changed=on_change)

    def on_change():
        for event in group.take_events():
            match event:
                case Revoke(partitions): ...        # stop fetching them, commit, then: group.revoked(now)
                case Lost(partitions): ...          # stop fetching them, do not commit
                case Assigned(added, partitions): ...  # fetch the added ones too
                case Failed(error): ...             # show the error to the application
                case Left(): ...                    # after leave(): nothing more will come

After each call of a method the driver must poll the machine: call the network's ``wake()``.
"""

from __future__ import annotations

from typing import Protocol, TypeAlias

from kafkacodec.assignment.partitions import TopicPartition
from kafkacodec.client.core.backoff import Backoff
from kafkacodec.client.core.calls import Answer, Place, Send
from kafkacodec.client.groups.topics import Subscription
from kafkacodec.datatypes import NamedTuple, dataclass, field

__all__ = [
    "Assigned",
    "Broken",
    "Event",
    "Failed",
    "GroupMetadata",
    "GroupSettings",
    "Left",
    "Lost",
    "Membership",
    "Revoke",
]


class GroupMetadata(NamedTuple):
    """The identity under which a consumer commits.

    Attributes:
        group_id: the group.
        generation: the generation of a classic group, the member epoch of a KIP-848 one; -1 for a consumer that
            commits without being a member.
        member_id: empty without membership.
        group_instance_id: of a static member (KIP-345).
    """

    group_id: str
    generation: int = -1
    member_id: str = ""
    group_instance_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """The options of a membership; names and meanings are those of Kafka's consumer. Times are in ms.

    Args:
        group_id: the group.
        group_instance_id: makes a static member, which keeps its partitions over a restart (KIP-345).
        session_timeout_ms: the group removes a classic member that sends no heartbeat for this long.
        heartbeat_interval_ms: between heartbeats of a classic member. KIP-848 groups and share groups have the
            broker's.
        max_poll_interval_ms: a member whose application does not read for this long leaves the group; also how long a
            rebalance waits for a member.
        client_rack: where the client runs.
        request_timeout_ms: the time limit of answers that do not wait for other members.
        remote_assignor: the broker's assignor for a KIP-848 group; None: the broker's first.
        backoff: the wait before a request is repeated.
    """

    group_id: str
    group_instance_id: str | None = None
    session_timeout_ms: float = 45_000
    heartbeat_interval_ms: float = 3_000
    max_poll_interval_ms: float = 300_000
    client_rack: str | None = None
    request_timeout_ms: float = 30_000
    remote_assignor: str | None = None
    backoff: Backoff = field(default_factory=Backoff)


@dataclass(frozen=True, slots=True)
class Revoke:
    """Stop reading these partitions, commit, then call `Membership.revoked`. They are still this member's until then.

    A `Lost` that follows before the call takes the partitions without a commit; the call then does nothing.
    """

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Lost:
    """Stop reading these partitions; others may have them already, so that commits would be refused."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Assigned:
    """A rebalance has ended: `added` are new, `partitions` are all partitions of this member; both may be empty."""

    added: tuple[TopicPartition, ...]
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Failed:
    """The group refuses this member, for good; a `Lost` of its partitions came before. `subscribe` tries again."""

    error: Exception


@dataclass(frozen=True, slots=True)
class Broken:
    """Repeated answers of the coordinator break the protocol; the member keeps trying."""

    error: Exception


@dataclass(frozen=True, slots=True)
class Left:
    """The member has left after `Membership.leave`, even if the broker did not answer. `subscribe` joins again."""


Event: TypeAlias = Revoke | Lost | Assigned | Failed | Broken | Left


class Membership(Protocol):
    """The methods of `ClassicMembership` and `ModernMembership`; a machine with events."""

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """The partitions of this member, in order, including those being revoked."""

    @property
    def metadata(self) -> GroupMetadata | None:
        """The identity for commits; None without a known generation, and while it joins: do not commit then."""

    @property
    def place(self) -> Place:
        """The destination of commits."""

    @property
    def stable(self) -> bool:
        """Whether the member has its assignment and no rebalance is known to be under way."""

    def take_events(self) -> list[Event]:
        """The events since the last call, in order."""

    def subscribe(self, subscription: Subscription, now: float) -> None:
        """Join the group, or change the subscription. The cluster keeps the topics' metadata from now on."""

    def polled(self, now: float, *, waiting: bool = False) -> None:
        """The application asks for records.

        Call it each time; the time to the next call is limited by ``max_poll_interval_ms``. With `waiting`, the
        application waits in the call, and no time is limited until the next one. A member that left because of the
        limit joins again.
        """

    def revoked(self, now: float) -> None:
        """Confirm the last `Revoke`: its partitions are no longer read, and their offsets are committed."""

    def rejoin(self, reason: str, now: float) -> None:
        """Ask for a rebalance; `reason` is shown by the broker (KIP-800). Nothing in KIP-848 groups."""

    def leave(self, now: float, *, remain: bool | None = None) -> None:
        """Leave the group: `Revoke` comes first if there are partitions, and `Left` at the end.

        Args:
            now: the time.
            remain: keep the partitions for this member's restart, until the session timeout. Default: static members
                do, others do not (KIP-345, KIP-1092).
        """

    def poll(self, now: float) -> list[Send]:
        """See `Machine`."""

    def answered(self, send: Send, answer: Answer, now: float) -> None:
        """See `Machine`."""

    def failed(self, send: Send, error: Exception, now: float) -> None:
        """See `Machine`."""

    def next_deadline(self) -> float | None:
        """See `Machine`."""
