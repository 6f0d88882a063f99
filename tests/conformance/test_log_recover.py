"""Recovery: intact batches are copied byte for byte, with the index files that a broker would have written."""

from __future__ import annotations

import json
import random
import shutil
from itertools import pairwise

import numpy as np
import pytest

import kafkacodec as kc
from tests.corpus import ROOT, log_directories, read_committed

WRITERS = [path for path in log_directories() if not path.name.endswith("-live")]
SOURCE = ROOT / "logs/kraft-4.1.0"


def files(directory, pattern):
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in directory.rglob(pattern)}


def tree(directory):
    return {path: path.stat().st_mtime_ns for path in directory.rglob("*")}


@pytest.mark.parametrize("writer", WRITERS, ids=lambda path: path.name)
def test_an_intact_log_comes_out_the_same(tmp_path, writer):
    dest, before = tmp_path / "saved", tree(writer)
    report = kc.log.recover(writer, dest)
    assert report.clean, str(report)
    assert files(dest, "*.log") == files(writer, "*.log")
    assert kc.log.LogDirectory(dest).verify().clean
    assert tree(writer) == before
    if writer.name.startswith("kraft"):
        assert files(dest, "*.index") == files(writer, "*.index")
        assert files(dest, "*.timeindex") == files(writer, "*.timeindex")
        assert files(dest, "partition.metadata") == files(writer, "partition.metadata")
        assert files(dest, "leader-epoch-checkpoint") == files(writer, "leader-epoch-checkpoint")


@pytest.mark.parametrize("writer", [SOURCE, ROOT / "logs/v2-0.11.0.3"], ids=lambda path: path.name)
def test_transaction_indexes_are_those_of_the_broker(tmp_path, writer):
    kc.log.recover(writer, tmp_path / "saved")
    made, real = files(tmp_path / "saved", "*.txnindex"), files(writer, "*.txnindex")
    # Compaction removes records of aborted transactions and keeps their entries.
    plain = [name for name in real if not name.startswith("compact-")]
    assert plain
    assert {name: made[name] for name in plain} == {name: real[name] for name in plain}
    assert made.keys() <= real.keys()


def test_what_is_damaged_is_left_out_and_reported(tmp_path):
    source = tmp_path / "source"
    shutil.copytree(SOURCE / "none-0", source / "none-0", copy_function=shutil.copyfile)
    (source / "none-0").chmod(0o755)
    rng = random.Random(5)
    lost, kept = [], {}
    for path in sorted((source / "none-0").glob("*.log")):
        data = bytearray(path.read_bytes())
        headers = kc.scan(bytes(data))
        victims = set(rng.sample(range(len(headers)), min(3, len(headers) - 1)))
        kept[path.name] = b""
        for i, start in enumerate(headers["position"].tolist()):
            if i in victims:
                data[start + 30] ^= 0x40
                lost.append((int(headers["base_offset"][i]), int(headers["last_offset"][i]) + 1))
            else:
                kept[path.name] += bytes(data[start : start + headers["size_in_bytes"][i]])
        path.write_bytes(data + b"torn tail")
    report = kc.log.recover(source, tmp_path / "saved")
    assert {path.name: path.read_bytes() for path in (tmp_path / "saved/none-0").glob("*.log")} == kept
    end = max(end for _, end in lost)  # the number of records in the very last batch is unknown
    spans = [range(f.first_offset, f.end_offset or end) for f in report.findings if f.kind == "damaged"]
    assert [offset for span in spans for offset in span] == [
        o for first, end in sorted(lost) for o in range(first, end)
    ]
    assert kc.log.LogDirectory(tmp_path / "saved").verify().clean
    assert json.loads((tmp_path / "saved/recovery-report.json").read_text()) == report.to_dict()


def test_repeated_and_swapped_batches_are_left_out(tmp_path):
    data = next((SOURCE / "none-0").glob("00000000000000000000.log")).read_bytes()
    headers = kc.scan(data)
    cut = [int(p) for p in headers["position"]] + [len(data)]
    parts = [data[a:b] for a, b in pairwise(cut)]
    (tmp_path / "t-0").mkdir()
    mixed = [*parts[:3], *parts[1:7], parts[8], parts[7], *parts[9:]]
    (tmp_path / "t-0/00000000000000000000.log").write_bytes(b"".join(mixed))
    report = kc.log.recover(tmp_path / "t-0", tmp_path / "saved")
    saved = (tmp_path / "saved/t-0/00000000000000000000.log").read_bytes()
    assert saved == b"".join([*parts[:7], parts[8], *parts[9:]])
    assert report.counts["error", "offset-order"] == 3
    assert not report.ok


@pytest.mark.parametrize("case", read_committed()[::4], ids=lambda c: f"{c.directory.name}/{c.topic}")
def test_a_saved_log_reads_the_same_as_a_consumer(tmp_path, case):
    kc.log.recover(case.directory / f"{case.topic}-{case.partition}", tmp_path / "saved")
    log = kc.log.LogDirectory(tmp_path / "saved")
    chunks = log.read(case.topic, case.partition, isolation_level="read_committed")
    assert np.concatenate([chunk["offset"] for chunk in chunks]).tolist() == case.offsets


def test_refusals(tmp_path):
    source = tmp_path / "source" / "none-0"
    shutil.copytree(SOURCE / "none-0", source, copy_function=shutil.copyfile)
    source.chmod(0o755)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(FileExistsError):
        kc.log.recover(source.parent, tmp_path / "full")
    for dest in (source.parent, source, source / "inside", tmp_path, tmp_path / "source" / ".." / "source"):
        with pytest.raises(ValueError, match="overlaps the source"):
            kc.log.recover(source.parent, dest)
    with pytest.raises(FileNotFoundError):
        kc.log.recover(tmp_path / "none", tmp_path / "dest")
    (tmp_path / "link").symlink_to(source.parent)
    with pytest.raises(ValueError, match="overlaps the source"):
        kc.log.recover(tmp_path / "link", source.parent)
    assert not (tmp_path / "dest").exists()
