"""Logs of real brokers with truncated, removed, swapped or repeated segments: every reader reports the gap.

With KAFKACODEC_ALL_SEGMENTS in the environment every segment is changed instead of three of each partition.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import pytest

import kafkacodec as kc
from kafkacodec.cli.__main__ import BAD_INPUT, DONE, run
from kafkacodec.log.formats.checkpoints import encode_checkpoint
from tests.corpus import ROOT, log_directories, segments

CHECKPOINTS = (
    "cleaner-offset-checkpoint",
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    "log-start-offset-checkpoint",
)


ALL = "KAFKACODEC_ALL_SEGMENTS" in os.environ


def golden() -> dict[Path, dict[str, list[dict]]]:
    """Partition directory -> segment -> batches of Kafka's own reader; only partitions with several segments."""
    found = defaultdict(dict)
    for sample in segments():
        if sample.name.endswith(".log") and "truncated" not in sample.name and "-live" not in sample.name:
            found[sample.path.parent][sample.path.name] = sample.expected.batches
    whole = {}
    for directory, batches in found.items():
        names = {path.name for path in directory.glob("*.log") if path.stat().st_size}
        if names == batches.keys() and len(list(directory.glob("*.log"))) > 1:
            whole[directory] = batches
    return whole


GOLDEN = golden()
PLAIN = [path for path in GOLDEN if "compact" not in path.name]
COMPACTED = [path for path in GOLDEN if "compact" in path.name]
NAMES = {"ids": lambda path: f"{path.parent.name}/{path.name}"}


