"""Kafka's own Java classes, and a real broker and consumer, read what is written here."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kafkacodec as kc
from kafkacodec.client import Admin, Consumer
from kafkacodec.log import LogWriter, Partition
from tests.corpus import ROOT
from tests.integration import kafka_jvm
from tests.integration.kafka_jvm import random_rows
from tests.patience import eventually

pytestmark = pytest.mark.java

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
LISTED = 18
"""Partitions of "listed"."""


@pytest.fixture(scope="module")
def after_a_stop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[kafka_jvm.Broker]:
    """A broker that was shut down in good order, and started again when its topics had been written."""
    often = {"log_flush_start_offset_checkpoint_interval_ms": "500"}
    broker = kafka_jvm.Broker(tmp_path_factory.mktemp("stopped"), **often)
    with_topics(broker, {"cleaned": 1, "decided": 1, "listed": LISTED, "shortened": 1})
    for write in (write_cleaned, write_decided, write_listed):
        write(broker.logs)
    assert (broker.logs / ".kafka_cleanshutdown").exists()  # so nothing is read through
    broker.start()
    yield broker
    broker.kill()


@pytest.fixture(scope="module")
def after_a_crash(tmp_path_factory: pytest.TempPathFactory) -> Iterator[kafka_jvm.Broker]:
    """A broker that has read its logs through, since it was not shut down in good order."""
    broker = kafka_jvm.Broker(tmp_path_factory.mktemp("crashed"))
    with_topics(broker, {"written": 2, "saved": 1})
    write_two_partitions(broker.logs)
    write_recovered(broker.logs, broker.logs.parent)
    (broker.logs / ".kafka_cleanshutdown").unlink()
    broker.start()
    yield broker
    broker.kill()


def with_topics(broker: kafka_jvm.Broker, topics: dict[str, int]) -> None:
    """Make topics, and shut the broker down."""
    broker.start()
    for name, partitions in topics.items():
        kafka_jvm.create_topic(broker.server, name, partitions)
    broker.stop()


def as_read(source: int, written: list[Any]) -> list[kafka_jvm.JavaRecord]:
    return [kafka_jvm.JavaRecord(source, *row[:2], *row[3:]) for row in written]


def test_every_codec(tmp_path: Path) -> None:
    written = random_rows(3000, 5)
    files = []
    for codec in CODECS:
        files.append(tmp_path / codec)
        files[-1].write_bytes(kc.encode(written, codec=codec))
    read = kafka_jvm.records(kafka_jvm.tool("dump", *files))
    assert read == [r for number in range(len(CODECS)) for r in as_read(number, written)]


def test_lz4_blocks_of_256_kib(tmp_path: Path) -> None:
    file = tmp_path / "large"
    written = random_rows(20000, 6)
    file.write_bytes(kc.encode(written, codec="lz4", batch_bytes=1 << 19))
    assert kafka_jvm.records(kafka_jvm.tool("dump", file)) == as_read(0, written)


def test_offset_gaps_sequences_and_control_batches(tmp_path: Path) -> None:
    file = tmp_path / "gaps"
    written = [(offset, 5, 0, b"k", b"v", []) for offset in (3, 4, 9, 2**31 + 3, 2**40)]
    producer: dict[str, Any] = {"producer_id": 5, "producer_epoch": 1}
    data = kc.encode(written, base_sequence=2**31 - 2, is_transactional=True, **producer)
    file.write_bytes(data + kc.control_batch("commit", offset=2**40 + 1, timestamp=6, **producer))
    *read, marker = kafka_jvm.records(kafka_jvm.tool("dump", file))
    assert read == as_read(0, written)
    assert (marker.offset, marker.timestamp, marker.key) == (2**40 + 1, 6, bytes([0, 0, 0, 1]))


def test_batches_as_the_log_cleaner_leaves_them(tmp_path: Path) -> None:
    file = tmp_path / "cleaned"
    row = (5, 0, b"k", b"v", [])
    producer: dict[str, Any] = {"producer_id": 5, "producer_epoch": 1}
    data = kc.encode([(13, *row), (15, *row)], first_offset=10, last_offset=19, base_sequence=7, **producer)
    data += kc.encode([], first_offset=20, last_offset=20, codec="zstd", base_sequence=17, **producer)
    data += kc.empty_batch(21, 2**31 + 20, base_sequence=18, timestamp=6, is_transactional=True, **producer)
    data += kc.encode([(2**31 + 40, *row)], first_offset=2**31 + 21, last_offset=2**31 + 50, codec="lz4")
    file.write_bytes(data)
    read = kafka_jvm.records(kafka_jvm.tool("dump", file))
    assert read == as_read(0, [(offset, *row) for offset in (13, 15, 2**31 + 40)])


def write_cleaned(logs: Path) -> None:
    producer: dict[str, Any] = {"producer_id": 4000, "producer_epoch": 0}
    rows = [(offset, 5, 0, b"k", b"v", []) for offset in (13, 15, 45)]
    with LogWriter(logs, "cleaned", 0) as writer:
        writer.write_batches(kc.empty_batch(0, 9, base_sequence=0, **producer))
        writer.write_batches(kc.encode(rows[:2], first_offset=10, last_offset=19, base_sequence=10, **producer))
        writer.write_batches(kc.encode(rows[2:], first_offset=20, last_offset=49, base_sequence=20, **producer))
        writer.write_batches(kc.empty_batch(50, 99, base_sequence=50, **producer))


def test_a_consumer_passes_over_batches_of_the_log_cleaner(after_a_stop: kafka_jvm.Broker) -> None:
    kafka_jvm.tool("produce", after_a_stop.server, "cleaned", 1, text="6e\n")
    read = kafka_jvm.records(kafka_jvm.tool("consume", after_a_stop.server, "cleaned", 1, "read_committed"))
    assert [r.offset for r in read] == [13, 15, 45, 100]


def test_partitions() -> None:
    rnd = random.Random(3)
    keys = [b"", *(rnd.randbytes(rnd.randrange(50)) for _ in range(2000))]
    lines = kafka_jvm.tool("partition", 12, text="".join(f"{key.hex()}\n" for key in keys))
    assert [f"{kc.murmur2(k)} {p}" for k, p in zip(keys, kc.partition(pa.array(keys), 12), strict=True)] == lines


def write_two_partitions(logs: Path) -> None:
    first, second = random_rows(2000, 1), random_rows(500, 2)
    producer: dict[str, Any] = {"producer_id": 4000, "producer_epoch": 0}
    with LogWriter(logs, "written", 0, start_offset=77, segment_bytes=100_000) as writer:
        writer.write(first[:1000], codec="lz4")
        writer.write(first[1000:], codec="zstd")
    with LogWriter(logs, "written", 1, start_offset=77, segment_bytes=20_000) as writer:
        writer.write_batches(kc.encode(second[:200], codec="gzip"))
        writer.write_batches(kc.encode(second[200:300], base_sequence=0, is_transactional=True, **producer))
        writer.write_batches(kc.control_batch("abort", offset=377, **producer))
        writer.write(pa.table({"value": [row[4] for row in second[300:]]}))
    assert len(Partition(writer.path).segments) > 1


def test_a_broker_opens_what_was_written_and_a_consumer_reads_it(after_a_crash: kafka_jvm.Broker) -> None:
    first, second = random_rows(2000, 1), random_rows(500, 2)
    for isolation in ("read_uncommitted", "read_committed"):
        read = kafka_jvm.records(kafka_jvm.tool("consume", after_a_crash.server, "written", 2, isolation))
        assert [r for r in read if r.source == 0] == as_read(0, first)
        aborted = 0 if isolation == "read_committed" else 100
        offsets = [*range(77, 277 + aborted), *range(378, 578)]
        assert [r.offset for r in read if r.source == 1] == offsets
        assert [r.value for r in read if r.source == 1][-200:] == [row[4] for row in second[300:]]


def write_decided(logs: Path) -> None:
    aborting: dict[str, Any] = {"producer_id": 4000, "producer_epoch": 0}
    lasting: dict[str, Any] = {"producer_id": 4001, "producer_epoch": 3}

    def values(*numbers: int) -> pa.Table:
        return pa.table({"value": [b"%d" % n for n in numbers]})

    with LogWriter(logs, "decided", 0) as writer:
        for n in range(0, 40, 10):
            writer.write(values(n, n + 1))
            records = values(*range(n + 2, n + 9))
            writer.write_batches(
                kc.encode(records, base_offset=n + 2, is_transactional=True, base_sequence=n, **aborting)
            )
            kind = "commit" if n == 20 else "abort"
            writer.write_batches(kc.control_batch(kind, offset=n + 9, **aborting))
            writer.commit()
        writer.write_batches(kc.encode(values(40), base_offset=40, is_transactional=True, base_sequence=0, **lasting))
        writer.write(values(41))


def test_a_broker_after_a_good_shutdown_knows_aborted_and_open_transactions(after_a_stop: kafka_jvm.Broker) -> None:
    read = kafka_jvm.records(kafka_jvm.tool("consume", after_a_stop.server, "decided", 1, "read_committed"))
    assert [r.offset for r in read] == [0, 1, 10, 11, *range(20, 29), 30, 31]
    read = kafka_jvm.records(kafka_jvm.tool("consume", after_a_stop.server, "decided", 1, "read_uncommitted"))
    assert [r.value for r in read] == [b"%d" % n for n in range(42) if n % 10 != 9]


def write_listed(logs: Path) -> None:
    """The transaction index, from which a broker answers fetches, has each offset in turn as the first one."""
    for listed in range(LISTED):
        _write_transactions(logs, "listed", listed)
        (path,) = (logs / f"listed-{listed}").glob("*.txnindex")
        entries = kc.log.read_transaction_index(path).entries
        entries["first_offset"] = listed
        path.write_bytes(kc.log.formats.indexes.encode_transaction_index(entries))


def test_aborted_transactions_that_are_listed_wrongly_are_read_as_by_java(after_a_stop: kafka_jvm.Broker) -> None:
    broker, count = after_a_stop, LISTED
    read = kafka_jvm.records(kafka_jvm.tool("consume", broker.server, "listed", count, "read_committed"))
    found = []
    end = Partition(broker.logs / "listed-0").end_offset()
    with Consumer(bootstrap_servers=broker.server, isolation_level="read_committed") as consumer:
        consumer.assign([("listed", number) for number in range(count)])
        consumer.seek_to_beginning()
        while any(consumer.position("listed", number) < end for number in range(count)):
            found += [r for records in consumer.getmany(timeout=5).values() for r in records]
    assert sorted((r.partition, r.offset) for r in found) == sorted((r.source, r.offset) for r in read)
    assert (
        len({tuple(r.offset for r in read if r.source == number) for number in range(count)}) == 3
    )  # none, one, all dropped


def _write_transactions(logs: Path, topic: str, number: int) -> None:
    """Two of a producer that were committed, and in between one that was aborted, at offsets 14 to 18."""
    producer, other = ({"producer_id": n, "producer_epoch": 0, "is_transactional": True} for n in (4000, 4001))
    with LogWriter(logs, topic, number) as writer:
        writer.write(pa.table({"value": [b"plain"] * 9}))
        for sequence, (rows, owner, kind) in enumerate(
            [
                (2, producer, "commit"),
                (1, other, "commit"),
                (2, producer, None),
                (2, producer, "abort"),
                (2, producer, "commit"),
            ]
        ):
            values = pa.table({"value": [b"%d" % (writer.next_offset + n) for n in range(rows)]})
            writer.write_batches(kc.encode(values, base_offset=writer.next_offset, base_sequence=2 * sequence, **owner))
            if kind is not None:
                identity = {name: owner[name] for name in ("producer_id", "producer_epoch")}
                writer.write_batches(kc.control_batch(kind, offset=writer.next_offset, **identity))


def test_deleted_records_are_passed_over_as_a_consumer_does(after_a_stop: kafka_jvm.Broker) -> None:
    broker = after_a_stop
    kafka_jvm.tool("produce", broker.server, "shortened", 1, text="".join(f"{n:04x}\n" for n in range(500)))
    with Admin(broker.server) as admin:
        admin.delete_records({("shortened", 0): 123})
    consumed = kafka_jvm.records(kafka_jvm.tool("consume", broker.server, "shortened", 1, "read_uncommitted"))
    assert [r.offset for r in consumed] == list(range(123, 500))
    path = broker.logs / "shortened-0"
    eventually(lambda: Partition(path).log_start_offset == 123)  # the broker writes it down now and then
    assert [offset for chunk in Partition(path).read() for offset in chunk["offset"].tolist()] == list(range(123, 500))


def write_recovered(logs: Path, place: Path) -> None:
    source = place / "damaged" / "txn-0"
    shutil.copytree(ROOT / "logs/kraft-4.1.0/txn-0", source, copy_function=shutil.copyfile)
    source.chmod(0o755)
    for path in sorted(source.glob("*.log"))[::4]:
        data = bytearray(path.read_bytes())
        middle = int(kc.scan(bytes(data))["position"][5])
        data[middle + 40 : middle + 90] = bytes(50)
        path.write_bytes(data + data[:200])
    report = kc.log.recover(source, place / "recovered")
    assert not report.ok
    target = logs / "saved-0"
    identity = (target / "partition.metadata").read_bytes()
    shutil.rmtree(target)
    shutil.copytree(place / "recovered" / "txn-0", target)
    (target / "partition.metadata").write_bytes(identity)


def test_a_broker_opens_what_was_recovered(after_a_crash: kafka_jvm.Broker) -> None:
    logs, recovered = after_a_crash.logs, after_a_crash.logs.parent / "recovered" / "txn-0"
    for isolation in ("read_uncommitted", "read_committed"):
        read = kafka_jvm.records(kafka_jvm.tool("consume", after_a_crash.server, "saved", 1, isolation))
        mine = Partition(recovered).read(isolation_level=isolation)
        assert [r.offset for r in read] == [offset for chunk in mine for offset in chunk["offset"].tolist()]
    made = {path.name: path.read_bytes() for path in (logs / "saved-0").glob("*.txnindex")}
    mine_made = {path.name: path.read_bytes() for path in recovered.glob("*.txnindex")}
    assert mine_made == {name: data for name, data in made.items() if data}
