"""Offsets that are committed in a transaction (KIP-98, KIP-447): with and without members, open, ended, refused."""

from tests.differential.members import stable
from tests.differential.producers import Producer


def with_offsets(s):
    t = s.topic(partitions=2)
    for version in range(7):
        p, g = Producer(s, f"x{version}"), s.name(f"g{version}")
        p.init(version=min(version, 5), quiet=True)
        p.offsets_to(g, version=min(version, 4))
        p.offsets(g, t, 10 + version, version=version, metadata="m")
        s.ask("OffsetFetch", 7, group_id=g, topics=[{"name": t, "partition_indexes": [0, 1]}], label="open")
        p.end(bool(version % 3), version=min(version, 5))
        s.ask(
            "OffsetFetch",
            7,
            group_id=g,
            require_stable=True,
            topics=[{"name": t, "partition_indexes": [0, 1]}],
            label="ended",
            until=lambda a: not any(row.error_code for row in a.topics[0].partitions),
        )


def unstable_offsets(s):
    t, p, g = s.topic(partitions=2), Producer(s), s.name("g")
    row = {"partition_index": 0, "committed_offset": 5, "committed_metadata": ""}
    s.ask("OffsetCommit", 8, group_id=g, topics=[{"name": t, "partitions": [row]}])
    p.init()
    p.offsets_to(g)
    p.offsets(g, t, 9)
    for version in (6, 7, 8, 9):
        where = [{"name": t, "partition_indexes": [0, 1]}]
        fields = {"group_id": g, "topics": where} if version < 8 else {"groups": [{"group_id": g, "topics": where}]}
        s.ask("OffsetFetch", version, label="not-stable", **fields)
        if version > 6:
            s.ask("OffsetFetch", version, label="stable", require_stable=True, retry=(), **fields)
    s.ask("OffsetFetch", 7, label="all-stable", require_stable=True, group_id=g, topics=None)
    s.ask(
        "OffsetCommit",
        8,
        group_id=g,
        topics=[{"name": t, "partitions": [{**row, "committed_offset": 7}]}],
        label="simple-meanwhile",
    )
    s.ask(
        "OffsetDelete", 0, group_id=g, topics=[{"name": t, "partitions": [{"partition_index": 0}]}], label="meanwhile"
    )
    s.ask("DeleteGroups", 2, groups_names=[s.name("other")], label="other-group")
    p.end()
    s.ask("OffsetFetch", 7, label="ended", require_stable=True, group_id=g, topics=where,
          until=lambda a: not any(row.error_code for row in a.topics[0].partitions))  # fmt: skip


def offsets_refused(s):
    t, p, g = s.topic(), Producer(s), s.name("g")
    p.init()
    p.offsets(g, t, 1, version=2, label="group-not-added")
    p.offsets(g, t, 1, version=3, label="group-not-added")
    p.offsets(g, t, 1, version=4, label="group-not-added")
    p.offsets(g, t, 1, version=5, label="group-not-added")
    p.offsets_to(g, label="epoch-too-high", producer_epoch=p.epoch + 1)
    p.offsets_to(g, label="epoch-too-low", producer_epoch=p.epoch - 1)
    p.offsets_to(g, label="other-id", producer_id=p.id + 1_000_000)
    p.offsets_to(g, label="unknown-transaction", transactional_id=s.name("none"))
    p.offsets_to("", label="empty-group")
    p.offsets_to(g)
    p.offsets(g, s.name("none"), 1, label="unknown-topic", retry=())
    p.offsets(g, t, 1, partition=4, label="unknown-partition", retry=())
    p.offsets(g, t, 1, metadata="x" * 5000, label="metadata-too-long")
    p.offsets(
        g, t, 1, label="generation-of-an-unknown-group", generation_id_or_member_epoch=3, member_id="nobody", retry=()
    )
    p.offsets(g, t, 1, label="epoch-too-low", producer_epoch=p.epoch - 1)
    p.offsets(g, t, 1, label="right")
    p.end(False)


def offsets_of_members(s):
    t, p = s.topic(), Producer(s)
    (m,) = stable(s, s.name("g"), "a", topics=(t,))
    p.init()
    p.offsets_to(m.group)
    mine = {"generation_id_or_member_epoch": m.generation, "member_id": m.id}
    p.offsets(m.group, t, 1, label="right", **mine)
    p.offsets(m.group, t, 2, label="other-generation", retry=(), **{**mine, "generation_id_or_member_epoch": 8})
    p.offsets(m.group, t, 2, label="other-member", retry=(), **{**mine, "member_id": "nobody"})
    p.offsets(m.group, t, 2, label="other-instance", retry=(), **mine, group_instance_id="box")
    p.offsets(m.group, t, 3, label="without-member", retry=())
    p.offsets(m.group, t, 4, version=2, label="without-member", retry=())
    p.end()
    s.ask("OffsetFetch", 7, require_stable=True, group_id=m.group, topics=[{"name": t, "partition_indexes": [0]}],
          until=lambda a: not a.topics[0].partitions[0].error_code)  # fmt: skip


def unknown_partitions_come_first(s):
    t, none = s.topic(), s.name("none")
    p = Producer(s)
    p.init(quiet=True)
    rows = [{"partition_index": n, "committed_offset": 3, "committed_metadata": ""} for n in (7, 0)]
    for version in (3, 5):
        for label, number in (("known", p.id), ("other-producer", 4242)):
            who = p.who(producer_id=number, group_id=s.name("g"))
            topics = [{"name": t, "partitions": rows}, {"name": none, "partitions": rows}]
            s.ask("TxnOffsetCommit", version, label=label, topics=topics, retry=(), **who)
            s.ask("TxnOffsetCommit", version, label=f"{label}-unknown", topics=topics[1:], retry=(), **who)
            s.ask("TxnOffsetCommit", version, label=f"{label}-no-group", topics=topics, retry=(),
                  **{**who, "group_id": ""})  # fmt: skip
