"""Fetch sessions: made, used, closed, refused."""

import uuid


def _ask(s, rows=(), session=0, epoch=0, *, version=12, forgotten=(), **options):
    """rows: (topic, partition, offset)."""
    field = "topic_id" if version > 12 else "topic"

    def key(t):
        return s.ids[t] if version > 12 else t

    topics = {}
    for t, partition, offset in rows:
        topics.setdefault(t, []).append(
            {"partition": partition, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
        )
    gone = [{field: key(t), "partitions": [partition]} for t, partition in forgotten]
    return s.ask("Fetch", version, session_id=session, session_epoch=epoch, forgotten_topics_data=gone,
                 topics=[{field: key(t), "partitions": parts} for t, parts in topics.items()], **options)  # fmt: skip


def life(s):
    t = s.topic(partitions=2)
    s.produce(t, b"a")
    number = _ask(s, [(t, 0, 0), (t, 1, 0)], label="made").session_id
    _ask(s, session=number, epoch=1, label="same-records-again")
    _ask(s, [(t, 0, 1)], number, 2, label="moved-on")
    _ask(s, session=number, epoch=3, label="nothing-new")
    s.produce(t, b"b", partition=1)
    _ask(s, session=number, epoch=4, label="only-the-other-partition")
    _ask(s, forgotten=[(t, 1)], session=number, epoch=5, label="forgotten")
    s.produce(t, b"c")
    _ask(s, session=number, epoch=6, label="only-the-first")
    _ask(s, session=number, epoch=-1, label="closed")
    _ask(s, session=number, epoch=7, label="used-after-it-was-closed")


def refused(s):
    t = s.topic()
    _ask(s, [(t, 0, 0)], 1_999_999_999, 1, label="unknown-id")
    _ask(s, [(t, 0, 0)], 1_999_999_999, 0, label="unknown-id-full")
    number = _ask(s, [(t, 0, 0)], label="made").session_id
    _ask(s, session=number, epoch=2, label="epoch-too-high")
    _ask(s, session=number, epoch=1, label="right-epoch")
    _ask(s, session=number, epoch=1, label="epoch-repeated")
    _ask(s, session=number, epoch=2, label="goes-on")
    _ask(s, [(t, 0, 0)], 0, 5, label="epoch-without-a-session")


def without_a_session(s):
    t = s.topic()
    s.produce(t, b"a")
    _ask(s, [(t, 0, 0)], 0, -1, label="final")
    _ask(s, [(t, 0, 0)], 1_999_999_998, -1, label="final-of-an-unknown-session")
    _ask(s, label="made-of-nothing")


def replaced(s):
    t = s.topic()
    s.produce(t, b"a")
    first = _ask(s, [(t, 0, 0)], label="first").session_id
    second = _ask(s, [(t, 0, 0)], first, 0, label="in-place-of-the-first").session_id
    _ask(s, session=first, epoch=1, label="first-is-gone")
    _ask(s, session=second, epoch=1, label="second")


def added_later(s):
    a, b = s.topic("a"), s.topic("b")
    number = _ask(s, [(a, 0, 0)], label="made").session_id
    _ask(s, [(b, 0, 0)], number, 1, label="new-and-empty")
    _ask(s, session=number, epoch=2, label="nothing")
    s.produce(b, b"one")
    _ask(s, session=number, epoch=3, label="one")
    _ask(s, [(b, 0, 1)], number, 4, label="read")
    _ask(s, forgotten=[(b, 0)], rows=[(a, 0, 0)], session=number, epoch=5, label="forgotten-and-asked")


def errors_stay(s):
    t = s.topic()
    gone = s.name("none")
    number = _ask(s, [(t, 0, 0), (gone, 0, 0)], retry=(), label="made").session_id
    _ask(s, session=number, epoch=1, retry=(), label="again")
    _ask(s, [(t, 0, 9)], number, 2, retry=(), label="out-of-range")
    _ask(s, session=number, epoch=3, retry=(), label="still-out-of-range")
    s.topic("none")
    _ask(s, [(t, 0, 0)], number, 4, label="topic-made-meanwhile")


def ids(s):
    t = s.topic()
    s.ids["nowhere"] = uuid.UUID(int=21)
    s.produce(t, b"a")
    number = _ask(s, [(t, 0, 0)], version=13, label="made").session_id
    _ask(s, [(t, 0, 1)], number, 1, version=13, label="moved-on")
    s.produce(t, b"b")
    _ask(s, session=number, epoch=2, version=15, label="next")
    _ask(s, [("nowhere", 0, 0)], number, 3, version=13, retry=(), label="unknown-id-added")
    _ask(s, session=number, epoch=4, version=13, retry=(), label="unknown-id-stays")
    other = _ask(s, [(t, 0, 2)], label="made-by-name").session_id
    _ask(s, session=other, epoch=1, version=13, label="names-first-ids-later")
    third = _ask(s, [(t, 0, 2)], version=13, label="made-by-id").session_id
    _ask(s, session=third, epoch=1, version=12, label="ids-first-names-later")


def versions(s):
    t = s.topic()
    s.produce(t, b"a")
    for version in (7, 9, 11, 12, 14, 17):
        number = _ask(s, [(t, 0, 0)], version=version, label="made").session_id
        _ask(s, [(t, 0, 1)], number, 1, version=version, label="moved-on")


def waits_for_changes(s):
    t = s.topic()
    number = _ask(s, [(t, 0, 0)], label="made").session_id
    sent = s.send(
        "Fetch", 12, on="reader", session_id=number, session_epoch=1, topics=[], max_wait_ms=8000, min_bytes=1
    )
    s.produce(t, b"one")
    s.finish(sent, label="woken")
    moved = [{"topic": t, "partitions": [{"partition": 0, "fetch_offset": 1, "partition_max_bytes": 1000}]}]
    s.ask(
        "Fetch", 12, session_id=number, session_epoch=2, topics=moved, max_wait_ms=200, min_bytes=1, label="times-out"
    )


def deleted_topic(s):
    t = s.topic()
    s.produce(t, b"a")
    number = _ask(s, [(t, 0, 1)], version=13, label="made").session_id
    s.ask("DeleteTopics", 6, topics=[{"name": t}])
    s.ask(
        "Metadata",
        9,
        topics=[{"name": t}],
        allow_auto_topic_creation=False,
        quiet=True,
        until=lambda m: m.topics[0].error_code,
    )
    old = s.ids[t]
    s.ask(
        "Fetch",
        13,
        session_id=0,
        session_epoch=-1,
        quiet=True,
        retry=(),
        until=lambda a: a.responses[0].partitions[0].error_code,
        topics=[{"topic_id": old, "partitions": [{"partition": 0, "partition_max_bytes": 1000}]}],
    )
    _ask(s, session=number, epoch=1, version=13, retry=(), label="topic-deleted")


def left_without_partitions(s):
    t = s.topic()
    s.produce(t, b"a")
    row = {"topic": t, "partitions": [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}]}
    for label, topics in {"forgotten": [row], "never-any": []}.items():
        number = s.ask("Fetch", 12, topics=topics, session_epoch=0, quiet=True).session_id
        forgotten = [{"topic": t, "partitions": [0]}] if topics else []
        s.ask("Fetch", 12, session_id=number, session_epoch=1, topics=[], forgotten_topics_data=forgotten, label=label)
        s.ask("Fetch", 12, session_id=number, session_epoch=2, topics=[row], label=f"{label}-after")
