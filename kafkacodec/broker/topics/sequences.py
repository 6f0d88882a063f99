"""The producers of a partition: the next, repeated and refused batches.

It follows `org.apache.kafka.storage.internals.log.ProducerAppendInfo` and `ProducerStateEntry`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol, TypeAlias

from kafkacodec import errors
from kafkacodec.datatypes import NamedTuple

__all__ = ["Batch", "KnownProducer", "Sequences"]

_KEPT: Final = 5
_LAST: Final = (1 << 31) - 1

Newest: TypeAlias = Callable[[], Iterable[tuple[int, "Batch"]]]
"""The newest batches of a log, in their order, each with the id of its producer."""


class KnownProducer(Protocol):
    """The log's state of a producer."""

    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int


class Batch(NamedTuple):
    """An appended batch."""

    epoch: int
    first_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    timestamp: int


class _Beginning(NamedTuple):
    """The lowest sequence of batches that would start a transaction, and the time of the first.

    Attributes:
        adds: whether the first of them adds its partition to the transaction, as since the second version of those: the
            producer then begins with sequence 0.
    """

    epoch: int
    sequence: int
    since: float
    adds: bool


class Sequences:
    """The last batches of each producer of a partition.

    After a start it searches the log once, since clients repeat up to five unacknowledged batches. Of a producer that
    it does not find there, it knows only the last batch.

    Args:
        known: the producers of the log, which is kept up to date.
        newest: reads them from the log.
    """

    def __init__(self, known: Mapping[int, KnownProducer], newest: Newest) -> None:
        self._known = known
        self._newest: Newest | None = newest
        self._recent: dict[int, deque[Batch]] = {}
        self._beginning: dict[int, _Beginning] = {}

    def beginning(self, producer_id: int, epoch: int, sequence: int, now: float, *, adds: bool) -> None:
        """Note a batch that would start a transaction and is being verified: no later sequence may be appended before
        it.

        It follows `org.apache.kafka.storage.internals.log.VerificationStateEntry`.
        """
        known = self._beginning.get(producer_id)
        if known is None:
            self._beginning[producer_id] = _Beginning(epoch, sequence, now, adds)
        elif epoch > known.epoch:
            self._beginning[producer_id] = known._replace(epoch=epoch, sequence=sequence)
        elif epoch == known.epoch and sequence < known.sequence:
            self._beginning[producer_id] = known._replace(sequence=sequence)

    def began(self, producer_id: int) -> None:
        """Note that the transaction has started."""
        self._beginning.pop(producer_id, None)

    def ended(self, producer_id: int, epoch: int) -> None:
        """Note a marker. It does not count for a transaction that begins with the epoch of the marker."""
        known = self._beginning.get(producer_id)
        if known is not None and not (known.adds and known.epoch == epoch):
            del self._beginning[producer_id]

    def verdict(self, producer_id: int, epoch: int, sequence: int, count: int) -> Batch | int:
        """Decide about a batch: 0 to append it, an error code, or the same batch if it is there already."""
        producer = self._known.get(producer_id)
        batches: Sequence[Batch] = () if producer is None else self._batches(producer_id, producer)
        if producer is None:
            fits = True
        elif epoch < producer.producer_epoch:
            return errors.INVALID_PRODUCER_EPOCH
        elif epoch > producer.producer_epoch:
            fits = sequence == 0
        else:
            last = (sequence + count - 1) & _LAST
            for batch in batches:
                if (batch.first_sequence, batch.last_sequence) == (sequence, last):
                    return batch
            fits = sequence == ((batches[-1].last_sequence + 1) & _LAST if batches else 0)
        beginning = self._beginning.get(producer_id)
        if beginning is not None and (sequence > beginning.sequence or (beginning.adds and sequence and not batches)):
            fits = False
        return errors.NONE if fits else errors.OUT_OF_ORDER_SEQUENCE_NUMBER

    def appended(self, producer_id: int, batch: Batch) -> None:
        """Note an appended batch."""
        recent = self._recent.get(producer_id)
        if recent is None or (recent and recent[-1].epoch != batch.epoch):
            recent = self._recent[producer_id] = deque(maxlen=_KEPT)
        recent.append(batch)

    def expire(self, before: float) -> None:
        """Forget expired producers, and transactions that have not started since a time in ms."""
        for producer_id in [one for one in self._recent if one not in self._known]:
            del self._recent[producer_id]
        for producer_id in [one for one, beginning in self._beginning.items() if beginning.since <= before]:
            del self._beginning[producer_id]

    def _batches(self, producer_id: int, producer: KnownProducer) -> deque[Batch]:
        """The batches of the producer's epoch that are remembered."""
        recent = self._recent.get(producer_id)
        if recent is None and self._newest is not None:
            self._look(self._newest)
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

    def _look(self, newest: Newest) -> None:
        """Load the log's batches of producers that have sent nothing since the start."""
        self._newest = None
        present = set(self._recent)
        for producer_id, batch in newest():
            if producer_id not in present:
                self.appended(producer_id, batch)
