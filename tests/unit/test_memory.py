"""What the C core's memory is said to be, and that nothing of it is lost."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kafkacodec as kc
from kafkacodec import messages
from kafkacodec.dialects import kafka07
from kafkacodec.messages import _struct
from kafkacodec.records.parallel import runs
from tests.lifetime.arrow import ARROW_ENTRIES
from tests.lifetime.entries import ENTRIES
from tests.lifetime.matrix import PLAIN, entry_of, export_of

ROOT = Path(__file__).parents[2]
LOG = ROOT / "tests/data/kafka/logs/kraft-4.1.0/none-0/00000000000000000000.log"
MOST_KEPT = 256 << 20
DATA = kc.encode([(b"key", bytes(1000))] * 2000)


@pytest.fixture(autouse=True, scope="module")
def _quick_collections() -> Iterator[None]:
    """What other tests have left is not looked at again in each collection."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def _restored_run_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry with threads sets the shortest runs for its process."""
    for name in ("FIRST_RUN", "SHORTEST_RUN"):
        monkeypatch.setattr(runs, name, getattr(runs, name))


@contextmanager
def nothing_lost() -> Iterator[None]:
    gc.collect()
    before = kc.memory_in_use().live
    yield
    gc.collect()
    lost = kc.memory_in_use().live - before
    assert lost == 0, f"{lost} bytes of the C core's memory are lost"


MAKERS: dict[str, Callable[[], Any]] = {
    "decode": lambda: kc.decode(DATA),
    "threads": lambda: kc.decode(DATA, threads=2),
    "views": lambda: kc.decode(DATA, layout="view"),
    "views of what was compressed": lambda: kc.decode(kc.encode([(b"", bytes(5000))] * 9, codec="zstd"), layout="view"),
    "scan": lambda: kc.scan(DATA),
    "chunks": lambda: next(kc.iter_columns(DATA)),
    "batches": lambda: kc.decode_batches(pa.array([DATA])),
    "0.7": lambda: kafka07.decode(kafka07.encode_messages([b"value"] * 9)),
    "fetch": lambda: kc.protocol.fetch_to_columns(fetched()),
    "numpy": lambda: kc.decode(DATA)["offset"],
    "pyarrow": lambda: pa.record_batch(kc.decode(DATA)).column("value").slice(3, 1),
    "capsules": lambda: kc.decode(DATA).__arrow_c_array__(),
    "stream": lambda: kc.decode(DATA).__arrow_c_stream__(),
    "Confluent ids": lambda: kc.split_confluent(pa.array([b"\0\0\0\0\1value"])),
}


def fetched() -> messages.Message:
    partition = messages.FetchResponse.PartitionData(partition_index=5, records=DATA)
    topic = messages.FetchResponse.FetchableTopicResponse(topic="orders", partitions=[partition])
    return messages.FetchResponse(responses=[topic])


@pytest.mark.parametrize("name", MAKERS)
def test_what_is_held_is_seen_and_goes_with_it(name: str) -> None:
    MAKERS[name]()
    with nothing_lost():
        before = kc.memory_in_use().live
        made = MAKERS[name]()
        assert kc.memory_in_use().live > before
        with pytest.raises(AssertionError, match="lost"), nothing_lost():
            leaked = MAKERS[name]()
        del made, leaked


def test_columns_count_with_all_their_bytes() -> None:
    before = kc.memory_in_use().live
    columns = kc.decode(DATA)
    assert columns.nbytes <= kc.memory_in_use().live - before < 4 * columns.nbytes


def use(name: str) -> None:
    """An entry point with data that it takes and with data that it refuses, and a cycle that holds the exception."""
    entry = entry_of(name)
    exporter = PLAIN[name in ARROW_ENTRIES]
    entry.show(entry.call(export_of(name, exporter, entry.good).data))
    if entry.bad is None:
        return
    try:
        entry.call(export_of(name, exporter, entry.bad).data)
    except kc.KafkaCodecError as error:
        cycle: list[Any] = [error]
        cycle.append(cycle)


@pytest.mark.parametrize("name", [*ENTRIES, *ARROW_ENTRIES])
def test_no_entry_point_loses_memory(name: str) -> None:
    use(name)  # what is made once
    with nothing_lost():
        for _ in range(3):
            use(name)


