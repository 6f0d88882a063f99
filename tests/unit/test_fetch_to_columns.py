"""Fetch responses as one table: record sets of real brokers, transactions compared with a real consumer."""

import subprocess
import sys
import uuid
from pathlib import Path

import pytest

import kafkacodec as kc
from kafkacodec import messages, protocol
from tests.corpus import assert_same_records, blobs, read_committed

pa = pytest.importorskip("pyarrow")

Topic = messages.FetchResponse.FetchableTopicResponse
Partition = messages.FetchResponse.PartitionData
Aborted = messages.FetchResponse.AbortedTransaction


def response(*partitions, name="orders", version=12, **more):
    topic = Topic(topic=name, partitions=list(partitions), **more)
    body = messages.FetchResponse(responses=[topic]).encode(version)
    return messages.FetchResponse.decode(body, version)


def test_partitions_become_one_table():
    one = Partition(partition_index=0, records=kc.encode([(b"k", b"v"), (None, b"w")]))
    two = Partition(partition_index=1, records=kc.encode([(b"x", None)], base_offset=7))
    columns = protocol.fetch_to_columns(
        response(one, Partition(partition_index=2, records=b""), Partition(partition_index=3, records=None), two)
    )
    assert isinstance(columns, kc.RecordColumns)
    assert columns.column_names == ["topic", "partition", *kc.decode(b"").column_names]
    assert columns.schema[:2] == (("topic", "string"), ("partition", "int32"))
    assert pa.table(columns).select(["topic", "partition", "offset", "value"]).to_pylist() == [
        {"topic": "orders", "partition": 0, "offset": 0, "value": b"v"},
        {"topic": "orders", "partition": 0, "offset": 1, "value": b"w"},
        {"topic": "orders", "partition": 1, "offset": 7, "value": None},
    ]
    assert columns["partition"].tolist() == [0, 0, 1]
    assert columns.consumed == len(one.records) + len(two.records)
    assert [record.key for record in columns.records()] == [b"k", None, b"x"]
    chosen = protocol.fetch_to_columns(response(one), columns=["value"], batch_columns=True)
    assert chosen.column_names[:4] == ["topic", "partition", "value", "partition_leader_epoch"]


@pytest.mark.parametrize("kind", ["fetch", "builder", "cut"])
def test_record_sets_of_real_brokers(kind):
    """Every golden record set is a partition of one response; some have a trailing partial batch."""
    samples = blobs(kind)
    partitions = [Partition(partition_index=i, records=sample.data()) for i, sample in enumerate(samples)]
    columns = protocol.fetch_to_columns(response(*partitions), include_control=True)
    assert_same_records(columns, [row for sample in samples for row in sample.expected.records])
    expected = [i for i, sample in enumerate(samples) for _ in sample.expected.records]
    assert columns["partition"].tolist() == expected
    assert columns.consumed == sum(sample.expected.valid_bytes for sample in samples)


def test_every_reader_takes_it():
    table = protocol.fetch_to_columns(response(Partition(partition_index=4, records=kc.encode([(b"k", b"v")] * 3))))
    pandas, polars, duckdb = (pytest.importorskip(name) for name in ("pandas", "polars", "duckdb"))
    assert pa.record_batch(table).column("topic").to_pylist() == ["orders"] * 3
    assert isinstance(table.to_pandas(), pandas.DataFrame)
    assert table.to_pandas()["topic"].tolist() == ["orders"] * 3
    assert polars.DataFrame(table)["partition"].to_list() == [4] * 3
    arrow = pa.table(table)
    with duckdb.connect() as connection:
        connection.register("fetched", arrow)
        assert connection.sql("select topic, partition, count(*) from fetched group by all").fetchall() == [
            ("orders", 4, 3)
        ]


def test_nothing_fetched():
    table = protocol.fetch_to_columns(messages.FetchResponse())
    assert (len(table), table.column_names[:2]) == (0, ["topic", "partition"])
    assert pa.table(table).num_rows == 0


def test_topic_ids_and_names():
    """Versions 13 and later have ids: the topic is the given name, or the id as text."""
    known, other = uuid.uuid4(), uuid.uuid4()
    partition = Partition(partition_index=0, records=kc.encode([(b"k", b"v")]))
    topics = [Topic(topic_id=known, partitions=[partition]), Topic(topic_id=other, partitions=[partition])]
    fetched = messages.FetchResponse.decode(messages.FetchResponse(responses=topics).encode(17), 17)
    table = pa.table(protocol.fetch_to_columns(fetched, topic_names={known: "ordres-\u00e9t\u00e9"}))
    assert table.column("topic").to_pylist() == ["ordres-\u00e9t\u00e9", str(other)]


