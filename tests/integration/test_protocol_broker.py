"""A real KRaft broker answers requests of the sans-I/O connection, over a blocking socket."""

import socket
import time
import uuid

import pyarrow as pa
import pytest

import kafkacodec as kc
from kafkacodec import messages, protocol
from kafkacodec.protocol import Connection, ResponseReceived, VersionsAgreed
from tests.integration.kafka_jars import RELEASES
from tests.integration.kafka_jvm import Broker

pytestmark = [pytest.mark.java, pytest.mark.slow]


class Client:
    """A blocking client of one connection."""

    def __init__(self, server, **options):
        host, port = server.split(":")
        self.socket = socket.create_connection((host, int(port)), timeout=60)
        self.connection = Connection("client", client_id="kafkacodec-test", **options)
        self.agreed = False
        while not self.agreed:  # a second time if the broker lacks our version of ApiVersions
            self.wait(*self.connection.negotiate())

    def wait(self, correlation_id, data):
        self.socket.sendall(data)
        while True:
            received = self.socket.recv(65536)
            assert received, "the broker closed the connection"
            events = self.connection.receive(received)
            self.agreed = self.agreed or any(isinstance(event, VersionsAgreed) for event in events)
            for event in events:
                if isinstance(event, ResponseReceived) and event.correlation_id == correlation_id:
                    return event.message

    def ask(self, message, version=None):
        return self.wait(*self.connection.send_request(message, version))


@pytest.fixture(scope="module", params=RELEASES)
def broker(request, tmp_path_factory):
    made = Broker(tmp_path_factory.mktemp("broker"), request.param)
    made.start()
    yield made
    made.kill()


@pytest.fixture
def client(broker):
    made = Client(broker.server)
    yield made
    made.socket.close()


def create_topic(client, name, partitions=2, configs=()):
    made = messages.CreateTopicsRequest
    configs = [made.CreatableTopicConfig(name=key, value=value) for key, value in dict(configs).items()]
    topic = made.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=configs)
    response = client.ask(messages.CreateTopicsRequest(topics=[topic], timeout_ms=30000))
    assert response.topics[0].error_code == 0, response
    for _ in range(300):
        found = client.ask(messages.MetadataRequest(topics=[messages.MetadataRequest.MetadataRequestTopic(name=name)]))
        if not found.topics[0].error_code and leads(client, name, partitions):
            return found.topics[0].topic_id
        time.sleep(0.05)
    raise AssertionError("the topic did not come up")


def leads(client, name, partitions):
    """Whether every partition is ready: metadata names a leader before the broker knows that it is the leader."""
    asked = messages.ListOffsetsRequest
    places = [asked.ListOffsetsPartition(partition_index=i, timestamp=-1) for i in range(partitions)]
    topic = asked.ListOffsetsTopic(name=name, partitions=places)
    found = client.ask(protocol.client_request(asked, topics=[topic]))
    return all(partition.error_code == 0 for partition in found.topics[0].partitions)


def produce_request(name, topic_id, version, records, acks=-1):
    data = messages.ProduceRequest.PartitionProduceData(index=1, records=records)
    topic = messages.ProduceRequest.TopicProduceData(partition_data=[data])
    if version >= 13:
        topic.topic_id = topic_id
    else:
        topic.name = name
    return messages.ProduceRequest(acks=acks, timeout_ms=30000, topic_data=[topic])


def fetch_request(name, topic_id, version, offset=0, isolation_level=0):
    partition = messages.FetchRequest.FetchPartition(partition=1, fetch_offset=offset, partition_max_bytes=1 << 20)
    topic = messages.FetchRequest.FetchTopic(partitions=[partition])
    if version >= 13:
        topic.topic_id = topic_id
    else:
        topic.topic = name
    return messages.FetchRequest(max_wait_ms=100, min_bytes=1, isolation_level=isolation_level, topics=[topic])


def in_transaction(client, name, topic_id, values, *, committed):
    """Writes a batch to partition 1 in a transaction and ends it."""
    found = retried(
        lambda: client.ask(messages.FindCoordinatorRequest(key_type=1, coordinator_keys=["writer"])).coordinators[0]
    )
    assert found.node_id == 1
    start = messages.InitProducerIdRequest(transactional_id="writer", transaction_timeout_ms=30000)
    producer = retried(lambda: client.ask(start, 4))
    adding = messages.AddPartitionsToTxnRequest
    add = adding(
        v3_and_below_transactional_id="writer",
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.producer_epoch,
        v3_and_below_topics=[adding.AddPartitionsToTxnTopic(name=name, partitions=[1])],
    )
    retried(
        lambda: client.ask(add, 3).results_by_topic_v3_and_below[0].results_by_partition[0],
        "partition_error_code",
    )
    records = kc.encode(
        [(None, value) for value in values],
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        base_sequence=0,
        is_transactional=True,
    )
    request = produce_request(name, topic_id, 9, records)
    request.transactional_id = "writer"
    assert client.ask(request, 9).responses[0].partition_responses[0].error_code == 0
    end = messages.EndTxnRequest(
        transactional_id="writer",
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        committed=committed,
    )
    retried(lambda: client.ask(end, 3))


