"""Transactions: producers, markers, what readers see, offsets, refusals."""

from itertools import product

from kafkacodec.errors import CONCURRENT_TRANSACTIONS
from tests.differential.producers import Producer, finished


def _seen(a):
    """Offsets, kinds, epochs and values of what was fetched."""
    part = a["responses"][0]["partitions"][0]
    rows = [
        [r["base_offset"], r["attributes"], r["producer_epoch"], r["sequence"], [i["value"] for i in r["items"]]]
        for r in part["records"]
    ]
    return {
        "error": part["error_code"],
        "ends": [part["high_watermark"], part["last_stable_offset"]],
        "aborted": part["aborted_transactions"],
        "batches": rows,
    }


def _both(s, topic, label="", offset=0):
    for level in (0, 1):
        s.fetch(topic, offset, isolation_level=level, pick=_seen, label=f"{label}-{'un' * (1 - level)}committed")


def init_versions(s):
    for version in range(6):
        p = Producer(s, f"x{version}")
        p.init(version=version)
        p.init(version=version, label="again")
    p.init(version=4, label="with-its-id", producer_id=p.id, producer_epoch=p.epoch)
    p.init(version=4, label="with-an-old-epoch", producer_id=p.id, producer_epoch=p.epoch - 1)
    p.init(version=4, label="with-an-older-epoch", producer_id=p.id, producer_epoch=0)
    p.init(version=4, label="with-another-id", producer_id=p.id + 100_000, producer_epoch=0)
    p.init(version=4, label="with-an-epoch-alone", producer_epoch=2)


def init_refused(s):
    for timeout in (0, -1, 900_000, 900_001):
        Producer(s, "t", timeout).init(label=f"timeout-{timeout}")
    p = Producer(s)
    p.init(label="empty-name", transactional_id="", retry=())
    s.ask(
        "InitProducerId",
        4,
        label="unknown-id-of-an-unknown-transaction",
        transactional_id=s.name("new"),
        producer_id=5_000_000,
        producer_epoch=3,
    )


def commit(s):
    t, p = s.topic(), Producer(s)
    p.init()
    p.add(t)
    p.produce(t, b"a", b"b")
    _both(s, t, "open")
    p.end()
    finished(s, t, 3)
    _both(s, t, "committed")
    s.fetch(t)
    p.add(t, label="next")
    p.produce(t, b"c")
    p.end()
    finished(s, t, 5)
    _both(s, t, "two")


def abort(s):
    t, p = s.topic(), Producer(s)
    p.init()
    p.add(t)
    p.produce(t, b"a", b"b")
    p.end(False)
    finished(s, t, 3)
    _both(s, t, "aborted")
    for offset in (1, 2, 3):
        s.fetch(t, offset, isolation_level=1, pick=_seen, label=f"from-{offset}")
    p.add(t)
    p.produce(t, b"c")
    p.end()
    finished(s, t, 5)
    _both(s, t, "then-committed")
    s.fetch(t, 4, isolation_level=1, pick=_seen, label="past-the-aborted")


def second_version(s):
    t, p = s.topic(), Producer(s)
    p.init(version=5)
    p.produce(t, b"a", version=12)
    _both(s, t, "open")
    p.end(version=5)
    finished(s, t, 2)
    p.produce(t, b"b", version=13)
    p.end(False, version=5)
    finished(s, t, 4)
    _both(s, t)
    p.end(version=5, label="commit-of-nothing")
    p.end(False, version=5, label="abort-of-nothing")
    s.fetch(t, 1, pick=lambda a: a["responses"][0]["partitions"][0]["records"][0], label="marker")


def second_version_repeated(s):
    t, p = s.topic(), Producer(s)
    p.init(version=5)
    p.produce(t, b"a", version=12)
    old = p.epoch
    p.end(version=5, label="first")
    finished(s, t, 2)
    p.end(version=5, producer_epoch=old, label="again-with-the-old-epoch")
    p.end(False, version=5, producer_epoch=old, label="abort-with-the-old-epoch")
    p.end(version=5, producer_epoch=old - 1, label="older-epoch")
    p.produce(t, b"b", version=12, producer_epoch=old, sequence=1, label="old-epoch")
    p.produce(t, b"b", version=12, label="new-epoch")
    p.end(False, version=5)


def end_versions(s):
    t = s.topic()
    for version in range(6):
        p = Producer(s, f"x{version}")
        p.init()
        p.add(t, version=min(version, 3))
        p.produce(t, b"%d" % version)
        p.end(bool(version % 2), version=version)
        finished(s, t, 2 * version + 2)
    s.fetch(t, isolation_level=1, pick=_seen)


