"""Requests of a connection that are sent before others of it are answered: their order, and what happens to those of
a client that leaves."""

import socket
import struct

from tests.differential.frames import frame
from tests.differential.members import Member, in_state, stable
from tests.differential.picking import seen

_HELD_MS = 1500


def _fetch(s, t, on, offset=0, wait=_HELD_MS):
    row = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
    return s.send("Fetch", 12, on=on, topics=[{"topic": t, "partitions": [row]}], max_wait_ms=wait, min_bytes=1)


def _produce(s, t, on, value, acks=-1):
    rows = [{"index": 0, "records": s.batch(value)}]
    return s.send("Produce", 9, on=on, acks=acks, topic_data=[{"name": t, "partition_data": rows}])


def _end(s, t, on):
    row = {"partition_index": 0, "timestamp": -1}
    return s.send("ListOffsets", 7, on=on, topics=[{"name": t, "partitions": [row]}])


def behind_a_fetch_that_waits(s):
    t = s.topic()
    fetch, produce, end = _fetch(s, t, "one"), _produce(s, t, "one", b"behind"), _end(s, t, "one")
    s.finish(fetch, "waits-in-vain", pick=seen)
    s.finish(produce, "behind-it")
    s.finish(end, "behind-both")
    fetch, end = _fetch(s, t, "one", 1, 60_000), _end(s, t, "one")
    s.produce(t, b"of another", on="other", label="of-another")
    s.finish(fetch, "gets-what-another-sends", pick=seen)
    s.finish(end, "behind-the-second")


def without_answers(s):
    t = s.topic()
    for n in range(3):
        _produce(s, t, "one", b"%d" % n, acks=0)
    s.finish(_fetch(s, t, "one"), "has-all-before-it", pick=seen)


def behind_members_that_wait(s):
    t, g = s.topic(), s.name("g")
    (m,) = stable(s, g, "m", topics=(t,))
    n = Member(s, g, "n", topics=(t,))
    join = n.start_joining()
    heartbeat = s.send("Heartbeat", 4, on="n", group_id=g, generation_id=1, member_id=n.id)
    in_state(s, g, "PreparingRebalance")
    again = m.start_joining()
    m.joined(again, "m-again")
    n.joined(join, "n-joins")
    s.finish(heartbeat, "of-the-generation-before")
    sync = s.send("SyncGroup", 4, on="n", **n.sync_fields())
    leave = s.send("LeaveGroup", 4, on="n", group_id=g, members=[{"member_id": n.id}])
    m.sync({m.id: b"m", n.id: b"n"})
    s.finish(sync, "has-its-share-before-it-leaves")
    s.finish(leave, "behind-it")


def behind_what_is_wrong(s):
    t = s.topic()
    wrong = {"unknown-key": frame(999, 0, b""), "huge": b"\x7f\xff\xff\xff", "negative": b"\xff\xff\xff\xff"}
    for label, data in wrong.items():
        s.finish(_fetch(s, t, label, wait=0), f"{label}-first", pick=seen)
        fetch = _fetch(s, t, label, wait=500)
        s.connection(label).write(data)
        s.finish(fetch, f"{label}-before-it", pick=seen)
        s.note(f"{label}-then", s.connection(label).frame(15) or "closed")


def who_sends_no_more(s):
    t = s.topic()
    asked = [_fetch(s, t, "half"), _end(s, t, "half"), _produce(s, t, "half", b"half", acks=1), _end(s, t, "half")]
    s.connection("half").socket.shutdown(socket.SHUT_WR)
    for n, sent in enumerate(asked):
        s.finish(sent, f"{n}", pick=seen if n == 0 else None)
    s.note("then", s.connection("half").frame(15) or "closed")


def who_leaves(s):
    t = s.topic()
    for n in range(20):
        _produce(s, t, "gone", b"%d" % n, acks=0)
    s.connections.pop("gone").close()
    s.fetch(t, label="without-answers", pick=seen, until=lambda a: a.responses[0].partitions[0].high_watermark == 20)
    for acks in (0, 1):
        u = s.topic(f"acks-{acks}")
        _fetch(s, u, "left")
        _produce(s, u, "left", b"left", acks=acks)
        s.connections.pop("left").close()
        s.fetch(u, label=f"at-first-{acks}", pick=seen)
        s.fetch(u, label=f"later-{acks}", pick=seen, until=lambda a: a.responses[0].partitions[0].high_watermark)


def who_resets(s):
    t = s.topic()
    _fetch(s, t, "reset")
    _produce(s, t, "reset", b"reset", acks=0)
    gone = s.connections.pop("reset")
    gone.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    gone.close()
    s.finish(_fetch(s, t, "other", wait=2 * _HELD_MS), "nothing", pick=seen)