def retried(ask, code="error_code"):
    """The first response without an error; coordinators need time at start and after each transaction."""
    for _ in range(300):
        answer = ask()
        if getattr(answer, code) == 0:
            return answer
        time.sleep(0.05)
    raise AssertionError(answer)


def test_negotiation_and_metadata(client):
    assert client.connection.peer_versions[3].start <= client.connection.version_of(3)
    response = client.ask(messages.MetadataRequest(topics=None))
    assert [broker.node_id for broker in response.brokers] == [1]
    assert response.cluster_id
    for version in messages.APIS[3].valid_versions:
        if version in client.connection.peer_versions[3]:
            assert client.ask(messages.MetadataRequest(topics=[]), version).brokers[0].node_id == 1


def test_a_version_that_the_broker_lacks(broker):
    """The response to an ApiVersions request of a future version can be read and lists the broker's versions."""
    client = Client(broker.server)
    ahead = protocol.encode_request(messages.ApiVersionsRequest(), 4, 0)
    ahead = ahead[:6] + (99).to_bytes(2, "big") + ahead[8:]
    client.socket.sendall(ahead)
    frame = b""
    while not frame or protocol.frame_size(frame) > len(frame):
        frame += client.socket.recv(65536)
    _, response = protocol.decode_response(frame, 18, 99)
    assert isinstance(response, messages.ApiVersionsResponse)
    assert response.error_code == 35
    assert 18 in protocol.ranges_in(response)
    client.socket.close()


@pytest.mark.parametrize("version", [2, 3])
def test_bytes_after_a_request(broker, version):
    """The broker ignores a byte too many, as kafka-go sends it; our side reports it."""
    client = Client(broker.server)
    request = messages.DescribeAclsRequest(
        resource_type_filter=2, pattern_type_filter=3, operation=1, permission_type=1
    )
    correlation_id, data = client.connection.send_request(request, version)
    longer = (len(data) - 4 + 1).to_bytes(4, "big") + data[4:] + b"\0"
    assert client.wait(correlation_id, longer).error_code == 54  # no authorizer is configured
    (event,) = Connection("broker", allow_trailing_bytes=True).receive(longer)
    assert (event.message, event.trailing) == (request, b"\0")
    client.socket.close()


def test_client_id_and_header_tags_of_one_request(client):
    """The broker makes member ids from client ids, and ignores tags in the header that it does not know."""
    find = messages.FindCoordinatorRequest(key_type=0, coordinator_keys=["named"])
    retried(lambda: client.ask(find).coordinators[0])
    offer = messages.JoinGroupRequest.JoinGroupRequestProtocol(name="range")
    join = messages.JoinGroupRequest(
        group_id="named", session_timeout_ms=30000, protocol_type="consumer", protocols=[offer]
    )

    def member_id(**options):
        for _ in range(300):
            joined = client.wait(*client.connection.send_request(join, **options))
            if joined.error_code == 79:  # the member id to use
                return joined.member_id
            time.sleep(0.05)
        raise AssertionError(joined)

    assert member_id(client_id="other", header_tags={1000: b"trace"}).startswith("other-")
    assert member_id().startswith("kafkacodec-test-")


def test_produce_list_offsets_and_fetch(client):
    name = f"orders-{uuid.uuid4().hex}"
    topic_id = create_topic(client, name)
    records = kc.encode([(b"k1", b"v1"), (b"k2", None), (None, b"v3")], codec="lz4")
    written = client.connection.version_of(0)
    response = client.ask(produce_request(name, topic_id, written, records))
    assert response.responses[0].partition_responses[0].error_code == 0
    assert response.responses[0].partition_responses[0].base_offset == 0
    # acks=0 has no response: the next response is that of the next request.
    _, data = client.connection.send_request(
        produce_request(name, topic_id, written, kc.encode([(b"k4", b"v4")]), acks=0)
    )
    client.socket.sendall(data)

    place = messages.ListOffsetsRequest.ListOffsetsPartition(partition_index=1, timestamp=-1)
    topic = messages.ListOffsetsRequest.ListOffsetsTopic(name=name, partitions=[place])
    latest = client.ask(protocol.client_request(messages.ListOffsetsRequest, topics=[topic]))
    assert latest.topics[0].partitions[0].offset == 4

    for version in (4, 11, 12, client.connection.version_of(1)):
        fetched = client.ask(fetch_request(name, topic_id, version), version)
        table = pa.table(protocol.fetch_to_columns(fetched, topic_names={topic_id: name}))
        assert table.column("topic").to_pylist() == [name] * 4
        assert table.column("key").to_pylist() == [b"k1", b"k2", None, b"k4"]
        assert table.column("value").to_pylist() == [b"v1", None, b"v3", b"v4"]


