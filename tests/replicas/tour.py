"""Leaders that die, come back and are replaced, one after the other: what random kills meet only sometimes."""

from __future__ import annotations

import signal
import time

from tests.replicas.cluster import PARTITIONS, TOPIC, Cluster, Line, fields
from tests.replicas.history import Consumed, History, Produced

_SECONDS = 60


class Tour:
    """The steps of a tour of three brokers. A step that does not happen raises AssertionError.

    Args:
        cluster: the brokers.
        seconds: how long a step may take.

    Attributes:
        history: what was seen.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.history, self._cluster, self._number, self._leader = History(), cluster, 0, 0

    def run(self) -> None:
        """All of it."""
        self.tail_of_a_deposed_leader()
        self.promotion_of_who_has_less()
        self.report_of_who_has_nothing()

    def last(self) -> dict[int, dict[int, str]]:
        """What each partition has in the end, as its leader gives it."""
        return {partition: self._cluster.read(self._leader, partition) for partition in range(PARTITIONS)}

    def tail_of_a_deposed_leader(self) -> None:
        """Records that only the old leader has are not read, and go when it comes back."""
        self._send(0, 20)
        self._frozen(1, 2)
        self._send(0, 30, acks="1")
        self._read(0)
        self._cluster.kill(0)
        self._thawed(1, 2)
        self._lead(1)
        self._send(1, 20)
        self._cluster.start(0)
        self._settled(1)
        self._lead(0)
        self._send(0, 20)
        self._settled(0)

    def promotion_of_who_has_less(self) -> None:
        """A broker without the newest records, and without others to tell of them, does not lead."""
        self._lead(0)
        self._send(0, 5)
        self._settled(0)
        self._frozen(2)
        self._send(0, 20)
        self._cluster.kill(0)
        self._cluster.kill(1)
        self._thawed(2)
        self._cluster.promote(2)
        self._cluster.start(0)
        self._cluster.start(1)
        self._lead(2)
        self._send(2, 20)
        self._settled(2)

    def report_of_who_has_nothing(self) -> None:
        """A follower that acknowledged has the records when it leads."""
        self._lead(2)
        self._send(2, 5)
        self._settled(2)
        self._frozen(0)
        self._send(2, 20)
        self._cluster.kill(2)
        self._thawed(0)
        self._lead(1)
        self._send(1, 5)
        self._cluster.start(2)
        self._settled(1)
        self._settled(1)

    def _frozen(self, *numbers: int) -> None:
        for number in numbers:
            self._cluster.processes[number].send_signal(signal.SIGSTOP)

    def _thawed(self, *numbers: int) -> None:
        for number in numbers:
            self._cluster.processes[number].send_signal(signal.SIGCONT)

    def _lead(self, number: int) -> None:
        self._leader = number
        for partition in range(PARTITIONS):
            end = time.monotonic() + _SECONDS
            while not (answer := self._cluster.promote(number, partition)).startswith("OK"):
                assert time.monotonic() < end, answer

    def _send(self, number: int, count: int, acks: str = "all") -> None:
        """Send records to a leader until it has taken them."""
        values = [f"{self._number + n}" for n in range(count)]
        self._number += count
        end = time.monotonic() + _SECONDS
        while values:
            line = Line(self._cluster.ports[number])
            begin = time.monotonic()
            answers = line.ask_all([f"PRODUCE|{TOPIC} {value[-1]}:{value} acks={acks}" for value in values])
            line.close()
            refused = []
            for value, answer in zip(values, answers, strict=True):
                if not answer.startswith("OK"):
                    refused.append(value)
                elif acks == "all":
                    found = fields(answer)
                    at = int(found["partition"]), int(found["offset"])
                    self.history.produced.append(Produced(begin, time.monotonic(), *at, value))
            values = refused
            assert not values or time.monotonic() < end, answers

    def _read(self, number: int) -> None:
        for partition in range(PARTITIONS):
            begin = time.monotonic()
            found = self._cluster.read(number, partition)
            self.history.consumed.append(Consumed(begin, time.monotonic(), partition, found))

    def _settled(self, leader: int) -> None:
        """Wait until all brokers have what the leader has committed, and read it there."""
        end = time.monotonic() + _SECONDS
        for partition in range(PARTITIONS):
            while self._differ(partition):
                assert time.monotonic() < end, "a replica does not catch up"
                time.sleep(0.02)
        for number in range(3):
            self._read(number)

    def _differ(self, partition: int) -> bool:
        return len({len(self._cluster.read(number, partition)) for number in range(3)}) > 1
