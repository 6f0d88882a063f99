"""Share sessions: the partitions of a member, which it does not repeat in each request (KIP-932)."""

from __future__ import annotations

import uuid
from typing import Any, Final

from kafkacodec import errors
from kafkacodec.datatypes import NamedTuple, dataclass, field

__all__ = ["FINAL", "INITIAL", "Owner", "SharePlace", "ShareSession", "ShareSessions"]

_LAST: Final = (1 << 31) - 1
INITIAL, FINAL = 0, -1


class Owner(NamedTuple):
    """Whose session it is; a member has one with each broker."""

    group: str
    member: str
    broker: int


class SharePlace(NamedTuple):
    """A partition."""

    topic_id: uuid.UUID
    number: int


@dataclass(slots=True)
class ShareSession:
    """A session.

    Attributes:
        owner: the member.
        connection: the session ends with it.
        epoch: of the next request.
        places: its partitions, and whether the next answer has them even without news.
    """

    owner: Owner
    connection: Any
    epoch: int = 1
    places: dict[SharePlace, bool] = field(default_factory=dict)


class ShareSessions:
    """The sessions of a broker.

    Args:
        most: the maximum number of sessions (group.share.max.share.sessions).
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._sessions: dict[Owner, ShareSession] = {}

    def begin(self, owner: Owner, epoch: int, connection: Any, *, fetches: bool) -> ShareSession | int:
        """Return the session of a request, or an error code; only a fetch starts one."""
        session = self._sessions.get(owner)
        if epoch == INITIAL:
            if not fetches:
                return errors.INVALID_SHARE_SESSION_EPOCH
            if session is None and len(self._sessions) >= self._most:
                return errors.SHARE_SESSION_LIMIT_REACHED
            session = self._sessions[owner] = ShareSession(owner, connection)
            return session
        if session is None:
            return errors.SHARE_SESSION_NOT_FOUND
        if epoch == FINAL:
            del self._sessions[owner]
            return session
        if session.epoch != epoch:
            return errors.INVALID_SHARE_SESSION_EPOCH
        session.epoch = 1 if epoch == _LAST else epoch + 1
        return session

    def of_connection(self, connection: Any) -> list[ShareSession]:
        """End the sessions of a connection, and return them."""
        ended = [session for session in self._sessions.values() if session.connection is connection]
        for session in ended:
            del self._sessions[session.owner]
        return ended
