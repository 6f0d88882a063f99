"""What threads leave: iterators that end early, sources that are given back, forks, exits, wrong arguments."""

from __future__ import annotations

import functools
import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import kafkacodec as kc
from kafkacodec.arguments import MAX_THREADS, num_threads
from kafkacodec.records.parallel import runs

ROWS = 40_000
CODECS = "none", "lz4", "zstd", "snappy", "gzip"


@functools.cache
def records(codec: str = "none") -> bytes:
    return kc.encode([(b"key %d" % i, b"value %d" % i * 3) for i in range(ROWS)], codec=codec, batch_bytes=4000)


@pytest.fixture(autouse=True)
def short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "FIRST_RUN", 10_000)
    monkeypatch.setattr(runs, "SHORTEST_RUN", 10_000)


def at_work() -> int:
    return sum(thread.name == "kafkacodec" for thread in threading.enumerate())


def begun(data: Any) -> Iterator[kc.RecordColumns]:
    chunks = kc.iter_columns(data, threads=3, max_rows=100)
    next(chunks)
    assert at_work() > 0
    return chunks


@pytest.mark.parametrize("codec", CODECS)
def test_chunks_come_in_order(codec: str) -> None:
    seen = 0
    for chunk in kc.iter_columns(records(codec), threads=4, max_rows=1000):
        offsets = chunk["offset"]
        assert offsets[0] == seen
        assert (offsets[1:] > offsets[:-1]).all()
        seen += len(chunk)
    assert seen == ROWS
    assert at_work() == 0


def close(chunks: Any) -> None:
    chunks.close()


def run_out(chunks: Any) -> None:
    for _ in chunks:
        pass


def fail_inside(chunks: Any) -> None:
    try:
        for _ in chunks:
            raise ZeroDivisionError
    except ZeroDivisionError:
        pass


@pytest.mark.parametrize("end", [close, run_out, fail_inside])
def test_ended_iterators_give_a_bytearray_back(end: Callable[[Any], None]) -> None:
    data = bytearray(records())
    chunks = begun(data)
    with pytest.raises(BufferError):
        data.append(0)
    end(chunks)
    chunks = None  # type: ignore[assignment]  # after an exception in the loop it is only suspended
    data.append(0)
    assert at_work() == 0


def test_deleting_an_iterator_ends_it() -> None:
    data = bytearray(records())
    chunks = begun(data)
    del chunks
    data.append(0)
    assert at_work() == 0


def test_an_iterator_that_was_not_begun_has_no_threads() -> None:
    data = bytearray(records())
    chunks = kc.iter_columns(data, threads=3)
    assert at_work() == 0
    del chunks
    data.append(0)


def test_the_collector_ends_an_iterator_in_a_cycle() -> None:
    data = bytearray(records())
    cycle: list[Any] = [begun(data)]
    cycle.append(cycle)
    del cycle
    gc.collect()
    data.append(0)
    assert at_work() == 0


def test_the_collector_may_run_in_the_threads() -> None:
    """It then closes iterators from there: those whose thread it is in, too."""
    before = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for _ in range(20):
            cycle: list[Any] = [begun(records())]
            cycle.append(cycle)
            del cycle
            assert sum(map(len, kc.iter_columns(records(), threads=3, max_rows=500))) == ROWS
    finally:
        gc.set_threshold(*before)
    gc.collect()


