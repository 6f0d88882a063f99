"""What Fetch returns of a compacted topic when the cleaner was there: batches, tombstones, markers, what is asked."""

from tests.differential.members import ShareMember, acquired, share_setting
from tests.differential.producers import Producer, finished
from tests.differential.record_sets import batches_in

QUICK = {"cleanup_policy": "compact", "segment_ms": "500", "min_cleanable_dirty_ratio": "0.01"}
FAR = 6_500_000  # a time that rolls the segment: after those of markers, and less than an hour from now


def _offsets(answer):
    """The offsets of the records of a Fetch answer."""
    part = answer.responses[0].partitions[0]
    return [record["offset"] for batch in batches_in(bytes(part.records or b"")) for record in batch["items"]]


def _cleaned(s, topic, *left, label="cleaned", **options):
    """A step: the batches when only these offsets are left; the last is in a segment of its own."""
    s.fetch(topic, label=label, until=lambda a: _offsets(a) in ([*left], [*left[:-1]]), pick=_batches, **options)


def _batches(a):
    part = a["responses"][0]["partitions"][0]
    for batch in part["records"]:
        if batch["attributes"] & 32:  # the value has the coordinator's epoch, which grows with restarts
            batch["items"] = [{**item, "value": "marker"} for item in batch["items"]]
    return [part["error_code"], part["log_start_offset"], part["aborted_transactions"], part["records"]]


def _rolled(s, topic, times=1):
    """One more record, before which the segment is rolled. No step."""
    s.produce(topic, (b"last", b"%d" % times), at=FAR + 1000 * times, quiet=True)


def last_of_each_key(s):
    t = s.topic(**QUICK)
    s.produce(t, (b"a", b"1"), (b"b", b"1"), (b"a", b"2"), quiet=True)
    s.produce(t, (b"b", b"2"), (b"c", b"1", [("h", b"x")]), at=10, quiet=True)
    s.produce(t, (b"a", b"3"), at=20, quiet=True)
    _rolled(s, t)
    _cleaned(s, t, 3, 4, 5, 6)
    for offset in (0, 1, 2, 3):
        s.fetch(t, offset, label=f"from-{offset}", pick=_batches)
    for time in (0, 1, 2, 10, 11, 21):
        s.offset(t, s.T + time, label=f"at-{time}")
    for position in (-1, -2, -3):
        s.offset(t, position, label=f"time{position}")
    s.segments("cleaned", t)


def twice(s):
    t = s.topic(**QUICK)
    s.produce(t, (b"a", b"1"), (b"b", b"1"), quiet=True)
    _rolled(s, t)
    s.produce(t, (b"a", b"2"), at=FAR + 1001, quiet=True)
    _rolled(s, t, 2)
    _cleaned(s, t, 1, 2, 3, 4)
    s.segments("once", t)
    s.produce(t, (b"b", b"2"), at=FAR + 2001, quiet=True)
    _rolled(s, t, 3)
    _cleaned(s, t, 3, 4, 5, 6, label="cleaned-again")
    s.segments("again", t)


def first_batches_all_gone(s):
    t = s.topic(**QUICK)
    for at in range(4):
        s.produce(t, (b"a", b"%d" % at), at=at, quiet=True)
    _rolled(s, t)
    _cleaned(s, t, 3, 4)
    s.fetch(t, 0, version=4, label="v4", pick=lambda a: a["responses"][0]["partitions"][0]["records"])
    s.offset(t, -2, label="first")
    s.ask("OffsetForLeaderEpoch", 4, topics=[{"topic": t, "partitions": [{"leader_epoch": 0}]}])


def compressed(s):
    for codec in ("gzip", "lz4", "zstd", "snappy"):
        t = s.topic(codec, **QUICK)
        s.produce(t, (b"a", b"1" * 50), (b"b", b"2" * 50), (b"a", b"3" * 50), codec=codec, quiet=True)
        _rolled(s, t)
        _cleaned(s, t, 1, 2, 3, label=codec)


def tombstones_kept(s):
    t = s.topic(**QUICK, delete_retention_ms="600000")
    s.produce(t, (b"a", b"1"), (b"b", b"1"), (b"a", None), quiet=True)
    _rolled(s, t)
    _cleaned(s, t, 1, 2, 3)
    s.produce(t, (b"b", None), at=FAR + 1001, quiet=True)
    _rolled(s, t, 2)
    _cleaned(s, t, 2, 3, 4, 5, label="again")


