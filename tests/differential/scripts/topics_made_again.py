"""Topics that are deleted under their clients, and made again with the same name."""

from tests.differential.picking import seen
from tests.differential.producers import Producer


def _deleted(s, t):
    """Delete a topic, and wait until it is gone. No step."""
    s.ask("DeleteTopics", 6, topics=[{"name": t}], quiet=True)
    s.ask("Metadata", 9, topics=[{"name": t}], allow_auto_topic_creation=False, quiet=True,
          until=lambda a: a.topics[0].error_code)  # fmt: skip
    s.ask("Metadata", 12, topics=[{"topic_id": s.ids[t], "name": None}], quiet=True,
          until=lambda a: a.topics[0].error_code)  # fmt: skip


def _again(s, text="t", **configs):
    """Delete a topic and make it again; its old id has the name "old" from now on. No step."""
    t = s.name(text)
    s.ids["old"] = s.ids[t]
    _deleted(s, t)
    s.mask.known[s.ids["old"]] = "<old id>"
    return s.topic(text, **configs)


def _code(a):
    return a["responses"][0]["partitions"][0]["error_code"]


def fetch_that_waits(s):
    t = s.topic()
    s.ask("ApiVersions", 0, on="f", quiet=True)
    for version in (12, 13):
        row = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
        topics = [{**s.key(t, version > 12, "topic"), "partitions": [row]}]
        held = s.send("Fetch", version, on="f", topics=topics, max_wait_ms=1000, min_bytes=1)
        t = _again(s)
        s.answer(held)  # at once, or at the end of its wait: then of the new topic
        s.produce(t, b"new")
        s.fetch(t, version=version, pick=seen)


def fetch_sessions(s):
    t = s.topic()
    s.produce(t, b"a", b"b", quiet=True)
    row = {"partition": 0, "fetch_offset": 1, "partition_max_bytes": 1 << 20}
    for version in (12, 13):
        topics = [{**s.key(t, version > 12, "topic"), "partitions": [row]}]
        number = s.ask("Fetch", version, session_id=0, session_epoch=0, topics=topics, label="made").session_id
        t = _again(s)
        for epoch in (1, 2):
            s.ask("Fetch", version, session_id=number, session_epoch=epoch, topics=[], label="made-again")
        s.produce(t, b"a", b"b", quiet=True)
        s.ask("Fetch", version, session_id=number, session_epoch=3, topics=[], label="with-records")
        topics = [{**s.key(t, version > 12, "topic"), "partitions": [row]}]
        s.ask("Fetch", version, session_id=number, session_epoch=4, topics=topics, label="asked-anew")
        s.ask("Fetch", version, session_id=number, session_epoch=5, topics=[], label="and-on")


def fetch_session_of_a_deleted_topic(s):
    t, other = s.topic(), s.topic("other")
    s.produce(other, b"a", quiet=True)
    row = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
    for version in (12, 13):
        topics = [{**s.key(one, version > 12, "topic"), "partitions": [row]} for one in (t, other)]
        number = s.ask("Fetch", version, session_id=0, session_epoch=0, topics=topics, label="made").session_id
        _deleted(s, t)
        for epoch in (1, 2):
            s.ask("Fetch", version, session_id=number, session_epoch=epoch, topics=[], label="deleted")
        gone = [{**s.key(t, version > 12, "topic"), "partitions": [0]}]
        s.ask("Fetch", version, session_id=number, session_epoch=3, topics=[], forgotten_topics_data=gone, label="left")
        s.ask("Fetch", version, session_id=number, session_epoch=4, topics=[], label="and-on")
        s.topic()


def idempotent_producer(s):
    t = s.topic()
    who = s.ask("InitProducerId", 4, quiet=True)
    s.produce(t, b"a", b"b", producer=(who.producer_id, who.producer_epoch, 0))
    t = _again(s)
    s.produce(t, b"c", producer=(who.producer_id, who.producer_epoch, 2), label="goes-on")
    s.produce(t, b"c", producer=(who.producer_id, who.producer_epoch, 2), label="twice")
    s.produce(t, b"a", b"b", producer=(who.producer_id, who.producer_epoch, 0), label="from-the-start")
    s.fetch(t, pick=seen)


def _transaction(s):
    """Two topics with a record each in an open transaction, and its producer."""
    t, other, p = s.topic(), s.topic("other"), Producer(s)
    p.init(quiet=True)
    p.add(t, quiet=True)
    p.add(other, quiet=True)
    p.produce(t, b"a", quiet=True)
    p.produce(other, b"a", quiet=True)
    return t, other, p


