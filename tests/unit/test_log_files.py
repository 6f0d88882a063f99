"""Files that are missing, irregular, growing, shrinking or not segments; directory layouts of all versions."""

from __future__ import annotations

import gc
import inspect
import os
import shutil

import pyarrow as pa
import pytest

import kafkacodec as kc
from kafkacodec.log.formats import layout
from tests.corpus import ROOT

SEGMENT = ROOT / "logs/kraft-4.1.0/txn-0/00000000000000000000.log"
DATA = SEGMENT.read_bytes()


def first(path, **options):
    return next(kc.log.Segment(path).read(**options))


def test_errors_of_the_system_name_the_file(tmp_path):
    path = tmp_path / "00000000000000000000.log"
    with pytest.raises(FileNotFoundError) as caught:
        first(path)
    assert caught.value.filename == str(path)
    with pytest.raises(IsADirectoryError) as caught:
        first(tmp_path)
    assert caught.value.filename == str(tmp_path)
    os.mkfifo(path)
    with pytest.raises(OSError, match="not a regular file"):
        first(path)
    with pytest.raises(FileNotFoundError):
        kc.log.LogDirectory(tmp_path / "none")
    with pytest.raises(FileNotFoundError, match="no topic 'x': this directory has no partitions"):
        kc.log.LogDirectory(tmp_path).partition("x", 3)


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("leader-epoch-checkpoint", kc.log.read_leader_epochs),
        ("recovery-point-offset-checkpoint", kc.log.read_checkpoint),
        ("partition.metadata", kc.log.read_topic_id),
        ("00000000000000000000.snapshot", kc.log.read_producer_snapshot),
        ("00000000000000000000.index", kc.log.read_offset_index),
    ],
)
def test_small_files_that_are_none(tmp_path, name, read):
    """Opening a pipe would wait forever, and a huge file would fill memory."""
    path = tmp_path / name
    os.mkfifo(path)
    with pytest.raises(OSError, match="not a regular file"):
        read(path)
    path.unlink()
    with open(path, "wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(kc.LimitExceeded, match="1099511627776 bytes"):
        read(path)
    path.unlink()
    path.mkdir()
    with pytest.raises(IsADirectoryError):
        read(path)


def test_unreadable_file(monkeypatch):
    def refuse(path, *args):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(PermissionError) as caught:
        first(SEGMENT)
    assert caught.value.filename == str(SEGMENT)


def test_an_empty_segment_has_no_records(tmp_path):
    path = tmp_path / "00000000000000000000.log"
    path.touch()
    chunks = list(kc.log.Segment(path).read())
    assert [(len(chunk), chunk.consumed) for chunk in chunks] == [(0, 0)]
    assert len(kc.log.Segment(path).scan()) == 0
    assert kc.log.Segment(path).last_offset() is None
    assert kc.log.Segment(path).ranges() == []


@pytest.mark.parametrize(
    "content", [b"hello\n", b"PAR1" + bytes(range(200)), b'{"a": 1}\n' * 50, b"\x1f\x8b\x08" + bytes(range(3, 90))]
)
def test_what_is_no_segment_is_refused(tmp_path, content):
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(content)
    with pytest.raises(kc.DecodeError) as caught:
        list(kc.log.Segment(path).read())
    assert caught.value.path == str(path)
    assert caught.value.position in (0, 8, 16)
    with pytest.raises(kc.DecodeError):
        kc.log.Segment(path).scan()


def test_damage_is_placed_in_the_file_and_what_comes_before_it_is_given(tmp_path):
    path = tmp_path / "00000000000000000000.log"
    headers = kc.scan(DATA)
    at = int(headers["position"][3])
    path.write_bytes(DATA[: at + 70] + b"\xff" + DATA[at + 71 :])
    got = []
    chunks = kc.log.Segment(path).read(start_position=int(headers["position"][1]))
    with pytest.raises(kc.CrcMismatch, match=r"0000\.log: batch at offset") as caught:
        got.extend(offset for chunk in chunks for offset in chunk["offset"].tolist())
    assert caught.value.position == at
    assert got == list(range(int(headers["base_offset"][1]), int(headers["base_offset"][3])))
    kept = caught  # a cycle through the traceback must not break the collector
    del caught
    gc.collect()
    assert kept.value.position == at


def test_a_file_shortened_while_it_is_read_is_an_error_not_a_crash(tmp_path):
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(DATA)
    chunks = kc.log.Segment(path).read(max_rows=1)
    next(chunks)
    os.truncate(path, 100)
    with pytest.raises(kc.Truncated, match="shortened"):
        list(chunks)


def test_a_file_deleted_while_it_is_read_is_read_to_its_end(tmp_path):
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(DATA)
    chunks = kc.log.Segment(path).read(max_rows=1)
    read = [next(chunks)]
    path.unlink()
    read += chunks
    assert sum(map(len, read)) == len(kc.decode(DATA))


def test_memory_mapped_pages_are_given_back(tmp_path):
    path = tmp_path / "repeated.log"  # in a file that is named by an offset, repeated offsets are damage
    with open(path, "wb") as file:
        for _ in range(3000):
            file.write(DATA)

    def resident():
        with open("/proc/self/smaps_rollup") as lines:
            return sum(int(line.split()[1]) for line in lines if line.startswith("Rss:")) * 1024

    before, peak = resident(), 0
    for i, _ in enumerate(kc.log.Segment(path).read(columns=("offset",))):
        if i % 20 == 0:
            peak = max(peak, resident())
    assert path.stat().st_size > 50 << 20
    assert peak - before < 32 << 20


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("orders-3", ("orders", 3, "current")),
        ("a-b-c-10", ("a-b-c", 10, "current")),
        ("__cluster_metadata-0", ("__cluster_metadata", 0, "current")),
        ("-1-0", ("-1", 0, "current")),
        ("orders-3.0123456789abcdef0123456789abcdef-delete", ("orders", 3, "delete")),
        ("orders-3.0123456789abcdef0123456789abcdef-future", ("orders", 3, "future")),
        ("a.b-3.0123456789abcdef0123456789abcdef-stray", ("a.b", 3, "stray")),
        ("LWgrMmVrT0a__7a4SasuPA-0-orders-eu", ("orders-eu", 0, "remote")),
        ("A" * 22 + "-5-foo-0", ("A" * 22 + "-5-foo", 0, "current")),
        ("orders", None),
        ("orders-", None),
        ("orders-x", None),
        ("-5", None),
        ("orders-3-delete", None),
        ("orders-2147483647", ("orders", 2147483647, "current")),
        ("caf\udce9-3", ("caf\\udce9", 3, "current")),
    ],
)
def test_partition_directories_are_known_by_name(name, parts):
    assert layout.parse_directory_name(name) == parts