def tombstones_gone(s):
    t = s.topic(**QUICK, delete_retention_ms="0")
    s.produce(t, (b"a", b"1"), (b"b", b"1"), (b"a", None), quiet=True)
    _rolled(s, t)
    s.fetch(t, label="first", until=lambda a: _offsets(a)[:1] != [0], pick=lambda a: "cleaned")
    s.produce(t, (b"c", b"1"), at=FAR + 1001, quiet=True)
    _rolled(s, t, 2)
    _cleaned(s, t, 1, 3, 4, 5)


def key_comes_back(s):
    t = s.topic(**QUICK, delete_retention_ms="0")
    s.produce(t, (b"a", b"1"), (b"a", None), (b"a", b"2"), quiet=True)
    _rolled(s, t)
    _cleaned(s, t, 2, 3)


def empty_keys_and_values(s):
    t = s.topic(**QUICK)
    s.produce(t, (b"", b"1"), (b"a", b""), (b"", b"2"), (b"a", b""), quiet=True)
    _rolled(s, t)
    _cleaned(s, t, 2, 3, 4)


def active_segment_stays(s):
    t = s.topic(**{**QUICK, "segment_ms": "604800000"})
    s.produce(t, (b"a", b"1"), (b"a", b"2"), quiet=True)
    u = s.topic("u", **QUICK)
    s.produce(u, (b"a", b"1"), (b"a", b"2"), quiet=True)
    _rolled(s, u)
    _cleaned(s, u, 1, 2, label="probe")
    _cleaned(s, t, 0, 1, label="not-cleaned")


def too_young(s):
    t = s.topic(**QUICK, min_compaction_lag_ms="86400000")
    s.produce(t, (b"a", b"1"), (b"a", b"2"), quiet=True)
    _rolled(s, t)
    u = s.topic("u", **QUICK)
    s.produce(u, (b"a", b"1"), (b"a", b"2"), quiet=True)
    _rolled(s, u)
    _cleaned(s, u, 1, 2, label="probe")
    _cleaned(s, t, 0, 1, 2, label="not-cleaned")


def clean_enough(s):
    t = s.topic(**{**QUICK, "min_cleanable_dirty_ratio": "1.0"})
    s.produce(t, (b"a", b"1"), (b"a", b"2"), quiet=True)
    _rolled(s, t)
    u = s.topic("u", **QUICK)
    s.produce(u, (b"a", b"1"), (b"a", b"2"), quiet=True)
    _rolled(s, u)
    _cleaned(s, u, 1, 2, label="probe")
    s.fetch(t, label="all-dirty", until=lambda a: _offsets(a) == [1, 2], wait=2, pick=_batches)


def idempotent_producers(s):
    number = s.ask("InitProducerId", 4, quiet=True).producer_id
    t = s.topic(**QUICK)
    for sequence in range(3):
        s.produce(t, (b"a", b"%d" % sequence), at=sequence, producer=(number, 0, sequence), quiet=True)
    s.produce(t, (b"a", b"other"), at=4, quiet=True)
    _rolled(s, t)
    _cleaned(s, t, 3, 4)
    for sequence in (1, 2):
        again = (number, 0, sequence)
        s.produce(t, (b"a", b"%d" % sequence), at=sequence, producer=again, label=f"again-{sequence}")
    s.produce(t, (b"b", b"1"), at=FAR + 1001, producer=(number, 0, 3), label="next")
    s.ask("DescribeProducers", 0, topics=[{"name": t, "partition_indexes": [0]}], hide=("coordinator_epoch",))
    yield
    s.ready(t)
    s.ask(
        "DescribeProducers",
        0,
        topics=[{"name": t, "partition_indexes": [0]}],
        label="restarted",
        hide=("coordinator_epoch",),
    )
    s.produce(t, (b"b", b"1"), at=FAR + 1001, producer=(number, 0, 3), label="again-after-the-restart")
    s.produce(t, (b"b", b"2"), at=FAR + 1002, producer=(number, 0, 4), label="next-after-the-restart")
    s.fetch(t, 4, label="all", hide=("leader_epoch",), pick=_batches)


def committed_and_aborted(s):
    t, p = s.topic(**QUICK), Producer(s)
    p.init(quiet=True)
    for n, commit in enumerate((True, False, True)):
        p.add(t, quiet=True)
        p.produce(t, (b"a", b"%d" % n), (b"%d" % n, b"x"), at=10 * n, quiet=True)
        p.end(commit, quiet=True)
        finished(s, t, 3 * (n + 1))
    _rolled(s, t)
    _cleaned(s, t, 1, 2, 5, 6, 7, 8, 9, label="uncommitted")
    s.fetch(t, isolation_level=1, label="committed", pick=_batches)
    s.ask("DescribeProducers", 0, topics=[{"name": t, "partition_indexes": [0]}], hide=("coordinator_epoch",))


