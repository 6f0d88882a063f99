"""A growing log against a list of its batches: any order of appending, cutting, deleting, crashing and opening."""

from __future__ import annotations

import shutil
import tempfile
from typing import NamedTuple

from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import kafkacodec as kc
from kafkacodec.log import Partition
from kafkacodec.log.growing.log import PartitionLog
from kafkacodec.log.growing.settings import LogConfig
from tests.examples import examples
from tests.state_machines import EXAMPLES, machine_settings

START = 1_700_000_000_000
HOUR = 3_600_000


class Batch(NamedTuple):
    base: int
    last: int
    timestamp: int
    epoch: int
    producer: int
    kind: str


class GrowingLog(RuleBasedStateMachine):
    """The log's own words and the readers of finished logs are compared with the model."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.mkdtemp()
        self.now = START
        self.batches: list[Batch] = []  # also those of segments that are gone
        self.first = 0
        self.start = self.flushed = self.epoch = self.end = 0

    @initialize(segment=st.sampled_from([400, 900, 5000]), interval=st.sampled_from([0, 150, 4096]))
    def begin(self, segment: int, interval: int) -> None:
        self.config = LogConfig(segment_bytes=segment, index_interval_bytes=interval, retention_ms=HOUR)
        self.open(clean=False)

    def open(self, *, clean: bool) -> None:
        self.log = PartitionLog(
            f"{self.directory}/t-0", self.config, start_offset=self.start, recovery_point=self.flushed, clean=clean,
            clock=lambda: self.now,
        )  # fmt: skip
        assert self.log.loss is None

    def teardown(self) -> None:
        shutil.rmtree(self.directory)

    @rule(counts=st.lists(st.integers(1, 5), min_size=1, max_size=3), late=st.integers(-50, 50), same=st.booleans())
    def append(self, counts: list[int], late: int, same: bool) -> None:
        self.epoch += not same
        data = bytearray()
        for count in counts:
            data += kc.encode([(n, self.now + late, 0, b"k", b"v" * 30, []) for n in range(count)])
        info = self.log.append(data, leader_epoch=self.epoch)
        assert info.base_offset == self.end
        for count in counts:
            self.batches.append(Batch(self.end, self.end + count - 1, self.now + late, self.epoch, -1, "data"))
            self.end += count
        assert info.last_offset == self.end - 1

    @rule(producer=st.integers(0, 2), count=st.integers(1, 3))
    def write_in_transaction(self, producer: int, count: int) -> None:
        data = kc.encode(
            [(n, self.now, 0, b"k", b"v", []) for n in range(count)],
            producer_id=producer, producer_epoch=0, base_sequence=0, is_transactional=True,
        )  # fmt: skip
        self.log.append(bytearray(data), leader_epoch=self.epoch)
        self.batches.append(Batch(self.end, self.end + count - 1, self.now, self.epoch, producer, "data"))
        self.end += count

    @rule(producer=st.integers(0, 2), kind=st.sampled_from(["abort", "commit"]))
    def end_transaction(self, producer: int, kind: str) -> None:
        data = kc.control_batch(kind, offset=0, producer_id=producer, producer_epoch=0, timestamp=self.now)
        self.log.append(bytearray(data), leader_epoch=self.epoch)
        self.batches.append(Batch(self.end, self.end, self.now, self.epoch, producer, kind))
        self.end += 1

    @rule(wait=st.integers(1, HOUR // 2))
    def wait(self, wait: int) -> None:
        self.now += wait

    @rule()
    def flush(self) -> None:
        self.flushed = self.log.flush()
        assert self.flushed == self.end

    @rule()
    def roll(self) -> None:
        self.log.roll()

    @precondition(lambda self: self.end > self.start)
    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        wanted = data.draw(st.integers(self.start, self.end))
        kept = [batch for batch in self.batches if batch.last < wanted]
        self.end = self.log.truncate(wanted)
        assert self.end == (kept[-1].last + 1 if kept else self.end)
        assert self.end <= wanted
        self.batches = kept
        self.start = min(self.start, self.end)
        self.flushed = min(self.flushed, self.end)
        self.epoch += 1

    @rule(data=st.data())
    def delete_before(self, data: st.DataObject) -> None:
        self.start = data.draw(st.integers(self.start, self.end))
        self.log.delete_before(self.start)

    @rule()
    def let_go_what_is_old(self) -> None:
        self.log.retention(self.now)
        self.start = self.log.start_offset
        first = self.log.first_offset
        # Whole segments go, and nothing that is young enough.
        assert all(
            self.now - b.timestamp > HOUR or b.last < self.start for b in self.there(self.first) if b.last < first
        )
        self.first = first
        self.log.purge(everything=True)

    @rule()
    def close_and_open(self) -> None:
        self.log.close()
        self.flushed = self.end
        self.open(clean=True)

    @rule()
    def crash_and_open(self) -> None:
        self.open(clean=False)

    def there(self, start: int) -> list[Batch]:
        return [batch for batch in self.batches if batch.last >= start]

    @invariant()
    def the_log_agrees(self) -> None:
        if not hasattr(self, "log"):
            return
        assert (self.log.start_offset, self.log.end_offset) == (self.start, self.end)
        assert self.log.last_stable_offset == max(self.start, min(self.transactions()[0].values(), default=self.end))
        found, at = [], self.start
        while at < self.end:
            headers = kc.scan(self.log.read(at, 200).view())
            found += list(zip(headers["base_offset"].tolist(), headers["last_offset"].tolist(), strict=True))
            at = found[-1][1] + 1
        assert found == [(b.base, b.last) for b in self.there(self.start)]
        for time in {batch.timestamp for batch in self.batches[-3:]}:
            expected = next((b for b in self.there(self.start) if b.timestamp >= time), None)
            record = self.log.offset_for_timestamp(time)
            wanted = expected and (expected.timestamp, max(self.start, expected.base), expected.epoch)
            assert record == wanted

    @invariant()
    def its_files_are_sound(self) -> None:
        if not hasattr(self, "log"):
            return
        partition = Partition(self.log.path, log_start_offset=self.start, recovery_point=self.flushed)
        report = partition.verify()
        assert report.ok, list(report.findings)
        assert partition.end_offset() == self.end
        aborted = [(p, first, last) for p, first, last in self.transactions()[1] if last >= self.start]
        told = set(self.log.aborted_in(self.log.read(self.start, 1 << 20), self.start))
        first_segment = [b for b in self.there(self.start) if b.base < self.log.segment_end(self.start)]
        until = first_segment[-1].last + 1 if first_segment else self.start
        assert told >= {(p, first) for p, first, _ in aborted if first < until}
        assert told <= {(p, first) for p, first, _ in aborted}

    def transactions(self) -> tuple[dict[int, int], list[tuple[int, int, int]]]:
        """The open ones by producer, and the aborted ones."""
        running: dict[int, int] = {}
        aborted = []
        for batch in self.batches:
            if batch.producer < 0:
                continue
            if batch.kind == "data":
                running.setdefault(batch.producer, batch.base)
            else:
                first = running.pop(batch.producer, None)
                if first is not None and batch.kind == "abort":
                    aborted.append((batch.producer, first, batch.last))
        return running, aborted


TestGrowingLog = GrowingLog.TestCase
TestGrowingLog.settings = machine_settings if EXAMPLES else settings(machine_settings, max_examples=examples(25))
