"""Uploads of a leader whose log was truncated, where no other upload has what was written after the cut.

The first leader uploaded offsets 0 to 99, of which those from 60 on were lost with it. The next leader wrote from 60
on; its first upload that is there begins at 70.
"""

import json
import pickle

import pytest
from click.testing import CliRunner

import kafkacodec as kc
from kafkacodec.cli.app import application
from kafkacodec.log.formats.checkpoints import encode_producer_snapshot
from kafkacodec.log.state.group_lag import _Logs
from kafkacodec.log.storage import stores
from kafkacodec.log.tiered import directories
from tests.hostile_store import HostileStore, use
from tests.tiered_uploads import TOPIC, records, snapshot, upload

NO_PRODUCERS = encode_producer_snapshot(())
KEPT = [*range(60), *range(70, 150)]


def first_leader(directory, batches):
    upload(directory, "A", {0: 0}, batches, {0: 0}, b"of a log that is gone")


def next_leader(directory, batches):
    upload(directory, "B", {1: 70}, batches, {0: 0, 1: 60}, NO_PRODUCERS)


def timed(first, time, epoch, **owner):
    """Ten records, each at the time plus its offset."""
    rows = [kc.Record(offset, time + offset, 0, b"k", b"v", []) for offset in range(first, first + 10)]
    return kc.encode(rows, base_offset=first, partition_leader_epoch=epoch, **owner)


@pytest.fixture
def empty(tmp_path):
    found = tmp_path / "tiered" / TOPIC / "0"
    found.mkdir(parents=True)
    return found


@pytest.fixture
def directory(empty):
    first_leader(empty, [records(offset, 10, 0) for offset in range(0, 100, 10)])
    next_leader(empty, [records(70, 50, 1), records(120, 30, 1)])
    return empty


def read(source, **options):
    """The offsets that are read, and those that are then reported as missing."""
    found = []
    try:
        for chunk in source.read(**options):
            found += chunk["offset"].tolist()
    except kc.MissingOffsets as error:
        return found, (error.first_offset, error.end_offset)
    return found, None