def test_a_topic_name_that_would_fill_memory():
    partition = Partition(partition_index=0, records=kc.encode([(b"k", b"v")] * 2))
    assert pa.table(protocol.fetch_to_columns(response(partition, name="t" * 249)))["topic"][1].as_py() == "t" * 249
    with pytest.raises(kc.LimitExceeded, match="longer than 249 bytes"):
        protocol.fetch_to_columns(response(partition, name="t" * 250))


def test_errors_of_the_broker():
    refused = Partition(partition_index=3, error_code=6, records=b"")
    good = Partition(partition_index=4, records=kc.encode([(b"k", b"v")]))
    with pytest.raises(kc.errors.NotLeaderOrFollowerError, match="orders-3"):
        protocol.fetch_to_columns(response(refused, good))
    table = protocol.fetch_to_columns(response(refused, good), on_error="stop")
    assert table["partition"].tolist() == [4]
    (problem,) = table.problems
    assert isinstance(problem.exception, kc.errors.NotLeaderOrFollowerError)
    assert "orders-3" in str(problem.exception)
    assert problem[:3] == (0, None, 0)
    with pytest.raises(kc.errors.FetchSessionIdNotFoundError):
        protocol.fetch_to_columns(messages.FetchResponse(error_code=70))


def test_damage():
    damaged = bytearray(kc.encode([(b"k", b"v")]) + kc.encode([(b"k2", b"v2")], base_offset=1))
    damaged[60] ^= 1
    fetched = response(
        Partition(partition_index=1, records=bytes(damaged)),
        Partition(partition_index=2, records=kc.encode([(b"x", b"y")])),
    )
    with pytest.raises(kc.CrcMismatch, match=r"orders-1: batch at offset 0.*\(byte 0\)"):
        protocol.fetch_to_columns(fetched)
    stopped = protocol.fetch_to_columns(fetched, on_error="stop")
    assert stopped["partition"].tolist() == [2]
    skipped = protocol.fetch_to_columns(fetched, on_error="skip")
    assert list(zip(skipped["partition"].tolist(), skipped["offset"].tolist(), strict=True)) == [(1, 1), (2, 0)]
    for table, size in ((stopped, len(damaged)), (skipped, 70)):
        (problem,) = table.problems
        assert str(problem.exception).startswith("orders-1: ")
        assert (problem.position, problem.base_offset, problem.size_in_bytes) == (0, 0, size)


def test_wrong_options():
    with pytest.raises(ValueError, match="isolation_level"):
        protocol.fetch_to_columns(messages.FetchResponse(), isolation_level="serializable")
    with pytest.raises(ValueError, match="unknown column 'row'; columns are topic, partition, offset, "):
        protocol.fetch_to_columns(messages.FetchResponse(), columns=["row"])
    with pytest.raises(TypeError, match="not str"):
        protocol.fetch_to_columns(messages.FetchResponse(), columns="offset")
    with pytest.raises(TypeError, match="must be a FetchResponse, not ProduceResponse"):
        protocol.fetch_to_columns(messages.ProduceResponse())
    with pytest.raises(TypeError, match="threads"):
        protocol.fetch_to_columns(messages.FetchResponse(), threads=2)  # type: ignore[call-arg]


def committed_response(case):
    """A partition as a broker sends it to a read_committed consumer, with the aborted transactions of the log."""
    partition = kc.log.LogDirectory(case.directory).partition(case.topic, case.partition)
    records = b"".join(Path(segment.path).read_bytes() for segment in partition.segments)
    aborted = [
        Aborted(producer_id=int(row["producer_id"]), first_offset=int(row["first_offset"]))
        for row in partition.transactions().aborted
    ]
    fetched = Partition(partition_index=case.partition, records=records, aborted_transactions=aborted)
    return response(fetched, name=case.topic)


