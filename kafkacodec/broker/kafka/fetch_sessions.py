"""Fetch sessions: a client's partitions, which it does not repeat in each request, and what it knows (KIP-227)."""

from __future__ import annotations

import uuid
from collections import OrderedDict
from typing import Any, Final

from kafkacodec import errors
from kafkacodec.chance import RANDOM
from kafkacodec.datatypes import dataclass, field

__all__ = ["FetchSession", "FetchSessions", "Wanted"]

_LAST: Final = (1 << 31) - 1
INITIAL, FINAL = 0, -1

TopicKey = str | uuid.UUID


@dataclass(slots=True)
class Wanted:
    """A partition of a session.

    Attributes:
        topic: its name or id, as in the request.
        name: its topic's name; None while the id is unknown.
        number: its number.
        asked: the row of the request.
        high_watermark, start_offset: in the last answer; None before.
    """

    topic: TopicKey
    name: str | None
    number: int
    asked: Any
    high_watermark: int | None = None
    start_offset: int | None = None

    def changes(self, row: Any) -> bool:
        """Whether a row of an answer has news; remember its values."""
        told = (row.high_watermark, row.log_start_offset)
        news = bool(row.error_code or row.records) or told != (self.high_watermark, self.start_offset)
        self.high_watermark, self.start_offset = told
        return news


@dataclass(slots=True)
class FetchSession:
    """A session.

    Attributes:
        id: its number; 0 for a request outside of sessions.
        by_id: whether topics have ids.
        epoch: of the next request.
        partitions: in the order of reading.
        incremental: whether the answer has only changes.
    """

    id: int
    by_id: bool
    epoch: int = 1
    partitions: dict[tuple[TopicKey, int], Wanted] = field(default_factory=dict)
    incremental: bool = False


class FetchSessions:
    """The sessions of a broker; the oldest go when there are too many.

    Args:
        most: the maximum number of sessions.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()

    def begin(self, request: Any, by_id: bool) -> FetchSession | int:
        """Return the session of a request, or an error code."""
        number, epoch = request.session_id, request.session_epoch
        if epoch in (INITIAL, FINAL):
            self._sessions.pop(number, None)
            if epoch == FINAL:
                return FetchSession(0, by_id)
            return self._new(by_id)
        session = self._sessions.get(number)
        if session is None:
            return errors.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != epoch:
            return errors.INVALID_FETCH_SESSION_EPOCH
        if session.by_id != by_id:
            return errors.FETCH_SESSION_TOPIC_ID_ERROR
        session.epoch = 1 if epoch == _LAST else epoch + 1
        session.incremental = True
        self._sessions.move_to_end(number)
        return session

    def forget(self, session: FetchSession) -> None:
        """End a session."""
        self._sessions.pop(session.id, None)

    def _new(self, by_id: bool) -> FetchSession:
        while len(self._sessions) >= max(1, self._most):
            self._sessions.popitem(last=False)
        number = 0
        while not number or number in self._sessions:
            number = RANDOM.randint(1, _LAST)
        session = self._sessions[number] = FetchSession(number, by_id)
        return session
