"""Tables, first rows, counts and iteration of segments, partitions and topics."""

from __future__ import annotations

import re
import shutil
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import kafkacodec as kc
from tests.corpus import ROOT, Row, Sample, assert_same_records, read_committed, segments

KRAFT = ROOT / "logs/kraft-4.1.0"
KAFKA07 = ROOT.parent / "dialects/kafka07/segments/broker-0"


def partition_directories() -> dict[Path, list[Sample]]:
    """The segments of each current partition, in order, by its directory."""
    found: dict[Path, list[Sample]] = defaultdict(list)
    for sample in segments():
        if sample.path.suffix == ".log" and "truncated" not in sample.name and "live" not in sample.name:
            found[sample.path.parent].append(sample)
    return {path: samples for path, samples in found.items() if re.fullmatch(r".+-\d+", path.name)}


PARTITIONS = partition_directories()


def records_of(path: Path) -> list[Row]:
    """The records of a partition, in order."""
    return [r for sample in PARTITIONS[path] for r in sample.expected.records if not r.is_control]


every_partition = pytest.mark.parametrize("path", PARTITIONS, ids=lambda p: f"{p.parent.name}/{p.name}")


@every_partition
def test_partitions_have_the_records_of_kafkas_reader(path: Path) -> None:
    partition, records = kc.log.Partition(path, log_start_offset=0), records_of(path)
    assert partition.count() == len(records)
    assert_same_records(partition.to_arrow(), records)
    assert [r.offset for r in partition] == [r.offset for r in records]
    for n in (0, 1, 7, 300):
        first = partition.head(n)
        assert first["offset"].tolist() == [r.offset for r in records[:n]]
        assert first.column_names == ["offset", "timestamp", "timestamp_type", "key", "value", "headers"]