def open_transaction(s):
    t, other, p = _transaction(s)
    t = _again(s)
    s.fetch(t, isolation_level=1, pick=seen, label="made-again")
    p.produce(t, b"b", label="goes-on")
    p.produce(t, b"b", sequence=0, label="from-the-start")
    p.end()
    s.offset(other, -1, isolation_level=1, label="other", until=lambda a: a.topics[0].partitions[0].offset == 2)
    p.init(label="next")
    s.offset(t, -1, isolation_level=1, label="end")


def open_transaction_of_a_deleted_topic(s):
    t, other, p = _transaction(s)
    _deleted(s, t)
    p.produce(t, b"b", label="goes-on")
    p.add(t, label="again")
    p.end()
    s.offset(other, -1, isolation_level=1, label="other", until=lambda a: a.topics[0].partitions[0].offset == 2)
    p.init(label="next")
    s.ask("DescribeTransactions", 0, transactional_ids=[p.name], hide=("transaction_start_time_ms",))


def committed_offsets(s):
    t, g = s.topic(), s.name("g")
    other = s.topic("other")
    rows = [{"name": one, "partitions": [{"partition_index": 0, "committed_offset": 1, "committed_metadata": "m"}]}
            for one in (t, other)]  # fmt: skip
    s.ask("OffsetCommit", 8, group_id=g, topics=rows, quiet=True)
    asked = {"group_id": g, "topics": [{"name": one, "partition_indexes": [0]} for one in (t, other)]}
    s.ask("OffsetFetch", 7, **asked)
    t = _again(s)
    s.ask("OffsetFetch", 7, **asked, label="made-again", until=lambda a: a.topics[0].partitions[0].committed_offset < 0)
    s.ask("OffsetFetch", 7, group_id=g, topics=None, label="all")
    s.ask("OffsetCommit", 8, group_id=g, topics=rows, label="made-again")
    s.ask("OffsetFetch", 7, **asked, label="committed")


def offsets_by_id(s):
    t, g = s.topic(), s.name("g")
    part = {"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}
    s.ask("OffsetCommit", 10, group_id=g, topics=[{"topic_id": s.ids[t], "partitions": [part]}])
    t = _again(s)
    s.ask("OffsetCommit", 10, group_id=g, topics=[{"topic_id": s.ids["old"], "partitions": [part]}], label="old-id")
    for name in ("old", t):
        asked = {"group_id": g, "topics": [{"topic_id": s.ids[name], "partition_indexes": [0]}]}
        s.ask("OffsetFetch", 10, groups=[asked], label="old-id" if name == "old" else "new-id",
              until=lambda a: a.groups[0].topics[0].partitions[0].committed_offset < 0)  # fmt: skip


def leader_epochs(s):
    t = s.topic()
    s.produce(t, b"a", quiet=True)
    t = _again(s)
    for epoch in (-1, 0, 1):
        s.fetch(t, current_leader_epoch=epoch, label=f"epoch-{epoch}", pick=_code)
        s.offset(t, -1, current_leader_epoch=epoch, label=f"epoch-{epoch}")
    s.fetch(t, last_fetched_epoch=0, offset=1, label="after-the-end", pick=lambda a: a["responses"])


def more_partitions_before(s):
    t = s.topic(partitions=3)
    s.produce(t, b"a", partition=2, quiet=True)
    t = _again(s)
    s.produce(t, b"a", partition=2, label="gone")
    s.fetch(t, partition=2, label="gone")
    s.offset(t, -1, partition=2, label="gone")
    s.ask("CreatePartitions", 3, topics=[{"name": t, "count": 3, "assignments": None}])
    s.offset(t, -1, partition=2, label="empty", until=lambda a: not a.topics[0].partitions[0].error_code)


def configs(s):
    t = s.topic(retention_ms="777")
    row = {"name": "segment.ms", "config_operation": 0, "value": "500"}
    s.ask(
        "IncrementalAlterConfigs", 1, resources=[{"resource_type": 2, "resource_name": t, "configs": [row]}], quiet=True
    )
    t = _again(s)
    names = ["retention.ms", "segment.ms"]
    asked = {"resource_type": 2, "resource_name": t, "configuration_keys": names}
    s.ask("DescribeConfigs", 4, resources=[asked])


def deleted_records(s):
    t = s.topic()
    s.produce(t, b"a", b"b", b"c", quiet=True)
    s.ask("DeleteRecords", 2, topics=[{"name": t, "partitions": [{"partition_index": 0, "offset": 2}]}])
    t = _again(s)
    s.offset(t, -2, label="starts")
    s.produce(t, b"a", label="again")


def twice_in_one_request(s):
    t = s.topic()
    s.ask("DeleteTopics", 6, topics=[{"name": t}, {"topic_id": s.ids[t], "name": None}], label="name-and-id")
    s.ask("DeleteTopics", 6, topics=[{"topic_id": s.ids[t], "name": None}], label="again")
