"""The heartbeats of a member of a classic group: when the next one is due, and the one under way (KIP-62)."""

from __future__ import annotations

from kafkacodec.client.core.calls import Place, Send
from kafkacodec.client.groups import classic_requests as requests
from kafkacodec.client.groups.membership import GroupMetadata, GroupSettings

__all__ = ["Heartbeats"]


class Heartbeats:
    """The heartbeats of a member, one at a time.

    Args:
        settings: the group and the timeouts.
        place: the coordinator.
    """

    def __init__(self, settings: GroupSettings, place: Place) -> None:
        self._settings = settings
        self._place = place
        self._sending: Send | None = None
        self._next_at = 0.0

    @property
    def deadline(self) -> float | None:
        """When the next one is due; None while one is under way."""
        return self._next_at if self._sending is None else None

    def poll(self, member: GroupMetadata, now: float) -> list[Send]:
        """The next one, if it is due."""
        if self._sending is not None or now < self._next_at:
            return []
        timeout_ms = min(self._settings.session_timeout_ms, self._settings.request_timeout_ms)
        self._sending = Send(self._place, requests.heartbeat(member), timeout_ms)
        self.joined(now)
        return [self._sending]

    def joined(self, now: float) -> None:
        """Restart the interval: the coordinator has heard from the member."""
        self._next_at = now + self._settings.heartbeat_interval_ms

    def ended(self, send: Send) -> bool:
        """End a heartbeat; returns whether it was under way."""
        if self._sending is not send:
            return False
        self._sending = None
        return True

    def again(self, now: float) -> None:
        """Retry soon after a failure."""
        self._next_at = now + self._settings.backoff.first_ms

    def forget(self) -> None:
        """Ignore the answer to the one under way."""
        self._sending = None