def transaction_of_nothing_left(s):
    t, p = s.topic(**QUICK, delete_retention_ms="0"), Producer(s)
    p.init(quiet=True)
    p.add(t, quiet=True)
    p.produce(t, (b"a", b"1"), quiet=True)
    p.end(quiet=True)
    finished(s, t, 2)
    s.produce(t, (b"a", b"2"), at=5, quiet=True)
    _rolled(s, t)
    s.fetch(t, label="first", until=lambda a: 0 not in _offsets(a), pick=lambda a: "cleaned")
    s.produce(t, (b"b", b"1"), at=FAR + 1001, quiet=True)
    _rolled(s, t, 2)
    s.fetch(t, label="second", until=lambda a: 3 not in _offsets(a), pick=_without_markers)


def _without_markers(a):
    """Values by offset: when markers go depends on when the cleaner came."""
    rows = a["responses"][0]["partitions"][0]["records"]
    return [[r["offset"], r["value"]] for batch in rows if not batch["attributes"] & 32 for r in batch["items"]]


def open_transaction_stops_it(s):
    t, p = s.topic(**QUICK), Producer(s)
    s.produce(t, (b"a", b"1"), (b"a", b"2"), quiet=True)
    p.init(quiet=True)
    p.add(t, quiet=True)
    p.produce(t, (b"a", b"3"), (b"a", b"4"), at=5, quiet=True)
    _rolled(s, t)
    _rolled(s, t, 2)
    u = s.topic("u", **QUICK)
    s.produce(u, (b"a", b"1"), (b"a", b"2"), quiet=True)
    _rolled(s, u)
    _cleaned(s, u, 1, 2, label="probe")
    s.fetch(t, label="open", wait=2, until=lambda a: False, pick=_batches)
    p.end(quiet=True)
    finished(s, t, 7)
    _rolled(s, t, 3)
    _cleaned(s, t, 3, 5, 6, 7, label="ended")


def policy_changed(s):
    t = s.topic(**{**QUICK, "cleanup_policy": "delete", "retention_ms": "-1"})
    s.produce(t, (b"a", b"1"), (b"a", b"2"), quiet=True)
    _rolled(s, t)
    row = {"name": "cleanup.policy", "config_operation": 0, "value": "compact"}
    s.ask("IncrementalAlterConfigs", 1, resources=[{"resource_type": 2, "resource_name": t, "configs": [row]}])
    _cleaned(s, t, 1, 2)


def compacted_and_deleted(s):
    t = s.topic(**{**QUICK, "cleanup_policy": "compact,delete", "retention_ms": "86400000"})
    s.produce(t, (b"a", b"1"), (b"b", b"1"), (b"a", b"2"), quiet=True)
    _rolled(s, t)
    _cleaned(s, t, 1, 2, 3)


def restarted(s):
    t = s.topic(**QUICK)
    s.produce(t, (b"a", b"1"), (b"b", b"1"), (b"a", b"2"), quiet=True)
    _rolled(s, t)
    _cleaned(s, t, 1, 2, 3)
    yield
    s.ready(t)
    _cleaned(s, t, 1, 2, 3, label="after-the-restart", hide=("leader_epoch",))
    s.produce(t, (b"b", b"2"), at=FAR + 1001, quiet=True)
    _rolled(s, t, 2)
    _cleaned(s, t, 2, 3, 4, 5, label="cleaned-again", hide=("leader_epoch",))


def for_share_groups(s):
    t, g = s.topic(**QUICK), s.name("g")
    share_setting(s, g, share_auto_offset_reset="earliest")
    s.produce(t, (b"a", b"1"), (b"b", b"1"), (b"a", b"2"), quiet=True)
    s.produce(t, (b"b", b"2"), at=9, quiet=True)
    _rolled(s, t)
    _cleaned(s, t, 2, 3, 4)
    m = ShareMember(s, g, "m", t)
    m.assigned()
    m.until_acquired((t, 0), count=5, label="with-gaps", pick=acquired)
    m.acknowledge({(t, 0): [(0, 1, [1]), (2, 4, [1])]}, label="gaps-too")
