"""Share groups (KIP-932): where they begin, offsets that are set and deleted, acknowledgements of what is not out."""

import uuid

from tests.differential.members import ShareMember, acquired, share_setting

ACCEPT, RELEASE = 1, 2


def _starts(answer):
    return [
        [topic["topic_name"][0], part["partition_index"], part["start_offset"]]
        for group in answer["groups"] for topic in group["topics"] for part in topic["partitions"]
    ]  # fmt: skip


def _described(s, group, label, count):
    """A step: the starts of a group, once there are so many."""
    s.ask(
        "DescribeShareGroupOffsets",
        0,
        groups=[{"group_id": group, "topics": None}],
        label=label,
        pick=_starts,
        until=lambda a: a.groups[0].error_code or sum(len(t.partitions) for t in a.groups[0].topics) == count,
    )


def where_they_begin(s):
    t, u, g = s.topic("t", 2), s.topic("u"), s.name("g")
    m = ShareMember(s, g, "m", t)
    m.assigned()
    _described(s, g, "one-topic", 2)
    m.heartbeat(quiet=True, subscribed_topic_names=[t, u])
    _described(s, g, "two-topics", 3)
    s.ask("CreatePartitions", 3, quiet=True, topics=[{"name": t, "count": 3, "assignments": None}])
    s.ready(t, 3)
    m.heartbeat(
        quiet=True, until=lambda h: h.assignment and sum(len(p.partitions) for p in h.assignment.topic_partitions) == 4
    )
    _described(s, g, "new-partition", 4)
    m.leave(quiet=True)
    s.ask("DeleteShareGroupOffsets", 0, group_id=g, topics=[{"topic_name": t}, {"topic_name": u}], quiet=True)
    ShareMember(s, g, "m", t).assigned()
    _described(s, g, "again-after-they-were-deleted", 3)
    h = s.name("h")
    rows = [{"partition_index": 1, "start_offset": 1}]
    s.ask("AlterShareGroupOffsets", 0, group_id=h, quiet=True, topics=[{"topic_name": t, "partitions": rows}])
    ShareMember(s, h, "m", t, u).assigned()
    _described(s, h, "one-was-set", 4)


def set_and_deleted(s):
    t, none, g = s.topic("t", 2), s.name("none"), s.name("g")

    def alter(label, group, *topics):
        rows = []
        for name, parts in topics:
            numbers = [{"partition_index": number, "start_offset": offset} for number, offset in parts]
            rows.append({"topic_name": name, "partitions": numbers})
        s.ask("AlterShareGroupOffsets", 0, group_id=group, topics=rows, label=label, retry=())

    def delete(label, *topics):
        rows = [{"topic_name": name} for name in topics]
        s.ask("DeleteShareGroupOffsets", 0, group_id=g, topics=rows, label=label, retry=())

    alter("unknown-topic", g, (none, [(0, 1)]))
    delete("no-group", t)
    alter("unknown-partition", g, (t, [(7, 1)]))
    delete("not-read", t, t)
    alter("topic-twice", g, (t, [(0, 1)]), (none, [(0, 1)]), (t, [(1, 2), (7, 1)]), (none, [(1, 1)]))
    _described(s, g, "both", 2)
    delete("topic-twice", t, none, t, none)
    _described(s, g, "none", 0)


def states_of_unknown_topics(s):
    t, g = s.topic("t", 2), s.name("g")
    nowhere = uuid.UUID(int=43)
    ShareMember(s, s.name("other"), "m", t).assigned()  # there are states
    for api, fields in {
        "ReadShareGroupState": {"leader_epoch": 0},
        "ReadShareGroupStateSummary": {"leader_epoch": 0},
        "WriteShareGroupState": {"state_epoch": 0, "leader_epoch": 0, "start_offset": 1},
        "InitializeShareGroupState": {"state_epoch": 0, "start_offset": 1},
        "DeleteShareGroupState": {},
    }.items():
        for label, topic, numbers in (
            ("unknown-topic", nowhere, (0,)), ("unknown-partition", s.ids[t], (7,)), ("negative", s.ids[t], (-1,)),
            ("twice", s.ids[t], (0, 0)),
        ):  # fmt: skip
            rows = [{"topic_id": topic, "partitions": [{"partition": n, **fields} for n in numbers]}]
            s.ask(api, 0, group_id=g, topics=rows, label=label)