@pytest.mark.parametrize(
    ("name", "offset"),
    [
        ("00000000000000000042.log", 42),
        ("09223372036854775807.log", (1 << 63) - 1),
        ("09223372036854775808.log", None),
        ("99999999999999999999.kafka", None),
        ("0000000000000000004\u0662.log", None),
    ],
)
def test_segments_are_known_by_name(name, offset):
    parts = layout.parse_file_name(name)
    assert (parts and parts.base_offset) == offset


def test_a_log_directory_lists_what_counts(tmp_path):
    def put(*parts):
        path = tmp_path.joinpath(*parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(DATA)

    put("orders-eu-10", "00000000000000000000.log")
    put("orders-eu-2", "00000000000000000000.log")
    for name in ("log.deleted", "log.swap", "log.cleaned", "index"):
        put("orders-eu-2", f"00000000000000000007.{name}")
    put("orders-eu-2.0123456789abcdef0123456789abcdef-future", "00000000000000000000.log")
    put("clicks-AAAAAAAAAAAAAAAAAAAAAQ", "4", "00000000000000000000-AAAAAAAAAAAAAAAAAAAAAg.log")
    put("old-0", "00000000000000000402.kafka")
    put("lost+found", "00000000000000000000.log")
    put("meta.properties")
    log = kc.log.LogDirectory(tmp_path)
    assert log.topics == ["clicks", "old", "orders-eu"]
    assert [p.partition for p in log.partitions("orders-eu")] == [2, 10]
    assert [(p.topic, p.state) for p in log.set_aside] == [("orders-eu", "future")]
    assert [os.path.basename(s.path) for s in log.partition("orders-eu", 2).segments] == [
        "00000000000000000000.log",
        "00000000000000000007.log.swap",  # the cleaner's, not renamed yet
    ]
    assert log.partition("clicks", 4).segments[0].base_offset == 0
    assert [p.is_kafka07 for p in log.all_partitions] == [False, True, False, False, False]


def test_discover_takes_directories_partitions_and_files(tmp_path):
    writer = ROOT / "logs/kraft-4.1.0"
    assert {p.topic for p in kc.log.discover(writer)} >= {"txn", "none", "__cluster_metadata"}
    (alone,) = kc.log.discover(writer / "txn-0")
    assert (alone.topic, alone.partition) == ("txn", 0)
    (picked,) = kc.log.discover([SEGMENT, SEGMENT.with_name("00000000000000000050.log")])
    assert (picked.topic, picked.partition, len(picked.segments)) == ("txn", 0, 2)
    with pytest.raises(FileNotFoundError, match="no Kafka log segments"):
        kc.log.discover(tmp_path)
    with pytest.raises(FileNotFoundError):
        kc.log.discover(tmp_path / "none")


def test_files_of_the_current_directory_are_verified(tmp_path, monkeypatch):
    shutil.copytree(ROOT / "logs" / "kraft-4.1.0" / "none-0", tmp_path / "none-0")
    monkeypatch.chdir(tmp_path / "none-0")
    (partition,) = kc.log.discover("00000000000000000000.log")
    assert (partition.topic, partition.partition) == ("none", 0)
    assert partition.verify().clean


@pytest.mark.parametrize(("timestamp", "found"), [(1 << 80, None), (-(1 << 80), 0), (1 << 63, None), (-(1 << 63), 0)])
def test_times_beyond_64_bits(timestamp, found):
    assert kc.log.Partition(ROOT / "logs" / "kraft-4.1.0" / "none-0").offset_of_timestamp(timestamp) == found


@pytest.mark.parametrize("timestamp", [b"2024", 1.5, None])
def test_times_of_another_type(timestamp):
    with pytest.raises(TypeError, match="must be milliseconds, a datetime, a date or text, not"):
        kc.log.Partition(ROOT / "logs" / "kraft-4.1.0" / "none-0").offset_of_timestamp(timestamp)


def test_log_start_offset_is_respected_unless_another_is_given(tmp_path):
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / "00000000000000000000.log").write_bytes(DATA)
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\nt 0 20\n")
    log = kc.log.LogDirectory(tmp_path)
    assert next(log.read("t", 0))["offset"][0] == 20
    assert next(log.read("t", 0, start_offset=3))["offset"][0] == 3
    partition = kc.log.Partition(tmp_path / "t-0")
    assert partition.start_offset() == log.partition("t", 0).start_offset() == 20
    assert next(partition.read())["offset"][0] == 20
    assert next(kc.log.discover(tmp_path)[0].read())["offset"][0] == 20
    assert next(kc.log.discover(partition.segments[0].path)[0].read())["offset"][0] == 0  # picked by hand