class Log:
    """A copy of a partition with its log directory's checkpoints, and the expected results."""

    def __init__(self, source: Path, target: Path) -> None:
        self.source, self.root, self.path = source, target, target / source.name
        shutil.copytree(source, self.path, copy_function=shutil.copyfile)
        self.path.chmod(0o755)
        for name in CHECKPOINTS:
            if (source.parent / name).exists():
                shutil.copyfile(source.parent / name, target / name)
        self.names = sorted(path.name for path in source.glob("*.log"))
        self.bases = [int(name[:20]) for name in self.names]
        self.topic, _, number = source.name.rpartition("-")
        self.number = int(number)

    def end(self) -> int:
        return kc.log.Partition(self.source).end_offset()

    def batches(self, i: int) -> list[dict]:
        return GOLDEN[self.source].get(self.names[i], [])

    def file(self, i: int) -> Path:
        return self.path / self.names[i]

    def spans(self) -> list[tuple[int, int, int]]:
        """The first segment, a middle one and the last: number, base offset, and the next base offset or the end."""
        found = [(i, *span) for i, span in enumerate(pairwise([*self.bases, self.end()]))]
        return found if ALL else [found[i] for i in sorted({0, len(found) // 2, len(found) - 1})]

    def restore(self) -> None:
        shutil.rmtree(self.path)
        shutil.copytree(self.source, self.path, copy_function=shutil.copyfile)
        self.path.chmod(0o755)

    def read(self, **options: object) -> tuple[list[int], list[kc.Problem], kc.DecodeError | None]:
        """Offsets, problems and the error of reading all records."""
        offsets, problems = [], []
        try:
            for chunk in kc.log.LogDirectory(self.root).read(self.topic, self.number, include_control=True, **options):
                offsets += chunk["offset"].tolist()
                problems += chunk.problems
        except kc.DecodeError as error:
            return offsets, problems, error
        return offsets, problems, None

    def missing(self, first: int, end: int) -> None:
        """Every reader reports these offsets as missing, and returns the records on both sides."""
        whole = [row.offset for s in segments() if s.path.parent == self.source for row in s.expected.records]
        offsets, _, error = self.read()
        assert isinstance(error, kc.MissingOffsets)
        assert isinstance(error, kc.Truncated)
        assert (error.first_offset, error.end_offset, error.missing_offsets) == (first, end, end - first)
        assert offsets == [o for o in whole if o < first]
        offsets, problems, error = self.read(on_error="skip")
        assert error is None
        assert [(p.base_offset, p.exception.missing_offsets) for p in problems] == [(first, end - first)]  # type: ignore[attr-defined]
        assert offsets == [o for o in whole if not first <= o < end]
        offsets, problems, error = self.read(on_error="stop")
        assert (offsets, len(problems), error) == ([o for o in whole if o < first], 1, None)
        offsets, problems, error = self.read(gaps="accept")
        assert (offsets, problems, error) == ([o for o in whole if not first <= o < end], [], None)
        partition = kc.log.LogDirectory(self.root).partition(self.topic, self.number)
        (found,) = partition.breaks()
        assert (found.first_offset, found.end_offset) == (first, end)  # type: ignore[attr-defined]
        report = partition.verify()
        assert not report.ok
        assert report.missing_offsets == end - first
        assert [(f.first_offset, f.end_offset) for f in report.findings if f.kind == "gap"] == [(first, end)]


@pytest.mark.parametrize("directory", log_directories(), ids=lambda path: path.name)
def test_what_brokers_left_is_whole(directory):
    for partition in kc.log.LogDirectory(directory).all_partitions:
        assert partition.breaks() == []
        assert sum(len(chunk) for chunk in partition.read()) == sum(
            len(chunk) for chunk in partition.read(gaps="accept", on_error="skip")
        )


@pytest.mark.parametrize("directory", COMPACTED, **NAMES)
def test_compacted_partitions_are_whole_without_the_checkpoint(directory, tmp_path):
    """Only a partition's directory: the batches show that records were removed."""
    log = Log(directory, tmp_path)
    (tmp_path / "cleaner-offset-checkpoint").unlink()
    unknown = [e for e in kc.log.Partition(log.path).breaks() if e.certain]  # type: ignore[attr-defined]
    assert unknown == []


@pytest.mark.parametrize("source", PLAIN, **NAMES)
def test_cut_segments(source, tmp_path):
    log = Log(source, tmp_path)
    for i, base, following in log.spans():
        batches = log.batches(i)
        for batch in {0: batches[0], 1: batches[len(batches) // 2], 2: batches[-1]}.values():
            place = batch["position"]
            before = [b["lastOffset"] + 1 for b in batches if b["position"] < place]
            for size in (place, place + 1, place + 20, place + batch["sizeInBytes"] - 1):
                with open(log.file(i), "r+b") as file:
                    file.truncate(size)
                log.missing(before[-1] if before else base, following)
                log.restore()
                if i or batch is not batches[-1]:
                    break  # all sizes at one place, the shortest at the others


@pytest.mark.parametrize("source", PLAIN, **NAMES)
def test_segments_that_are_gone_or_empty(source, tmp_path):
    log = Log(source, tmp_path)
    for i, base, following in log.spans():
        if i == 0:
            continue
        log.file(i).unlink()
        log.missing(base, following)
        for path in log.path.glob(f"{base:020d}.*"):
            path.unlink()
        log.missing(base, following)
        log.restore()
        log.file(i).write_bytes(b"")
        log.missing(base, following)
        log.restore()


@pytest.mark.parametrize("source", PLAIN, **NAMES)
def test_a_first_segment_that_is_gone_is_reported_where_the_epochs_show_it(source, tmp_path):
    """Retention deletes first segments: not an error, but the leader epochs show what is missing."""
    log = Log(source, tmp_path)
    log.file(0).unlink()
    assert log.read()[2] is None
    report = kc.log.LogDirectory(tmp_path).verify()
    assert report.ok
    reported = [(f.first_offset, f.end_offset) for f in report.findings if f.kind == "log-start"]
    known = [epoch.start_offset for epoch in kc.log.Partition(source).leader_epochs]  # none of brokers before 0.11
    assert reported == [(offset, log.bases[1]) for offset in known[:1] if offset < log.bases[1]]


@pytest.mark.parametrize("source", [*PLAIN, *COMPACTED], **NAMES)
def test_swapped_and_repeated_segments(source, tmp_path):
    log = Log(source, tmp_path)
    filled = [i for i in range(len(log.names)) if log.batches(i)]
    for i, k in list(pairwise(filled))[:3]:
        one, other = log.file(i).read_bytes(), log.file(k).read_bytes()
        log.file(i).write_bytes(other)
        log.file(k).write_bytes(one)
        misplaced(log)
        log.restore()
    shutil.copyfile(log.file(filled[0]), log.path / f"{log.end():020d}.log")
    misplaced(log)


def misplaced(log: Log) -> None:
    """Every reader reports that offsets are out of order."""
    assert isinstance(log.read()[2], kc.CorruptRecord | kc.MissingOffsets)
    _, problems, error = log.read(on_error="skip")
    assert error is None
    assert any(isinstance(p.exception, kc.CorruptRecord) for p in problems)
    report = kc.log.LogDirectory(log.root).verify()
    assert ("error", "offset-order") in report.counts
    assert any(isinstance(e, kc.CorruptRecord) for e in kc.log.Partition(log.path).breaks())


@pytest.mark.parametrize("source", COMPACTED, **NAMES)
def test_compacted_segments_that_are_cut(source, tmp_path):
    """Compaction does not leave bytes of a partial batch; the number of its records is unknown."""
    log = Log(source, tmp_path)
    for i, _, following in log.spans():
        batches = log.batches(i)
        if not batches:
            continue
        with open(log.file(i), "r+b") as file:
            file.truncate(batches[-1]["position"] + 20)
        first = batches[-2]["lastOffset"] + 1 if len(batches) > 1 else log.bases[i]
        error = log.read()[2]
        assert isinstance(error, kc.MissingOffsets)
        assert (error.first_offset, error.end_offset, error.certain) == (first, following, True)
        assert not kc.log.LogDirectory(tmp_path).verify().ok
        log.restore()


@pytest.mark.parametrize("source", PLAIN[::6] + [path for path in COMPACTED if "txn" in path.name][::2], **NAMES)
def test_the_commands_say_so(source, tmp_path, capsys):
    data = tmp_path / "data"
    data.mkdir()
    log = Log(source, data)
    batch = log.batches(0)[-1]
    following, first = log.bases[1], (log.batches(0)[-2]["lastOffset"] + 1 if len(log.batches(0)) > 1 else 0)
    with open(log.file(0), "r+b") as file:
        file.truncate(batch["position"] + 20)
    gap = f"gap of {following - first} offset"

    def call(*arguments: object) -> tuple[int, str, str]:
        return run([str(argument) for argument in arguments]), *capsys.readouterr()

    code, out, err = call("verify", data)
    assert (code, gap in out) == (BAD_INPUT, True)
    code, out, err = call("scan", data)
    assert (code, gap in err) == (BAD_INPUT, True)
    code, out, err = call("scan", data, "--json", "--gaps", "accept")
    assert (code, [json.loads(line)["missing_offsets"] for line in out.splitlines()]) == (DONE, [0] * len(log.names))
    code, out, err = call("dump", data, "--json")
    assert (code, gap in err) == (BAD_INPUT, True)
    target = tmp_path / "out.csv"
    code, out, err = call("convert", data, "-o", target)
    assert (code, gap in err, target.exists()) == (BAD_INPUT, True, False)
    # Segments given by name are compared with the directory, too.
    code, out, err = call("convert", *sorted(log.path.glob("*.log")), "-o", target)
    assert (code, gap in err) == (BAD_INPUT, True)
    code, out, err = call("convert", data, "-o", target, "--on-error", "skip")
    assert (code, gap in err) == (DONE, True)
    code, out, err = call("convert", data, "-o", target, "--gaps", "accept", "--force")
    assert (code, gap in err) == (DONE, False)
    code, out, err = call("recover", data, tmp_path / "saved")
    assert (code, gap in out) == (BAD_INPUT, True)
    assert f"at most {following - first} record" in out.splitlines()[-1]
    report = json.loads((tmp_path / "saved/recovery-report.json").read_text())
    assert (report["ok"], report["missing_offsets"]) == (False, following - first)


def test_a_torn_end_of_the_log_is_normal(tmp_path):
    """A killed broker leaves a torn end; but not before the recovery point."""
    source = ROOT / "logs/kraft-4.1.0/none-0"
    log = Log(source, tmp_path)
    last = log.batches(len(log.names) - 1)[-1]
    with open(log.file(-1), "r+b") as file:
        file.truncate(last["position"] + 30)
    (tmp_path / "recovery-point-offset-checkpoint").write_bytes(encode_checkpoint({("none", 0): last["baseOffset"]}))
    assert log.read()[2] is None
    report = kc.log.LogDirectory(tmp_path).partition("none", 0).verify()
    assert report.ok
    assert "torn-tail" in {finding.kind for finding in report.findings}
    assert "cannot be told" not in str(report)
    # A single segment does not know whether it is the last one.
    with open(log.file(0), "r+b") as file:
        file.truncate(log.batches(0)[-1]["position"] + 30)
    assert "does not show whether more followed" in str(kc.log.Segment(log.file(0)).verify())


def test_only_offsets_that_are_wanted_can_be_missing(tmp_path):
    source = ROOT / "logs/kraft-4.1.0/none-0"
    log = Log(source, tmp_path)
    log.file(1).unlink()
    base, following = log.bases[1:3]
    for options, missing in (
        ({"end_offset": base}, None),
        ({"start_offset": following}, None),
        ({"end_offset": base + 2}, (base, base + 2)),
        ({"start_offset": base + 2}, (base + 2, following)),
        ({"start_offset": base + 2, "end_offset": base + 5}, (base + 2, base + 5)),
    ):
        error = log.read(**options)[2]
        assert (error and (error.first_offset, error.end_offset)) == missing  # type: ignore[attr-defined]
    partition = kc.log.LogDirectory(tmp_path).partition("none", 0)
    pieces = partition.ranges(max_bytes=3000)
    assert [piece.following for piece in pieces if piece.following is not None] == log.bases[2:]
    (cut,) = [piece for piece in pieces if piece.following == following]
    with pytest.raises(kc.MissingOffsets):
        list(pickle.loads(pickle.dumps(cut)).read())
    with pytest.raises(ValueError, match="gaps"):
        next(partition.read(gaps="ignore"))


def test_markers_that_are_missing(tmp_path):
    """A transaction without its marker seems to be open: reading must not silently end before it."""
    producer = {"producer_id": 9, "producer_epoch": 0}
    log = tmp_path / "t-0"
    log.mkdir()
    kept = kc.encode([(None, b"x")] * 3, base_offset=0)
    opened = kc.encode([(None, b"y")] * 5, base_offset=3, is_transactional=True, base_sequence=0, **producer)
    closed = kc.control_batch("commit", offset=8, **producer)
    (log / f"{0:020}.log").write_bytes(kept + opened)
    (log / f"{8:020}.log").write_bytes(closed)
    (log / f"{9:020}.log").write_bytes(kc.encode([(None, b"z")], base_offset=9))

    def offsets(**options):
        partition = kc.log.Partition(log)
        for chunk in partition.read(isolation_level="read_committed", **options):
            yield from chunk["offset"].tolist()

    assert list(offsets()) == [*range(8), 9]
    (log / f"{8:020}.log").unlink()
    got = []
    with pytest.raises(kc.MissingOffsets, match="gap of 1 offset from 8 on"):
        got.extend(offsets())
    assert list(offsets(end_offset=8)) == [0, 1, 2]
    assert list(offsets(gaps="accept")) == [0, 1, 2]


def test_the_error_can_be_pickled():
    error = kc.MissingOffsets("gap", position=3, path="a", first_offset=5, end_offset=9, certain=False)
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), vars(copy)) == (str(error), vars(error))


ROLLING07 = ROOT.parent / "dialects/kafka07/segments/broker-0/rolling-0"


@pytest.mark.parametrize("i", [0, 1, 2])
@pytest.mark.parametrize("harm", ["cut", "remove", "empty"])
def test_offsets_of_kafka_07_are_positions(tmp_path, capsys, i, harm):
    """So the missing part of such a log is known to the byte."""
    directory = tmp_path / "rolling-0"
    shutil.copytree(ROLLING07, directory, copy_function=shutil.copyfile)
    directory.chmod(0o755)
    segments07 = sorted(directory.glob("*.kafka"))
    offsets = [o for chunk in kc.log.Partition(directory).read() for o in chunk["offset"].tolist()]
    base, following = int(segments07[i].stem), int(segments07[i + 1].stem)
    inside = [o for o in offsets if base <= o < following]
    first = inside[-1] if harm == "cut" else base
    if harm == "remove":
        if i == 0:
            return  # as if it had been deleted in its time
        segments07[i].unlink()
    else:
        with open(segments07[i], "r+b") as file:
            file.truncate(first - base + (3 if harm == "cut" else 0))

    def read():
        for chunk in kc.log.Partition(directory).read():
            yield from chunk["offset"].tolist()

    got = []
    with pytest.raises(kc.MissingOffsets, match=f"gap of {following - first} bytes from {first} on") as caught:
        got.extend(read())
    assert (caught.value.missing_offsets, caught.value.certain) == (following - first, True)
    assert got == [o for o in offsets if o < first]
    skipped = [o for chunk in kc.log.Partition(directory).read(on_error="skip") for o in chunk["offset"].tolist()]
    assert skipped == [o for o in offsets if not first <= o < following]
    report = kc.log.Partition(directory).verify()
    assert (report.ok, report.missing_offsets) == (False, following - first)
    (found,) = kc.log.Partition(directory).breaks()
    assert (found.first_offset, found.end_offset) == (first, following)  # type: ignore[attr-defined]
    for command in (["dump"], ["dump", "--log-format", "kafka07"], ["verify"]):
        assert run([*command, str(directory)]) == BAD_INPUT
        assert f"gap of {following - first} bytes" in "".join(capsys.readouterr())
    assert run(["dump", "--log-format", "kafka07", "--gaps", "accept", str(directory)]) == DONE
    assert run(["dump", "--log-format", "kafka07", "--on-error", "skip", str(directory)]) == DONE
    assert "gap of" in capsys.readouterr().err


@pytest.mark.parametrize("source", [*PLAIN, *COMPACTED], **NAMES)
def test_what_compaction_removed_is_counted(source, tmp_path):
    batches = [batch for of_segment in GOLDEN[source].values() for batch in of_segment]
    if any(batch["magic"] < 2 and batch["isCompressed"] for batch in batches):
        return  # the first offset of such a set is unknown
    partition = kc.log.Partition(source)
    held = sum(batch["lastOffset"] - batch["baseOffset"] + 1 for batch in batches)
    report = partition.verify()
    assert report.compacted_offsets == partition.end_offset() - partition.segments[0].base_offset - held
    assert (report.compacted_offsets > 0) == (source in COMPACTED)
    assert report.missing_offsets == 0
