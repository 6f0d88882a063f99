"""The outcome of a table in a producer."""

from __future__ import annotations

from operator import attrgetter

from kafkacodec.client.producing._delivery import Awaitable
from kafkacodec.client.producing.outcome import OffsetRange, TableMetadata, TableOutcome
from kafkacodec.shown import counted, repr_of

__all__ = ["TableDelivery"]


class TableDelivery(Awaitable[TableMetadata]):
    """The rows of a table given to a producer; done when all rows are. Also awaitable."""

    __slots__ = ()

    _outcome: TableOutcome

    def _result(self) -> TableMetadata:
        if self._outcome.failure is not None:
            raise self._outcome.failure.with_traceback(None)
        offsets: dict[tuple[str, int], list[OffsetRange]] = {}
        for part in sorted(self._outcome.parts, key=attrgetter("end")):
            if part.end > part.first:
                ranges = offsets.setdefault((part.topic, part.partition), [])
                ranges.append(OffsetRange(part.offset, part.end - part.first))
        return TableMetadata(self._outcome.resolved, offsets)

    @property
    def error(self) -> Exception | None:
        """The first reason why rows were not delivered; None if all were, or while none has failed."""
        return self._outcome.failure

    def __repr__(self) -> str:
        return repr_of(self, f"{counted(self._outcome.resolved, 'row')} known", "done" if self.done() else "pending")
