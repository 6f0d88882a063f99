"""A consumer's machines and reader on the model of a cluster, in one thread and without I/O."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from kafkacodec.client.consuming.fetcher import Fetcher
from kafkacodec.client.consuming.offset_lookup import OffsetLookup
from kafkacodec.client.consuming.positions import PartitionState, Positions
from kafkacodec.client.consuming.reading import Reader
from kafkacodec.client.consuming.received import Part
from kafkacodec.client.consuming.reset_policy import reset_policy
from kafkacodec.client.consuming.settings import ConsumerSettings
from kafkacodec.client.consuming.validation import Validation
from kafkacodec.client.core.backoff import Backoff
from kafkacodec.client.core.metrics import Metrics
from tests.reference.model_broker import ModelCluster
from tests.reference.model_network import ModelNetwork

__all__ = ["ModelConsumer"]


class ModelConsumer:
    """What the faces of a consumer put together, without a group.

    With `late`, what the reader tells the driver waits for `catch_up`, as it does between the threads of the blocking
    face; `wait` calls it first.
    """

    def __init__(self, model: ModelCluster, *, late: bool = False, **options: Any) -> None:
        self._late = late
        self._told: deque[Callable[[], None]] = deque()
        self.model = model
        self.settings = ConsumerSettings(bootstrap_servers="model", **options)
        self.network = ModelNetwork(model)
        cluster, backoff = self.network.cluster, Backoff(100, 1000, jitter=0.0)
        self.positions = Positions(reset_policy(self.settings.auto_offset_reset), lambda: model.now / 1000)
        committed = self.settings.isolation_level == "read_committed"
        self.lookup = OffsetLookup(cluster, self.positions, committed=committed, backoff=backoff)
        self.validation = Validation(cluster, self.positions, backoff=backoff)
        self.fetcher = Fetcher(
            cluster, self.positions, self.validation, self.settings, backoff=backoff, metrics=Metrics()
        )
        self.reader = Reader(self.fetcher.ready, self.positions, self.settings, self._done, self._again, self._feed)
        self.fetcher.hungry = lambda: self.reader.hungry
        for machine in (self.lookup, self.validation, self.fetcher):
            self.network.add(machine)

    def assign(self, *keys: tuple[str, int]) -> None:
        """Assign partitions."""
        self.network.cluster.want({topic for topic, _ in keys})
        self.positions.assign(keys, committed=False)
        self.network.poll()

    def state(self, number: int = 0, topic: str = "t") -> PartitionState:
        """An assigned partition."""
        return self.positions.state((topic, number))

    def wait(self, ms: float = 2000) -> None:
        """Until there is something to read, or so much time is over."""
        self.catch_up()
        self.network.run(ms, until=lambda: self.reader.has_data)

    def read_all(self, ms: float = 3000) -> list[tuple[int, int]]:
        """Partition and offset of all that comes within so much time."""
        found = []
        end = self.network.now + ms
        while True:
            while (table := self.reader.columns()) is not None:
                found += zip(table["partition"].tolist(), table["offset"].tolist(), strict=True)
            if self.network.now >= end:
                return found
            self.wait(end - self.network.now)

    def catch_up(self) -> None:
        """The driver hears of all that the reader has told it."""
        while self._told:
            self._told.popleft()()

    def _done(self, parts: list[Part]) -> None:
        self._tell(lambda: self.fetcher.done(parts))

    def _feed(self) -> None:
        if self.fetcher.held_back:
            self._tell(lambda: None)

    def _again(self, state: PartitionState, version: int) -> None:
        self._tell(lambda: self.positions.again(state, version))

    def _tell(self, call: Callable[[], bool | None]) -> None:
        def told() -> None:
            if call() is not False:
                self.network.poll()

        self._told.append(told)
        if not self._late:
            self.catch_up()
