"""The coordinators of groups and transactional ids: looked up when wanted, and again after they move."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from kafkacodec import messages
from kafkacodec.client.core.backoff import Backoff
from kafkacodec.client.core.calls import ANY, Answer, Coordinator, Send, Versions
from kafkacodec.client.core.held_up import Hindrances
from kafkacodec.datatypes import dataclass
from kafkacodec.errors import RemoteProtocolError, UnsupportedVersion, error
from kafkacodec.messages.keys import FIND_COORDINATOR
from kafkacodec.protocol.versions import highest_common

__all__ = ["MOST_BROKEN", "Coordinators"]

MOST_BROKEN: Final = 3
"""This many consecutive protocol violations are reported to the user; a single one may come from a dying broker."""

_KEY_TYPES: Final = {"group": 0, "transaction": 1, "share": 2}
_FIRST_VERSION: Final = {"group": 0, "transaction": 1, "share": 6}
_FIRST_RELEASE: Final = {"group": "0.8.2", "transaction": "0.11", "share": "4.0"}
_BATCHED_VERSION = 4


@dataclass(eq=False, slots=True)
class _Wanted:
    node: int | None = None
    host: str = ""
    port: int = -1
    asking: Send | None = None
    failures: int = 0
    next_at: float = 0.0
    refusal: Exception | None = None
    last_error: Exception | None = None
    used_at: float | None = None  # None: since the last poll


class Coordinators:
    """Coordinators by group or transactional id.

    Args:
        backoff: the waits between look-ups.
        max_idle_ms: coordinators are forgotten after this long without a request.
        hindrances: look-ups that brokers refuse are noted there.
    """

    def __init__(self, backoff: Backoff, max_idle_ms: float = 300_000, hindrances: Hindrances | None = None) -> None:
        self._hindrances = Hindrances(backoff.most_ms) if hindrances is None else hindrances
        self._backoff, self._max_idle_ms = backoff, max_idle_ms
        self._wanted: dict[Coordinator, _Wanted] = {}

    def node_of(self, place: Coordinator) -> int | None:
        """The coordinator's id; None while unknown, in which case it is looked up."""
        wanted = self._wanted.get(place)
        if wanted is None:
            wanted = self._wanted[place] = _Wanted()
        wanted.used_at = None
        return wanted.node

    def address(self, node: int) -> tuple[str, int] | None:
        """Host and port of a coordinator, which the metadata may not have."""
        for wanted in self._wanted.values():
            if wanted.node == node and wanted.port >= 0:
                return wanted.host, wanted.port
        return None

    def refusal(self, place: Coordinator) -> Exception | None:
        """Why the coordinator cannot be found: an error that is not retriable, or answers that violate the protocol."""
        wanted = self._wanted.get(place)
        return None if wanted is None else wanted.refusal

    def last_error(self, place: Coordinator) -> Exception | None:
        """Why the last look-up has not found the coordinator, which is looked up again; None without such an error."""
        wanted = self._wanted.get(place)
        return None if wanted is None else wanted.last_error

    def lost(self, place: Coordinator) -> None:
        """Look up a coordinator again: the broker is not the coordinator (errors 14, 15, 16) or does not answer."""
        wanted = self._wanted.get(place)
        if wanted is not None and wanted.node is not None:
            wanted.node, wanted.port = None, -1

    def forget(self, place: Coordinator) -> None:
        """Stop looking up a coordinator."""
        self._wanted.pop(place, None)

    def lost_node(self, node: int) -> None:
        """Look up everything that a lost broker coordinated."""
        for place, wanted in self._wanted.items():
            if wanted.node == node:
                self.lost(place)

    def poll(self, now: float) -> list[Send]:
        """The look-ups to send now."""
        if not self._wanted:
            return []
        sends = []
        for place, wanted in list(self._wanted.items()):
            if wanted.used_at is None:
                wanted.used_at = now
            if wanted.asking is None and now - wanted.used_at >= self._max_idle_ms:
                self.forget(place)
            elif wanted.node is None and wanted.asking is None and wanted.refusal is None and now >= wanted.next_at:
                wanted.asking = Send(ANY, partial(_lookup, place), context=place)
                sends.append(wanted.asking)
        return sends

    def next_deadline(self) -> float | None:
        """The time of the next look-up."""
        if not self._wanted:
            return None
        waiting = (w for w in self._wanted.values() if w.node is None and w.asking is None and w.refusal is None)
        return min((w.next_at for w in waiting), default=None)

    def answered(self, send: Send, answer: Answer, now: float) -> None:
        """Record a coordinator, or look it up again after a wait."""
        wanted = self._take(send)
        if wanted is None:
            return
        found: Any = answer.message
        if answer.version >= _BATCHED_VERSION:
            if not found.coordinators:
                self._again(wanted, now)
                return
            found = found.coordinators[0]
        if found.error_code:
            refusal = error(found.error_code)
            if not refusal.retriable:
                wanted.refusal = refusal(f"{send.context}: {found.error_message or refusal.name}")
                return
            wanted.last_error = refusal()
            self._hindrances.refused(f"the {send.context!r} is not found", found.error_code, now)
            self._again(wanted, now)
            return
        wanted.node, wanted.host, wanted.port, wanted.failures = found.node_id, found.host, found.port, 0
        wanted.last_error = None
        # Do not look up a coordinator that refuses at once in a tight loop.
        wanted.next_at = now + self._backoff.first_ms

    def failed(self, send: Send, error: Exception, now: float) -> None:
        """Look it up again after a wait."""
        wanted = self._take(send)
        if wanted is None:
            return
        self._again(wanted, now)
        if isinstance(error, UnsupportedVersion) or (
            isinstance(error, RemoteProtocolError) and wanted.failures >= MOST_BROKEN
        ):
            wanted.refusal = error

    def _take(self, send: Send) -> _Wanted | None:
        wanted = self._wanted.get(send.context)
        if wanted is None or wanted.asking is not send:
            return None
        wanted.asking = None
        return wanted

    def _again(self, wanted: _Wanted, now: float) -> None:
        wanted.failures += 1
        wanted.next_at = now + self._backoff.after(wanted.failures)


def _lookup(place: Coordinator, versions: Versions) -> tuple[Any, int]:
    """A FindCoordinator request for the versions of a broker."""
    kind, key = _KEY_TYPES[place.kind], place.key
    version = highest_common(FIND_COORDINATOR, versions)
    if version < _FIRST_VERSION[place.kind]:
        release = _FIRST_RELEASE[place.kind]
        raise UnsupportedVersion(
            f"{place}: needs Kafka {release} or later; the broker has FindCoordinator up to version {version}"
        )
    if version >= _BATCHED_VERSION:
        return messages.FindCoordinatorRequest(key_type=kind, coordinator_keys=[key]), version
    return messages.FindCoordinatorRequest(key_type=kind, key=key), version
