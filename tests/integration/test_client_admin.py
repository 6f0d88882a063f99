"""The admin client against real brokers: each call, what the broker then says of it, and its refusals."""

from __future__ import annotations

import pytest

from kafkacodec import errors, messages
from kafkacodec.client import (
    Acl,
    AclFilter,
    Admin,
    Append,
    Consumer,
    Coordinator,
    FeatureUpdate,
    GroupOffset,
    KafkaConnection,
    NewPartitions,
    NewTopic,
    ScramCredential,
    Subtract,
)
from tests.integration.kafka_jars import RELEASES
from tests.integration.kafka_jvm import Broker
from tests.patience import eventually

pytestmark = [pytest.mark.java, pytest.mark.slow]

SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


@pytest.fixture(scope="module", params=RELEASES)
def broker(request, tmp_path_factory):
    directory = tmp_path_factory.mktemp("broker")
    made = Broker(
        directory,
        request.param,
        **{name.replace(".", "_"): value for name, value in SETTINGS.items()},
        log_dirs=f"{directory}/logs,{directory}/second",
    )
    made.start()
    yield made
    made.kill()


@pytest.fixture(scope="module")
def admin(broker):
    with Admin(broker.server) as made:
        yield made


@pytest.fixture(scope="module", autouse=True)
def orders(admin):
    """A topic with three partitions."""
    created = admin.create_topics(NewTopic("orders", 3, 1, configs={"retention.ms": "1000000"}))["orders"]
    assert (created.num_partitions, created.replication_factor) == (3, 1)
    assert created.configs["retention.ms"] == "1000000"
    eventually(lambda: "orders" in admin.list_topics())
    return created


def refused(call, *arguments, **options):
    """The names of the errors by item, and the results of the others."""
    with pytest.raises(errors.ItemErrors) as caught:
        call(*arguments, **options)
    return {
        item: getattr(found, "name", repr(found)) for item, found in caught.value.errors.items()
    }, caught.value.results


def test_cluster(admin, broker):
    found = admin.describe_cluster(include_authorized_operations=True)
    host, port = broker.server.split(":")
    assert [(b.id, b.host, b.port) for b in found.brokers] == [(1, host, int(port))]
    assert (found.cluster_id, found.controller_id) == ("MkU3OEVBNTcwNTJENDM2Qk", 1)
    assert {"alter", "create", "cluster_action"} <= found.authorized_operations
    assert admin.describe_cluster().authorized_operations is None
    quorum = admin.describe_metadata_quorum()
    assert (quorum.leader_id, [voter.id for voter in quorum.voters]) == (1, [1])
    assert quorum.high_watermark > 0


def test_topics(admin, orders):
    codes, made = refused(admin.create_topics, ["orders", "made", "bad name"])
    assert codes == {"orders": "TOPIC_ALREADY_EXISTS", "bad name": "INVALID_TOPIC_EXCEPTION"}
    assert list(made) == ["made"]
    assert admin.create_topics("imagined", validate_only=True)["imagined"].num_partitions == 1
    admin.create_topics(NewTopic("assigned", replica_assignments={0: [1], 1: [1]}))
    eventually(lambda: {"made", "assigned"} <= set(admin.list_topics()))
    codes, found = refused(admin.describe_topics, ["orders", "imagined", "assigned"])
    assert codes == {"imagined": "UNKNOWN_TOPIC_OR_PARTITION"}
    assert found["orders"].topic_id == orders.topic_id
    assert [(part.partition, part.leader, part.replicas, part.isr) for part in found["assigned"].partitions] == [
        (0, 1, [1], [1]),
        (1, 1, [1], [1]),
    ]
    assert admin.list_topics()["assigned"].num_partitions == 2
    by_id = found["assigned"].topic_id
    codes, _ = refused(admin.delete_topics, ["made", by_id, "imagined"])
    assert codes == {"imagined": "UNKNOWN_TOPIC_OR_PARTITION"}
    eventually(lambda: not {"made", "assigned"} & set(admin.list_topics()))


