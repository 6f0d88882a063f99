"""Data directories that no broker writes: damaged real ones, strange files, names and records."""

from __future__ import annotations

import os
import random
import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import kafkacodec as kc
from kafkacodec import messages
from tests.corpus import ROOT
from tests.dialect_vectors import ROOT as DIALECTS

# Small partitions of every format.
SOURCES = {
    "v0": ROOT / "logs/v0-0.8.2.2/lz4-0",
    "v1": ROOT / "logs/v1-0.10.2.2/broker-gzip-0",
    "v2": ROOT / "logs/kraft-4.1.0/zstd-0",
    "txn": ROOT / "logs/kraft-4.1.0/txn-0",
    "kafka07": DIALECTS / "kafka07/segments/broker-0/orders-0",
}
# Text that a terminal, a markup parser, a spreadsheet or an option parser would act on.
STRANGE = [
    "\x1b[2J\x1b[31mred\x9b1m\x07",
    "user\u202etxt.exe\u2066\u200b",
    "two\nlines\r\u2028three",
    "[red]markup[/red] [link=x]y",
    "=cmd|' /C calc'!A0",
    "--help",
    "tab\there",
    os.fsdecode(b"caf\xe9"),
    "x" * 240,
]


def real(name: str, into: Path) -> Path:
    """A copy of a data directory with one partition."""
    shutil.copytree(SOURCES[name], into / SOURCES[name].name)
    return into


def damaged(into: Path, seed: int = 0) -> Iterator[tuple[str, Path]]:
    """Copies of real partitions with each file in turn truncated, flipped, zeroed, or with bytes inserted."""
    rng = random.Random(seed)
    for source in SOURCES:
        for how, change in _CHANGES.items():
            tree = real(source, into / f"{source}-{how}")
            for path in sorted(p for p in tree.rglob("*") if p.is_file()):
                data = path.read_bytes()
                if data:
                    path.write_bytes(change(data, rng))
            yield tree.name, tree


def _cut(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data))]


