"""What remains after a restart of the broker: topics, configurations, records, producers, users, quotas, rights."""

from tests.differential.picking import seen

TOPIC, GROUP, METRICS = 2, 32, 16
SET = 0


def _configured(s, kind, name, **configs):
    rows = [{"name": k.replace("_", "."), "config_operation": SET, "value": v} for k, v in configs.items()]
    wanted = [{"resource_type": kind, "resource_name": name, "configs": rows}]
    s.ask("IncrementalAlterConfigs", 1, quiet=True, resources=wanted)


def _described(s, kind, name, *keys, **options):
    wanted = {"resource_type": kind, "resource_name": name, "configuration_keys": list(keys)}
    s.ask("DescribeConfigs", 4, resources=[wanted], include_synonyms=True, **options)


def topics(s):
    kept, grown, gone = s.topic("kept", partitions=2), s.topic("grown"), s.topic("gone")
    s.ask("CreatePartitions", 3, topics=[{"name": grown, "count": 3, "assignments": None}], quiet=True)
    s.ready(grown, 3)
    s.ask("DeleteTopics", 5, topic_names=[gone], quiet=True)
    yield
    s.ready(kept, 2)
    s.ready(grown, 3)
    rows = [{"name": name} for name in (kept, grown, gone)]
    hide = ("leader_epoch",)
    s.ask("Metadata", 12, topics=rows, allow_auto_topic_creation=False, retry=(), hide=hide)
    s.ask("DescribeTopicPartitions", 0, topics=rows, response_partition_limit=10, retry=(), hide=hide)
    again = s.topic("gone")
    s.ask("Metadata", 12, topics=[{"name": again}], label="made-again", hide=hide)


def configs(s):
    t, g, m = s.topic(retention_ms="5000"), s.name("g"), s.name("m")
    _configured(s, TOPIC, t, max_message_bytes="2000", retention_ms="6000")
    _configured(s, GROUP, g, consumer_session_timeout_ms="50000")
    _configured(s, METRICS, m, interval_ms="60000", metrics="a.b")
    yield
    s.ready(t)
    _described(s, TOPIC, t, "retention.ms", "max.message.bytes", "segment.ms", label="topic")
    _described(s, GROUP, g, "consumer.session.timeout.ms", label="group")
    _described(s, METRICS, m, label="metrics")
    s.produce(t, b"x" * 3000, label="too-large")


def configs_of_brokers(s):
    node = str(s.server.node)
    _configured(s, 4, "", log_cleaner_io_buffer_load_factor="0.8")
    _configured(s, 4, node, log_cleaner_threads="2")
    yield
    _described(s, 4, node, "log.cleaner.threads", label="broker")
    s.ask(
        "IncrementalAlterConfigs",
        1,
        label="taken-away",
        resources=[
            {
                "resource_type": 4,
                "resource_name": node,
                "configs": [{"name": "log.cleaner.threads", "config_operation": 1, "value": None}],
            }
        ],
    )


def records(s):
    t = s.topic()
    s.produce(t, b"a", (b"k", b"b", [("h", b"x")]), quiet=True)
    s.produce(t, b"c" * 100, b"d" * 100, at=10, codec="gzip", quiet=True)
    yield
    s.ready(t)
    s.fetch(t, pick=lambda a: a["responses"][0]["partitions"][0]["records"])
    s.fetch(t, 2, pick=seen, label="from-2")
    for time in (-1, -2, -3, s.T, s.T + 5, s.T + 10, s.T + 12):
        s.offset(t, time, label=f"at-{time - s.T if time > 0 else time}", hide=("leader_epoch",))
    s.produce(t, b"e", at=20, label="goes-on")
    s.fetch(t, 4, pick=seen, label="from-4")


def empty_topic(s):
    t = s.topic()
    yield
    s.ready(t)
    s.fetch(t, pick=seen)
    s.produce(t, b"a", label="first")


def deleted_records(s):
    t = s.topic()
    for at in range(4):
        s.produce(t, b"%d" % at, at=at, quiet=True)
    s.ask("DeleteRecords", 2, topics=[{"name": t, "partitions": [{"partition_index": 0, "offset": 2}]}], quiet=True)
    yield
    s.ready(t)
    s.offset(t, -2, label="first")
    for offset in (1, 2):
        s.fetch(t, offset, pick=seen, label=f"from-{offset}")


