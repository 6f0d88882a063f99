"""Producers of one transactional id with several epochs: which of their batches, commits and ends count."""

from itertools import product

from tests.differential.producers import Producer


def _settled(s, *producers):
    """Waits until their markers are written. No step."""
    names = [p.name for p in producers]
    s.ask(
        "DescribeTransactions",
        0,
        transactional_ids=names,
        quiet=True,
        until=lambda a: not any(row.transaction_state.startswith("Prepare") for row in a.transaction_states),
    )


def _begun(s, t, name, *, version=12):
    """A producer with an open transaction in partition 0. No steps."""
    p = Producer(s, name)
    p.init(quiet=True)
    if version < 12:
        p.add(t, quiet=True)
    p.produce(t, b"a", version=version, quiet=True)
    return p


def first_sequences(s):
    t = s.topic(partitions=2)
    for version, sequence in product((11, 12, 13), (0, 1, 7)):
        p = Producer(s, f"x{version}-{sequence}")
        p.init(quiet=True)
        p.add(t, 0, 1, quiet=True)
        label = f"{version}-{sequence}"
        p.produce(t, b"a", version=version, sequence=sequence, label=f"unknown-{label}")
        p.produce(t, b"a", version=version, sequence=sequence, label=f"again-{label}")
        p.end(version=5, quiet=True)
        _settled(s, p)
        if version < 12:
            p.add(t, 0, 1, quiet=True)
        for partition in (0, 1):
            p.produce(t, b"b", version=version, partition=partition, sequence=sequence,
                      label=f"after-a-marker-{partition}-{label}")  # fmt: skip
        p.end(False, version=4, quiet=True)


def sequences_go_on(s):
    t = s.topic()
    for before, after in product((11, 12), repeat=2):
        p = Producer(s, f"x{before}-{after}")
        p.init(quiet=True)
        if before < 12:
            p.add(t, quiet=True)
        p.produce(t, b"a", version=before, quiet=True)
        p.produce(t, b"x", version=12, producer_epoch=p.epoch + 1, sequence=0, label=f"newer-epoch-{before}-{after}")
        p.end(False, version=4, quiet=True)
        _settled(s, p)
        if after < 12:
            p.add(t, quiet=True)
        p.produce(t, b"b", version=after, sequence=1, label=f"same-epoch-{before}-{after}")
        p.end(quiet=True)


def batches_of_older_producers(s):
    t = s.topic(partitions=2)
    for version in (3, 9, 11, 12, 13):
        old = _begun(s, t, f"x{version}", version=version)
        new = Producer(s, f"x{version}")
        new.init(quiet=True)
        new.init(quiet=True)
        new.produce(t, b"b", version=12, quiet=True)
        old.produce(t, b"c", version=version, label="in-the-transaction-of-another")
        old.produce(t, b"c", version=version, partition=1, sequence=0, label="in-another-partition")
        new.produce(t, b"c", version=version, producer_epoch=new.epoch + 1, sequence=0, label="of-the-future")
        rows = [{"index": n, "records": s.batch(b"c", producer=(old.id, old.epoch, n), is_transactional=True)}
                for n in (0, 1)]  # fmt: skip
        s.ask("Produce", version, topic_data=[{**s.key(t, version >= 13), "partition_data": rows}],
              transactional_id=old.name, label="in-both-partitions")  # fmt: skip
        new.end(quiet=True)


def batches_after_a_marker_of_another_coordinator(s):
    t = s.topic()
    for version in (3, 9, 11, 12, 13):
        p = _begun(s, t, f"x{version}", version=version)
        place = {"name": t, "partition_indexes": [0]}
        row = {"producer_id": p.id, "producer_epoch": p.epoch + 1, "transaction_result": True, "topics": [place]}
        s.ask("WriteTxnMarkers", 1, label=f"{version}", markers=[row])
        p.produce(t, b"b", version=version)


def ends_of_fenced_producers(s):
    t = s.topic()
    for version, commit in product((4, 5), (False, True)):
        for way in ("added", "added-offsets", "produced"):
            p = Producer(s, f"{way}-{version}-{commit}")
            p.init(quiet=True)
            if way == "added":
                p.add(t, quiet=True)
            elif way == "added-offsets":
                p.offsets_to(s.name("g"), quiet=True)
            else:
                p.produce(t, b"a", version=12, quiet=True)
            other = Producer(s, f"{way}-{version}-{commit}")
            other.init(producer_id=p.id, producer_epoch=p.epoch, label=f"{way}-takes-over", retry=())
            _settled(s, p)
            p.end(commit, version=version, label=f"{way}-{commit}", retry=())


def ends_of_ended_ones(s):
    t = s.topic()
    for version, commit, then in product((4, 5), (False, True), (False, True)):
        p = _begun(s, t, f"x{version}-{commit}-{then}", version=11)
        before = p.epoch
        p.end(commit, version=version, quiet=True)
        _settled(s, p)
        for step in (-1, 0, 1):
            p.end(then, version=5, producer_epoch=before + step, label=f"{version}-{commit}-{then}{step:+}", retry=())
            _settled(s, p)


def pending_offsets_of_all_topics(s):
    t, g = s.topic(partitions=2), s.name("g")
    p = Producer(s)
    p.init(quiet=True)
    p.offsets(g, t, 3, version=5, quiet=True)

    def all_of_them(label):
        for version, stable in product((7, 9), (False, True)):
            group = {"group_id": g, "topics": None}
            fields = group if version < 8 else {"groups": [group]}
            s.ask("OffsetFetch", version, label=f"{label}-{stable}", require_stable=stable, retry=(), **fields)

    all_of_them("nothing-committed")
    row = {"partition_index": 0, "committed_offset": 5, "committed_metadata": ""}
    for number in (0, 1):
        s.ask("OffsetCommit", 8, group_id=g, quiet=True,
              topics=[{"name": t, "partitions": [{**row, "partition_index": number}]}])  # fmt: skip
        all_of_them(f"{number}-committed")
    p.offsets(g, t, 3, version=5, partition=1, quiet=True)
    all_of_them("all-pending")
    p.end(False, version=5, quiet=True)
    _settled(s, p)
    all_of_them("aborted")