@pytest.mark.parametrize("level", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize(
    ("start", "end", "found", "missing"),
    [
        (None, None, range(60), (60, 70)),
        (20, None, range(20, 60), (60, 70)),
        (62, None, (), (62, 70)),
        (None, 65, range(60), (60, 65)),
        (62, 66, (), (62, 66)),
        (None, 60, range(60), None),
        (None, 55, range(55), None),
        (70, None, range(70, 150), None),
        (100, None, range(100, 150), None),
    ],
)
def test_offsets_before_the_cut_are_read_and_those_after_it_are_missing(directory, level, start, end, found, missing):
    bounds = {"start_offset": start, "end_offset": end, "isolation_level": level}
    partition = kc.log.Partition(directory)
    assert read(partition, **bounds) == (list(found), missing)
    everything = [offset for offset in KEPT if (start or 0) <= offset < (end or 150)]
    assert read(partition, gaps="accept", **bounds) == (everything, None)
    assert read(partition, on_error="skip", **bounds) == (everything, None)


def test_ranges_that_are_planned_elsewhere_tell_the_same(directory):
    pieces = pickle.loads(pickle.dumps(kc.log.Partition(directory).ranges(max_bytes=400)))
    found = [read(piece) for piece in pieces]
    assert [offset for offsets, _ in found for offset in offsets] == KEPT
    assert [missing for _, missing in found if missing is not None] == [(60, 70)]


def test_everything_counts_the_same(directory, tmp_path):
    partition = kc.log.Partition(directory)
    assert partition.count(gaps="accept") == len(KEPT)
    assert (partition.start_offset(), partition.end_offset()) == (0, 150)
    [found] = kc.log.statistics(directory)
    assert (found.num_records, found.gaps, found.missing_offsets) == (len(KEPT), 1, 10)
    [broken] = partition.breaks()
    assert isinstance(broken, kc.MissingOffsets)
    assert (broken.first_offset, broken.end_offset) == (60, 70)
    assert [(u.segment_id[0], u.superseded) for u in kc.log.uploads(directory)] == [("A", False), ("B", False)]
    recovered = kc.log.recover(directory, tmp_path / "log")
    for report in (partition.verify(), recovered):
        [finding] = [finding for finding in report.findings if finding.level != "note"]
        assert (finding.kind, finding.first_offset, finding.end_offset) == ("gap", 60, 70)
        assert report.missing_offsets == 10
    saved = kc.log.Partition(tmp_path / "log" / "t-0")
    assert read(saved) == (list(range(60)), (60, 70))
    assert read(saved, gaps="accept") == (KEPT, None)
    assert saved.leader_epochs == [(0, 0), (1, 60)]


def test_commands_tell_of_the_gap(directory):
    log = str(directory.parents[1])
    for command in ("topics", "scan", "stats"):
        result = CliRunner().invoke(application, [command, log])
        assert result.exit_code == 1
        assert "gap of 10 offsets from 60 on" in result.output + str(result.exception)
    result = CliRunner().invoke(application, ["dump", "--json", "--gaps", "accept", log])
    assert [json.loads(line)["offset"] for line in result.output.splitlines()] == KEPT


def test_a_time_after_the_cut_is_not_looked_up(empty):
    first_leader(empty, [timed(offset, 0 if offset < 60 else 500, 0) for offset in range(0, 100, 10)])
    next_leader(empty, [timed(70, 1000, 1)])
    partition = kc.log.Partition(empty)
    assert partition.offset_of_timestamp(50) == 50
    assert partition.offset_of_timestamp(570) == 70


def test_a_transaction_that_ends_after_the_cut_is_open(empty):
    """Whether it was committed is missing."""
    abort = kc.control_batch("abort", offset=60, producer_id=1, producer_epoch=0, partition_leader_epoch=0)
    first_leader(empty, [records(0, 20, 0), records(20, 40, 0, producer=1), abort, records(61, 39, 0)])
    next_leader(empty, [records(70, 80, 1)])
    partition = kc.log.Partition(empty)
    assert read(partition, isolation_level="read_committed") == (list(range(20)), (60, 70))
    assert partition.transactions().open == {1: 20}


def test_a_cut_between_other_uploads(empty):
    upload(empty, "Z", {0: 0}, [records(0, 30, 0)], {0: 0}, NO_PRODUCERS)
    upload(empty, "A", {0: 30}, [records(30, 30, 0), records(60, 40, 0)], {0: 0})
    next_leader(empty, [records(70, 80, 1)])
    assert read(kc.log.Partition(empty)) == (list(range(60)), (60, 70))


def test_an_upload_that_ends_at_the_cut_is_preferred(empty):
    """It has the same offsets of the log, and the producers at its end."""
    upload(empty, "Z", {0: 0}, [records(0, 60, 0)], {0: 0}, NO_PRODUCERS)
    first_leader(empty, [records(0, 60, 0), records(60, 40, 0)])
    next_leader(empty, [records(70, 80, 1)])
    assert [(u.segment_id[0], u.superseded) for u in kc.log.uploads(empty)] == [("A", True), ("Z", False), ("B", False)]
    assert read(kc.log.Partition(empty)) == (list(range(60)), (60, 70))


def test_a_damaged_manifest_at_the_cut_is_its_own_error(directory):
    upload(directory, "D", {1: 60}, [records(60, 10, 1)], {0: 0, 1: 60})
    next(directory.glob("*-D*.rsm-manifest")).write_bytes(b"{")
    with pytest.raises(kc.errors.CorruptRecord, match="the manifest is not JSON"):
        read(kc.log.Partition(directory))


def test_the_upload_that_was_missing_closes_the_gap(directory):
    upload(directory, "D", {1: 60}, [records(60, 10, 1)], {0: 0, 1: 60})
    assert read(kc.log.Partition(directory)) == (list(range(150)), None)


def test_in_an_object_store(directory, monkeypatch):
    store = HostileStore()
    try:
        use(store, monkeypatch, retries=0)
        for cache in (directories._cached_manifest, directories._cached_history):
            cache.cache_clear()
        for path in directory.iterdir():
            store.objects[f"{TOPIC}/0/{path.name}"] = path.read_bytes()
        partition = kc.log.Partition(f"s3://bucket/{TOPIC}/0")
        assert read(partition) == (list(range(60)), (60, 70))
        assert read(partition, gaps="accept") == (KEPT, None)
        [finding] = [finding for finding in partition.verify().findings if finding.level == "error"]
        assert (finding.first_offset, finding.end_offset) == (60, 70)
    finally:
        stores._bucket.cache_clear()
        store.close()


def test_leader_epochs_that_the_newest_upload_contradicts_do_not_leave_it_out(empty):
    """Those of its manifest count, as if the checkpoint could not be read."""
    upload(empty, "A", {0: 0}, [records(0, 70, 0)], {0: 0})
    upload(empty, "B", {1: 70}, [records(70, 80, 1)], {0: 0, 1: 170}, NO_PRODUCERS)
    partition = kc.log.Partition(empty)
    assert read(partition) == (list(range(150)), None)
    assert "leader-epoch" in [finding.kind for finding in partition.verify().findings]


def lag_of(directory, offset):
    commit = kc.log.CommittedOffset("group", "t", 0, offset, -1, "", -1, -1)
    found = _Logs([directory], "read_committed", None).lag_of("group", "t", 0, commit, None)
    return found.end_offset, found.timestamp, found.end_timestamp, found.lag_ms


def test_lag_ends_with_the_last_record_before_the_cut(empty):
    """An open transaction at 70 holds consumers back."""
    first_leader(empty, [timed(offset, 0 if offset < 60 else 5000, 0) for offset in range(0, 100, 10)])
    begun = timed(70, 1000, 1, producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True)
    upload(empty, "B", {1: 70}, [begun], {0: 0, 1: 60}, snapshot(1, 70))
    assert lag_of(empty, 50) == (70, 50, None, None)  # 60 to 69 are lost


def test_lag_does_not_begin_with_a_record_after_the_cut(empty):
    commit = kc.control_batch("commit", offset=59, producer_id=1, producer_epoch=0, partition_leader_epoch=0)
    first_leader(empty, [timed(0, 0, 0), commit, timed(60, 5000, 0)])
    next_leader(empty, [timed(70, 1000, 1)])
    assert lag_of(empty, 59) == (80, None, 1079, None)  # 60 to 69 are lost


def test_what_was_not_uploaded_is_no_segment(directory, tmp_path):
    """Two uploads are two segments; the offsets between them are missing."""
    [found] = kc.log.statistics(directory)
    assert (found.num_segments, found.num_records, found.missing_offsets) == (2, 140, 10)
    report = kc.log.Partition(directory).verify()
    assert (report.num_segments, report.missing_offsets) == (2, 10)
    result = CliRunner().invoke(application, ["scan", str(directory)])
    assert "2 segments, 8 batches, 140 records" in result.output
    assert [line.split()[1:3] for line in result.output.splitlines() if "10 offsets missing" in line] == [
        ["not", "uploaded"]
    ]
    saved = kc.log.recover(directory, tmp_path / "saved")
    assert saved.missing_offsets == 10
    assert sorted(path.name for path in (tmp_path / "saved/t-0").glob("*.log")) == [f"{0:020}.log", f"{70:020}.log"]