def test_partitions(admin):
    admin.create_topics("grows")
    eventually(lambda: "grows" in admin.list_topics())
    codes, _ = refused(admin.create_partitions, {"grows": NewPartitions(3, [[1], [1]]), "nowhere": 2})
    assert codes == {"nowhere": "UNKNOWN_TOPIC_OR_PARTITION"}
    eventually(lambda: admin.list_topics()["grows"].num_partitions == 3)
    assert refused(admin.create_partitions, {"grows": 1})[0] == {"grows": "INVALID_PARTITIONS"}
    assert refused(admin.elect_leaders, [("grows", 0), ("grows", 9)])[0] == {("grows", 9): "UNKNOWN_TOPIC_OR_PARTITION"}
    assert admin.elect_leaders([("grows", 0)]) == []
    codes, _ = refused(admin.alter_partition_reassignments, {("grows", 0): [1], ("grows", 1): [9], ("grows", 2): None})
    assert codes == {("grows", 1): "INVALID_REPLICA_ASSIGNMENT", ("grows", 2): "NO_REASSIGNMENT_IN_PROGRESS"}
    assert admin.list_partition_reassignments() == {}


def test_log_directories(admin, broker):
    first, second = str(broker.logs), str(broker.logs.parent / "second")
    admin.create_topics("moved")
    eventually(lambda: "moved" in admin.list_topics())

    def where():
        (found,) = admin.describe_log_dirs().values()
        assert set(found) == {first, second}
        return next((path for path, described in found.items() if ("moved", 0) in described.replicas), None)

    eventually(where)
    before = where()
    after = second if before == first else first
    admin.alter_replica_log_dirs({("moved", 0, 1): after})
    eventually(lambda: where() == after)
    assert refused(admin.alter_replica_log_dirs, {("moved", 0, 1): "/nowhere"})[0] == {
        ("moved", 0, 1): "LOG_DIR_NOT_FOUND"
    }


def test_configs(admin):
    topic = ("topic", "orders")
    found = admin.describe_configs([topic, ("broker", "1")], names=["retention.ms", "node.id"], include_synonyms=True)
    entry = found[topic]["retention.ms"]
    assert (entry.value, entry.source, entry.type, entry.is_default) == ("1000000", "dynamic_topic", "long", False)
    assert entry.synonyms[0][::2] == ("retention.ms", "dynamic_topic")
    assert found["broker", "1"]["node.id"][1:4] == ("1", "static_broker", True)
    admin.incremental_alter_configs({topic: {"retention.ms": None, "cleanup.policy": Append("compact")}})
    admin.incremental_alter_configs({topic: {"cleanup.policy": Subtract("delete"), "segment.ms": "5000"}})

    def own():
        return {e.name: e.value for e in admin.describe_configs([topic])[topic].values() if e.source == "dynamic_topic"}

    eventually(lambda: own() == {"cleanup.policy": "compact", "segment.ms": "5000"})
    admin.alter_configs({topic: {"max.message.bytes": "70000"}}, validate_only=True)
    admin.alter_configs({topic: {"max.message.bytes": "70001"}})
    eventually(lambda: own() == {"max.message.bytes": "70001"})
    codes, _ = refused(admin.incremental_alter_configs, {topic: {"segment.ms": "x"}, ("broker", "1"): {}})
    assert codes == {topic: "INVALID_CONFIG"}
    assert refused(admin.describe_configs, [("topic", "nowhere")])[0] == {
        ("topic", "nowhere"): "UNKNOWN_TOPIC_OR_PARTITION"
    }
    documented = admin.describe_configs([topic], names=["retention.ms"], include_documentation=True)
    assert "maximum time" in documented[topic]["retention.ms"].documentation


def test_list_config_resources_is_of_newer_brokers(admin, request):
    if "newest" in request.node.callspec.id:
        assert {("topic", "orders"), ("broker", "1")} <= set(admin.list_config_resources())
    else:
        with pytest.raises(errors.UnsupportedVersion, match=r"ListConfigResources.*Kafka 4.1 and later"):
            admin.list_config_resources()
    assert admin.list_config_resources(["client_metrics"]) == []