def leader_epochs(s):
    t = s.topic()
    s.produce(t, b"a", quiet=True)
    before = s.ask("Metadata", 12, topics=[{"name": t}], quiet=True).topics[0].partitions[0].leader_epoch
    yield
    s.ready(t)
    now = s.ask("Metadata", 12, topics=[{"name": t}], quiet=True).topics[0].partitions[0].leader_epoch
    s.note("has-grown", now > before)
    s.produce(t, b"b", at=1, quiet=True)
    for label, epoch, current in (("first", before, -1), ("now", now, -1), ("fenced", before, before)):
        row = {"partition": 0, "current_leader_epoch": current, "leader_epoch": epoch}
        wanted = [{"topic": t, "partitions": [row]}]
        s.ask("OffsetForLeaderEpoch", 4, topics=wanted, label=label, hide=("leader_epoch",))
    s.fetch(t, current_leader_epoch=before, pick=lambda a: a["responses"][0]["partitions"][0]["error_code"], retry=())
    s.offset(t, -1, current_leader_epoch=before, label="fenced", retry=())


def fetch_sessions(s):
    t = s.topic()
    row = [{"topic": t, "partitions": [{"partition": 0, "partition_max_bytes": 1000}]}]
    number = s.ask("Fetch", 12, topics=row, session_epoch=0, quiet=True).session_id
    yield
    s.ready(t)
    s.ask("Fetch", 12, topics=[], session_id=number, session_epoch=1, pick=lambda a: a["error_code"], retry=())


def producers(s):
    t = s.topic()
    number = s.ask("InitProducerId", 4, quiet=True).producer_id
    for sequence in range(3):
        s.produce(t, b"%d" % sequence, at=sequence, producer=(number, 0, sequence), quiet=True)
    yield
    s.ready(t)
    hide = ("last_timestamp",)
    wanted = [{"name": t, "partition_indexes": [0]}]
    s.ask("DescribeProducers", 0, topics=wanted, hide=hide)
    for label, sequence in (("last-again", 2), ("first-again", 0), ("gap", 5), ("next", 3)):
        s.produce(t, b"x", at=sequence, producer=(number, 0, sequence), label=label)
    s.produce(t, b"x", at=9, producer=(number, 1, 0), label="next-epoch")
    s.produce(t, b"x", at=9, producer=(number, 0, 4), label="old-epoch")
    s.note("another-id", s.ask("InitProducerId", 4, quiet=True).producer_id > number)


def quotas(s):
    user = s.name("u")
    entity = [{"entity_type": "user", "entity_name": user}]
    ops = [{"key": "producer_byte_rate", "value": 1e9, "remove": False}]
    more = [{"key": "consumer_byte_rate", "value": 2e9, "remove": False}]
    less = [{"key": "consumer_byte_rate", "value": 0.0, "remove": True}]
    for rows in (ops, more, less):
        s.ask("AlterClientQuotas", 1, entries=[{"entity": entity, "ops": rows}], validate_only=False, quiet=True)
    yield
    wanted = [{"entity_type": "user", "match_type": 0, "match": user}]
    s.ask("DescribeClientQuotas", 1, components=wanted, strict=True, until=lambda a: a.entries)


def scram_users(s):
    user, changed, gone = s.name("u"), s.name("v"), s.name("w")

    def credential(name, mechanism, iterations):
        return {"name": name, "mechanism": mechanism, "iterations": iterations, "salt": b"salt",
                "salted_password": b"x" * 32}  # fmt: skip

    def alter(deletions, *upsertions):
        s.ask("AlterUserScramCredentials", 0, deletions=deletions, upsertions=list(upsertions), quiet=True)

    alter([], credential(user, 1, 4096), credential(changed, 1, 4096), credential(gone, 1, 4096))
    alter([{"name": gone, "mechanism": 1}], credential(user, 2, 8192), credential(changed, 1, 5000))
    yield
    for label, name in {"kept": user, "changed": changed, "deleted": gone}.items():
        s.ask("DescribeUserScramCredentials", 0, users=[{"name": name}], label=label)
    alter([{"name": user, "mechanism": 1}])
    s.ask("DescribeUserScramCredentials", 0, users=[{"name": user}], label="deleted-later",
          until=lambda a: len(a.results[0].credential_infos) == 1)  # fmt: skip


def rights(s):
    t = s.name("t")
    creation = {
        "resource_type": TOPIC,
        "resource_name": t,
        "resource_pattern_type": 3,
        "principal": "User:a",
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    }
    wanted = {
        "resource_type_filter": TOPIC,
        "resource_name_filter": t,
        "pattern_type_filter": 1,
        "principal_filter": None,
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
    }
    s.ask("CreateAcls", 3, creations=[creation, {**creation, "operation": 4}, {**creation, "principal": "User:b"}])
    s.ask("CreateAcls", 3, creations=[creation], label="again")
    s.ask("DescribeAcls", 3, **wanted, until=lambda a: a.resources and len(a.resources[0].acls) == 3)
    s.ask("DeleteAcls", 3, filters=[{**wanted, "principal_filter": "User:b"}])
    yield
    s.ask("DescribeAcls", 3, **wanted, label="restarted")
    s.ask("DeleteAcls", 3, filters=[wanted], label="all")
    s.ask("DescribeAcls", 3, **wanted, label="none", until=lambda a: not a.resources)
