"""Which worker of pytest-xdist runs which tests, in which order; used with `--dist loadgroup`.

Tests are sent in groups, since what a group shares (a broker, a Spark session) takes long to start. Groups that took
longest, by durations.txt (`make durations` writes it), begin first, so that no worker ends with one alone. A worker
that crashes is replaced, and its test is named: the scheduler of pytest-xdist 3.8 fails when a second worker crashes
before the replacement of the first one has collected its tests.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

INTEGRATION = "tests/integration/"
SPARK = f"{INTEGRATION}test_spark_"
# They use that session too.
WITH_SPARK = (SPARK, f"{INTEGRATION}test_cli_convert_spark.py")
# They start JVMs of their own, and use the session that the others share little or not at all.
OWN_JVMS = re.compile(SPARK + "(cluster|demo|export_kills|kills|live_cluster|replicas|versions).py")
# They share a broker of each release.
ALL_AGES = re.compile(
    f"{INTEGRATION}test_(brokers_of_all_ages|client_consumer_old|client_producer_ages|clients_of_all_ages).py"
)
SLICE = 20
"""As many tests of one file elsewhere are sent to a worker at once, or fewer where they take longer than this:"""
SLICE_SECONDS = 10
DURATIONS = Path(__file__).with_name("durations.txt")
SHORT = 5
"""Seconds; of files that take less, durations.txt says nothing."""


def durations() -> dict[str, float]:
    """The seconds that the tests of a file took together, with others beside them; nothing for short files."""
    pairs = (line.split() for line in DURATIONS.read_text().splitlines())
    return {file: float(seconds) for seconds, file in pairs}


def arranged(names: Sequence[str], took: Mapping[str, float] | None = None) -> list[list[int]]:
    """The indices of the tests in groups: those of a file with brokers, those of Spark's session, slices of others.

    Args:
        took: seconds of files; None: those of durations.txt.

    (Marks cannot form the groups: pytest-xdist adds them to an attribute that pytest 9.2 does not read.)
    """
    took = durations() if took is None else took
    groups: dict[str, list[int]] = {}
    counts = Counter(name.partition("::")[0] for name in names)
    for index, name in enumerate(names):
        groups.setdefault(group_of(name), []).append(index)

    def seconds(indices: Sequence[int]) -> float:
        files = (names[index].partition("::")[0] for index in indices)
        return sum(took.get(file, 0) / counts[file] for file in files)

    pieces = []
    for group, indices in groups.items():
        size = len(indices)
        if not group.startswith(INTEGRATION):
            each = seconds(indices) / size
            size = max(1, min(SLICE, int(SLICE_SECONDS / each) if each else SLICE))
        pieces += [indices[at : at + size] for at in range(0, len(indices), size)]
    # Of short files, those with brokers first: they wait half the time, while other workers compute.
    return sorted(pieces, key=lambda piece: (-seconds(piece), not names[piece[0]].startswith(INTEGRATION), -len(piece)))


def group_of(name: str) -> str:
    file = name.partition("::")[0]
    if ALL_AGES.fullmatch(file):
        return ALL_AGES.pattern
    return SPARK if file.startswith(WITH_SPARK) and not OWN_JVMS.fullmatch(file) else file


class Durations:
    """A plugin of pytest that writes durations.txt at the end of a run of all tests."""

    def __init__(self) -> None:
        self._took: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: Any) -> None:
        self._took[report.nodeid.partition("::")[0]] += report.duration

    def pytest_sessionfinish(self) -> None:
        long = sorted((-seconds, file) for file, seconds in self._took.items() if seconds >= SHORT)
        DURATIONS.write_text("".join(f"{-seconds:.0f} {file}\n" for seconds, file in long))


class Worker:
    """The tests that a worker has collected, and those that it was sent and has not finished, in order."""

    def __init__(self) -> None:
        self.has_collected = False
        self.pending: dict[int, None] = {}


class Groups:
    """A scheduler of pytest-xdist: `arranged` puts the names of tests into groups, by their indices, in order."""

    def __init__(self, config: Any, arranged: Callable[[Sequence[str]], Iterable[list[int]]]) -> None:
        from xdist.workermanage import parse_tx_spec_config  # these tests also run where there is no pytest-xdist

        self._wanted = len(parse_tx_spec_config(config))
        self._arranged = arranged
        self._workers: dict[Any, Worker] = {}
        self._names: list[str] = []
        self._queue: deque[list[int]] = deque()
        self._has_begun = False

    @property
    def nodes(self) -> list[Any]:
        return list(self._workers)

    @property
    def collection_is_completed(self) -> bool:
        return self._has_begun or sum(worker.has_collected for worker in self._workers.values()) >= self._wanted

    @property
    def tests_finished(self) -> bool:
        """Whether no worker needs more tests: one that runs its last test waits for the next one, or the end."""
        left = any(len(worker.pending) > 1 for worker in self._workers.values())
        return self._has_begun and not self._queue and not left

    @property
    def has_pending(self) -> bool:
        return bool(self._queue) or any(worker.pending for worker in self._workers.values())

    def add_node(self, node: Any) -> None:
        self._workers[node] = Worker()

    def add_node_collection(self, node: Any, collection: Sequence[str]) -> None:
        """Raises RuntimeError where a worker has other tests than the first one."""
        self._names = self._names or list(collection)
        if self._names != list(collection):
            different = sorted({*self._names} ^ {*collection})[:5] or "their order"
            raise RuntimeError(f"{node.gateway.id} has collected other tests than another worker: {different}")
        self._workers[node].has_collected = True

    def schedule(self) -> None:
        if not self._has_begun:
            self._queue.extend(self._arranged(self._names))
            self._has_begun = True
        for node in self.nodes:
            self._fill(node)

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
        self._workers[node].pending.pop(item_index)
        self._fill(node)

    def remove_node(self, node: Any) -> str | None:
        """The test in which the worker crashed, if it did; other workers run its other tests."""
        pending = list(self._workers.pop(node).pending)
        if len(pending) > 1:
            self._queue.appendleft(pending[1:])
        for other in self.nodes:
            self._fill(other)
        return self._names[pending[0]] if pending else None

    def _fill(self, node: Any) -> None:
        """Sends groups until there is one test to run and one to follow; at the end, that there are no more."""
        worker = self._workers[node]
        while worker.has_collected and self._has_begun and not node.shutting_down and len(worker.pending) < 3:
            if not self._queue:
                node.shutdown()
                return
            group = self._queue.popleft()
            worker.pending.update(dict.fromkeys(group))
            node.send_runtest_some(group)

    def mark_test_pending(self, item: str) -> NoReturn:
        raise NotImplementedError

    def remove_pending_tests_from_node(self, node: Any, indices: Sequence[int]) -> NoReturn:
        raise NotImplementedError
