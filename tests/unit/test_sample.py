"""The log directory in the package. Its contents are those that tools/sample.py sends to a broker."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

import kafkacodec as kc


def test_the_sample_is_intact_and_small() -> None:
    log = kc.sample()
    assert log.verify().clean
    assert [t for t in log.topics if not t.startswith("__")] == ["customers", "orders", "payments"]
    assert sum(path.stat().st_size for path in Path(log).rglob("*") if path.is_file()) < 200_000


def test_it_has_every_order_once() -> None:
    orders = kc.sample().topic("orders")
    numbers = [json.loads(record.value or b"")["order"] for record in orders]
    assert sorted(numbers) == list(range(1000, 1600))
    codecs = {batch.codec for p in orders.partitions for s in p.segments for batch in s.scan()}
    assert codecs == {"none", "gzip", "snappy", "lz4", "zstd"}
    assert min(len(p.segments) for p in orders.partitions) >= 2


def test_it_has_committed_aborted_and_open_payments() -> None:
    payments = kc.sample().topic("payments")

    def numbers(level: str) -> list[int]:
        table = payments.to_arrow(isolation_level=level)  # type: ignore[typeddict-item]
        return [int(key) for key in table["key"].to_pylist()]

    assert numbers("read_uncommitted") == list(range(1000, 1120))
    aborted = {1000 + part * 8 + n for part in (2, 6, 10) for n in range(8)}
    assert numbers("read_committed") == [n for n in range(1000, 1112) if n not in aborted]


def test_it_has_compacted_customers_and_groups() -> None:
    log = kc.sample()
    assert log.topic("customers").count() < 160 == log.partition("customers", 0).end_offset()
    commits = {(c.group, c.partition): c.offset for c in kc.log.read_committed_offsets(log)}
    ends = {p.partition: p.end_offset() for p in log.topic("orders").partitions}
    assert commits == {
        (group, n): int(end * share) for group, share in (("billing", 0.6), ("reports", 1.0)) for n, end in ends.items()
    }
    groups = {group.group: group for group in kc.log.read_consumer_groups(log)}
    assert [member.topics for member in groups["billing"].members] == [["orders"]]
    assert groups["reports"].members == []


def test_copies_can_be_damaged(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="damaged=True needs copy_to"):
        kc.sample(damaged=True)
    log = kc.sample(tmp_path / "copy")
    assert log.verify().clean
    with pytest.raises(FileExistsError):
        kc.sample(tmp_path / "copy")
    report = kc.sample(tmp_path / "damaged", damaged=True).verify()
    errors = [finding for finding in report.findings if finding.level == "error"]
    places = [(Path(f.path).parent.name, (f.end_offset or 0) - (f.first_offset or 0)) for f in errors]
    assert places == [("orders-0", 13), ("orders-1", 70), ("orders-2", 3)]
    assert report.num_records == log.verify().num_records - 86
    with pytest.raises(kc.CrcMismatch):
        kc.log.LogDirectory(tmp_path / "damaged").topic("orders").count()
    (tmp_path / "copy" / "orders-0" / "00000000000000000000.log").write_bytes(b"x")  # the copy can be written


def test_a_copy_on_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, written = Path.write_bytes, []

    def write(self: Path, data: bytes) -> int:
        if len(written) == 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written.append(self)
        return real(self, data)

    monkeypatch.setattr(Path, "write_bytes", write)
    with pytest.raises(OSError, match="No space left on device") as caught:
        kc.sample(tmp_path)
    assert caught.value.filename.startswith(str(tmp_path))
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    assert kc.sample(tmp_path).verify().clean