def end_refused(s):
    t, p = s.topic(), Producer(s)
    p.init()
    p.end(label="commit-nothing")
    p.end(False, label="abort-nothing")
    p.add(t)
    p.end(label="epoch-too-high", producer_epoch=p.epoch + 1)
    p.end(label="epoch-too-low", producer_epoch=p.epoch - 1)
    p.end(label="other-id", producer_id=p.id + 1_000_000)
    p.end(label="unknown-transaction", transactional_id=s.name("none"))
    p.end(label="empty-name", transactional_id="", retry=())
    p.end(label="added-but-nothing-produced")
    p.end(label="commit-again")
    p.end(False, label="abort-after-commit")


def add_refused(s):
    t, p = s.topic(partitions=2), Producer(s)
    p.init()
    p.add(s.name("none"), label="unknown-topic", retry=())
    p.add(t, 0, 9, label="one-unknown-partition", retry=())
    p.add(t, label="epoch-too-high", producer_epoch=p.epoch + 1)
    p.add(t, label="epoch-too-low", producer_epoch=p.epoch - 1)
    p.add(t, version=1, label="epoch-too-low", producer_epoch=p.epoch - 1)
    p.add(t, label="other-id", producer_id=p.id + 1_000_000)
    p.add(t, label="unknown-transaction", transactional_id=s.name("none"))
    p.add(t, label="empty-name", transactional_id="", retry=())
    p.add("__consumer_offsets", label="internal-topic")
    p.add(t, 0, label="right")
    p.add(t, 0, 1, label="again-and-one-more")
    p.end(False)


def add_in_batches(s):
    t, p = s.topic(), Producer(s)
    p.init()
    for version in (4, 5):
        p.add(t, version=version, verify_only=True, label="verify-before", retry=())
    p.add(t, version=4, label="add")
    p.add(t, version=4, verify_only=True, label="verify-after", retry=())
    p.produce(t, b"a")
    p.end()


def never_added(s):
    t = s.topic()
    for version in range(3, 14):
        # Kafka checks several producers' partitions together, so now and then one gets the error that is another's.
        code = 48 if version < 11 else 120 if version < 12 else 0
        p = Producer(s, f"x{version}")
        p.init(quiet=True)
        p.produce(
            t,
            b"x",
            version=version,
            wait=3,
            until=lambda a, code=code: a.responses[0].partition_responses[0].error_code == code,
        )
    s.fetch(t, isolation_level=1, pick=_seen)


def wrong_names(s):
    t, p = s.topic(), Producer(s)
    p.init()
    p.add(t)
    p.produce(t, b"x", transactional_id=s.name("other"), label="other-transaction")
    p.produce(t, b"x", transactional_id=None, label="no-transaction-named")
    s.produce(t, b"x", producer=(p.id, p.epoch, 0), version=11, transactional_id=p.name, label="batch-without-the-bit")
    p.produce(t, b"x", label="right")
    s.produce(t, b"x", producer=(p.id, p.epoch, 1), version=11, label="same-producer-without-a-transaction")
    p.end()


def fenced(s):
    t, one = s.topic(), Producer(s)
    one.init()
    one.add(t)
    one.produce(t, b"a")
    two = Producer(s)
    two.init(label="takes-over")
    finished(s, t, 2)
    one.produce(t, b"b", label="old-epoch")
    one.produce(t, b"b", version=9, label="old-epoch")
    one.produce(t, b"b", version=3, label="old-epoch")
    one.add(t, label="old-epoch")
    one.add(t, version=1, label="old-epoch")
    one.end(label="old-epoch")
    one.end(version=1, label="old-epoch")
    one.init(producer_id=one.id, producer_epoch=one.epoch, label="old-epoch", quiet=False)
    _both(s, t)
    two.add(t)
    two.produce(t, b"c")
    two.end()
    finished(s, t, 4)
    _both(s, t, "end")


def fenced_second_version(s):
    t, one = s.topic(), Producer(s)
    one.init(version=5)
    one.produce(t, b"a", version=12)
    two = Producer(s)
    two.init(version=5, label="takes-over")
    finished(s, t, 2)
    one.produce(t, b"b", version=12, label="old-epoch")
    one.end(version=5, label="old-epoch")
    two.produce(t, b"c", version=12)
    two.end(version=5)
    finished(s, t, 4)
    _both(s, t)


def two_producers(s):
    t, one, two = s.topic(), Producer(s, "one"), Producer(s, "two")
    for p in (one, two):
        p.init()
        p.add(t)
    one.produce(t, b"1a")
    two.produce(t, b"2a")
    one.produce(t, b"1b")
    two.end()
    s.fetch(t, until=lambda a: a.responses[0].partitions[0].high_watermark == 4, quiet=True)
    _both(s, t, "one-open")
    s.offset(t, -1, isolation_level=1, label="last-stable")
    s.offset(t, -1, label="latest")
    s.produce(t, b"plain")
    _both(s, t, "plain-after", 3)
    one.end(False)
    finished(s, t, 6)
    _both(s, t, "both-ended")
    s.fetch(t, 2, isolation_level=1, pick=_seen, label="from-2")


