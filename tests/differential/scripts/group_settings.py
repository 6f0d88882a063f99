"""Configurations of groups that came with 4.2 to 4.4: intervals of assignments, renewals, what share groups give up."""

import time

from tests.differential.members import Consumer, ShareMember, acquired
from tests.differential.scenario import NotAdvertised

ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
GROUP, TOPIC = 32, 2
INTERVALS = "consumer.assignment.interval.ms", "share.assignment.interval.ms"
SWITCHES = "share.renew.acknowledge.enable", "errors.deadletterqueue.copy.record.enable"
DEAD = "errors.deadletterqueue.topic.name"
COPY = "errors.deadletterqueue.copy.record.enable"


def _altered(group, name, value):
    config = {"name": name, "config_operation": 0 if value is not None else 1, "value": value}
    return {"resources": [{"resource_type": GROUP, "resource_name": group, "configs": [config]}]}


def _set(s, group, name, value):
    """Sets a configuration, and waits until it is known. No step; a broker without it cannot go on."""
    answer = s.ask("IncrementalAlterConfigs", 1, quiet=True, **_altered(group, name, value))
    if answer.responses[0].error_code:
        raise NotAdvertised(f"there is no configuration {name}")
    _describe(s, group, name, quiet=True, until=lambda a: a.results[0].configs[0].value == value)


def _describe(s, group, *names, **options):
    asked = [{"resource_type": GROUP, "resource_name": group, "configuration_keys": list(names)}]
    return s.ask("DescribeConfigs", 4, resources=asked, include_synonyms=True, **options)


def _beat(answer):
    given = answer["assignment"] and sorted(t["partitions"] for t in answer["assignment"]["topic_partitions"])
    return [answer["error_code"], answer["member_epoch"], given]


def _share_beat(answer):
    given = answer["assignment"] and [len(t["partitions"]) for t in answer["assignment"]["topic_partitions"]]
    return [answer["error_code"], answer["member_epoch"], given]


def _group(answer):
    group = answer["groups"][0]
    return [group["group_state"], group["group_epoch"] - group["assignment_epoch"], len(group["members"])]


def _since(first):
    """How a heartbeat's answer is shown: with the epoch counted from the first one."""

    def shown(answer):
        code, epoch, given = _beat(answer)
        return [code, epoch if epoch < 0 else epoch - first, given]

    return {"pick": shown}


def values(s):
    g = s.name("g")
    for name in INTERVALS:
        for value in ("0", "15000", "15001", "-1", "x", ""):
            s.ask("IncrementalAlterConfigs", 1, label=f"{name}-{value}", **_altered(g, name, value))
    for name in SWITCHES:
        for value in ("true", "FALSE", "1", ""):
            s.ask("IncrementalAlterConfigs", 1, label=f"{name}-{value}", **_altered(g, name, value))
    for value in ("dlq.x", "other", "a b", "__x", "_x", ""):
        s.ask("IncrementalAlterConfigs", 1, label=f"topic-{value}", **_altered(g, DEAD, value))


def described(s):
    g = s.name("g")
    for name, value in zip((*SWITCHES, DEAD), ("false", "true", "dlq.x"), strict=True):
        _set(s, g, name, value)
        _describe(s, g, name, label=f"{name}-set")
        s.ask("IncrementalAlterConfigs", 1, quiet=True, **_altered(g, name, None))
        usual = lambda a: a.results[0].configs[0].config_source == 5  # noqa: E731
        _describe(s, g, name, label=f"{name}-unset", until=usual)


def consumer_interval(s):
    t, g = s.topic(partitions=4), s.name("g")
    _set(s, g, INTERVALS[0], "15000")
    a, b = Consumer(s, g, "a", t), Consumer(s, g, "b", t)
    first = a.join(quiet=True, until=lambda h: h.assignment and h.assignment.topic_partitions).member_epoch
    shown = _since(first)
    b.join(label="b-joins", **shown)
    s.ask("ConsumerGroupDescribe", 1, group_ids=[g], label="assigning", pick=_group)
    a.beat(report=True, label="a-keeps-all", **shown)
    b.beat(report=True, label="b-waits", **shown)
    b.leave(label="b-leaves", **shown)
    a.beat(report=True, label="a-alone", **shown)
    b.join(label="b-again", **shown)
    _set(s, g, INTERVALS[0], "0")
    a.beat(report=True, label="a-without-interval", **shown)
    a.beat(report=True, label="a-has-revoked", **shown)
    b.beat(report=True, label="b-gets-the-rest", **shown)
    s.ask("ConsumerGroupDescribe", 1, group_ids=[g], label="stable", pick=_group)


