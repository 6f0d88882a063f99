"""Producer ids, sequences, epochs, duplicates."""

from tests.differential.record_sets import patched


def _id(s, **fields):
    return s.ask("InitProducerId", 4, quiet=True, **fields).producer_id


def init(s):
    for version in range(6):
        s.ask("InitProducerId", version)
    s.ask("InitProducerId", 4, label="own-id-without-transaction", producer_id=987_654_321, producer_epoch=3)
    s.ask("InitProducerId", 4, label="timeout-0", transaction_timeout_ms=0)


def sequences(s):
    t, p = s.topic(), _id(s)
    s.produce(t, b"a", b"b", producer=(p, 0, 0))
    s.produce(t, b"c", producer=(p, 0, 2))
    s.produce(t, b"gap", producer=(p, 0, 5), label="gap")
    s.produce(t, b"d", producer=(p, 0, 3))
    s.produce(t, b"back", b"x", producer=(p, 0, 1), label="back")
    s.fetch(t)


def duplicates(s):
    t, p = s.topic(), _id(s)
    for n in range(6):
        s.produce(t, b"%d" % n, producer=(p, 0, n), at=n)
    for n in (5, 4, 1, 0):
        s.produce(t, b"%d" % n, producer=(p, 0, n), at=n, label=f"again-{n}")
    s.produce(t, b"6", b"7", producer=(p, 0, 6), at=6)
    s.produce(t, b"7", producer=(p, 0, 7), label="part-of-the-last")
    s.produce(t, b"6", b"7", producer=(p, 0, 6), at=6, version=3, label="again-6")
    s.fetch(t, pick=lambda a: a["responses"][0]["partitions"][0]["high_watermark"])


def epochs(s):
    t, p = s.topic(), _id(s)
    s.produce(t, b"a", producer=(p, 1, 0))
    s.produce(t, b"old", producer=(p, 0, 1), label="lower-epoch")
    s.produce(t, b"b", producer=(p, 2, 1), label="higher-epoch-not-from-0")
    s.produce(t, b"b", producer=(p, 2, 0), label="higher-epoch-from-0")
    s.produce(t, b"a", producer=(p, 1, 0), label="again-the-first")
    s.produce(t, b"old", producer=(p, 1, 1), label="lower-epoch", version=3)
    s.fetch(t)


def unknown_producer(s):
    t = s.topic()
    s.produce(t, b"a", producer=(900_000_001, 0, 40), label="starts-at-40")
    s.produce(t, b"b", producer=(900_000_001, 0, 41))
    s.produce(t, b"c", producer=(900_000_001, 0, 40), label="again-40")
    s.produce(t, b"c", producer=(900_000_001, 0, 39), label="before")
    s.produce(
        t, data=patched(s.batch(b"a"), producer_id=900_000_002, producer_epoch=0, sequence=-1), label="no-sequence"
    )


def wrap(s):
    t, p = s.topic(), 900_000_003
    s.produce(t, b"a", b"b", b"c", producer=(p, 0, 2_147_483_646))
    s.produce(t, b"d", producer=(p, 0, 2), label="wrong")
    s.produce(t, b"d", producer=(p, 0, 1))
    s.produce(t, b"a", b"b", b"c", producer=(p, 0, 2_147_483_646), label="again")
    s.fetch(t)


def two_partitions(s):
    t, p = s.topic(partitions=2), _id(s)
    s.produce(t, b"a", producer=(p, 0, 0))
    s.produce(t, b"b", producer=(p, 0, 0), partition=1)
    s.produce(t, b"c", producer=(p, 0, 1), partition=1)
    s.produce(t, b"gap", producer=(p, 0, 2))
    s.ask("DescribeProducers", 0, topics=[{"name": t, "partition_indexes": [0, 1]}])


def describe(s):
    t, p = s.topic(), _id(s)
    s.ask("DescribeProducers", 0, label="none", topics=[{"name": t, "partition_indexes": [0]}])
    s.produce(t, b"a", b"b", producer=(p, 0, 0))
    s.produce(t, b"plain")
    s.produce(t, b"c", producer=(900_000_004, 7, 12), at=50)
    s.ask("DescribeProducers", 0, topics=[{"name": t, "partition_indexes": [0]}])
    s.ask(
        "DescribeProducers",
        0,
        label="unknown",
        retry=(),
        topics=[
            {"name": s.name("none"), "partition_indexes": [0]},
            {"name": t, "partition_indexes": [9]},
            {"name": "a/b", "partition_indexes": [0]},
        ],
    )


def compressed_duplicate(s):
    t, p = s.topic(), _id(s)
    s.produce(t, b"a" * 30, b"b" * 30, producer=(p, 0, 0), codec="lz4")
    s.produce(t, b"a" * 30, b"b" * 30, producer=(p, 0, 0), codec="lz4", label="again")
    s.produce(t, b"other", b"words", producer=(p, 0, 0), label="same-sequences-other-records")
    s.fetch(t)


def append_time_duplicate(s):
    t, p = s.topic(message_timestamp_type="LogAppendTime"), _id(s)
    s.produce(t, b"a", producer=(p, 0, 0))
    s.produce(t, b"a", producer=(p, 0, 0), label="again")


def survives_delete_records(s):
    t, p = s.topic(), _id(s)
    s.produce(t, b"a", b"b", producer=(p, 0, 0))
    s.ask("DeleteRecords", 2, topics=[{"name": t, "partitions": [{"partition_index": 0, "offset": -1}]}])
    s.produce(t, b"a", b"b", producer=(p, 0, 0), label="again")
    s.produce(t, b"c", producer=(p, 0, 2))
    s.fetch(t, 2)
