"""Fetch sessions: after a full request, only changes are sent (KIP-227)."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from kafkacodec.client.consuming.positions import Key
from kafkacodec.datatypes import NamedTuple

__all__ = ["FetchPlan", "FetchSession", "Wanted", "names_of", "without_session"]

_LAST_EPOCH = 2**31 - 1
_NO_SESSION = -1


class Wanted(NamedTuple):
    """The state of a partition that a broker keeps in a session."""

    topic_id: uuid.UUID | None
    offset: int
    leader_epoch: int
    max_bytes: int


class FetchPlan(NamedTuple):
    """A request. `epoch` 0 starts a session with all partitions.

    Attributes:
        session_id (int): 0 without a session.
        epoch (int): increases with each request of a session.
        changed (Mapping[Key, Wanted]): partitions to send.
        forgotten (list[tuple[Key, uuid.UUID | None]]): partitions to drop, with the topic ids they were sent with.
    """

    session_id: int
    epoch: int
    changed: Mapping[Key, Wanted]
    forgotten: list[tuple[Key, uuid.UUID | None]]


def without_session(wanted: Mapping[Key, Wanted]) -> FetchPlan:
    """A request for these partitions that starts no session."""
    return FetchPlan(0, _NO_SESSION, wanted, [])


def names_of(sent: Mapping[Key, Wanted]) -> dict[uuid.UUID, str]:
    """The names of the topics that are sent with ids."""
    return {entry.topic_id: key[0] for key, entry in sent.items() if entry.topic_id is not None}


class FetchSession:
    """The session with one broker. One request is under way at a time."""

    def __init__(self) -> None:
        self._id = 0
        self._epoch = 0  # of the next request
        self._sent: dict[Key, Wanted] = {}

    def plan(self, wanted: dict[Key, Wanted]) -> FetchPlan:
        """The next request, for these partitions. Passing the previous mapping again means that nothing changed."""
        before, self._sent = self._sent, wanted
        if self._epoch and wanted is before:
            return FetchPlan(self._id, self._epoch, {}, [])
        if self._epoch == 0 or not self._same_ids(before, wanted):
            session_id, self._epoch = self._id, 0  # a full request closes the session that it names
            return FetchPlan(session_id, 0, wanted, [])
        # Most entries are the same objects as before.
        changed = {k: entry for k, entry in wanted.items() if (was := before.get(k)) is not entry and was != entry}
        forgotten = [
            (key, entry.topic_id)
            for key, entry in before.items()
            if (now := wanted.get(key)) is not entry and (now is None or now.topic_id != entry.topic_id)
        ]
        return FetchPlan(self._id, self._epoch, changed, forgotten)

    def answered(self, session_id: int) -> None:
        """Note the session id of an accepted request; 0 if the broker keeps no session."""
        if self._epoch == 0:
            self._id = session_id
        if self._id == 0:
            self._epoch = 0
        else:
            self._epoch = self._epoch + 1 if self._epoch < _LAST_EPOCH else 1

    def lost(self, known: bool = True) -> None:
        """Start again. With `known`, the broker may still have the session, and the next request names it."""
        self._epoch = 0
        if not known:
            self._id = 0

    def _same_ids(self, before: Mapping[Key, Wanted], wanted: Mapping[Key, Wanted]) -> bool:
        """Whether both name topics in the same way: a session uses either names or ids."""
        first, now = next(iter(before.values()), None), next(iter(wanted.values()), None)  # each has all of one kind
        return first is None or now is None or (first.topic_id is None) is (now.topic_id is None)
