"""Decisions, without I/O, about the leader that a broker follows and about elections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from kafkacodec.datatypes import NamedTuple

if TYPE_CHECKING:
    from kafkacodec.dialects.line.replicas.broker import ReplicatedBroker, Wish
    from kafkacodec.dialects.line.replicas.commands import Led
    from kafkacodec.dialects.line.replicas.roles import Roles

__all__ = ["Elect", "Follow", "Renew", "Stop", "Watch"]

_PATIENCE = 40  # checks; a running election ends before

Key = tuple[str, int]


class Follow(NamedTuple):
    """Follow the leader of an epoch; `count` is its number of the topic's partitions."""

    leader: int
    epoch: int
    partitions: int


class Elect(NamedTuple):
    """Run for election, with a number of promises."""

    needed: int


class Stop(NamedTuple):
    """End the running step."""


class Renew(NamedTuple):
    """Ask a leader to be elected with a newer epoch than this one, which was promised to a candidate that does not
    lead.
    """

    leader: int
    epoch: int


Decision = Follow | Elect | Stop | Renew


class Watch:
    """The next step of each partition.

    Args:
        machine: the broker.
        roles: its roles.
        others: the ids of the other brokers.
        needed: the number of promises that a leader needs, including its own.
    """

    def __init__(self, machine: ReplicatedBroker, roles: Roles, others: Iterable[int], needed: int) -> None:
        self._machine, self._roles, self._others, self._needed = machine, roles, frozenset(others), needed
        self._led: dict[int, dict[Key, Led]] = {}
        self._heard: set[int] = set()  # brokers that were asked once
        self._wished: dict[Key, Wish] = {}
        self._unsettled: set[Key] = set()  # to check until they have a leader
        self._behind: Counter[Key] = Counter()  # checks that found a leader with an older epoch than promised

    def heard(self, broker: int, told: Mapping[str, Any] | None) -> list[Key]:
        """Take another broker's answer about its led partitions or their changes; or that it cannot be asked.

        Args:
            broker: its id.
            told: the fields of REPLICA_STATE.

        Returns:
            The partitions to check.
        """
        is_new = broker not in self._heard
        self._heard.add(broker)
        led = self._led.setdefault(broker, {})
        now: dict[Key, Led | None] = {} if told is None else {(one.topic, one.partition): one for one in told["leads"]}
        if told is None or told["whole"]:
            now = {**dict.fromkeys(led), **now}
        else:
            now |= dict.fromkeys(told["gone"])
        changed = [key for key, one in now.items() if led.get(key) != one]
        for key in changed:
            one = now[key]
            if one is None:
                led.pop(key, None)
            else:
                led[key] = one
        return list(dict.fromkeys([*changed, *(self._roles if is_new else ()), *self._unsettled]))

    def wish(self, wishes: Mapping[Key, Wish]) -> None:
        """Note a wish of the machine."""
        for key, wish in wishes.items():
            self._unsettled.add(key)
            if self._wished.get(key, "look") == "look":
                self._wished[key] = wish

    def ended(self, key: Key) -> None:
        """Note the end of a partition's step; it is checked again."""
        self._unsettled.add(key)

    def decide(self, key: Key, doing: Follow | Elect | None) -> Decision | None:
        """Return the step that replaces a partition's running one; None: continue."""
        wish = self._wished.pop(key, "look")
        if wish != "look":
            return Elect(1 if wish == "lead uncleanly" else self._needed)
        if self._machine.leads(key) or (doing is not None and not isinstance(doing, Elect)):
            self._unsettled.discard(key)
        if isinstance(doing, Elect):
            return None
        leader = self._leader(key)
        promised = self._roles[key].promised
        if leader is not None and leader.epoch < promised:
            self._behind[key] += 1
            self._unsettled.add(key)
            if doing is None and self._behind[key] > _PATIENCE and not self._roles[key].leads:
                self._behind[key] = 0
                return Renew(leader.leader, promised)
            leader = None
        if leader is not None:
            self._behind.pop(key, None)
            return None if doing is not None and doing[:2] == leader[:2] else leader
        if doing is not None:
            return Stop()
        if self._roles[key].leads and not self._machine.leads(key) and self._heard >= self._others:
            return Elect(self._needed)
        return None

    def _leader(self, key: Key) -> Follow | None:
        """Return the other broker that leads with the newest epoch."""
        found = [Follow(broker, led[key].epoch, led[key].partitions) for broker, led in self._led.items() if key in led]
        return max(found, key=lambda one: one.epoch, default=None)
