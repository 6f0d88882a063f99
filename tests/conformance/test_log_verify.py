"""Inspection: no findings in logs of real brokers, and findings with the right place for every kind of damage."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

import kafkacodec as kc
from kafkacodec.log.checking import verify
from kafkacodec.log.files.access import MappedFile
from kafkacodec.log.formats import indexes
from kafkacodec.log.segments import pieces
from tests import hostile_trees
from tests.corpus import ROOT, blobs, segments

SAMPLES = [s for s in segments() if s.name.endswith(".log") and "truncated" not in s.name]
SOURCE = ROOT / "logs/kraft-4.1.0/txn-0"


@pytest.mark.parametrize(
    "directory", sorted({s.path.parent for s in SAMPLES}), ids=lambda p: f"{p.parent.name}/{p.name}"
)
def test_real_partitions_are_clean(directory):
    mine = [s for s in SAMPLES if s.path.parent == directory]
    partition = kc.log.Partition(directory)
    if len(mine) < len([s for s in partition.segments if s.size_in_bytes]):
        return  # it has segments of older formats, too
    report = partition.verify()
    assert report.clean, str(report)
    assert report.num_batches == sum(len(s.expected.batches) for s in mine)
    assert report.num_records == sum(len(s.expected.records) for s in mine)
    assert report.control_records == sum(record.is_control for s in mine for record in s.expected.records)
    assert report.formats == Counter(f"v{b['magic']}/{b['codec']}" for s in mine for b in s.expected.batches)


@pytest.mark.parametrize("sample", [s for s in segments() if "truncated" in s.name], ids=str)
def test_cut_segments_have_a_torn_tail(sample):
    report = kc.log.Segment(sample.path).verify()
    (tail,) = [finding for finding in report.findings if finding.kind == "torn-tail"]
    assert (tail.position, tail.size_in_bytes) == (sample.expected.valid_bytes, sample.expected.trailing_bytes)
    assert report.ok
    assert not report.clean


def test_preallocated_space_is_only_a_note():
    live = max((ROOT / "logs/kraft-4.1.0-live/preallocated-0").glob("*.log"))
    report = kc.log.Segment(live).verify()
    assert [(f.level, f.kind) for f in report.findings] == [("note", "preallocated")]
    assert report.clean


@pytest.fixture
def copy(tmp_path):
    target = tmp_path / SOURCE.name
    shutil.copytree(SOURCE, target, copy_function=shutil.copyfile)
    target.chmod(0o755)
    return target


def harm(path, start, data):
    path.chmod(0o644)
    content = bytearray(path.read_bytes())
    content[start : start + len(data)] = data
    path.write_bytes(content)


def kinds(report, level):
    return {kind for found, kind in report.counts if found == level}


def test_a_flipped_byte_loses_one_batch(copy):
    path = sorted(copy.glob("*.log"))[2]
    headers = kc.log.Segment(path).scan()
    at = int(headers["position"][4])
    harm(path, at + 65, b"\xaa\xbb\xcc")
    report = kc.log.Partition(copy).verify()
    assert kinds(report, "error") == {"damaged"}
    (finding,) = [f for f in report.findings if f.kind == "damaged"]
    assert finding.path == str(path)
    assert (finding.position, finding.size_in_bytes) == (at, headers["size_in_bytes"][4])
    assert (finding.first_offset, finding.end_offset) == (headers["base_offset"][4], headers["base_offset"][5])
    assert "CRC" in finding.text
    assert report.damaged_bytes == headers["size_in_bytes"][4]
    assert not report.ok


def test_a_destroyed_length_loses_no_more_than_its_batch(copy):
    path = sorted(copy.glob("*.log"))[2]
    headers = kc.log.Segment(path).scan()
    harm(path, int(headers["position"][4]) + 8, b"\x7f\xff\xff\xf0")
    harm(path, int(headers["position"][9]) + 8, b"\x00\x00\x00\x40")
    report = kc.log.Segment(path).verify()
    lost = [(f.position, f.size_in_bytes) for f in report.findings if f.kind == "damaged"]
    assert lost == [(headers["position"][i], headers["size_in_bytes"][i]) for i in (4, 9)]


def test_overwritten_and_repeated_regions(copy):
    path = sorted(copy.glob("*.log"))[2]
    headers, data = kc.log.Segment(path).scan(), path.read_bytes()
    first, second, third = (int(p) for p in headers["position"][[3, 6, 7]])
    harm(path, first + 5, bytes(second - first + 20))
    report = kc.log.Segment(path).verify()
    (finding,) = [f for f in report.findings if f.kind == "damaged"]
    assert (finding.position, finding.size_in_bytes) == (first, third - first)
    path.write_bytes(data[:second] + data[first:])
    report = kc.log.Segment(path).verify()
    assert kinds(report, "error") == {"offset-order"}


def test_misplaced_files(copy):
    names = sorted(copy.glob("*.log"))
    shutil.copyfile(names[4], copy / "00000000000000000001.log")
    report = kc.log.Partition(copy).verify()
    assert "offset-order" in kinds(report, "error")


def test_index_files_that_do_not_fit(copy):
    logs = [path for path in sorted(copy.glob("*.log")) if path.with_suffix(".index").stat().st_size >= 16]
    offsets = kc.log.read_offset_index(logs[0].with_suffix(".index"))
    logs[0].with_suffix(".index").chmod(0o644)
    logs[0].with_suffix(".index").write_bytes(
        indexes.encode_offset_index(offsets["offset"], offsets["position"] + 3, offsets.base_offset)
    )
    times = kc.log.read_time_index(logs[0].with_suffix(".timeindex"))
    logs[0].with_suffix(".timeindex").chmod(0o644)
    logs[0].with_suffix(".timeindex").write_bytes(
        indexes.encode_time_index(times["timestamp"] + 1, times["offset"], times.base_offset)
    )
    harm(logs[1].with_suffix(".index"), 0, b"\xff")
    logs[1].with_suffix(".timeindex").unlink()
    for path in copy.glob("*.txnindex"):
        path.unlink()
    harm(max(copy.glob("*.snapshot")), 3, b"\x00")
    harm(copy / "leader-epoch-checkpoint", 0, b"x")
    report = kc.log.Partition(copy).verify()
    assert report.ok
    assert kinds(report, "warning") == {
        "offset-index",
        "time-index",
        "transaction-index",
        "producer-snapshot",
        "leader-epoch",
    }
    assert report.counts["warning", "offset-index"] == len(offsets) + 1
    assert report.counts["warning", "time-index"] == len(times)
    assert report.counts["note", "time-index"] == 1


def test_entries_past_the_end_of_a_cut_log(copy):
    path = max(copy.glob("*.log"), key=lambda p: len(kc.log.read_offset_index(p.with_suffix(".index"))))
    index = kc.log.read_offset_index(path.with_suffix(".index"))
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[: int(index["position"][1]) + 10])
    report = kc.log.Segment(path).verify()
    assert kinds(report, "warning") >= {"torn-tail", "offset-index", "time-index"}


def test_wrong_leader_epochs(copy):
    path = copy / "leader-epoch-checkpoint"
    path.chmod(0o644)
    path.write_text("0\n2\n0 0\n7 100\n")
    report = kc.log.Partition(copy).verify()
    assert kinds(report, "warning") == {"leader-epoch"}


def test_report_for_programs_and_people(copy):
    harm(sorted(copy.glob("*.log"))[0], 100, b"\xff\xff")
    report = kc.log.LogDirectory(copy.parent).verify()
    plain = json.loads(json.dumps(report.to_dict()))
    assert plain["ok"] is False
    assert plain["counts"] == {"error/damaged": 1}
    assert plain["findings"][0]["position"] == 0
    assert str(report).splitlines()[-1] == "damaged"
    assert "the CRC-32C of a batch is wrong" in str(report)


def test_many_findings_are_counted_but_not_kept():
    report = kc.log.Report("here")
    for i in range(3000):
        report.add(kc.log.Finding("warning", "offset-index", "there", "no", i))
    assert len(report.findings) == 1000
    assert report.counts["warning", "offset-index"] == 3000
    assert "and 2000 more findings" in str(report)


def alternating(count):
    """One-record batches; every second one has a flipped byte under the checksum, or an invalid length."""
    batches = [bytearray(kc.encode([(None, b"v")], base_offset=i)) for i in range(count)]
    for i in range(1, count, 2):
        if i % 4 == 1:
            batches[i][-1] ^= 1
        else:
            batches[i][8:12] = b"\xff\xff\xff\xff"
    return batches


def test_damage_at_every_second_batch_is_reported_batch_by_batch(tmp_path):
    count, path = 5000, tmp_path / "00000000000000000000.log"
    batches = alternating(count)
    path.write_bytes(b"".join(batches))
    size = len(batches[0])
    # An entry that points to a lost batch is not a fault; one that points into an intact batch is.
    positions = [size, 4 * size + 1, 5 * size, 4000 * size]
    entries = indexes.encode_offset_index([1, 4, 5, 4000], positions, 0)
    path.with_suffix(".index").write_bytes(entries)
    report = kc.log.Segment(path).verify()
    assert (report.num_batches, report.num_records, report.compacted_offsets) == (count // 2, count // 2, 0)
    assert (report.damaged_bytes, report.missing_offsets) == (
        count // 2 * size,
        count // 2 - 1,
    )  # the last one: unknown
    assert report.counts["error", "damaged"] == count // 2
    assert report.counts["warning", "offset-index"] == 1
    damaged = [f for f in report.findings if f.kind == "damaged"]
    assert [(f.position, f.size_in_bytes, f.first_offset, f.end_offset) for f in damaged] == [
        (i * size, size, i, i + 1) for i in range(1, 2 * len(damaged), 2)
    ]
    assert [f.kind for f in report.findings[:4]] == ["damaged", "damaged", "offset-index", "damaged"]
    assert len(report.findings) == 1000


def reports(trees):
    return {name: kc.log.LogDirectory(tree).verify().to_dict() for name, tree in trees}


@pytest.mark.slow
def test_stretches_checked_together_tell_the_same_as_each_by_itself(tmp_path, monkeypatch):
    for name, step in ("even", 0), ("disordered", 40):
        path = tmp_path / "trees" / name / "topic-0" / "00000000000000000000.log"
        path.parent.mkdir(parents=True)
        batches = alternating(600)
        for i in range(0, 600, 50):  # neither field is under the checksum
            batches[i][:8] = (i - step if i else 0).to_bytes(8, "big")
            batches[i][12:16] = (i if not step or i % 100 else 7).to_bytes(4, "big")
        path.write_bytes(b"".join(batches))
        size = len(batches[0])
        path.with_suffix(".index").write_bytes(
            indexes.encode_offset_index(range(3, 600, 3), [i * size + (i % 5 == 0) for i in range(3, 600, 3)], 0)
        )
        path.with_name("leader-epoch-checkpoint").write_text("0\n1\n5 0\n")  # not that of any batch
    trees = [(tree.name, tree) for tree in sorted((tmp_path / "trees").iterdir())]
    trees += hostile_trees.damaged(tmp_path / "damaged", 3)
    together = reports(trees)
    monkeypatch.setattr(verify, "STRETCHES_AT_ONCE", 1)
    assert reports(trees) == together
    assert {"error/damaged", "error/offset-order", "warning/offset-index", "warning/leader-epoch"} <= set(
        together["disordered"]["counts"]
    )


MILDER = {"v2-length-2147483647.bin", "v2-then-zeros.bin", "zeros.bin"}  # a partial batch; a preallocated tail
REFUSED = [s for s in blobs("corrupt", magics={2}) if s.error and s.path.name not in MILDER]


@pytest.mark.parametrize("sample", REFUSED, ids=str)
def test_what_no_reader_takes_is_found(sample, tmp_path):
    """Damage in headers, lengths or compressed data, even with a right checksum."""
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(sample.data())
    assert not kc.log.Segment(path).verify().ok


@pytest.mark.parametrize("size", [700, 20_000])
def test_pieces_of_any_size_give_the_same_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """The bytes read piece by piece up to the first fault, and the mapped rest, are checked in the same way."""
    read = 0
    into = MappedFile.read_into

    def counted(file: MappedFile, buffer: memoryview, position: int) -> int:
        nonlocal read
        read += 1
        return into(file, buffer, position)

    monkeypatch.setattr(MappedFile, "read_into", counted)
    for number, sample in enumerate(SAMPLES[::8]):
        directory = tmp_path / str(number)
        shutil.copytree(sample.path.parent, directory)
        path, data = directory / sample.path.name, bytearray(sample.data())
        for place in (None, len(data) // 2, len(data) - 1):
            if place is not None:
                data[place] ^= 4
                path.write_bytes(data)
            reports = []
            for most, threads in ((0, 1), (size, 1), (size, 3)):
                monkeypatch.setattr(pieces, "BUFFER_BYTES", most)
                reports.append(kc.log.Segment(path).verify(threads=threads))
                reports[-1].findings.sort(key=str)  # what is found together comes by kind
            assert reports[0] == reports[1] == reports[2], (str(sample), place)
    assert read > 150