def test_offsets_of_partitions(admin):
    found = admin.list_offsets({("orders", 0): "latest", ("orders", 1): 0, ("orders", 2): "earliest"})
    assert [(key, offset.offset) for key, offset in found.items()] == [
        (("orders", 0), 0),
        (("orders", 1), -1),
        (("orders", 2), 0),
    ]
    codes, _ = refused(admin.list_offsets, {("orders", 0): "max_timestamp", ("nowhere", 0): "latest"})
    assert codes == {("nowhere", 0): "UNKNOWN_TOPIC_OR_PARTITION"}
    assert "nowhere" not in admin.list_topics()
    codes, kept = refused(admin.delete_records, {("orders", 0): -1, ("orders", 1): 5})
    assert (codes, kept) == ({("orders", 1): "OFFSET_OUT_OF_RANGE"}, {("orders", 0): 0})


def test_offsets_of_groups(admin):
    admin.alter_group_offsets("billing", {("orders", 0): 5, ("orders", 1): GroupOffset(7, 2, "note")})
    assert admin.list_group_offsets("billing") == {("orders", 0): (5, -1, ""), ("orders", 1): (7, 2, "note")}
    some = admin.list_group_offsets("billing", [("orders", 1), ("orders", 2)], require_stable=True)
    assert some == {("orders", 1): (7, 2, "note")}
    listed = admin.list_groups(states=["Empty"], types=["classic"])["billing"]
    assert (listed.state, listed.type, listed.coordinator) == ("Empty", "classic", 1)
    described = admin.describe_groups("billing", include_authorized_operations=True)["billing"]
    assert (described.type, described.state, described.members) == ("classic", "Empty", [])
    assert "read" in described.authorized_operations
    admin.delete_group_offsets("billing", [("orders", 0)])
    assert set(admin.list_group_offsets("billing")) == {("orders", 1)}
    assert refused(admin.delete_groups, ["billing", "nobody"])[0] == {"nobody": "GROUP_ID_NOT_FOUND"}
    assert refused(admin.describe_groups, ["billing"])[0] == {"billing": "GROUP_ID_NOT_FOUND"}


def test_members_of_groups_of_the_newest_protocol(admin, broker):
    finalized = {name: feature.finalized for name, feature in admin.describe_features().items()}
    protocol = "consumer" if finalized.get("group.version") else "classic"
    options = {"group_id": "readers", "group_instance_id": "one", "client_id": "reader", "group_protocol": protocol}
    with Consumer("orders", bootstrap_servers=broker.server, **options) as consumer:
        eventually(lambda: consumer.getmany(0.1) is not None and len(consumer.assignment()) == 3)
        eventually(lambda: admin.describe_groups("readers")["readers"].state == "Stable")
        described = admin.describe_groups("readers")["readers"]
        (member,) = described.members
        assert (described.type, member.group_instance_id, member.client_id) == (protocol, "one", "reader")
        assert sorted(member.assignment) == [("orders", n) for n in range(3)]
        assert (member.target_assignment is None) == (protocol == "classic")
        admin.remove_members("readers")
        assert admin.describe_groups("readers")["readers"].members == []


def test_share_groups(admin, broker, request):
    heartbeat = messages.ShareGroupHeartbeatRequest(
        group_id="sharing", member_id="m", member_epoch=0, subscribed_topic_names=["orders"]
    )
    with KafkaConnection(broker.server) as connection:
        (reply,) = connection.poll(20, (Coordinator("group", "sharing"), heartbeat))
    if "newest" not in request.node.callspec.id:
        assert isinstance(reply.error, errors.UnsupportedVersion)
        assert refused(admin.describe_groups, "sharing")[0] == {"sharing": "GROUP_ID_NOT_FOUND"}
        return
    assert reply.message.error_code == 0
    described = admin.describe_groups("sharing")["sharing"]
    assert (described.type, [member.member_id for member in described.members]) == ("share", ["m"])
    assert described.members[0].subscription == ["orders"]
    assert admin.list_groups(types=["share"])["sharing"].type == "share"


def test_acls(admin):
    read = Acl("topic", "orders", "User:alice", "read")
    deny = Acl("topic", "ord", "User:bob", "write", "deny", "10.0.0.1", "prefixed")
    nameless = Acl("topic", "", "User:bob", "write")
    assert refused(admin.create_acls, [read, nameless, deny])[0] == {nameless: "INVALID_REQUEST"}
    eventually(lambda: set(admin.describe_acls()) == {read, deny})
    assert admin.describe_acls(AclFilter(principal="User:alice")) == [read]
    assert set(admin.describe_acls(AclFilter("topic", "orders", pattern_type="match"))) == {read, deny}
    nobody, topics = AclFilter(principal="User:nobody"), AclFilter("topic")
    assert admin.delete_acls([nobody, topics]) == {nobody: [], topics: sorted([read, deny])}
    eventually(lambda: admin.describe_acls() == [])


