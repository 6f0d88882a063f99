"""Files of log directories with bytes and names that no broker wrote: every reader ends with an error of ours, or none.

KAFKACODEC_LOG_FUZZ multiplies how many are tried.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import kafkacodec as kc
from kafkacodec.log.formats import layout
from kafkacodec.log.state import tables
from kafkacodec.log.state.cluster_metadata import read_cluster_metadata
from kafkacodec.log.state.groups import read_committed_offsets, read_consumer_groups
from tests.corpus import ROOT

pytestmark = pytest.mark.filterwarnings("ignore::kafkacodec.errors.CheckpointWarning")  # of files damaged at random

TIMES = int(os.environ.get("KAFKACODEC_LOG_FUZZ", "1"))
LOGS = ROOT / "logs"
OURS = (kc.KafkaCodecError, OSError)

SMALL_FILES: dict[str, Callable[..., object]] = {
    "*.index": kc.log.read_offset_index,
    "*.timeindex": kc.log.read_time_index,
    "*.txnindex": kc.log.read_transaction_index,
    "*.snapshot": kc.log.read_producer_snapshot,
    "leader-epoch-checkpoint": kc.log.read_leader_epochs,
    "recovery-point-offset-checkpoint": kc.log.read_checkpoint,
    "partition.metadata": kc.log.read_topic_id,
    "meta.properties": kc.log.read_properties,
}
WORDS = (b"-", b"\n", b" ", b"9" * 25, "\u0663".encode(), b"\0", b":", b"=", b"\r", b"\x0c", b"\x85", b"\xe2\x80\xa8")
NUMBERS = (b"\xff" * 8, bytes(8), b"\x7f" + b"\xff" * 7, b"\x80" + bytes(7))
NAMES = (
    "zz-x.checkpoint",
    "-.checkpoint",
    "00000000000000000000-.checkpoint",
    "99999999999999999999.log",
    "99999999999999999999.index",
    f"{1 << 63:020}.snapshot",
    f"{7:020}.log",
    f"{7:020}-{'A' * 22}.log",
    f"{0:020}.kafka",
)


def harmed(data: bytes, rng: random.Random) -> bytes:
    """The bytes after a few flips, cuts, insertions, repetitions, extreme numbers and odd characters."""
    content = bytearray(data or b"\0")
    for _ in range(rng.randrange(1, 4)):
        at, other = rng.randrange(len(content) + 1), rng.randrange(len(content) + 1)
        way = rng.randrange(7)
        if way == 0 and at < len(content):
            content[at] ^= 1 << rng.randrange(8)
        elif way == 1:
            del content[at:]
        elif way == 2:
            content[at:at] = rng.randbytes(rng.randrange(1, 9))
        elif way == 3:
            del content[at : at + rng.randrange(1, 9)]
        elif way == 4:
            content[at : at + 8] = content[other : other + 8]
        elif way == 5:
            content[at : at + 8] = rng.choice(NUMBERS)
        else:
            content[at : at + 1] = rng.choice(WORDS)
    return bytes(content)


def attempt(act: Callable[[], object]) -> bool:
    """Whether it went well; an exception that is not ours fails the test."""
    try:
        act()
    except OURS:
        return False
    return True


@pytest.mark.parametrize("pattern", SMALL_FILES)
def test_small_files(tmp_path, pattern):
    read = SMALL_FILES[pattern]
    files = [path for path in sorted(LOGS.rglob(pattern)) if path.stat().st_size][:60]
    rng = random.Random(pattern)
    refused = 0
    for _ in range(150 * TIMES):
        source = rng.choice(files)
        path = tmp_path / source.name
        path.write_bytes(harmed(source.read_bytes(), rng))
        refused += not attempt(lambda path=path: read(path))
        if pattern in ("*.index", "*.timeindex", "*.txnindex"):
            assert attempt(lambda path=path: read(path, on_error="stop"))
    assert refused


def data_directory(source: Path, target: Path) -> list[Path]:
    """A copy of a partition with the files of its data directory; its files."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target / source.name, copy_function=shutil.copyfile)
    (target / source.name).chmod(0o755)
    for path in source.parent.iterdir():
        if path.is_file():
            shutil.copyfile(path, target / path.name)
    return sorted(path for path in target.rglob("*") if path.is_file())