def _flip(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(1 + len(data) // 2000):
        changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _zero(data: bytes, rng: random.Random) -> bytes:
    at, size = rng.randrange(len(data)), rng.randrange(1, 600)
    return (data[:at] + bytes(size) + data[at + size :])[: len(data)]


def _insert(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + rng.randbytes(rng.randrange(1, 40)) + data[at:]


_CHANGES: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "cut": _cut,
    "flipped": _flip,
    "zeroed": _zero,
    "inserted": _insert,
    "all zeros": lambda data, rng: bytes(len(data)),
    "all noise": lambda data, rng: rng.randbytes(len(data)),
}


def stored(into: Path, seed: int = 0) -> Iterator[tuple[str, Path]]:
    """The logs of the coordinator and the controller with flipped bytes and corrected checksums."""
    rng = random.Random(seed)
    for source in sorted(ROOT.glob("logs/kraft-4.1.0/__*-*")):
        segments = [p for p in sorted(source.iterdir()) if p.suffix == ".log" and p.stat().st_size]
        if not segments:
            continue
        tree = into / f"stored {source.name}"
        (tree / source.name).mkdir(parents=True)
        for path in segments:
            records = [
                (_one_bit(key, rng), _one_bit(value, rng))
                for key, value in ((r.key, r.value) for r in kc.iter_records(path.read_bytes()))
            ]
            base = int(path.stem)
            (tree / source.name / path.name).write_bytes(kc.encode(records, base_offset=base) if records else b"")
        yield tree.name, tree


def _one_bit(data: bytes | None, rng: random.Random) -> bytes | None:
    return _flip(data, rng) if data and rng.random() < 0.3 else data


def strange_files(into: Path) -> Iterator[tuple[str, Path]]:
    """Entries that are not files, or whose names do not match their content."""

    def tree(name: str) -> tuple[Path, Path]:
        made = real("v2", into / name)
        return made, made / "zstd-0"

    first = "00000000000000000000"
    for suffix in (".log", ".index", ".timeindex", ".txnindex"):
        for what, make in (("pipe", os.mkfifo), ("directory", os.mkdir), ("loop", _loop), ("unreadable", _unreadable)):
            made, partition = tree(f"{what} {suffix}")
            path = partition / (first + suffix)
            path.unlink(missing_ok=True)
            make(path)
            yield made.name, made
    for name in ("leader-epoch-checkpoint", "partition.metadata"):
        made, partition = tree(f"pipe {name}")
        (partition / name).unlink(missing_ok=True)
        os.mkfifo(partition / name)
        yield made.name, made
    for name in (
        "replication-offset-checkpoint",
        "log-start-offset-checkpoint",
        "meta.properties",
        "cleaner-offset-checkpoint",
    ):
        made, _ = tree(f"pipe {name}")
        os.mkfifo(made / name)
        yield made.name, made
    made, partition = tree("swapped segments")
    one, two = sorted(partition.glob("*.log"))[:2]
    one.rename(partition / "x")
    two.rename(one)
    (partition / "x").rename(two)
    yield made.name, made
    made, partition = tree("names beyond 64 bits")
    one.parent.mkdir(exist_ok=True)
    for path in partition.iterdir():
        if path.stem.isdecimal():
            path.rename(partition / ("99999999999999999999" + path.suffix))
    yield made.name, made
    made, partition = tree("another format's name")
    for path in list(partition.glob("*.log")):
        path.rename(path.with_suffix(".kafka"))
    yield made.name, made
    made = real("kafka07", into / "kafka07 with a later name")
    for path in list(made.rglob("*.kafka")):
        path.rename(path.with_suffix(".log"))
    yield made.name, made
    made = real("kafka07", into / "both formats")
    shutil.copytree(SOURCES["v2"], made / "zstd-0")
    shutil.copyfile(next(SOURCES["v0"].glob("*.log")), made / "orders-0" / f"{first}.log")
    yield made.name, made
    made = into / "loop of directories" / "a-0"
    made.mkdir(parents=True)
    (made / "b-0").symlink_to(made.parent, target_is_directory=True)
    (made / "c-0").symlink_to("c-0")
    yield made.parent.name, made.parent
    for name in ("empty", "empty-0"):
        (into / name).mkdir()
        yield name, into / name
    (into / "text").mkdir()
    (into / "text" / "notes.txt").write_text("\x1b[31mjust text\n")
    yield "text", into / "text"
    yield "a text file", into / "text" / "notes.txt"


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


def _unreadable(path: Path) -> None:
    """A file without read permission; root can still read it."""
    path.write_bytes(b"\0" * 100)
    path.chmod(0)


def strange_names(into: Path, texts: Sequence[str] = STRANGE) -> Iterator[tuple[str, Path]]:
    """Directories, files and records whose names and contents would control a terminal."""
    for number, text in enumerate(texts):
        tree = into / f"names {number}"
        name = text.replace("/", "_")
        partition = tree / f"{name}-0"
        partition.mkdir(parents=True)
        first = partition / "00000000000000000000.log"
        data = _strange_records(text)
        first.write_bytes(data)
        (partition / "00000000000000100000.log").write_bytes(data[:-7] + b"\xff" * 30)
        (partition / "partition.metadata").write_bytes(b"version: 0\ntopic_id: " + os.fsencode(text) + b"\n")
        (partition / "leader-epoch-checkpoint").write_bytes(b"0\n1\n" + os.fsencode(text) + b" 0\n")
        for checkpoint in ("replication-offset-checkpoint", "log-start-offset-checkpoint"):
            (tree / checkpoint).write_bytes(b"0\n2\n" + os.fsencode(text) + b" 0 7\n" + os.fsencode(text) + b"\n")
        (tree / "meta.properties").write_bytes(b"cluster.id=" + os.fsencode(text) + b"\n")
        (partition / f"{name}.log").write_bytes(data)
        yield tree.name, tree
        yield f"{tree.name}, the partition", partition
        yield f"{tree.name}, a file", partition / f"{name}.log"
        yield from _strange_stored(into / f"stored names {number}", text)


def _strange_records(text: str) -> bytes:
    raw, plain = os.fsencode(text), text.encode("utf-8", "replace").decode()
    records = [
        kc.Record(0, 1, 0, raw, raw, ((plain, raw),)),
        kc.Record(1, 2, 0, None, b"\xff" + raw, ()),
        kc.Record(2, (1 << 62), 0, raw, None, ((plain, None),)),
    ]
    return kc.encode(records)


def _strange_stored(tree: Path, text: str) -> Iterator[tuple[str, Path]]:
    """Groups, commits and metadata with such names."""
    name = text.encode("utf-8", "replace").decode()
    subscription = b"\0\0" + messages.ConsumerProtocolSubscription(topics=[name]).encode(0)
    member = messages.GroupMetadataValue.MemberMetadata(
        member_id=name, client_id=name, client_host=name, subscription=subscription
    )
    group = messages.GroupMetadataValue(
        protocol_type="consumer", generation=1, protocol=name, leader=name, members=[member]
    )
    commit = messages.OffsetCommitValue(offset=1 << 62, metadata=name, commit_timestamp=(1 << 63) - 1)
    records = [
        (b"\0\x02" + messages.GroupMetadataKey(group=name).encode(0), b"\0\x03" + group.encode(3)),
        (
            b"\0\x01" + messages.OffsetCommitKey(group=name, topic=name, partition=-1).encode(0),
            b"\0\x03" + commit.encode(3),
        ),
    ]
    partition = tree / "__consumer_offsets-0"
    partition.mkdir(parents=True)
    (partition / "00000000000000000000.log").write_bytes(kc.encode(records))
    topic = messages.TopicRecord(name=name, topic_id=uuid.UUID(int=1)).encode(0)
    config = messages.ConfigRecord(resource_type=2, resource_name=name, name=name, value=name).encode(0)
    partition = tree / "__cluster_metadata-0"
    partition.mkdir(parents=True)
    (partition / "00000000000000000000.log").write_bytes(
        kc.encode([(None, b"\x01\x02\0" + topic), (None, b"\x01\x04\0" + config)])
    )
    yield tree.name, tree
