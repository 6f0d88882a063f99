"""Tiered storage that fails, changes or is damaged: what is read is the log, or an error says what is wrong."""

import errno
import itertools
import json
import os
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

import kafkacodec as kc
from kafkacodec.cli.app import application
from kafkacodec.log.storage import stores
from kafkacodec.log.tiered import directories
from kafkacodec.log.tiered.keys import KEYS_VARIABLE
from tests.hostile_store import HostileStore, use
from tests.leaks import assert_takes_less

DATA = Path(__file__).parents[1] / "data" / "tiered"
KEY = str(DATA / "private-key.pem")
SAMPLE = Path(kc.log.__file__).parent / "sample_data"
LEADERS = DATA / "leaders" / "orders-dlPtJqO1Sb-W-Oym9Umc5w" / "0"
URL = "s3://bucket/orders-dlPtJqO1Sb-W-Oym9Umc5w/0"


@pytest.fixture(autouse=True)
def _key(monkeypatch):
    monkeypatch.setenv(KEYS_VARIABLE, KEY)


@pytest.fixture(scope="module")
def server():
    found = HostileStore()
    yield found
    found.close()


@pytest.fixture
def store(server, monkeypatch):
    """The uploads of several leaders in a store; requests are made once."""
    use(server, monkeypatch, retries=0)
    for cache in (directories._cached_manifest, directories._cached_history):
        cache.cache_clear()
    for path in LEADERS.iterdir():
        server.objects[f"orders-dlPtJqO1Sb-W-Oym9Umc5w/0/{path.name}"] = path.read_bytes()
    yield server
    stores._bucket.cache_clear()


def offsets(partition):
    return [offset for chunk in partition.read() for offset in chunk["offset"].tolist()]


def refusing(ending, status, code):
    return lambda request: request.key.endswith(ending) and request.refuse(status, code)


@pytest.mark.parametrize(("status", "code", "number"), [(503, "SlowDown", errno.EIO), (403, "", errno.EACCES)])
def test_a_manifest_that_cannot_be_read_is_an_error_of_the_listing(store, status, code, number):
    """Without the newest one, uploads of a log that was truncated might seem to be the log."""
    store.fault = refusing("FA.rsm-manifest", status, code)
    for action in (lambda: kc.log.Partition(URL).segments, lambda: kc.log.uploads(URL)):
        with pytest.raises(OSError, match=r"FA\.rsm-manifest") as caught:
            action()
        assert caught.value.errno == number


def test_an_upload_that_is_deleted_after_the_listing_is_no_part_of_the_log(store):
    """Its object may still be there, and is not read as if it had not been transformed."""
    store.fault = refusing("AA.rsm-manifest", 404, "NoSuchKey")
    assert [u.segment_id[0] for u in kc.log.uploads(URL)] == ["B", "D", "E", "C", "F"]
    partition = kc.log.Partition(URL)
    assert offsets(partition) == list(range(82, 282))
    assert partition.start_offset() == 82


@pytest.fixture
def payments(tmp_path):
    """A log directory with two topics, compressed and encrypted; a function that damages the second upload of one."""
    copy = shutil.copytree(DATA / "zstd-aes", tmp_path / "log")
    [stem] = [path.with_suffix("") for path in copy.glob("payments-*/0/*08-*.rsm-manifest")]

    def damage(suffix):
        path = stem.with_suffix(suffix)
        data = path.read_bytes()
        path.write_bytes(data[:-5] + bytes(byte ^ 1 for byte in data[-5:]))
        return copy

    return damage