def consumer_interval_of_topics(s):
    t, u, g = s.topic(partitions=2), s.topic("u"), s.name("g")
    _set(s, g, INTERVALS[0], "15000")
    a = Consumer(s, g, "a", t, instance_id="box")
    first = a.join(quiet=True, until=lambda h: h.assignment and h.assignment.topic_partitions).member_epoch
    shown = _since(first)
    a.beat(report=True, label="another-topic", subscribed_topic_names=[t, u], instance_id="box", **shown)
    a.leave(-2, label="away", fields={"instance_id": "box"}, **shown)
    b = Consumer(s, g, "b", t, u, instance_id="box")
    b.join(label="back", **shown)
    b.leave(label="for-good", fields={"instance_id": "box"}, **shown)
    c = Consumer(s, g, "c", t, u)
    c.join(label="first-of-an-empty-group", pick=lambda a: _beat(a)[::2])


def share_interval(s):
    t, g = s.topic(partitions=4), s.name("g")
    a, b = ShareMember(s, g, "a", t), ShareMember(s, g, "b", t)
    a.assigned()
    a.leave(quiet=True)
    _set(s, g, INTERVALS[1], "15000")
    a.join(label="a-joins", pick=lambda h: _share_beat(h)[::2])
    b.join(label="b-joins", pick=lambda h: _share_beat(h)[::2])
    s.ask("ShareGroupDescribe", 1, group_ids=[g], label="two", pick=_group)
    a.heartbeat(label="a-keeps-all", pick=lambda h: _share_beat(h)[::2])
    b.heartbeat(label="b-waits", pick=lambda h: _share_beat(h)[::2])
    _set(s, g, INTERVALS[1], "0")
    b.heartbeat(label="b-without-interval", pick=lambda h: _share_beat(h)[::2])
    a.heartbeat(label="a-without-interval", pick=lambda h: _share_beat(h)[::2])
    s.ask("ShareGroupDescribe", 1, group_ids=[g], label="divided", pick=_group)
    a.leave(quiet=True)
    b.leave(quiet=True)
    _set(s, g, INTERVALS[1], "15000")
    b.join(label="first-of-an-empty-group", pick=lambda h: _share_beat(h)[::2])


def _member(s, t, **configs):
    g = s.name("g")
    for name, value in {"share.auto.offset.reset": "earliest", **configs}.items():
        _set(s, g, name, value)
    member = ShareMember(s, g, "m", t, version=2)
    member.assigned()
    return member


def no_renewals(s):
    t = s.topic()
    s.produce(t, b"0", b"1", b"2", b"3", quiet=True)
    m = _member(s, t, **{"share.renew.acknowledge.enable": "false"})
    m.until_acquired((t, 0), count=4, pick=acquired)
    m.acknowledge({(t, 0): [(0, 0, [RENEW])]}, is_renew_ack=True, label="renewed")
    m.acknowledge({(t, 0): [(0, 0, [ACCEPT])]}, is_renew_ack=True, label="accepted-beside-renewals")
    m.acknowledge({(t, 0): [(1, 1, [ACCEPT]), (2, 2, [RENEW])]}, is_renew_ack=True, label="both")
    m.acknowledge({(t, 0): [(1, 2, [ACCEPT, RENEW])]}, is_renew_ack=True, label="both-in-one")
    m.acknowledge({(t, 0): [(1, 2, [RENEW])]}, label="renewed-unsaid")
    nothing = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 0, "max_records": 0}
    m.fetch(acks={(t, 0): [(1, 1, [RENEW])]}, is_renew_ack=True, label="renewed-in-a-fetch", **nothing)
    m.acknowledge({(t, 0): [(1, 3, [ACCEPT])]}, label="the-rest")