def several_aborted(s):
    t, p, q = s.topic(), Producer(s, "p"), Producer(s, "q")
    for x in (p, q):
        x.init()
    for n in range(2):
        for x in (p, q):
            x.add(t)
            x.produce(t, b"%d" % n)
        p.end(False)
        finished(s, t, 4 * n + 1)
        q.end(bool(n))
        finished(s, t, 4 * n + 4)
    for offset in (0, 1, 3, 4, 5, 7):
        s.fetch(t, offset, isolation_level=1, pick=lambda a: _seen(a)["aborted"], label=f"aborted-from-{offset}")
    s.fetch(t, 4, isolation_level=1, pick=_seen)


def offsets_by_time(s):
    t, p = s.topic(), Producer(s)
    s.produce(t, b"plain", times=[s.T])
    p.init()
    p.add(t)
    p.produce(t, b"a", times=[s.T + 50])
    for level in (0, 1):
        s.offset(t, s.T + 10, isolation_level=level, label=f"by-time-{level}")
        s.offset(t, s.T, isolation_level=level, label=f"by-time-of-the-first-{level}")
        s.offset(t, -3, isolation_level=level, label=f"latest-time-{level}")
        s.offset(t, -1, isolation_level=level, label=f"end-{level}")
        s.offset(t, -2, isolation_level=level, label=f"start-{level}")
    p.end()
    finished(s, t, 3)
    for level in (0, 1):
        s.offset(t, s.T + 10, isolation_level=level, label=f"committed-by-time-{level}")
        s.offset(t, -3, isolation_level=level, label=f"committed-latest-time-{level}")


def delete_records_in_one(s):
    t, p = s.topic(), Producer(s)
    s.produce(t, b"plain")
    p.init()
    p.add(t)
    p.produce(t, b"a")
    s.ask("DeleteRecords", 2, topics=[{"name": t, "partitions": [{"partition_index": 0, "offset": -1}]}])
    _both(s, t, "open", 2)
    p.end(False)
    s.fetch(
        t,
        2,
        isolation_level=1,
        pick=_seen,
        label="ended",
        until=lambda a: a.responses[0].partitions[0].last_stable_offset == 3,
    )


def duplicates(s):
    t, p = s.topic(), Producer(s)
    p.init()
    p.add(t)
    p.produce(t, b"a", b"b")
    p.produce(t, b"a", b"b", sequence=0, label="again")
    p.produce(t, b"x", sequence=7, label="gap")
    p.produce(t, b"c", sequence=2)
    p.end()
    finished(s, t, 4)
    p.add(t)
    p.produce(t, b"d", sequence=3, label="goes-on-in-the-next")
    p.end(False)
    finished(s, t, 6)
    _both(s, t)


def over_several_partitions(s):
    t, p = s.topic(partitions=3), Producer(s)
    p.init()
    p.add(t, 0, 1, 2)
    for n in (0, 2):
        p.produce(t, b"%d" % n, partition=n)
    p.end()
    for n, end in ((0, 2), (2, 2)):
        finished(s, t, end, n)
        s.fetch(t, partition=n, isolation_level=1, pick=_seen, label=f"partition-{n}")
    s.fetch(
        t, partition=1, pick=_seen, label="partition-1", until=lambda a: a.responses[0].partitions[0].high_watermark
    )


def times_out(s):
    t, p, q = s.topic(), Producer(s, timeout=1000), Producer(s, "q", timeout=1000)
    p.init()
    p.add(t)
    p.produce(t, b"a")
    q.init(version=5)
    q.produce(t, b"b", version=12)
    s.offset(
        t, -1, isolation_level=1, until=lambda a: a.topics[0].partitions[0].offset == 4, wait=30, label="both-aborted"
    )
    s.fetch(
        t,
        0,
        pick=lambda a: [
            [r["attributes"], r["producer_epoch"], r["sequence"]] for r in a["responses"][0]["partitions"][0]["records"]
        ],
    )
    p.produce(t, b"c", label="after")
    p.end(label="commit")
    q.produce(t, b"c", version=12, label="after")
    q.end(version=5, label="commit")
    q.end(False, version=5, label="abort")
    p.init(label="new")
    p.add(t)
    p.produce(t, b"d")
    p.end()


