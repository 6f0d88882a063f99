"""The producers of a partition: which batch comes next, which one is there already, which one is refused.

As `org.apache.kafka.storage.internals.log.ProducerAppendInfo` and `ProducerStateEntry` decide.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Final, NamedTuple, Protocol

from kafkacodec import errors

__all__ = ["Batch", "KnownProducer", "Sequences"]

_KEPT: Final = 5
_LAST: Final = (1 << 31) - 1


class KnownProducer(Protocol):
    """What the log knows of a producer."""

    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int


class Batch(NamedTuple):
    """A batch that was appended."""

    epoch: int
    first_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    timestamp: int


class Sequences:
    """The last batches of each producer of a partition.

    After a start only the last one is known, from the log.

    Args:
        known: the producers of the log, which is kept up to date.
    """

    def __init__(self, known: Mapping[int, KnownProducer]) -> None:
        self._known = known
        self._recent: dict[int, deque[Batch]] = {}

    def verdict(self, producer_id: int, epoch: int, sequence: int, count: int) -> Batch | int:
        """What becomes of a batch: 0 to append it, an error code, or the same batch that is there already."""
        producer = self._known.get(producer_id)
        if producer is None:
            return errors.NONE
        batches = self._batches(producer_id, producer)
        if epoch < producer.producer_epoch:
            return errors.INVALID_PRODUCER_EPOCH
        if epoch > producer.producer_epoch:
            return errors.NONE if sequence == 0 else errors.OUT_OF_ORDER_SEQUENCE_NUMBER
        last = (sequence + count - 1) & _LAST
        for batch in batches:
            if (batch.first_sequence, batch.last_sequence) == (sequence, last):
                return batch
        fits = not batches or sequence == (batches[-1].last_sequence + 1) & _LAST
        return errors.NONE if fits else errors.OUT_OF_ORDER_SEQUENCE_NUMBER

    def appended(self, producer_id: int, batch: Batch) -> None:
        """Note a batch that was appended."""
        recent = self._recent.get(producer_id)
        if recent is None or (recent and recent[-1].epoch != batch.epoch):
            recent = self._recent[producer_id] = deque(maxlen=_KEPT)
        recent.append(batch)

    def expire(self) -> None:
        """Forget the producers that the log has forgotten."""
        for producer_id in [one for one in self._recent if one not in self._known]:
            del self._recent[producer_id]

    def _batches(self, producer_id: int, producer: KnownProducer) -> deque[Batch]:
        """The batches of the producer's epoch that are remembered."""
        recent = self._recent.get(producer_id)
        if recent is None:
            recent = self._recent[producer_id] = deque(maxlen=_KEPT)
            if producer.last_sequence >= 0:
                last, delta = producer.last_sequence, producer.offset_delta
                first = (last - delta) & _LAST
                base = producer.last_offset - delta
                recent.append(
                    Batch(producer.producer_epoch, first, last, base, producer.last_offset, producer.timestamp)
                )
        elif recent and recent[-1].epoch != producer.producer_epoch:  # a marker had a new one
            recent.clear()
        return recent