@pytest.mark.parametrize("case", read_committed(), ids=lambda case: f"{case.directory.name}-{case.topic}")
def test_aborted_transactions_are_dropped(case):
    """Given the aborted transactions of the log, the table has the records that Kafka's consumer returned."""
    fetched = committed_response(case)
    table = protocol.fetch_to_columns(fetched, isolation_level="read_committed", columns=["offset"])
    assert [offset for offset in table["offset"].tolist() if offset < case.end_offset] == case.offsets
    middle = case.offsets[len(case.offsets) // 2] if case.offsets else 0
    later = protocol.fetch_to_columns(
        fetched, isolation_level="read_committed", columns=["offset"], start_offset=middle, end_offset=case.end_offset
    )
    assert later["offset"].tolist() == [offset for offset in case.offsets if offset >= middle]


def transactional(offset, *, control=False, producer=7):
    batch = bytearray(
        kc.encode([(bytes(4), b"")], base_offset=offset, producer_id=producer, producer_epoch=0, is_transactional=True)
    )
    if control:
        batch[22] |= 0x20
        batch[17:21] = kc.crc32c(batch[21:]).to_bytes(4, "big")
    return bytes(batch)


def fetch_of(*batches, aborted):
    entries = [Aborted(producer_id=producer, first_offset=first) for producer, first in aborted]
    return response(Partition(partition_index=0, records=b"".join(batches), aborted_transactions=entries))


def committed(fetched, **options):
    return protocol.fetch_to_columns(fetched, isolation_level="read_committed", **options)


def test_a_transaction_ends_with_its_marker():
    batches = [transactional(0), transactional(1, producer=8), transactional(2, control=True), transactional(3)]
    fetched = fetch_of(*batches, aborted=[(7, 0)])
    assert committed(fetched)["offset"].tolist() == [1, 3]
    assert committed(fetched, include_control=True)["offset"].tolist() == [1, 2, 3]
    assert protocol.fetch_to_columns(fetched)["offset"].tolist() == [0, 1, 3]
    # A marker before start_offset ends its transaction too.
    assert committed(fetched, start_offset=3)["offset"].tolist() == [3]
    # Null is an empty list of aborted transactions.
    none = response(Partition(partition_index=0, records=batches[0], aborted_transactions=None))
    assert committed(none)["offset"].tolist() == [0]


def test_several_transactions_of_a_producer():
    """Two aborted, one committed between them, one without a marker."""
    batches = [
        *(transactional(0), transactional(1, control=True), transactional(2), transactional(3, control=True)),
        *(transactional(4), transactional(5, control=True), transactional(6)),
    ]
    assert committed(fetch_of(*batches, aborted=[(7, 4), (9, 2), (7, 0)]))["offset"].tolist() == [2, 6]
    assert committed(fetch_of(*batches, aborted=[(7, 0), (7, 6)]))["offset"].tolist() == [2, 4]


def test_damage_inside_an_aborted_transaction():
    damaged = bytearray(transactional(1))
    damaged[-1] ^= 1
    batches = [transactional(0), bytes(damaged), transactional(2), transactional(3, control=True), transactional(4)]
    fetched = fetch_of(*batches, aborted=[(7, 0)])
    with pytest.raises(kc.CrcMismatch, match="orders-0"):
        committed(fetched)
    assert committed(fetched, on_error="skip")["offset"].tolist() == [4]


def test_without_pyarrow():
    code = """
import sys
sys.modules["pyarrow"] = None
import kafkacodec as kc
from kafkacodec import messages, protocol
R = messages.FetchResponse
p = R.PartitionData(partition_index=5, records=kc.encode([(b"k", b"v")] * 2))
table = protocol.fetch_to_columns(R(responses=[R.FetchableTopicResponse(topic="t", partitions=[p])]))
assert table["partition"].tolist() == [5, 5]
assert bytes(table.buffers("topic")["data"]) == b"tt"
assert len(table.__arrow_c_array__()) == 2
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])


def test_topic_and_partition_may_be_named():
    table = protocol.fetch_to_columns(messages.FetchResponse(), columns=["partition", "offset", "topic"])
    assert [field.name for field in table.schema] == ["topic", "partition", "offset"]


def places(table):
    return [(p.partition, p.start_offset, p.next_offset, p.limit_too_small, p.needed_bytes) for p in table.partitions]


@pytest.mark.parametrize("kind", ["fetch", "builder", "cut"])
def test_offsets_of_real_record_sets(kind):
    """As in the batches that Kafka's reader found; those with only control records count too."""
    samples = blobs(kind)
    table = protocol.fetch_to_columns(
        response(*[Partition(partition_index=i, records=sample.data()) for i, sample in enumerate(samples)]),
        columns=["value"],
    )
    for sample, found in zip(samples, table.partitions, strict=True):
        batches = sample.expected.batches
        if batches:
            assert found.start_offset == batches[0]["baseOffset"]
            assert found.next_offset == batches[-1]["lastOffset"] + 1
        else:
            assert (found.start_offset, found.next_offset) == (None, None)
        assert found.limit_too_small == (not batches and sample.path.stat().st_size > 0)


@pytest.mark.parametrize("case", read_committed(), ids=lambda case: f"{case.directory.name}-{case.topic}")
def test_the_next_offset_is_after_aborted_transactions_and_markers(case):
    """The next fetch starts at the end of the log, which a consumer of Kafka reached."""
    table = protocol.fetch_to_columns(committed_response(case), isolation_level="read_committed", columns=["offset"])
    ((_, start, following, too_small, _),) = places(table)
    assert start <= case.offsets[0]  # a compacted log starts with an aborted transaction or a batch without records
    assert not too_small
    assert following >= case.end_offset > max(case.offsets, default=-1)


def test_offsets_where_no_record_remains():
    batches = [transactional(5), transactional(6, control=True)]
    assert places(committed(fetch_of(*batches, aborted=[(7, 5)]))) == [(0, 5, 7, False, None)]
    only = protocol.fetch_to_columns(fetch_of(transactional(6, control=True), aborted=[]))
    assert (len(only), places(only)) == (0, [(0, 6, 7, False, None)])
    limited = protocol.fetch_to_columns(fetch_of(*batches, aborted=[]), start_offset=100, end_offset=200)
    assert (len(limited), places(limited)) == (0, [(0, 5, 7, False, None)])
    marker = kc.control_batch("commit", offset=4, producer_id=1, producer_epoch=0)
    assert places(protocol.fetch_to_columns(response(Partition(partition_index=3, records=marker)))) == [
        (3, 4, 5, False, None)
    ]


def test_partitions_without_data():
    refused = Partition(partition_index=1, error_code=6, records=None)
    table = protocol.fetch_to_columns(response(refused, Partition(partition_index=2, records=b"")), on_error="stop")
    assert [(p.topic, p.error_code) for p in table.partitions] == [("orders", 6), ("orders", 0)]
    assert places(table) == [(1, None, None, False, None), (2, None, None, False, None)]
    assert protocol.fetch_to_columns(messages.FetchResponse()).partitions == []


@pytest.mark.parametrize("codec", ["none", "gzip"])
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_every_cut(magic, codec):
    """A fetch may end at any byte: what is complete counts, and nothing complete means that the limit is too small."""
    sets = [
        kc.encode([(b"k", b"v" * 30)] * 3, base_offset=first, magic=magic, codec=codec, batch_bytes=1 << 20)
        for first in (40, 50)
    ]
    data = b"".join(sets)
    ends = {0: None}
    for header in kc.scan(data):
        ends[header.position + header.size_in_bytes] = header.last_offset + 1
    first = min(end for end in ends if end)
    for size in range(1, len(data) + 1):
        (found,) = protocol.fetch_to_columns(response(Partition(partition_index=0, records=data[:size]))).partitions
        assert found.next_offset == ends[max(end for end in ends if end <= size)]
        assert found.start_offset == (40 if size >= first else None)
        assert found.limit_too_small == (size < first)
        assert found.needed_bytes == (first if 12 <= size < first else None)


def test_the_next_offset_is_before_damage():
    """Damage is never reported as read: with "stop", the next fetch starts at it."""
    batches = [bytearray(kc.encode([(b"k", b"v")] * 2, base_offset=2 * i)) for i in range(4)]
    batches[2][70] ^= 1
    fetched = response(Partition(partition_index=0, records=b"".join(batches)))
    assert places(protocol.fetch_to_columns(fetched, on_error="stop")) == [(0, 0, 4, False, None)]
    assert places(protocol.fetch_to_columns(fetched, on_error="skip")) == [(0, 0, 8, False, None)]
    # The offset in a damaged last batch is not believed.
    batches[3][3] ^= 1
    batches[3][70] ^= 1
    fetched = response(Partition(partition_index=0, records=b"".join(batches)))
    assert places(protocol.fetch_to_columns(fetched, on_error="skip")) == [(0, 0, 4, False, None)]
    batches = batches[3:]
    fetched = response(Partition(partition_index=0, records=b"".join(batches)))
    assert places(protocol.fetch_to_columns(fetched, on_error="skip")) == [(0, None, None, False, None)]


def test_rows_taken_keep_the_partitions():
    table = protocol.fetch_to_columns(response(Partition(partition_index=4, records=kc.encode([(b"k", b"v")] * 3))))
    assert isinstance(table, protocol.FetchedColumns)
    assert table[1:].partitions == table.filter([True, False, True]).partitions == table.partitions