def states_move_forward(s):
    t, g = s.topic(), s.name("g")
    ShareMember(s, s.name("other"), "m", t).assigned()  # there are states

    def fields(**partition):
        rows = [{"topic_id": s.ids[t], "partitions": [{"partition": 0, **partition}]}]
        return {"group_id": g, "topics": rows, "retry": ()}

    def initialize(label, epoch, start):
        s.ask("InitializeShareGroupState", 0, label=label, **fields(state_epoch=epoch, start_offset=start))

    def read(label, epoch):
        s.ask("ReadShareGroupState", 0, label=label, **fields(leader_epoch=epoch))
        s.ask("ReadShareGroupStateSummary", 1, label=label, **fields(leader_epoch=0))

    def write(label, start, complete=None, epoch=0, state=0, batches=()):
        rows = [{"first_offset": first, "last_offset": last, "delivery_state": 2, "delivery_count": 1}
                for first, last in batches]  # fmt: skip
        known = {} if complete is None else {"delivery_complete_count": complete}
        s.ask("WriteShareGroupState", 0 if complete is None else 1, label=label, **fields(
            state_epoch=state, leader_epoch=epoch, start_offset=start, state_batches=rows, **known))  # fmt: skip
        read(label, 0)

    initialize("at-5", 0, 5)
    for label, start, complete in (
        ("later", 7, 4), ("fewer", 7, 2), ("more", 7, 5), ("later-and-unknown", 8, -1), ("known", 8, 4),
        ("unknown", 8, None), ("later-of-version-0", 9, None), ("earlier", 6, 7), ("none", -1, 8),
        ("below-none", -2, 9),
    ):  # fmt: skip
        write(label, start, complete)
    write("earlier-with-records", 6, 1, batches=[(3, 12)])
    write("newer-leader", 10, 1, epoch=5)
    write("older-leader-that-nobody-read-for", 11, 1, epoch=1)
    read("as-leader-2", 2)
    write("older-leader", 12, 1, epoch=1)
    initialize("set-anew", 3, 4)
    read("as-leader-0", 0)
    write("still-older", 5, 1, state=3)
    write("leader-2", 5, 1, epoch=2, state=3)
    s.ask("DeleteShareGroupState", 0, **fields())
    initialize("after-it-was-deleted", 0, -1)
    write("leader-0", -1, 6)


def states_that_cannot_be_set(s):
    t = s.topic(partitions=3)
    ShareMember(s, s.name("other"), "m", t).assigned()  # there are states

    def alter(group, number):
        rows = [{"partition_index": number, "start_offset": 1}]
        topics = [{"topic_name": t, "partitions": rows}]
        s.ask("AlterShareGroupOffsets", 0, group_id=group, topics=topics, label=f"partition-{number}", retry=())

    for name, numbers in (("set", (2,)), ("some", (2, 1)), ("refused", (1,))):
        group = s.name(name)
        for number in (0, 1):
            rows = [{"topic_id": s.ids[t], "partitions": [{"partition": number, "state_epoch": 9, "start_offset": 5}]}]
            s.ask("InitializeShareGroupState", 0, group_id=group, topics=rows, quiet=True)
        for number in numbers:
            alter(group, number)
        if name == "refused":
            s.ask("DeleteShareGroupOffsets", 0, group_id=group, topics=[{"topic_name": t}], label=name, retry=())
        s.ask("DescribeShareGroupOffsets", 0, groups=[{"group_id": group, "topics": None}], label=name)
        s.ask("DeleteGroups", 2, groups_names=[group], label=name)
        rows = [{"topic_id": s.ids[t], "partitions": [{"partition": n, "leader_epoch": 0} for n in range(3)]}]
        s.ask("ReadShareGroupStateSummary", 1, group_id=group, topics=rows, label=f"{name}-and-deleted")


def acknowledgements_of_nothing(s):
    t, g = s.topic("t", 2), s.name("g")
    s.produce(t, b"0", b"1", b"2")
    s.produce(t, b"0", partition=1)
    share_setting(s, g, share_auto_offset_reset="earliest")
    m = ShareMember(s, g, "m", t)
    m.assigned()
    m.until_acquired((t, 0), (t, 1), count=1, quiet=True)
    m.fetch(quiet=True, max_wait_ms=100)
    m.acknowledge({(t, 1): []}, label="none")
    m.acknowledge({(t, 0): [], (t, 1): []}, label="none-of-two")
    m.acknowledge({(t, 0): [(0, 0, [ACCEPT])], (t, 1): []}, label="of-one-of-two")
    m.acknowledge({(t, 1): [(0, 0, [ACCEPT])]}, label="of-the-other")
    for label, rows in {
        "before-and-after": [(0, 2, [ACCEPT])],
        "after": [(3, 5, [ACCEPT])],
        "over-the-end": [(1, 3, [ACCEPT])],
        "over-the-end-first": [(1, 1, [RELEASE]), (3, 3, [ACCEPT])],
    }.items():
        m.acknowledge({(t, 0): rows}, label=label)
        m.acknowledge({(t, 1): rows}, label=f"{label}-where-nothing-is-out")


def one_range(s):
    t, g = s.topic(), s.name("g")
    share_setting(s, g, share_auto_offset_reset="earliest")
    for _ in range(4):
        s.produce(t, b"0", b"1", b"2")
    m = ShareMember(s, g, "m", t)
    m.assigned()
    m.until_acquired((t, 0), version=2, share_acquire_mode=1, batch_size=2, max_records=100, pick=acquired)
    for _ in range(4):
        s.produce(t, b"0", b"1", b"2")
    m.until_acquired(version=2, share_acquire_mode=0, batch_size=2, max_records=100, label="by-size", pick=acquired)
