"""Share sessions: what a member of a share group fetches without saying it each time (KIP-932)."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from kafkacodec import errors

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
        owner: whose it is.
        connection: it ends with this.
        epoch: that of the next request.
        places: what is fetched, and whether the next answer tells of it even if there is nothing new.
    """

    owner: Owner
    connection: Any
    epoch: int = 1
    places: dict[SharePlace, bool] = field(default_factory=dict)


class ShareSessions:
    """The sessions of a broker.

    Args:
        most: how many there may be (group.share.max.share.sessions).
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._sessions: dict[Owner, ShareSession] = {}

    def begin(self, owner: Owner, epoch: int, connection: Any, *, fetches: bool) -> ShareSession | int:
        """The session of a request, or an error code; only a fetch begins one."""
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

    def of_connection(self, connection: Any) -> list[Owner]:
        """End the sessions of a connection; whose they were."""
        owners = [owner for owner, session in self._sessions.items() if session.connection is connection]
        for owner in owners:
            del self._sessions[owner]
        return owners