def markers_of_old_producers(s):
    t = s.topic(partitions=3)

    def mark(label, version, number, epoch, *, partition=1, coordinator=0, kind=0):
        marker = {
            "producer_id": number,
            "producer_epoch": epoch,
            "transaction_result": True,
            "coordinator_epoch": coordinator,
            "topics": [{"name": t, "partition_indexes": [partition]}],
            **({"transaction_version": kind} if version > 1 else {}),
        }
        s.ask("WriteTxnMarkers", version, label=f"{label}-{kind}", markers=[marker], retry=())

    for version, kinds in ((1, (0,)), (2, (0, 2, -1))):
        for kind in kinds:
            p = Producer(s, f"x{version}{kind}")
            p.init(quiet=True)
            p.add(t, quiet=True)
            p.produce(t, b"t", quiet=True)
            number = p.id + 1000
            for label, epoch in (("new", 5), ("again", 5), ("next", 6), ("lower", 3), ("negative", -1)):
                mark(label, version, number, epoch, kind=kind)
            for label, epoch in (("open", p.epoch), ("next", p.epoch + 1), ("again", p.epoch + 1)):
                mark(f"{label}-of-a-transaction", version, p.id, epoch, partition=0, kind=kind)
            for label, epoch, coordinator in (("newer", 2, 5), ("older", 3, 4), ("both-older", 0, 4)):
                mark(f"{label}-coordinator", version, p.id, epoch, partition=0, coordinator=coordinator, kind=kind)
            mark("no-producer", version, -1, 0, kind=kind)


def markers_of_one_producer(s):
    t = s.topic(partitions=3)
    rows = [
        {"producer_id": 4242, "producer_epoch": epoch, "transaction_result": True, "coordinator_epoch": 0,
         "topics": [{"name": t, "partition_indexes": numbers}, {"name": s.name("none"), "partition_indexes": [0]}]}
        for epoch, numbers in ((0, [0, 7]), (1, [1]))
    ]  # fmt: skip
    s.ask("WriteTxnMarkers", 1, markers=rows, retry=())


def repeated_partitions(s):
    t, none = s.topic(partitions=3), s.name("none")
    p = Producer(s)
    p.init(quiet=True)
    asked = {
        "good": [(t, [0, 0]), (t, [1]), (t, [])],
        "unknown": [(t, [0, 0]), (none, [0]), (t, [1]), (none, [0]), (t, [])],
    }
    for label, topics in asked.items():
        rows = [{"name": name, "partitions": numbers} for name, numbers in topics]
        for who in (p.id, 4242):
            fields = {"v3_and_below_transactional_id": p.name, "v3_and_below_producer_id": who,
                      "v3_and_below_producer_epoch": p.epoch, "v3_and_below_topics": rows}  # fmt: skip
            s.ask("AddPartitionsToTxn", 3, label=f"{label}-{'known' if who == p.id else 'other'}", retry=(), **fields)


def epochs_without_names(s):
    for version in (3, 5):
        for number, epoch in ((-1, 2), (5, -1), (5, 2)):
            s.ask("InitProducerId", version, label=f"{number}-{epoch}", producer_id=number, producer_epoch=epoch)


def ends_of_both_versions(s):
    t = s.topic()
    for before, first, after, epoch, then in product((4, 5), (True, False), (1, 4, 5), (0, 1, 2), (True, False)):
        label = f"{before}-{first}-{after}-{then}-{epoch}"
        p = Producer(s, label)
        p.init(quiet=True)
        p.add(t, quiet=True)
        p.end(first, version=before, quiet=True)
        s.ask("DescribeTransactions", 0, transactional_ids=[p.name], quiet=True,
              until=lambda a: a.transaction_states[0].transaction_state.startswith("Complete"))  # fmt: skip
        p.end(then, version=after, producer_epoch=epoch, label=label, retry=(CONCURRENT_TRANSACTIONS,))


def begins_while_one_is_open(s):
    t = s.topic()
    for way in ("added", "produced"):
        for version in (3, 5):
            for label, step in (("same", 0), ("older", -1), ("newer", 1), ("none", None)):
                p = Producer(s, f"{way}-{version}-{label}")
                p.init(quiet=True)
                p.init(quiet=True)
                first = p.epoch
                if way == "added":
                    p.add(t, quiet=True)
                else:
                    p.produce(t, b"a", version=12, quiet=True)
                who = {
                    "producer_id": -1 if step is None else p.id,
                    "producer_epoch": -1 if step is None else first + step,
                }
                for text in ("", "-again"):
                    p.init(version=version, label=f"{way}-{label}{text}", retry=(CONCURRENT_TRANSACTIONS,), **who)
                s.ask("DescribeTransactions", 0, label=f"{way}-{label}", transactional_ids=[p.name],
                      hide=("transaction_start_time_ms",))  # fmt: skip
                p.end(version=4, producer_epoch=first, label=f"{way}-{label}", retry=(CONCURRENT_TRANSACTIONS,))
