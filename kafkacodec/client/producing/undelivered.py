"""Warnings while brokers refuse records for long, whether or not somebody waits for their delivery."""

from __future__ import annotations

from kafkacodec.client.core.held_up import LONG_MS, HeldUp, Hindrances
from kafkacodec.client.producing.queue import Queues
from kafkacodec.shown import counted

__all__ = ["Undelivered"]


class Undelivered(HeldUp):
    """A machine that warns once a minute of what holds up the records of a producer.

    Args:
        hindrances: what brokers refuse.
        queues: the producer's.
    """

    _WHO = "the producer"

    def __init__(self, hindrances: Hindrances, queues: Queues) -> None:
        super().__init__(hindrances, lambda: bool(queues.pending))
        self._queues = queues

    def _waits(self) -> str:
        with self._queues.lock:
            count = sum(batch.count for batch in self._queues.pending)
        return f"{counted(count, 'record')} {'waits' if count == 1 else 'wait'} to be delivered"

    def _long(self, now: float) -> tuple[float, str] | None:
        return self._hindrances.long(now, LONG_MS)

    def _end(self) -> float | None:
        with self._queues.lock:
            return next((batch.deadline for batch in self._queues.pending), None)