def test_transactions(admin):
    first = admin.fence_producers("payments")["payments"]
    second = admin.fence_producers(["payments"])["payments"]
    assert (second.producer_id, second.producer_epoch) == (first.producer_id, first.producer_epoch + 1)
    listed = admin.list_transactions(producer_ids=[first.producer_id])
    assert [(name, found.state) for name, found in listed.items()] == [("payments", "Empty")]
    codes, found = refused(admin.describe_transactions, ["payments", "none"])
    assert codes == {"none": "TRANSACTIONAL_ID_NOT_FOUND"}
    assert (found["payments"].producer_epoch, found["payments"].partitions) == (second.producer_epoch, [])
    with pytest.raises(ValueError, match="brokers do not know the transaction state 'Silly'"):
        admin.list_transactions(states=["Silly", "Ongoing"])
    admin.abort_transaction("orders", 2, first.producer_id, first.producer_epoch, 0)
    assert admin.list_offsets({("orders", 2): "latest"})["orders", 2].offset == 1  # the marker
    assert admin.describe_producers([("orders", 0)]) == {("orders", 0): []}


def test_quotas(admin):
    alice, everyone, wrong = (("user", "alice"), ("client-id", None)), (("user", None),), (("user", "x"),)
    wanted = {alice: {"producer_byte_rate": 1000}, everyone: {"consumer_byte_rate": 2.5e6}, wrong: {"speed": 1}}
    assert refused(admin.alter_client_quotas, wanted)[0] == {wrong: "INVALID_REQUEST"}
    both = {tuple(sorted(alice)): {"producer_byte_rate": 1000.0}, everyone: {"consumer_byte_rate": 2.5e6}}
    eventually(lambda: admin.describe_client_quotas() == both)
    assert list(admin.describe_client_quotas({"user": "alice"})) == [tuple(sorted(alice))]
    assert list(admin.describe_client_quotas(types=["user"], strict=True)) == [everyone]
    admin.alter_client_quotas({alice: {"producer_byte_rate": None}, everyone: {"consumer_byte_rate": None}})
    eventually(lambda: admin.describe_client_quotas() == {})


def test_scram_users(admin):
    codes, _ = refused(
        admin.alter_user_scram_credentials,
        {
            "alice": [ScramCredential("SCRAM-SHA-256", "pw"), ScramCredential("SCRAM-SHA-512", "pw", 8192)],
            "bob": "SCRAM-SHA-256",
            "eve": ScramCredential("SCRAM-SHA-256", "pw", 10),
        },
    )
    assert codes == {
        ("bob", "SCRAM-SHA-256"): "RESOURCE_NOT_FOUND",
        ("eve", "SCRAM-SHA-256"): "UNACCEPTABLE_CREDENTIAL",
    }
    both = [("SCRAM-SHA-256", 4096), ("SCRAM-SHA-512", 8192)]
    eventually(lambda: admin.describe_user_scram_credentials() == {"alice": both})
    admin.alter_user_scram_credentials({"alice": "SCRAM-SHA-256"})
    eventually(lambda: admin.describe_user_scram_credentials("alice") == {"alice": both[1:]})
    assert refused(admin.describe_user_scram_credentials, ["bob"])[0] == {"bob": "RESOURCE_NOT_FOUND"}


def test_features(admin):
    found = admin.describe_features()["metadata.version"]
    assert found.min_supported <= found.finalized <= found.max_supported
    with pytest.raises(errors.error(95)):  # INVALID_UPDATE_VERSION
        admin.update_features({"metadata.version": FeatureUpdate(999)})
    admin.update_features({"metadata.version": found.finalized}, validate_only=True)


def test_metrics_count_the_requests(admin):
    before = admin.metrics()
    admin.list_topics()
    after = admin.metrics()
    assert after["requests.Metadata"] >= before["requests.Metadata"] + 1
    assert after["bytes_in"] > before["bytes_in"]
    assert after["connections"] >= 1
