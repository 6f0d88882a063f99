"""Any message to any broker, over `KafkaConnection`."""

from __future__ import annotations

import asyncio
import time

import pytest

from kafkacodec import errors, messages
from kafkacodec.client import ANY, CONTROLLER, Admin, Coordinator, KafkaConnection, NewTopic, aio
from tests.integration.kafka_cluster import Cluster
from tests.patience import SOON

pytestmark = [pytest.mark.java, pytest.mark.slow]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    made = Cluster(tmp_path_factory.mktemp("cluster"), 2)
    made.start()
    try:
        with Admin(made.servers) as admin:
            while len(admin.describe_cluster().brokers) < 2:
                time.sleep(0.1)
            admin.create_topics(NewTopic("empty", replica_assignments={0: [1]}))
        yield made
    finally:
        made.kill_all()


@pytest.fixture
def connection(cluster):
    with KafkaConnection(cluster.servers) as made:
        yield made


def all_replies(connection, *requests):
    """The replies to these requests, in the order in which they came."""
    found, end = connection.poll(0, *requests), time.monotonic() + SOON
    while connection.pending:
        assert time.monotonic() < end
        found += connection.poll(1)
    return found


def slow(max_wait_ms):
    """A request that a broker answers only after this time: there is nothing to fetch."""
    partition = messages.FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    topic = messages.FetchRequest.FetchTopic(topic="empty", partitions=[partition])
    request = messages.FetchRequest(replica_id=-1, max_wait_ms=max_wait_ms, min_bytes=1, max_bytes=1000, topics=[topic])
    return lambda versions: (request, 11)


def test_requests_to_several_brokers_at_once(connection):
    versions = messages.ApiVersionsRequest(client_software_name="a", client_software_version="1")
    cluster, group = messages.DescribeClusterRequest(), messages.DescribeGroupsRequest(groups=["g"])
    places = [(1, versions), (2, versions), (CONTROLLER, cluster), (Coordinator("group", "g"), group), (ANY, versions)]
    assert connection.poll() == []
    replies = {reply.to: reply for reply in all_replies(connection, *places)}
    assert len(replies) == 5
    assert [reply.error for reply in replies.values()] == [None] * 5
    assert (replies[1].broker, replies[2].broker) == (1, 2)
    assert replies[1].message.api_keys
    assert sorted(broker.broker_id for broker in replies[CONTROLLER].message.brokers) == [1, 2]
    assert replies[CONTROLLER].request is cluster
    assert replies[Coordinator("group", "g")].message.groups[0].group_id == "g"


def test_order_is_kept_per_broker(connection):
    requests = [(2, messages.MetadataRequest(topics=[], allow_auto_topic_creation=False)) for _ in range(300)]
    assert [id(reply.request) for reply in all_replies(connection, *requests)] == [id(each) for _, each in requests]


def test_a_version_of_the_callers_choice(connection):
    (reply,) = all_replies(connection, lambda versions: (messages.MetadataRequest(topics=[]), versions[3].start + 1))
    assert reply.version == 1
    assert len(reply.message.brokers) == 2


def test_errors_are_replies(connection, cluster):
    old = messages.LeaderAndIsrRequest()  # an API between brokers, which clients cannot use
    (reply,) = all_replies(connection, old)
    assert isinstance(reply.error, errors.UnsupportedVersion)
    assert (reply.message, reply.broker, reply.request) == (None, None, old)
    unknown = messages.DescribeGroupsRequest(groups=["g"])
    with KafkaConnection(cluster.servers, request_timeout_ms=500) as short:
        (reply,) = all_replies(short, (77, unknown))
    assert isinstance(reply.error, (errors.ConnectionFailed, errors.DeadlineExceeded))
    assert "77" in str(reply.error)


def test_waiting(connection):
    started = time.monotonic()
    assert connection.poll(2 * SOON) == []  # nothing is due
    assert time.monotonic() - started < SOON
    hung = slow(3000)
    connection.poll(0, (1, hung))
    assert connection.poll(0) == []
    assert connection.poll(0.1) == []
    (reply,) = connection.poll(None)
    assert reply.request is hung
    with pytest.raises(TypeError, match="a request must be a message"):
        connection.poll(0, "Metadata")
    with pytest.raises(TypeError, match="a request must be a message"):
        connection.poll(0, messages.MetadataRequest(), (1, 5))
    assert connection.pending == 0


def test_asyncio(cluster):
    async def run():
        async with aio.KafkaConnection(cluster.servers) as connection:
            replies = await connection.poll(SOON, messages.MetadataRequest(topics=[]))
            task = asyncio.create_task(connection.poll(None, (1, slow(60_000))))
            await asyncio.sleep(0.2)
            assert connection.metrics()["requests.Metadata"] >= 1
        with pytest.raises(errors.ClientClosed):
            await task
        return replies

    (reply,) = asyncio.run(run())
    assert len(reply.message.brokers) == 2