def test_deleted_records_are_not_found_by_time(tmp_path):
    records = kc.decode(DATA, include_control=True)
    offsets, times = records["offset"].tolist(), records["timestamp"].astype("i8").tolist()
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / "00000000000000000000.log").write_bytes(DATA)
    for start in (0, 20, offsets[-1], offsets[-1] + 1):
        (tmp_path / "log-start-offset-checkpoint").write_text(f"0\n1\nt 0 {start}\n")
        partition = kc.log.Partition(tmp_path / "t-0")
        for time in (0, times[5], times[25], max(times), max(times) + 1):
            expected = next((o for o, t in zip(offsets, times, strict=True) if o >= start and t >= time), None)
            assert partition.offset_of_timestamp(time) == expected


def test_isolation_level_is_checked():
    with pytest.raises(ValueError, match="isolation_level"):
        kc.log.Partition(SEGMENT.parent).ranges(isolation_level="serializable")


def test_bounds_of_time_and_offset_together():
    partition = kc.log.Partition(SEGMENT.parent)
    times = kc.decode(DATA)["timestamp"].astype("i8").tolist()
    time, later = sorted(set(times))[3], max(times)

    def span(**bounds):
        found = [offset for chunk in partition.read(**bounds) for offset in chunk["offset"].tolist()]
        return (found[0], found[-1]) if found else None

    first, after = partition.offset_of_timestamp(time), partition.offset_of_timestamp(later)
    assert span(start_timestamp=time, end_timestamp=later)[0] == first
    assert span(start_timestamp=time, start_offset=first + 2, end_timestamp=later)[0] == first + 2
    assert span(start_timestamp=time, end_timestamp=later, end_offset=1000)[1] < after
    assert span(start_timestamp=4_102_444_800_000, start_offset=0) is None
    assert span(end_timestamp=4_102_444_800_000) == span()


def test_a_batch_that_reaches_over_the_end_of_its_range_is_reported(tmp_path):
    path = tmp_path / "00000000000000000000.log"
    headers = kc.scan(DATA)
    at, cut = int(headers["position"][4]), int(headers["position"][9])
    path.write_bytes(DATA[: at + 8] + (cut - at + 100).to_bytes(4, "big") + DATA[at + 12 :])
    piece = kc.log.SegmentRange(str(path), None, None, 0, cut)
    with pytest.raises(kc.CorruptRecord, match="length exceeds the data, yet valid batches follow") as caught:
        list(piece.read())
    assert caught.value.position == at
    stopped = list(piece.read(on_error="stop"))
    assert [(p.position, p.size_in_bytes) for chunk in stopped for p in chunk.problems] == [(at, cut - at)]
    skipped = list(piece.read(on_error="skip"))
    assert sum(map(len, skipped)) == int(headers["count"][:9].sum() - headers["count"][4])


