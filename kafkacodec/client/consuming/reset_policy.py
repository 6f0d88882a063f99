"""Where a partition without a valid position starts: the option ``auto_offset_reset``."""

from __future__ import annotations

import re
from typing import Final

from kafkacodec.datatypes import NamedTuple

__all__ = ["EARLIEST", "LATEST", "ResetPolicy", "reset_policy"]

LATEST: Final = -1
EARLIEST: Final = -2
"""Timestamps of ListOffsets that stand for the end and the start of a partition."""

_NAMED: Final = {"earliest": EARLIEST, "latest": LATEST, "none": None}
_DURATION = r"P(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d{1,9})?)S)?)?"  # compiled at the first use
_MS: Final = (86_400_000, 3_600_000, 60_000, 1000)


class ResetPolicy(NamedTuple):
    """What to look up for a partition without a valid position.

    Attributes:
        timestamp (int | None): `EARLIEST` or `LATEST`; None for the policy ``"none"`` and with a duration.
        duration_ms (int | None): start at the first record that is not older than this.
    """

    timestamp: int | None
    duration_ms: int | None = None

    @property
    def refuses(self) -> bool:
        """Whether a partition without a position is an error."""
        return self.timestamp is None and self.duration_ms is None

    def at(self, wall_ms: float) -> int:
        """The timestamp to look up at a time of the wall clock. Not for a policy that refuses."""
        if self.timestamp is not None:
            return self.timestamp
        assert self.duration_ms is not None
        return max(int(wall_ms) - self.duration_ms, 0)


def reset_policy(text: str) -> ResetPolicy:
    """The policy of ``"earliest"``, ``"latest"``, ``"none"`` or ``"by_duration:PT1H"`` (KIP-1106).

    Raises TypeError, ValueError.
    """
    if not isinstance(text, str):
        raise TypeError(f"auto_offset_reset must be text, not {type(text).__name__}")
    if text in _NAMED:
        return ResetPolicy(_NAMED[text])
    kind, colon, duration = text.partition(":")
    if kind != "by_duration" or not colon:
        raise ValueError(
            f'auto_offset_reset is "earliest", "latest", "none" or "by_duration:" and a duration such as PT1H, '
            f"not {text!r}"
        )
    found = re.fullmatch(_DURATION, duration, re.I)
    if found is None or not any(found.groups()):
        raise ValueError(f"auto_offset_reset: {duration!r} is not a duration of ISO 8601, such as PT1H or P1DT12H")
    return ResetPolicy(None, int(sum(float(part or 0) * ms for part, ms in zip(found.groups(), _MS, strict=True))))