@every_partition
def test_counts_between_any_offsets(path: Path) -> None:
    partition, records = kc.log.Partition(path), records_of(path)
    end = max((r.offset for r in records), default=0) + 2
    for start in range(0, end, end // 4 + 1):
        for stop in (start, start + 1, start + end // 5, end):
            expected = sum(start <= r.offset < stop for r in records)
            assert partition.count(start_offset=start, end_offset=stop, verify_crc=False) == expected


@every_partition
def test_counts_by_time_and_with_control_records(path: Path) -> None:
    partition, records = kc.log.Partition(path, log_start_offset=0), records_of(path)
    files = [s for s in segments() if s.path.parent == path and s.path.suffix == ".log"]
    control = sum(r.is_control for s in files for r in s.expected.records)
    assert partition.count(include_control=True) == len(records) + control
    times = sorted({r.timestamp for r in records if r.timestamp is not None})
    for time in times[:: len(times) // 4 + 1]:
        first = min(r.offset for r in records if r.timestamp is not None and r.timestamp >= time)
        assert partition.count(start_timestamp=time) == sum(r.offset >= first for r in records)


@pytest.mark.parametrize("case", read_committed(), ids=lambda c: f"{c.directory.name}/{c.topic}-{c.partition}")
def test_committed_records(case: Any) -> None:
    partition = kc.log.LogDirectory(case.directory).partition(case.topic, case.partition)
    assert partition.count(isolation_level="read_committed") == len(case.offsets)
    table = partition.to_arrow(isolation_level="read_committed", columns=["offset"])
    assert table["offset"].to_pylist() == case.offsets


def test_counting_intact_batches_decodes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    partition = kc.log.Partition(KRAFT / "txn-0")
    cuts = {b["baseOffset"] for s in segments() if s.path.parent == KRAFT / "txn-0" for b in s.expected.batches}
    monkeypatch.setattr(kc.log.SegmentRange, "read", None)
    assert partition.count() == len(records_of(KRAFT / "txn-0"))
    cut = sorted(cuts)[len(cuts) // 2]
    assert partition.count(start_offset=cut) == sum(r.offset >= cut for r in records_of(KRAFT / "txn-0"))


def test_topics_join_their_partitions() -> None:
    log = kc.log.LogDirectory(KRAFT)
    topic = log.topic("partitions")
    expected = {n: records_of(KRAFT / f"partitions-{n}") for n in range(3)}
    assert [p.partition for p in topic.partitions] == [0, 1, 2]
    table = topic.to_arrow()
    assert table.column_names[:3] == ["topic", "partition", "offset"]
    assert set(table["topic"].to_pylist()) == {"partitions"}
    pairs = list(zip(table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True))
    assert pairs == [(n, r.offset) for n, rows in expected.items() for r in rows]
    assert topic.count() == len(pairs)
    assert [r.offset for r in topic] == [offset for _, offset in pairs]
    first = topic.head(len(expected[0]) + 2)
    assert first["partition"].tolist() == [n for n, _ in pairs][: len(first)]
    assert first["partition"][-1] == 1
    assert topic.to_arrow(columns=["offset"]).column_names == ["offset"]
    assert topic.head(start_offset=10**9).column_names == table.column_names
    assert topic.verify().num_records == log.verify().num_records - sum(
        p.verify().num_records for p in log.all_partitions if p.topic != "partitions"
    )
    assert repr(topic) == f"<Topic: partitions, 3 partitions in {KRAFT}>"


def test_unknown_topics_and_partitions_suggest_others(tmp_path: Path) -> None:
    log = kc.log.LogDirectory(KRAFT)
    with pytest.raises(FileNotFoundError, match="no topic 'txm' in this directory; did you mean 'txn'"):
        log.topic("txm")
    with pytest.raises(FileNotFoundError, match=r"no partition 3 of topic 'partitions' .*; it has 0, 1, 2"):
        log.partition("partitions", 3)
    with pytest.raises(FileNotFoundError, match="this directory has no partitions"):
        kc.log.LogDirectory(tmp_path).topic("orders")


def test_frames_of_other_libraries() -> None:
    partition = kc.log.Partition(KRAFT / "zstd-0")
    rows = records_of(KRAFT / "zstd-0")
    assert partition.to_polars()["key"].to_list() == [r.key for r in rows]
    assert partition.to_pandas(columns=["offset"])["offset"].tolist() == [r.offset for r in rows]
    empty = partition.to_polars(start_offset=10**9, columns=["value"], layout="view")
    assert isinstance(empty, pl.DataFrame)
    assert empty.shape == (0, 1)


def test_segments_and_other_formats() -> None:
    path = next((KRAFT / "txn-0").glob("*.log"))
    sample = next(s for s in segments() if s.path == path)
    records = [r for r in sample.expected.records if not r.is_control]
    segment = kc.log.Segment(path)
    assert segment.count() == len(segment.to_arrow()) == len(list(segment)) == len(records)
    assert segment.count(start_offset=50, end_offset=61) == sum(50 <= r.offset < 61 for r in records)
    old = kc.log.Partition(KAFKA07 / "t-3")
    values = [r.value for r in old]
    assert old.count() == len(values) == old.to_arrow().num_rows
    assert [r.value for r in old.head(2)] == values[:2]
    assert old.to_arrow(start_offset=2**40).schema.names == old.to_arrow().schema.names


def test_paths_of_logs() -> None:
    log = kc.log.LogDirectory(KRAFT)
    partition = log.partition("txn", 0)
    assert (Path(log), Path(partition), Path(partition.segments[0]).parent) == (KRAFT, KRAFT / "txn-0", Path(partition))
    assert kc.log.read_committed_offsets(log) == kc.log.read_committed_offsets(KRAFT)


@pytest.fixture
def damaged(tmp_path: Path) -> kc.log.LogDirectory:
    """The first segment of txn-0 with a changed byte in its second batch."""
    shutil.copytree(KRAFT / "txn-0", tmp_path / "txn-0")
    path = min((tmp_path / "txn-0").glob("*.log"))
    data = bytearray(path.read_bytes())
    batches = next(s for s in segments() if s.path == KRAFT / "txn-0" / path.name).expected.batches
    data[batches[1]["position"] + batches[1]["sizeInBytes"] - 1] ^= 1
    path.write_bytes(data)
    return kc.log.LogDirectory(tmp_path)


def test_damage_is_raised_by_every_method(damaged: kc.log.LogDirectory) -> None:
    for call in ("count", "to_arrow", "to_pandas", "to_polars"):
        with pytest.raises(kc.CrcMismatch):
            getattr(damaged.partition("txn", 0), call)()
    with pytest.raises(kc.CrcMismatch):
        list(damaged.topic("txn"))
    with pytest.raises(kc.CrcMismatch):
        damaged.topic("txn").head(100)
    assert len(damaged.topic("txn").head(1)) == 1


def test_what_is_left_out_is_reported(damaged: kc.log.LogDirectory) -> None:
    rows = records_of(KRAFT / "txn-0")
    batch = min((s for s in segments() if s.path.parent == KRAFT / "txn-0"), key=str).expected.batches[1]
    lost = sum(batch["baseOffset"] <= r.offset <= batch["lastOffset"] for r in rows)
    assert lost
    topic = damaged.topic("txn")
    for call in (topic.count, topic.to_arrow, topic.partition(0).count):
        with pytest.warns(RuntimeWarning, match=r"1 damaged or missing parts of .*CRC"):
            found = call(on_error="skip")
        assert (found if isinstance(found, int) else len(found)) == len(rows) - lost
        problems: list[kc.Problem] = []
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            call(on_error="skip", problems=problems)
        assert [(p.position, p.size_in_bytes) for p in problems] == [(batch["position"], batch["sizeInBytes"])]


@pytest.mark.parametrize("wrong", [{}, True, (), "problems"])
def test_problems_are_a_list_also_of_a_sound_log(wrong: Any) -> None:
    topic = kc.sample().topic("orders")
    match = f"^problems must be a list or None, not {type(wrong).__name__}$"
    for call in (topic.count, topic.to_arrow, topic.head):
        with pytest.raises(TypeError, match=match):
            call(problems=wrong)
    for read in (
        kc.log.lag,
        kc.log.read_committed_offsets,
        kc.log.read_consumer_groups,
        kc.log.read_cluster_metadata,
    ):
        with pytest.raises(TypeError, match=match):
            read(kc.sample().path, problems=wrong)


def test_missing_offsets_are_raised_by_counting(damaged: kc.log.LogDirectory) -> None:
    partition = damaged.partition("txn", 0)
    Path(partition.segments[1].path).unlink()
    rest = kc.log.Partition(partition.path)
    with pytest.raises(kc.MissingOffsets):
        rest.count(start_offset=rest.segments[0].last_offset())
    assert rest.count(gaps="accept", start_offset=rest.segments[1].base_offset) > 0


def test_tables_have_a_limit() -> None:
    partition = kc.log.Partition(KRAFT / "big-none-0")
    with pytest.raises(kc.LimitExceeded, match=r"max_total_bytes \(1000\)"):
        partition.to_arrow(max_total_bytes=1000)
    assert partition.to_arrow().num_rows == len(records_of(KRAFT / "big-none-0"))


def test_wrong_options_of_the_faces() -> None:
    partition = kc.log.Partition(KRAFT / "txn-0")
    with pytest.raises(ValueError, match="n is -1"):
        partition.head(-1)
    with pytest.raises(ValueError, match="on_error must be"):
        partition.count(on_error="ignore")  # type: ignore[typeddict-item]
    with pytest.raises(ValueError, match="isolation_level must be"):
        partition.count(isolation_level="committed")  # type: ignore[typeddict-item]
    with pytest.raises(TypeError, match="unknown option 'colums'; did you mean 'columns'"):
        partition.to_arrow(**{"colums": ["offset"]})
    for readable in (partition, partition.segments[0], kc.sample().topic("orders")):
        with pytest.raises(TypeError, match="unknown option 'start_ofset'; did you mean 'start_offset'"):
            readable.count(**{"start_ofset": 5})
    with pytest.raises(TypeError, match="unknown option 'isolation_level'"):
        partition.segments[0].count(isolation_level="read_uncommitted")
    assert partition.count(columns=["topic", "offset"]) == len(records_of(KRAFT / "txn-0"))
    with pytest.raises(TypeError, match="unknown option 'isolation_level'"):
        partition.segments[0].head(isolation_level="read_committed")


def test_notebooks_show_directories_partitions_and_reports(tmp_path: Path) -> None:
    hostile = tmp_path / "<b>t-0"
    shutil.copytree(KRAFT / "txn-0", hostile)
    log = kc.log.LogDirectory(tmp_path)
    report = log.verify()
    for shown in (log, log.all_partitions[0], log.topic("<b>t"), report, kc.log.read_consumer_groups(KRAFT)):
        html = shown._repr_html_()
        assert "<table>" in html
        assert "<b>" not in html


def test_reports_show_their_first_findings() -> None:
    report = kc.log.Report("a/log")
    assert repr(report) == str(report)
    for n in range(30):
        report.add(kc.log.Finding("error", "damaged", "a/log/t-0/0.log", f"fault {n}", n))
    lines = repr(report).split("\n")
    assert len(lines) == 13
    assert lines[10] == "error: a/log/t-0/0.log at byte 9: fault 9"
    assert lines[11] == "and 20 more findings: see findings and counts"
    assert lines[12] == "damaged"
    assert str(report).count("fault") == 30
    assert "the first 10 findings of 30" in report._repr_html_()


def test_committed_offsets_and_groups_become_tables() -> None:
    commits = kc.log.read_committed_offsets(KRAFT)
    assert commits.to_arrow().equals(kc.log.offsets_table(commits))
    assert commits.to_polars().shape == (len(commits), 8)
    groups = kc.log.read_consumer_groups(KRAFT)
    assert groups.to_pandas()["group"].tolist() == [group.group for group in groups]
    assert groups.to_arrow().schema == kc.log.groups_table([]).schema
    assert isinstance(commits, list)
    lags = kc.log.lag(KRAFT)
    assert lags.to_arrow().equals(kc.log.lag_table(lags))
    assert lags.to_polars()["offset"].to_list() == [line.offset for line in lags]
    assert lags[0]._asdict() == {name: getattr(lags[0], name) for name in lags.to_arrow().column_names}
    assert str(lags[0].end_offset) in lags._repr_html_()


def test_connections_show_their_state() -> None:
    client = kc.protocol.Connection("client")
    client.negotiate()
    client.receive(b"\0\0\0\x07ab")
    assert repr(client) == "<Connection: client, 1 pending, 6 bytes of an incomplete frame, versions unknown>"
    with pytest.raises(kc.RemoteProtocolError):
        client.receive(b"\xff" * 20)
    assert "failed: unexpected correlation id" in repr(client)


def test_the_signatures_have_the_options_of_reading() -> None:
    import inspect

    for kind in (kc.log.Topic, kc.log.Partition, kc.log.Segment):
        options = kc.log.reading.options.ReadOptions.__annotations__
        wanted = {name for name in inspect.signature(kind.read).parameters if name in options}
        for method in (kind.to_arrow, kind.to_pandas, kind.to_polars, kind.head, kind.count):
            assert wanted <= set(inspect.signature(method).parameters)
            assert not any(p.kind is p.VAR_KEYWORD for p in inspect.signature(method).parameters.values())
            assert method.__doc__
    assert pa.table(kc.log.Partition(KRAFT / "txn-0").head(1)).num_rows == 1


def test_the_first_rows_of_many_segments_plan_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kafkacodec.log.partitions import planning

    directory = tmp_path / "t-0"
    directory.mkdir()
    rows = [(None, b"%d" % i) for i in range(10)]
    for base in range(0, 3000, 10):
        (directory / f"{base:020d}.log").write_bytes(kc.encode(rows, base_offset=base))
    planned: list[str] = []
    cut = planning.segment_ranges

    def noting(partition: Any, segment: Any, *rest: Any) -> Any:
        planned.append(segment.path)
        return cut(partition, segment, *rest)

    monkeypatch.setattr(planning, "segment_ranges", noting)
    partition = kc.log.Partition(directory)
    for start in (0, 1000, 2990):
        found = partition.head(4, start_offset=start)
        assert found["offset"].tolist() == [start, start + 1, start + 2, start + 3]
    assert len(planned) <= 30
    assert partition.head(15, start_offset=2990)["offset"].tolist() == [*range(2990, 3000)]
    assert len(partition.head(3001)) == 3000
    (directory / f"{500:020d}.log").unlink()
    with pytest.raises(kc.MissingOffsets):
        kc.log.Partition(directory).head(20, start_offset=490)
    assert len(kc.log.Partition(directory).head(10, start_offset=490)) == 10