def test_the_last_batch_of_a_range_that_reaches_over_its_end_is_reported(tmp_path):
    path = tmp_path / "00000000000000000000.log"
    headers = kc.scan(DATA)
    at, cut = int(headers["position"][8]), int(headers["position"][9])
    path.write_bytes(DATA[: at + 8] + (cut - at + 100).to_bytes(4, "big") + DATA[at + 12 :])
    with pytest.raises(kc.CorruptRecord, match="past the end of its range") as caught:
        list(kc.log.SegmentRange(str(path), None, None, 0, cut).read())
    assert caught.value.position == at


def test_every_public_name_is_there():
    pytest.importorskip("pyarrow")
    assert all(getattr(kc.log, name) is not None for name in kc.log.__all__)
    assert {*kc.log.__all__} <= {*dir(kc.log)}
    with pytest.raises(AttributeError, match="'read_nothing'"):
        _ = kc.log.read_nothing


def test_options_of_a_log_directory_are_those_of_a_partition():
    log = kc.log.LogDirectory(SEGMENT.parents[1])
    options = {"start_offset": 20, "isolation_level": "read_committed", "columns": ["offset"], "max_rows": 50}
    mine = [chunk["offset"].tolist() for chunk in log.read("txn", 0, **options)]
    assert mine == [chunk["offset"].tolist() for chunk in log.partition("txn", 0).read(**options)]
    assert mine
    with pytest.raises(TypeError, match="unknown option 'isolation'"):
        list(log.read("txn", 0, isolation="read_committed"))  # type: ignore[call-arg]
    shown = inspect.signature(kc.log.LogDirectory.read).parameters
    assert kc.log.reading.options.ReadOptions.__annotations__.keys() <= shown.keys()


def place(chunk):
    batch = pa.record_batch(chunk)
    return batch.schema.names, {*zip(batch["topic"].to_pylist(), batch["partition"].to_pylist(), strict=True)}


def test_topic_and_partition_as_columns(tmp_path):
    columns = ["partition", "offset", "topic"]
    log = kc.log.LogDirectory(SEGMENT.parents[1])
    chunks = list(log.read("txn", 0, columns=columns, max_rows=20))
    assert sum(map(len, chunks)) == sum(len(chunk) for chunk in log.read("txn", 0, columns=["offset"]))
    for chunk in chunks:
        assert place(chunk) == (["topic", "partition", "offset"], {("txn", 0)})
    shutil.copy(SEGMENT, tmp_path / "copy.log")
    (chunk,) = kc.log.Segment(tmp_path / "copy.log").read(columns=columns)
    assert place(chunk) == (["topic", "partition", "offset"], {(None, None)})
    assert chunk.schema == kc.log.SegmentRange("x.log", None, None, 0, 0).nothing({"columns": columns}).schema
    with pytest.raises(ValueError, match="unknown column 'topic'"):
        kc.decode(DATA, columns=["topic"])


def test_topic_and_partition_of_old_segments(tmp_path):
    from kafkacodec.dialects import kafka07

    path = tmp_path / "events-7" / f"{100:020d}.kafka"
    path.parent.mkdir()
    path.write_bytes(kafka07.encode_messages([b"a", b"b", b"c"]))
    (partition,) = kc.log.discover(path.parent)
    (chunk,) = partition.read(columns=["topic", "partition", "offset"])
    assert place(chunk) == (["topic", "partition", "offset"], {("events", 7)})
    assert chunk["offset"].tolist() == [100, 111, 122]


def test_place_columns_with_what_is_passed_over(tmp_path):
    damaged = bytearray(DATA)
    damaged[len(DATA) // 2] ^= 1
    path = tmp_path / "t-3" / SEGMENT.name
    path.parent.mkdir()
    path.write_bytes(damaged)
    chunks = list(kc.log.Segment(path).read(columns=["topic", "partition", "key"], on_error="skip"))
    assert any(chunk.problems for chunk in chunks)
    for chunk in chunks:
        pa.record_batch(chunk).validate(full=True)
        assert place(chunk)[1] <= {("t", 3)}


def test_whether_a_name_ends_with_a_suffix():
    names = ["00000000000000000000.log", "00000000000000000000.log.swap.old", "a.kafka"]
    assert layout.any_ends_with(names, [".swap", ".kafka"])
    assert layout.any_ends_with(names[:1], [".swap", ".log"])
    assert not layout.any_ends_with(names[:2], [".swap", ".kafka"])
    assert not layout.any_ends_with([], [".log"])