def test_nothing_is_lost_where_an_iterator_or_a_log_is_left() -> None:
    def leave() -> None:
        next(kc.iter_records(DATA))
        next(kc.iter_columns(DATA * 3, max_rows=16))
        for chunk in kc.log.Segment(LOG).read(max_rows=16):
            pa.table(chunk)
            break
        with pytest.raises(kc.CrcMismatch):
            kc.decode(DATA + DATA[:-1] + b"?", threads=2)

    leave()
    with nothing_lost():
        for _ in range(5):
            leave()


def test_nothing_is_lost_in_threads() -> None:
    def work(number: int) -> int:
        data = kc.encode([(b"key", bytes(5000))] * 20, codec=("none", "gzip", "snappy", "lz4", "zstd")[number % 5])
        held = [kc.decode(data), *kc.iter_columns(data, max_rows=3)]
        kc.trim_memory()
        return len(held)

    with nothing_lost(), ThreadPoolExecutor(4) as pool:
        assert set(pool.map(work, range(100))) == {8}


def test_one_pool_keeps_what_all_modules_free() -> None:
    old = kafka07.encode_messages([bytes(100_000)] * 9)
    kc.trim_memory()
    assert kc.memory_in_use().kept == 0
    kept = []
    for make in (lambda: kc.decode(DATA), lambda: kafka07.decode(old), lambda: kc.encode([(b"", bytes(100_000))] * 9)):
        make()
        gc.collect()
        kept.append(kc.memory_in_use().kept)
    assert 0 < kept[0] < kept[1] <= kept[2]
    assert kc.trim_memory() == kept[2]
    assert kc.memory_in_use().kept == kc.trim_memory() == 0


def test_no_more_than_the_limit_is_kept() -> None:
    data = kc.encode([(None, bytes(1 << 20))] * 40, codec="lz4")
    kc.trim_memory()
    with nothing_lost():
        held = [kc.decode(data) for _ in range(9)]
        assert kc.memory_in_use().live > MOST_KEPT
        del held
    assert MOST_KEPT // 2 < kc.memory_in_use().kept <= MOST_KEPT
    kc.trim_memory()


def test_memory_of_dead_messages_is_trimmed() -> None:
    body = messages.MetadataRequest(topics=[messages.MetadataRequest.MetadataRequestTopic(name="t")] * 1000).encode(9)
    size = messages.MetadataRequest.MetadataRequestTopic().__sizeof__()
    decoded = [messages.MetadataRequest.decode(body, 9) for _ in range(3)]
    assert {len(message.topics) for message in decoded} == {1000}
    gc.collect()
    kc.trim_memory()
    blocks = sys.getallocatedblocks()
    decoded.clear()
    gc.collect()
    kept = kc.memory_in_use().kept
    assert min(3000 * size, _struct.MOST_KEPT) <= kept <= _struct.MOST_KEPT
    assert kc.trim_memory() == kept
    assert kc.memory_in_use().kept == 0
    if _struct.MOST_KEPT:  # not under AddressSanitizer
        assert blocks - sys.getallocatedblocks() > 2900  # other tests' threads allocate meanwhile


def test_messages_are_not_imported_to_be_trimmed() -> None:
    run("""
import sys
import kafkacodec as kc

assert kc.trim_memory() == 0
assert not any(name.startswith("kafkacodec.messages") for name in sys.modules)
""")


def run(code: str) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}  # the same build
    command = [sys.executable, "-P", "-c", code, LOG]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_child_has_memory_of_its_own() -> None:
    run("""
import os, sys
import kafkacodec as kc

data = open(sys.argv[1], "rb").read()
held = kc.decode(data)
before = kc.memory_in_use()
child = os.fork()
if child == 0:
    more = kc.decode(data)
    assert kc.memory_in_use().live > before.live
    del more
    kc.trim_memory()
    assert kc.memory_in_use() == (before.live, 0)
    del held
    os._exit(kc.memory_in_use().live != 0)
assert os.waitpid(child, 0)[1] == 0
assert kc.memory_in_use() == before
del held
assert kc.memory_in_use().live == 0
""")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no /proc")
def test_the_system_gets_back_what_is_trimmed() -> None:
    run("""
import mmap
import kafkacodec as kc

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * mmap.PAGESIZE

def decode(count):
    data = kc.encode([(None, bytes(1 << 20))] * count, codec="lz4")
    for chunk in kc.iter_columns(data): pass
    return len(kc.decode(data))

assert [decode(count) for count in (2, 5, 100)] == [2, 5, 100]
before = resident()
given = kc.trim_memory()
assert given > 60 << 20
assert before - resident() > given * 3 // 4
""")