def _dead_topic(s, partitions=1, **configs):
    name = f"dlq.{s.name('dead')}"
    rows = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
    entry = {"name": name, "num_partitions": partitions, "replication_factor": 1, "configs": rows}
    s.ask("CreateTopics", 5, topics=[entry], quiet=True)
    return s.ready(name, partitions)


def _records(s, topic, count, label, partition=0):
    """A step: the records of a topic, as soon as there are as many."""
    part = {"partition": partition, "fetch_offset": 0, "partition_max_bytes": 1 << 20}

    def rows(answer):
        return [item for batch in answer["responses"][0]["partitions"][0]["records"] or [] for item in batch["items"]]

    def all_there(answer):
        return answer.responses[0].partitions[0].high_watermark >= count

    asked = [{"topic": topic, "partitions": [part]}]
    s.ask("Fetch", 12, topics=asked, until=all_there, label=label, pick=lambda a: [_without_time(r) for r in rows(a)])


def _without_time(row):
    return {name: value for name, value in row.items() if name != "timestamp"}


def given_up(s):
    t = s.topic()
    s.produce(t, (b"k", b"0", (("h", b"x"),)), b"1", b"2", b"3", b"4", quiet=True)
    d = _dead_topic(s, errors_deadletterqueue_group_enable="true")
    m = _member(s, t, **{DEAD: d, "share.delivery.count.limit": "2"})
    m.until_acquired((t, 0), count=5, quiet=True)
    m.acknowledge({(t, 0): [(0, 3, [REJECT, 0, ACCEPT, RELEASE]), (4, 4, [RELEASE])]})
    _records(s, d, 1, "rejected")
    m.until_acquired(count=2, quiet=True)
    m.acknowledge({(t, 0): [(3, 3, [RELEASE])]})
    _records(s, d, 2, "delivered-too-often")
    _set(s, m.group, COPY, "true")
    m.acknowledge({(t, 0): [(4, 4, [REJECT])]})
    _records(s, d, 3, "copied")


def given_up_copies(s):
    t = s.topic(partitions=3)
    for number in range(3):
        data = s.batch((b"k", b"0", (("h", b"x"),)), (b"l", None), b"2", codec="lz4")
        part = {"index": number, "records": data}
        s.ask("Produce", 9, topic_data=[{"name": t, "partition_data": [part]}], quiet=True)
    d = _dead_topic(s, 2, errors_deadletterqueue_group_enable="true", compression_type="zstd")
    m = _member(s, t, **{DEAD: d, COPY: "true"})
    for number in range(3):
        m.until_acquired((t, number), count=3, quiet=True)
        m.acknowledge({(t, number): [(0, 2, [REJECT])]}, quiet=True)
        _records(s, d, 3 if number < 2 else 6, f"of-partition-{number}", number % 2)


def given_up_for_nobody(s):
    t = s.topic()
    s.produce(t, *(b"%d" % n for n in range(8)), quiet=True)
    m = _member(s, t, **{DEAD: f"dlq.{s.name('none')}"})
    d, other = _dead_topic(s), s.topic("other", errors_deadletterqueue_group_enable="true")
    _set(s, m.group, DEAD, d)
    m.until_acquired((t, 0), count=8, quiet=True)
    m.acknowledge({(t, 0): [(0, 0, [REJECT])]}, label="not-enabled")
    _set(s, m.group, DEAD, other)
    m.acknowledge({(t, 0): [(1, 1, [REJECT])]}, label="other-beginning")
    _set(s, m.group, DEAD, f"dlq.{s.name('none')}")
    m.acknowledge({(t, 0): [(2, 2, [REJECT])]}, label="no-such-topic")
    _set(s, m.group, DEAD, "")
    m.acknowledge({(t, 0): [(3, 3, [REJECT])]}, label="no-topic")
    time.sleep(1)  # nothing comes
    _records(s, d, 0, "not-enabled")
    _records(s, other, 0, "other-beginning")
    m.acknowledge({(t, 0): [(4, 7, [ACCEPT])]}, label="the-rest")
    s.ask("Metadata", 9, topics=[{"name": f"dlq.{s.name('none')}"}], allow_auto_topic_creation=False, retry=(),
          label="no-such-topic", pick=lambda a: a["topics"][0]["error_code"])  # fmt: skip