@pytest.mark.parametrize(
    ("suffix", "text"),
    [(".log", "chunk 5 of the object (bytes 5120 to 5617 of the segment): "), (".rsm-manifest", "the manifest is not")],
)
@pytest.mark.parametrize("threads", [1, 2])
def test_verify_reports_an_upload_that_cannot_be_read(payments, suffix, text, threads):
    directory = payments(suffix)
    log = kc.log.LogDirectory(directory)
    [finding] = log.verify(threads=threads).findings
    assert (finding.level, finding.kind) == ("error", "unreadable")
    assert finding.path.endswith(suffix)
    assert finding.text.startswith(text)
    assert log.partition("payments", 0).segments[1].verify().findings == [finding]
    result = CliRunner().invoke(application, ["verify", "--json", str(directory)])
    assert result.exit_code == 1
    shown = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(line["topic"], line["ok"], line["num_segments"]) for line in shown] == [
        ("orders", True, 4),
        ("payments", False, 2),
    ]


@pytest.mark.parametrize("records", [False, True])
def test_overlapping_uploads_are_counted_once(records):
    """The uploads of several leaders add up to the log that they are of, as a read gives it."""
    [uploads] = kc.log.statistics(LEADERS, records=records)
    [whole] = kc.log.statistics(SAMPLE / "orders-0", records=records)
    names = (
        "num_batches",
        "batch_bytes",
        "num_records",
        "num_offsets",
        "absent_offsets",
        "first_offset",
        "last_offset",
    )
    for name in (*names, "codec_bytes", "formats", "gaps", "num_keys", "value_bytes", "uncompressed_bytes"):
        assert getattr(uploads, name) == getattr(whole, name), name
    assert uploads.num_records == kc.log.Partition(LEADERS).count(include_control=True)


def test_commands_count_overlapping_uploads_once():
    def lines(*arguments):
        result = CliRunner().invoke(application, [*arguments, "--json", str(DATA / "leaders")])
        assert result.exit_code == 0, result.output
        return [json.loads(line) for line in result.stdout.splitlines()]

    count = kc.log.Partition(LEADERS).count(include_control=True)
    assert sum(line["num_records"] for line in lines("topics")) == count
    assert sum(line["num_records"] for line in lines("scan")) == count
    assert sum(line["num_records"] for line in lines("scan", "--start-offset", "167")) == count - 167
    batches = lines("scan", "--batches")
    assert all(one["last_offset"] + 1 == after["base_offset"] for one, after in itertools.pairwise(batches))


def test_a_manifest_of_very_many_chunks_takes_no_memory_for_them(tmp_path):
    copy = shutil.copytree(DATA / "zstd", tmp_path / "log")
    [path] = copy.glob("payments-*/0/*08-*.rsm-manifest")
    manifest, count = json.loads(path.read_bytes()), 1 << 26
    sizes = {"originalChunkSize": 1, "transformedChunkSize": 1, "finalTransformedChunkSize": 1}
    manifest["chunkIndex"] = {"type": "fixed", "originalFileSize": count, **sizes}
    path.write_text(json.dumps(manifest))
    os.truncate(path.with_suffix(".log"), count)

    def scan():
        with pytest.raises(kc.errors.CorruptRecord, match="chunk 0 of the object"):
            kc.log.Segment(path.with_suffix(".log")).scan()

    assert_takes_less(1 << 20, scan)