def everything(directory: Path, rng: random.Random) -> Iterator[Callable[[], object]]:
    """All that can be asked of a data directory."""

    def read(**options: object) -> None:
        for partition in kc.log.LogDirectory(directory).all_partitions:
            for _ in partition.read(**options):
                pass

    time = rng.randrange(1 << 42)
    yield lambda: str(kc.log.LogDirectory(directory).verify())
    yield read
    yield lambda: read(on_error="skip")
    yield lambda: read(on_error="skip", gaps="accept", start_timestamp=time)
    yield lambda: read(on_error="skip", isolation_level="read_committed")
    for partition in kc.log.LogDirectory(directory).all_partitions:
        yield partition.breaks
        yield partition.last_stable_offset
        yield partition.start_offset
        yield lambda partition=partition: partition.ranges(max_bytes=3000, start_offset=rng.randrange(500))
        yield lambda partition=partition: partition.offset_of_timestamp(time)
    saved = directory.with_name("saved")
    shutil.rmtree(saved, ignore_errors=True)
    yield lambda: kc.log.recover(directory, saved)


PARTITIONS = [
    *(f"kraft-4.1.0/{name}-0" for name in ("txn-open", "none", "compact-txn", "idempotent")),
    "v0-0.9.0.1/compact-lz4-0",
    "v1-0.10.2.2/compact-none-0",
    "upgraded/up-small-0",
]


@pytest.mark.parametrize("source", PARTITIONS)
def test_partitions(tmp_path, source):
    rng = random.Random(source)
    for _ in range(4 * TIMES):
        files = data_directory(LOGS / source, tmp_path / "data")
        for path in rng.sample(files, min(len(files), rng.randrange(1, 6))):
            path.write_bytes(harmed(path.read_bytes(), rng))
        if rng.random() < 0.4:
            path = rng.choice(files)
            path.rename(path.with_name(rng.choice(NAMES)))
        for act in everything(tmp_path / "data", rng):
            attempt(act)


def stored(pattern: str) -> list[Path]:
    writers = ("kraft-4.1.0", "kraft-3.9.1", "v0-0.9.0.1", "v2-2.8.2")
    return [path for writer in writers for path in sorted((LOGS / writer).glob(pattern)) if path.stat().st_size]


@pytest.mark.parametrize(
    ("pattern", "read", "table"),
    [
        ("__consumer_offsets-*/*.log", read_committed_offsets, tables.offsets_table),
        ("__consumer_offsets-*/*.log", read_consumer_groups, tables.groups_table),
        ("__cluster_metadata-0/*.log", read_cluster_metadata, lambda found: tables.metadata_table(found, "topics")),
    ],
    ids=["offsets", "groups", "metadata"],
)
def test_stored_records(tmp_path, pattern, read, table):
    """Records of the right frame with other content: harmed, missing, repeated, out of order."""
    rng = random.Random(pattern)
    logs = [(path, kc.decode(path.read_bytes()).records()) for path in stored(pattern)]
    for _ in range(25 * TIMES):
        path, records = rng.choice(logs)
        remade = []
        for record in records:
            key, value = record.key, record.value
            if value is not None and rng.random() < 0.05:
                value = harmed(value, rng)
            if key is not None and rng.random() < 0.02:
                key = harmed(key, rng)
            remade += [(key, value)] * rng.choices((0, 1, 2), (1, 40, 1))[0]
            if rng.random() < 0.02:
                other = rng.choice(records)
                remade.append((other.key, other.value))
        directory = tmp_path / path.parent.name
        directory.mkdir(exist_ok=True)
        (directory / layout.file_name(0, ".log")).write_bytes(kc.encode(remade))
        attempt(lambda: read(tmp_path))
        problems: list[kc.DecodeError] = []
        table(read(tmp_path, problems=problems))
        assert all(str(tmp_path) in str(problem) for problem in problems)
