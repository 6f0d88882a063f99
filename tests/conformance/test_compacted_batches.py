"""Batches as Kafka's log cleaner leaves them: without records, or whose first record is not at the base offset.

The bytes are of real brokers, the expected offsets those of Kafka's reader. One batch is written by hand, after
`DefaultRecordBatch.writeEmptyHeader`.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

import kafkacodec as kc
from kafkacodec import log, messages, protocol
from kafkacodec.log.writing.renumber import renumber_segment
from tests.corpus import Sample, segments

Response = messages.FetchResponse


class Compacted(NamedTuple):
    """A batch of a golden file, and the offsets of its records, those of markers included."""

    sample: Sample
    header: dict[str, Any]
    raw: bytes
    offsets: list[int]

    def __str__(self) -> str:
        return f"{self.sample}@{self.header['position']}"


def compacted() -> list[Compacted]:
    found = []
    for sample in segments(magics={2}):
        if "/compact" not in sample.name:
            continue
        data = sample.data()
        by_batch: dict[int, list[int]] = defaultdict(list)
        for row in sample.expected.records:
            by_batch[row.batch].append(row.offset)
        for number, header in enumerate(sample.expected.batches):
            offsets = by_batch[number]
            if not offsets or offsets[0] != header["baseOffset"]:
                raw = data[header["position"] : header["position"] + header["sizeInBytes"]]
                found.append(Compacted(sample, header, raw, offsets))
    return found


ALL = compacted()
EMPTY = [batch for batch in ALL if not batch.offsets]
LATER = [batch for batch in ALL if batch.offsets]
every = pytest.mark.parametrize("batch", ALL, ids=str)


def offsets_of(table: Any) -> list[int]:
    return table["offset"].tolist()


def fetched(*record_sets: bytes) -> Any:
    partitions = [Response.PartitionData(partition_index=i, records=data) for i, data in enumerate(record_sets)]
    return Response(responses=[Response.FetchableTopicResponse(topic="t", partitions=partitions)])


def test_there_are_many() -> None:
    assert len(EMPTY) >= 10
    assert len(LATER) >= 50
    assert {batch.header["codec"] for batch in LATER} == {"none", "gzip", "snappy", "lz4", "zstd"}
    assert any(batch.header["producerId"] >= 0 for batch in EMPTY)


@every
def test_scan_keeps_the_range_of_offsets(batch: Compacted) -> None:
    (base,), (last,), (count,) = (kc.scan(batch.raw)[name].tolist() for name in ("base_offset", "last_offset", "count"))
    assert (base, last) == (batch.header["baseOffset"], batch.header["lastOffset"])
    assert count == len(batch.offsets)


@every
def test_every_reader(batch: Compacted) -> None:
    options: dict[str, Any] = {"include_control": True}
    for layout in ("copy", "view"):
        assert offsets_of(kc.decode(batch.raw, layout=layout, **options)) == batch.offsets
    assert [offset for part in kc.iter_columns(batch.raw, max_rows=1, **options) for offset in offsets_of(part)] == (
        batch.offsets
    )
    assert [record.offset for record in kc.iter_records(batch.raw, **options)] == batch.offsets
    rows = kc.decode_batches(pa.array([b"", batch.raw, batch.raw], pa.binary()), **options)
    assert offsets_of(rows) == batch.offsets * 2
    assert rows["row"].tolist() == [1] * len(batch.offsets) + [2] * len(batch.offsets)
    table = protocol.fetch_to_columns(fetched(batch.raw, batch.raw), **options)
    assert offsets_of(table) == batch.offsets * 2


@pytest.mark.parametrize("batch", LATER, ids=str)
def test_offsets_are_kept_when_records_are_encoded_again(batch: Compacted) -> None:
    table = kc.decode(batch.raw, include_control=True)
    for codec in ("none", "zstd"):
        again = kc.encode(table, codec=codec)
        assert offsets_of(kc.decode(again)) == batch.offsets
        assert kc.scan(again)["base_offset"].tolist() == batch.offsets[:1]


def header_options(header: dict[str, Any], epoch: int, leader_epoch: int) -> dict[str, Any]:
    return {
        "producer_id": header["producerId"],
        "producer_epoch": epoch,
        "base_sequence": header["baseSequence"],
        "is_transactional": header["isTransactional"],
        "partition_leader_epoch": leader_epoch,
        "timestamp_type": int(header["timestampType"] == "LogAppendTime"),
    }


def encoded_again(batch: Compacted, table: Any, **options: Any) -> bytes:
    scanned = kc.scan(batch.raw)
    epochs = (int(scanned[name][0]) for name in ("producer_epoch", "partition_leader_epoch"))
    return kc.encode(
        table,
        first_offset=batch.header["baseOffset"],
        last_offset=batch.header["lastOffset"],
        batch_bytes=2**31 - 1,
        **header_options(batch.header, *epochs),
        **options,
    )


ORDINARY = [b for b in LATER if not b.header["isControl"] and not b.header["deleteHorizonMs"]]


@pytest.mark.parametrize("batch", ORDINARY, ids=str)
def test_a_batch_of_the_cleaner_is_encoded_again_with_its_range(batch: Compacted) -> None:
    table = kc.decode(batch.raw)
    if batch.header["codec"] == "none":
        assert encoded_again(batch, table) == batch.raw
    again = encoded_again(batch, table, codec=batch.header["codec"], threads=2)
    for name, values in pa.table(kc.scan(batch.raw)).to_pydict().items():
        if name not in ("crc", "size_in_bytes"):
            assert pa.table(kc.scan(again))[name].to_pylist() == values, name
    assert pa.table(kc.decode(again)) == pa.table(table)


@pytest.mark.parametrize("batch", [b for b in EMPTY if not b.header["deleteHorizonMs"]], ids=str)
def test_empty_batches_of_brokers_are_made_byte_for_byte(batch: Compacted) -> None:
    header, scanned = batch.header, kc.scan(batch.raw)
    epochs = (int(scanned[name][0]) for name in ("producer_epoch", "partition_leader_epoch"))
    made = kc.empty_batch(
        header["baseOffset"],
        header["lastOffset"],
        is_control=header["isControl"],
        timestamp=header["maxTimestamp"],
        **header_options(header, *epochs),
    )
    assert made == batch.raw


@every
def test_a_log_takes_them_unchanged(batch: Compacted, tmp_path: Path) -> None:
    base, last = batch.header["baseOffset"], batch.header["lastOffset"]
    with log.LogWriter(tmp_path, "t", 0, start_offset=base) as writer:
        assert writer.write_batches(batch.raw) == len(batch.offsets)
        assert writer.next_offset == last + 1
        writer.write([(b"k", b"after")])
    partition = log.Partition(writer.path)
    (segment,) = partition.segments
    assert Path(segment.path).read_bytes()[: len(batch.raw)] == batch.raw
    assert [o for part in partition.read(include_control=True) for o in offsets_of(part)] == [*batch.offsets, last + 1]
    assert partition.end_offset() == last + 2


@every
def test_renumbering_moves_the_whole_range(batch: Compacted, tmp_path: Path) -> None:
    path = tmp_path / "segment.log"
    path.write_bytes(batch.raw)
    assert renumber_segment(str(path), by=1000, leader_epoch=7) == batch.header["lastOffset"] + 1001
    moved = kc.decode(path.read_bytes(), include_control=True)
    assert offsets_of(moved) == [offset + 1000 for offset in batch.offsets]


def by_hand(*, base_offset: int, last_offset: int, producer_id: int, sequence: int, timestamp: int) -> bytes:
    """An empty batch: its header after the checksum, then the header before it."""
    fields = [(0, 2), (last_offset - base_offset, 4), (-1, 8), (timestamp, 8), (producer_id, 8), (3, 2), (sequence, 4)]
    checked = b"".join(value.to_bytes(size, "big", signed=True) for value, size in [*fields, (0, 4)])
    front = [(base_offset, 8), (9 + len(checked), 4), (5, 4), (2, 1)]
    unchecked = b"".join(value.to_bytes(size, "big", signed=True) for value, size in front)
    return unchecked + kc.crc32c(checked).to_bytes(4, "big") + checked


def test_an_empty_batch_by_hand() -> None:
    """As large as a batch can span, between two others."""
    last = 100 + 2**31 - 1
    raw = by_hand(base_offset=100, last_offset=last, producer_id=9, sequence=4, timestamp=1_700_000_000_000)
    headers = kc.scan(kc.encode([(b"a", b"1")]) + raw + kc.encode([(b"b", b"2")], base_offset=last + 1))
    assert headers["count"].tolist() == [1, 0, 1]
    assert headers["last_offset"].tolist() == [0, last, last + 1]
    assert headers["base_sequence"].tolist() == [-1, 4, -1]
    assert raw == kc.empty_batch(
        100,
        last,
        producer_id=9,
        producer_epoch=3,
        base_sequence=4,
        timestamp=1_700_000_000_000,
        partition_leader_epoch=5,
    )
    assert len(kc.decode(raw)) == 0
    assert kc.decode(raw).consumed == len(raw) == 61


def test_empty_batches_of_brokers_are_as_the_one_by_hand() -> None:
    for batch in EMPTY:
        header = batch.header
        if header["isTransactional"] or header["isControl"] or header["deleteHorizonMs"]:
            continue
        made = by_hand(
            base_offset=header["baseOffset"],
            last_offset=header["lastOffset"],
            producer_id=header["producerId"],
            sequence=header["baseSequence"],
            timestamp=header["maxTimestamp"],
        )
        # The leader epoch (12) is not under the checksum; 17 to 21 is the checksum, 51 to 53 the producer's epoch.
        assert made[:12] == batch.raw[:12]
        assert made[21:51] == batch.raw[21:51]
        assert made[53:] == batch.raw[53:]
