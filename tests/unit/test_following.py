"""Following a partition that another process writes, and its last records."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import kafkacodec as kc
from kafkacodec.log import Follower, Growth, Partition, read_last
from kafkacodec.log.partitions.following import grown
from tests.corpus import ROOT, sample

BROKER = ROOT / "logs" / "kraft-4.1.0"


def append(partition: Path, base_offset: int, *values: bytes, segment: int = 0, **options: object) -> None:
    with open(partition / f"{segment:020}.log", "ab") as file:
        file.write(kc.encode([(None, value) for value in values], base_offset=base_offset, **options))  # type: ignore[arg-type]


def values(growth: Growth | None) -> list[bytes | None]:
    assert growth is not None
    chunks = growth.partition.read(start_offset=growth.start_offset, end_offset=growth.end_offset)
    return [record.value for chunk in chunks for record in chunk.records()]


def test_new_records_and_segments_are_found_once(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    path.mkdir()
    append(path, 0, b"a", b"b")
    follower = Follower(Partition(path))
    assert values(follower.poll()) == [b"a", b"b"]
    assert follower.poll() is None
    append(path, 2, b"c")
    assert values(follower.poll()) == [b"c"]
    append(path, 3, b"d", segment=3)
    append(path, 4, b"e", segment=3)
    assert values(follower.poll()) == [b"d", b"e"]
    assert (follower.poll(), follower.next_offset) == (None, 5)
    follower.again(4)
    assert values(follower.poll()) == [b"e"]


def test_a_batch_counts_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    path.mkdir()
    append(path, 0, b"a")
    log, batch = path / f"{0:020}.log", kc.encode([(None, b"b" * 100)], base_offset=1)
    follower = Follower(Partition(path))
    follower.poll()
    for size in (1, 60, len(batch) - 1):
        with open(log, "ab") as file:
            file.write(batch[: size - (log.stat().st_size - len(kc.encode([(None, b"a")])))])
        growth = follower.poll()
        assert growth is not None
        assert growth.start_offset == growth.end_offset == 1
        os.truncate(log, len(kc.encode([(None, b"a")])))
    append(path, 1, b"b" * 100)
    assert values(follower.poll()) == [b"b" * 100]


def test_records_of_open_transactions_wait(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    path.mkdir()
    append(path, 0, b"a")
    append(path, 1, b"b", producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    follower = Follower(Partition(path), isolation_level="read_committed")
    assert values(follower.poll()) == [b"a"]
    with open(path / f"{0:020}.log", "ab") as file:
        file.write(kc.control_batch("commit", offset=2, producer_id=7, producer_epoch=0))
    growth = follower.poll()
    assert values(growth) == [b"b"]
    assert growth is not None
    assert growth.end_offset == 3


@pytest.mark.parametrize(
    ("next_offset", "start", "end", "expected", "notice"),
    [
        (5, 0, 5, (5, 5), None),
        (5, 0, 8, (5, 8), None),
        (5, 0, 3, (3, 3), "truncated to offset 3; reading continues there (it was at 5)"),
        (5, 7, 9, (7, 9), "offsets 5 to 6 were deleted before they were read"),
        (5, 9, 9, (9, 9), "offsets 5 to 8 were deleted before they were read"),
    ],
)
def test_logs_that_were_truncated_or_deleted(
    next_offset: int, start: int, end: int, expected: tuple[int, int], notice: str | None
) -> None:
    growth = grown(Partition("orders-0"), next_offset, start, end)
    assert (growth.start_offset, growth.end_offset) == expected
    assert growth.notice is None if notice is None else notice in (growth.notice or "")


def test_a_deleted_partition_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    path.mkdir()
    append(path, 0, b"a")
    whole, segment = Follower(Partition(path)), Follower(Partition(path, segments=[path / f"{0:020}.log"]))
    assert values(segment.poll()) == values(whole.poll()) == [b"a"]
    shutil.rmtree(path)
    for follower in (whole, segment):
        with pytest.raises(FileNotFoundError):
            follower.poll()


def test_the_last_records_are_those_of_kafkas_reader() -> None:
    names = sorted(path.relative_to(ROOT).as_posix() for path in (BROKER / "compact-txn-0").glob("*.log"))
    every = [row for name in names if (ROOT / name).stat().st_size for row in sample(name).expected.records]
    offsets = [row.offset for row in every if not row.is_control]
    partition = Partition(BROKER / "compact-txn-0")
    for count in (0, 1, 2, 3, 10, len(offsets), 10**6):
        chunks = read_last(partition, count)
        found = [offset for chunk in chunks for offset in chunk["offset"].tolist()]
        assert found == (offsets[-count:] if count else [])
    some = read_last(partition, 4, end_offset=offsets[-5], start_offset=offsets[-7])
    assert [offset for chunk in some for offset in chunk["offset"].tolist()] == offsets[-7:-5]


def test_the_last_records_of_a_search() -> None:
    partition = Partition(BROKER / "mixed-0")
    every = [record for chunk in partition.read() for record in chunk.records()]
    wanted = [record.offset for record in every if record.value is not None and b"broker" in record.value]
    chunks = read_last(partition, 5, search=kc.Search(grep="broker"), columns=["offset", "key", "value", "headers"])
    assert [offset for chunk in chunks for offset in chunk["offset"].tolist()] == wanted[-5:]