def test_aborted_transactions(client):
    """The broker lists the aborted transactions; a read_uncommitted response lists none."""
    name = f"ledger-{uuid.uuid4().hex}"
    topic_id = create_topic(client, name)
    in_transaction(client, name, topic_id, [b"a1", b"a2"], committed=False)
    in_transaction(client, name, topic_id, [b"b1"], committed=True)
    in_transaction(client, name, topic_id, [b"c1"], committed=False)
    in_transaction(client, name, topic_id, [b"d1", b"d2"], committed=True)
    version = client.connection.version_of(1)

    def fetched():
        return client.ask(fetch_request(name, topic_id, version, isolation_level=1), version)

    for _ in range(300):  # the last marker may not be written yet
        response = fetched()
        columns = protocol.fetch_to_columns(response, isolation_level="read_committed", topic_names={topic_id: name})
        if len(columns) == 3:
            break
        time.sleep(0.05)
    assert len(response.responses[0].partitions[0].aborted_transactions) == 2
    assert pa.table(columns).column("value").to_pylist() == [b"b1", b"d1", b"d2"]
    everything = protocol.fetch_to_columns(response, topic_names={topic_id: name})
    assert pa.table(everything).column("value").to_pylist() == [b"a1", b"a2", b"b1", b"c1", b"d1", b"d2"]
    plain = client.ask(fetch_request(name, topic_id, version), version)
    assert len(protocol.fetch_to_columns(plain, isolation_level="read_committed")) == 6


def test_errors_of_the_broker(client):
    topic_id = create_topic(client, "errors", 2)
    fetched = client.ask(fetch_request("errors", topic_id, client.connection.version_of(1), offset=99))
    with pytest.raises(kc.errors.OffsetOutOfRangeError):
        protocol.fetch_to_columns(fetched)
    asked = messages.MetadataRequest.MetadataRequestTopic(name="missing")
    found = client.ask(messages.MetadataRequest(topics=[asked], allow_auto_topic_creation=False))
    assert kc.errors.error(found.topics[0].error_code) is kc.errors.UnknownTopicOrPartitionError


def test_group_calls(client):
    create_topic(client, "work", 1)
    for _ in range(300):
        found = client.ask(messages.FindCoordinatorRequest(key_type=0, coordinator_keys=["workers"]))
        if found.coordinators[0].error_code == 0:
            break
    assert found.coordinators[0].node_id == 1

    subscription = (1).to_bytes(2, "big") + messages.ConsumerProtocolSubscription(topics=["work"]).encode(1)
    offer = messages.JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=subscription)
    join = messages.JoinGroupRequest(
        group_id="workers",
        session_timeout_ms=30000,
        rebalance_timeout_ms=5000,
        protocol_type="consumer",
        protocols=[offer],
    )
    joined = client.ask(join)
    for _ in range(300):
        if joined.error_code == 79:  # the first response has the member id to use
            join.member_id = joined.member_id
        elif joined.error_code == 0:
            break
        joined = client.ask(join)
    assert joined.leader == joined.member_id
    assert joined.members[0].metadata == subscription

    owned = messages.ConsumerProtocolAssignment.TopicPartition(topic="work", partitions=[0])
    assignment = (1).to_bytes(2, "big") + messages.ConsumerProtocolAssignment(assigned_partitions=[owned]).encode(1)
    place = {"group_id": "workers", "member_id": joined.member_id, "generation_id": joined.generation_id}
    mine = messages.SyncGroupRequest.SyncGroupRequestAssignment(member_id=joined.member_id, assignment=assignment)
    synced = client.ask(
        messages.SyncGroupRequest(**place, protocol_type="consumer", protocol_name="range", assignments=[mine])
    )
    assert (synced.error_code, synced.assignment) == (0, assignment)
    assert client.ask(messages.HeartbeatRequest(**place)).error_code == 0

    commit = messages.OffsetCommitRequest
    partition = commit.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=7, committed_metadata="half way"
    )
    committed = client.ask(
        commit(
            group_id="workers",
            member_id=joined.member_id,
            generation_id_or_member_epoch=joined.generation_id,
            topics=[commit.OffsetCommitRequestTopic(name="work", partitions=[partition])],
        ),
        8,
    )
    assert committed.topics[0].partitions[0].error_code == 0
    fetch = messages.OffsetFetchRequest
    group = fetch.OffsetFetchRequestGroup(
        group_id="workers", topics=[fetch.OffsetFetchRequestTopics(name="work", partition_indexes=[0])]
    )
    fetched = client.ask(fetch(groups=[group]), 8)
    assert fetched.groups[0].topics[0].partitions[0].committed_offset == 7
    assert fetched.groups[0].topics[0].partitions[0].metadata == "half way"

    described = client.ask(messages.DescribeGroupsRequest(groups=["workers"]))
    assert described.groups[0].group_state == "Stable"
    assert described.groups[0].members[0].member_assignment == assignment
    assert "workers" in [entry.group_id for entry in client.ask(messages.ListGroupsRequest()).groups]
    leaving = messages.LeaveGroupRequest.MemberIdentity(member_id=joined.member_id)
    assert client.ask(messages.LeaveGroupRequest(group_id="workers", members=[leaving])).error_code == 0