def test_recover_leaves_out_an_upload_with_a_damaged_manifest(tmp_path):
    copy = shutil.copytree(LEADERS, tmp_path / "orders-dlPtJqO1Sb-W-Oym9Umc5w" / "0")
    whole = kc.log.recover(copy, tmp_path / "whole")
    path = next(copy.glob("*-E*.rsm-manifest"))
    path.write_bytes(path.read_bytes()[:-20])
    report = kc.log.recover(copy, tmp_path / "saved")
    assert report.counts["error", "left-out"] == 1
    saved = kc.log.LogDirectory(tmp_path / "saved").partition("orders", 0)
    assert 0 < report.num_records == sum(map(len, saved.read(gaps="accept", include_control=True))) < whole.num_records
    result = CliRunner().invoke(application, ["recover", str(copy), str(tmp_path / "again")])
    assert result.exit_code == 1
    assert f"{report.num_batches} batches saved" in result.output


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".log", ".rsm-manifest"])
def test_one_damaged_upload_ends_nothing_else(payments, suffix, tmp_path):
    directory = payments(suffix)
    orders, damaged = kc.log.statistics(directory)
    assert (orders.num_records, orders.damaged) == (282, False)
    assert (damaged.num_segments, damaged.num_records, damaged.last_offset) == (2, 8, 7)
    assert len(damaged.problems) == 1
    assert damaged.damaged_bytes > 0
    for line in ("topics --partitions", "scan", "topics --records"):
        result = CliRunner().invoke(application, [*line.split(), str(directory)])
        assert result.exit_code == 1
        assert "290 records" in result.output, line
        assert "damaged" in result.output
    page = tmp_path / "page.html"
    assert CliRunner().invoke(application, ["report", str(directory), "-o", str(page)]).exit_code == 0
    report = kc.log.recover(directory, tmp_path / "saved")
    [left_out] = [finding for finding in report.findings if finding.kind == "left-out"]
    assert "payments" in left_out.path
    saved = kc.log.LogDirectory(tmp_path / "saved")
    assert saved.verify().ok
    assert [topic.count(include_control=True) for topic in map(saved.topic, saved.topics)] == [282, 8]


@pytest.mark.parametrize("suffix", [".log", ".rsm-manifest"])
@pytest.mark.parametrize("damaged", ["payments", "orders"])
@pytest.mark.parametrize("threads", [1, 2])
def test_readers_skip_a_damaged_upload(tmp_path, suffix, damaged, threads):
    """The last upload of one topic, and the first one of the other, which others follow."""
    whole = kc.log.LogDirectory(DATA / "zstd-aes")
    copy = shutil.copytree(DATA / "zstd-aes", tmp_path / "log")
    stem = sorted(copy.glob(f"{damaged}-*/0/*.rsm-manifest"))[-1 if damaged == "payments" else 0].with_suffix("")
    path = stem.with_suffix(suffix)
    data = path.read_bytes()
    path.write_bytes(data[:-20] if suffix == ".rsm-manifest" else bytes(byte ^ 1 for byte in data[:40]) + data[40:])
    partition = whole.partition(damaged, 0)
    first = int(stem.name[:20])
    bases = [segment.base_offset or 0 for segment in partition.segments]
    following = min((base for base in bases if base > first), default=1 << 60)
    expected = [offset for offset in offsets(partition) if not first <= offset < following]

    partition = kc.log.LogDirectory(copy).partition(damaged, 0)
    found, problems = [], []
    for chunk in partition.read(on_error="skip", threads=threads):
        found += chunk["offset"].tolist()
        problems += chunk.problems
    assert found == expected
    [problem] = problems
    assert problem.size_in_bytes > 0
    assert str(stem) in str(problem.exception)
    left_out = []
    assert partition.count(on_error="skip", problems=left_out) == len(expected)
    assert len(left_out) == 1
    with pytest.raises(kc.errors.DecodeError):
        offsets(partition)
    committed = [c["offset"].tolist() for c in partition.read(on_error="skip", isolation_level="read_committed")]
    assert set(itertools.chain(*committed)) <= set(expected)


@pytest.mark.parametrize("suffix", [".log", ".rsm-manifest"])
def test_stats_skip_a_damaged_upload(payments, suffix):
    directory = payments(suffix)
    result = CliRunner().invoke(application, ["stats", "--json", "--on-error", "skip", str(directory)])
    assert result.exit_code == 0, result.output
    *topics, codecs = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(line["topic"], line["num_records"]) for line in topics] == [("orders", 282), ("payments", 8)]
    assert "bytes skipped" in result.stderr
    size = kc.log.LogDirectory(directory).partition("payments", 0).segments[1].size_in_bytes
    assert codecs["codecs"]["unreadable_bytes"] == (size if suffix == ".rsm-manifest" else 0)  # the sample is before it
    assert CliRunner().invoke(application, ["stats", str(directory)]).exit_code == 1
