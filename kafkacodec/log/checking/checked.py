"""The interface of partitions and segments for checks, which `kafkacodec.log.Partition` and `Segment` implement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from kafkacodec.log.checking.report import Report
from kafkacodec.log.formats.checkpoints import LeaderEpoch
from kafkacodec.log.order.continuity import Surroundings
from kafkacodec.log.reading.transactions import Transactions

__all__ = ["Advance", "Around", "End", "Partition", "Segment"]

Advance = Callable[[int], object]
"""Called with the number of bytes read since the last call."""


Around = Callable[[Any], Surroundings]
"""What must follow the batches of a segment of a partition."""

End = Callable[[], int]
"""The log end offset, with segments added since a partition was listed."""


class Segment(Protocol):
    """A segment."""

    path: str
    base_offset: int | None

    def last_offset(self) -> int | None:
        """The last offset of the complete batches; None without a batch."""

    def _verify_among(
        self,
        surroundings: Surroundings,
        leader_epochs: list[LeaderEpoch] | None = None,
        threads: int | None = 1,
        advance: Advance | None = None,
    ) -> Report:
        """Inspect it, with the partition's information."""


class Partition(Protocol):
    """A partition's directory."""

    path: str
    has_all: bool

    @property
    def segments(self) -> Sequence[Segment]:
        """Its segments, by offset."""

    @property
    def leader_epochs(self) -> list[LeaderEpoch]:
        """The leader epochs from the checkpoint."""

    @property
    def log_start_offset(self) -> int:
        """The offset before which records are deleted."""

    @property
    def recovery_point(self) -> int:
        """The offset up to which the log was on disk; 0 if unknown."""

    def transactions(self) -> Transactions:
        """The aborted and open transactions."""