def test_a_fault_comes_after_the_chunks_before_it() -> None:
    data = bytearray(records())
    data[len(data) // 2] ^= 1
    chunks = kc.iter_columns(data, threads=3, max_rows=700)
    seen: list[int] = []
    with pytest.raises(kc.errors.CrcMismatch) as caught:
        seen.extend(map(len, chunks))
    with pytest.raises(kc.errors.CrcMismatch) as expected:
        kc.decode(data)
    assert (caught.value.position, str(caught.value)) == (expected.value.position, str(expected.value))
    assert sum(seen) == len(kc.decode(data, on_error="stop"))
    assert at_work() == 0


def test_no_more_chunks_are_held_than_stated() -> None:
    """The consumer takes none; the threads stop."""
    threads = 3
    held = kc.iter_columns(records(), threads=threads, max_rows=100)
    first = next(held)
    with pytest.MonkeyPatch.context() as patch:
        reader = held.gi_frame.f_locals["reader"]  # type: ignore[attr-defined]
        for run in list(reader.waiting):
            run.job._done.acquire()
            run.job._done.release()
        chunks = [len(run.job._value.chunks) for run in reader.waiting]
        patch.undo()
    assert len(reader.decoders) <= 3 * threads
    assert sum(chunks) + runs.CHUNKS_OF_RUN <= 18 * threads
    assert len(first) == 100
    held.close()  # type: ignore[attr-defined]


def test_without_threads_the_caller_does_it_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    assert sum(map(len, kc.iter_columns(records(), threads=3))) == ROWS


@pytest.mark.parametrize("threads", [0, -1, MAX_THREADS + 1, 10**30])
def test_threads_out_of_range(threads: int, tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(records())
    for call in (
        lambda: kc.decode(records(), threads=threads),
        lambda: kc.iter_columns(records(), threads=threads),
        lambda: list(kc.log.Segment(path).read(threads=threads)),
        lambda: kc.log.Segment(path).verify(threads=threads),
        lambda: kc.log.Partition(tmp_path).verify(threads=threads),
        lambda: list(kc.log.Partition(tmp_path).read(threads=threads)),
    ):
        with pytest.raises(ValueError, match=r"threads must be from 1 to 1024, not"):
            call()


@pytest.mark.parametrize("threads", ["2", 2.0, True, b"2"])
def test_threads_of_a_wrong_type(threads: Any) -> None:
    with pytest.raises(TypeError, match="threads must be an integer"):
        kc.decode(records(), threads=threads)
    with pytest.raises(TypeError, match="threads must be an integer"):
        kc.iter_columns(records(), threads=threads)


def test_none_is_as_many_as_the_process_may_use() -> None:
    assert num_threads(None) == len(os.sched_getaffinity(0))
    assert len(kc.decode(records(), threads=None)) == ROWS


def test_segments_are_read_and_verified_alike(tmp_path: Path) -> None:
    with kc.log.SegmentWriter(tmp_path, base_offset=0) as writer:
        for batch in kc.iter_encoded([(b"k", b"%d" % i) for i in range(ROWS)], codec="lz4", batch_bytes=2000):
            writer.append(batch)
    (path,) = tmp_path.glob("*.log")
    for damaged in (False, True):
        if damaged:
            data = bytearray(path.read_bytes())
            data[len(data) // 3] ^= 1
            data[len(data) // 2] ^= 1
            path.write_bytes(data)
        segment, partition = kc.log.Segment(path), kc.log.Partition(tmp_path)
        assert segment.verify(threads=3).to_dict() == segment.verify().to_dict()
        assert partition.verify(threads=3).to_dict() == partition.verify().to_dict()
        chunks = [list(partition.read(threads=threads, on_error="skip")) for threads in (1, 3)]
        one, three = ([row for chunk in found for row in chunk["offset"].tolist()] for found in chunks)
        assert one == three
        assert at_work() == 0


@pytest.mark.parametrize("magic", [1, 2])
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
def test_batches_are_encoded_alike(codec: str, magic: int) -> None:
    table = kc.decode(records())
    options: dict[str, Any] = {"codec": codec, "magic": magic, "batch_bytes": 3000}
    expected = list(kc.iter_encoded(table, **options))
    for threads in (2, 5):
        assert list(kc.iter_encoded(table, threads=threads, **options)) == expected
        assert kc.encode(iter(table.records()), threads=threads, **options) == b"".join(b.data for b in expected)
    assert at_work() == 0


def test_a_record_that_cannot_be_encoded_comes_after_the_batches_before_it() -> None:
    records: list[Any] = [(b"k", b"%d" % i) for i in range(9000)]
    records.append((b"k", 3))
    outcomes = []
    for threads in (1, 4):
        batches = kc.iter_encoded(records, codec="lz4", batch_bytes=500, threads=threads)
        seen: list[kc.EncodedBatch] = []
        with pytest.raises(kc.errors.EncodeError) as caught:
            seen.extend(batches)
        outcomes.append((seen, str(caught.value)))
    assert outcomes[0] == outcomes[1]


def test_encoding_ends_its_threads_when_it_is_closed() -> None:
    batches = kc.iter_encoded([(b"k", b"v" * 90)] * 9000, codec="gzip", batch_bytes=500, threads=3)
    next(batches)
    assert at_work() > 0
    batches.close()  # type: ignore[attr-defined]
    assert at_work() == 0
    with pytest.raises(ValueError, match="threads must be from 1 to 1024"):
        kc.iter_encoded([], threads=0)


@pytest.mark.parametrize("spoiled", [None, 0.3, 0.6])
@pytest.mark.parametrize("most", [None, 0, 70, 301])
def test_headers_are_scanned_alike(spoiled: float | None, most: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    data = bytearray(records())
    if spoiled is not None:
        data[int(len(data) * spoiled)] ^= 1  # a wrong checksum
        first = kc.scan(data, verify_crc=False)["position"][int(400 * spoiled)]
        data[first + 16] = 9  # an unknown magic
    outcomes = []
    for threads in (1, 2, 3, 7):
        headers = kc.scan(data, threads=threads, max_batches=most, on_error="stop")
        problems = [(p.position, p.size_in_bytes, str(p.exception)) for p in headers.problems]
        outcomes.append((headers.to_pyarrow(), headers.consumed, problems))
    assert all(outcome == outcomes[0] for outcome in outcomes)
    assert at_work() == 0
    with pytest.raises(kc.errors.LimitExceeded):
        kc.scan(data, threads=3, max_total_bytes=100)


FORK = """
import os, sys, warnings
import kafkacodec as kc
from kafkacodec.records.parallel import runs
runs.FIRST_RUN = runs.SHORTEST_RUN = 10_000
warnings.simplefilter("ignore", DeprecationWarning)
data = kc.encode([(b"k", b"v" * 50)] * 60_000, batch_bytes=4000)
chunks = kc.iter_columns(data, threads=3, max_rows=100)
next(chunks)
child = os.fork()
if child == 0:
    try:
        next(chunks)
        for _ in chunks: pass
    except RuntimeError as error:
        text = str(error)
    else:
        os._exit(1)
    chunks.close()
    del chunks
    own = sum(map(len, kc.iter_columns(data, threads=3)))
    sys.exit(0 if own == 60_000 and "fork" in text else 2)
_, status = os.waitpid(child, 0)
sys.exit(os.waitstatus_to_exitcode(status) or sum(map(len, chunks)) != 59_900)
"""

EXIT = """
import kafkacodec as kc
data = kc.encode([(b"k", b"v" * 50)] * 60_000, batch_bytes=4000)
chunks = kc.iter_columns(data, threads=3, max_rows=100)
next(chunks)
"""

INTERRUPT = """
import _thread, sys, threading
import kafkacodec as kc
data = bytearray(kc.encode([(b"k", b"v" * 50)] * 60_000, batch_bytes=4000))
list(kc.iter_columns(data, threads=3))  # everything is imported before it is interrupted
threading.Timer(0.3, _thread.interrupt_main).start()
try:
    while True:
        for chunk in kc.iter_columns(data, threads=3, max_rows=100):
            len(chunk)
except KeyboardInterrupt:
    pass
for thread in threading.enumerate():  # the interrupt may have come while they were waited for
    if thread.name == "kafkacodec":
        thread.join(30)
        assert not thread.is_alive()
"""


@pytest.mark.parametrize("program", [FORK, EXIT, INTERRUPT], ids=["fork", "exit", "interrupt"])
def test_processes_end(program: str) -> None:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
