"""Memberships, offsets and share groups with a real broker, beside aiokafka's and librdkafka's members."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import uuid

import aiokafka
import confluent_kafka
import pytest

import kafkacodec as kc
from kafkacodec import messages
from kafkacodec.assignment.assignors import ASSIGNORS
from kafkacodec.client.core.calls import ANY, CONTROLLER
from kafkacodec.client.driver.network import Network
from kafkacodec.client.groups.classic import ClassicMembership
from kafkacodec.client.groups.membership import Assigned, Failed, GroupMetadata, GroupSettings, Left, Lost, Revoke
from kafkacodec.client.groups.modern import ModernMembership
from kafkacodec.client.groups.offsets import CommittedOffset, OffsetCommit, OffsetFetch
from kafkacodec.client.groups.share import ShareMembership
from kafkacodec.client.groups.share_reader import ShareReader
from kafkacodec.client.groups.share_session import AcknowledgeType
from kafkacodec.client.groups.topics import Subscription
from kafkacodec.client.options import ClientSettings
from tests.integration.kafka_jvm import SOON_BACK, Broker
from tests.patience import LATE, until

pytestmark = [pytest.mark.java, pytest.mark.slow]
REBALANCE_IN_PROGRESS = 27
ACCEPT, RELEASE, REJECT = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT
SETTINGS = {
    "group_min_session_timeout_ms": "1000",
    "group_consumer_heartbeat_interval_ms": "300",
    "group_consumer_min_heartbeat_interval_ms": "300",
    "group_share_heartbeat_interval_ms": "300",
    "group_share_min_heartbeat_interval_ms": "300",
    "share_coordinator_state_topic_num_partitions": "1",
    "share_coordinator_state_topic_replication_factor": "1",
    "share_coordinator_state_topic_min_isr": "1",
}


# On a busy machine a broker misses its own controller's heartbeats for seconds. If its session ends meanwhile, it gives
# its groups up, and loads them again with the one protocol that each had chosen: it refuses members that have another.
NEVER_FENCED = {"broker_session_timeout_ms": "600000"}


@contextlib.contextmanager
def running(directory, **settings):
    made = Broker(directory, "newest", **SETTINGS, **settings)
    made.start()
    try:
        yield made
    finally:
        made.kill()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with running(tmp_path_factory.mktemp("broker"), **NEVER_FENCED) as broker:
        yield broker.server


@pytest.fixture
def broker(tmp_path):
    """One that can be killed and started again."""
    with running(tmp_path, **SOON_BACK) as made:
        yield made


class Member:
    """A consumer that reads nothing: it answers to each Revoke, and remembers what it has."""

    def __init__(self, server, make, subscription):
        self.network = Network(ClientSettings(bootstrap_servers=server, allow_auto_create_topics=False))
        self.group = make(self.network.cluster)
        self.reading = set()
        self.lost = 0
        self.error = None
        self.left = asyncio.Event()
        self.network.add(self.group, self.changed)
        self.group.subscribe(subscription, self.network.now())
        self.group.polled(self.network.now(), waiting=True)
        self.network.wake()

    def changed(self):
        for event in self.group.take_events():
            match event:
                case Revoke(partitions):
                    self.network.loop.call_soon(self.revoked, partitions)
                case Lost(partitions):
                    assert set(partitions) == self.reading
                    self.reading = set()
                    self.lost += 1
                case Assigned(added, partitions):
                    self.reading |= set(added)
                    assert self.reading == set(partitions)
                case Failed(error):
                    self.error = error
                    self.left.set()
                case Left():
                    self.left.set()

    def revoked(self, partitions):
        self.reading -= set(partitions)
        self.group.revoked(self.network.now())
        self.network.wake()

    async def leave(self, **options):
        self.group.leave(self.network.now(), **options)
        self.network.wake()
        await asyncio.wait_for(self.left.wait(), LATE)
        await self.network.close()


async def done(network, machine):
    network.add(machine)
    await until(lambda: machine.done)
    network.remove(machine)
    return machine


async def committed(network, offsets, metadata):
    """The commit, tried again while the group rebalances, which cooperative members may do once more at the end."""
    async with asyncio.timeout(LATE):
        while True:
            commit = OffsetCommit(network.cluster, offsets, metadata, deadline=network.now() + 1000 * LATE)
            await done(network, commit)
            if getattr(commit.error, "code", 0) != REBALANCE_IN_PROGRESS:
                return commit
            await asyncio.sleep(0.05)


async def made_topic(server, partitions):
    name = f"t-{uuid.uuid4().hex}"
    network = Network(ClientSettings(bootstrap_servers=server))
    kind = messages.CreateTopicsRequest
    topic = kind.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    found = await network.call(kind(topics=[topic], timeout_ms=10_000), CONTROLLER)
    assert found.topics[0].error_code == 0
    await network.close()
    return name


def all_of(topic, count):
    return sorted((topic, number) for number in range(count))


def spread(*members):
    """Which partitions the members have together, and whether each of them is at rest with some."""
    return sorted(place for member in members for place in member.reading)


def classic(name, assignors=None, **options):
    settings = GroupSettings(group_id=name, heartbeat_interval_ms=300, **options)
    return lambda cluster: ClassicMembership(settings, cluster, assignors)


def cooperative(name):
    return classic(name, [ASSIGNORS["cooperative-sticky"]()])


def modern(name):
    return lambda cluster: ModernMembership(GroupSettings(group_id=name), cluster)


KINDS = {"eager": classic, "cooperative": cooperative, "modern": modern}


@pytest.mark.parametrize("kind", KINDS)
def test_partitions_move_as_members_come_and_go(server, kind):
    async def run():
        topic = await made_topic(server, 6)
        group = f"g-{topic}"
        first = Member(server, KINDS[kind](group), Subscription([topic]))
        await until(lambda: spread(first) == all_of(topic, 6))
        second = Member(server, KINDS[kind](group), Subscription(matches=lambda name: name == topic))
        await until(lambda: len(first.reading) == len(second.reading) == 3)
        assert spread(first, second) == all_of(topic, 6)
        assert first.lost == second.lost == 0

        network, mine = first.network, first.group.partitions
        offsets = {place: CommittedOffset(10 + place.partition, 0, "half way") for place in mine}
        commit = await committed(network, offsets, lambda: first.group.metadata)
        assert (commit.error, commit.errors) == (None, {})
        await first.leave()
        await until(lambda: spread(second) == all_of(topic, 6))

        network = second.network
        places = [(topic, number) for number in range(6)]
        for asked in (places, None):
            found = OffsetFetch(
                network.cluster, asked, lambda: GroupMetadata(group), deadline=network.now() + 1000 * LATE
            )
            await done(network, found)
            assert (found.error, found.errors) == (None, {})
            assert {place: at for place, at in found.offsets.items() if at is not None} == offsets
        assert await refused(network, GroupMetadata(group, 1, "somebody"), topic) == {25}
        await second.leave()

    asyncio.run(run())


async def refused(network, metadata, topic):
    """The error codes of a commit under this metadata."""
    offsets = {(topic, 0): CommittedOffset(1)}
    commit = OffsetCommit(network.cluster, offsets, lambda: metadata, deadline=network.now() + 1000 * LATE)
    await done(network, commit)
    assert commit.error is None
    return {fault.code for fault in commit.errors.values()}


def test_a_static_member_comes_back_to_its_partitions(server):
    async def run():
        topic = await made_topic(server, 4)
        group = f"g-{topic}"
        other = Member(server, classic(group), Subscription([topic]))
        await until(lambda: len(other.reading) == 4)
        static = classic(group, group_instance_id="one", session_timeout_ms=20_000)
        first = Member(server, static, Subscription([topic]))
        await until(lambda: len(first.reading) == len(other.reading) == 2)
        generation, had = other.group.metadata.generation, set(first.reading)
        await first.leave()
        again = Member(server, static, Subscription([topic]))
        await until(lambda: again.reading == had)
        assert other.group.metadata.generation == generation
        # A second one under the same name makes the first one fail.
        rival = Member(server, static, Subscription([topic]))
        await until(lambda: again.error is not None)
        assert again.error.code == 82
        await again.network.close()
        await rival.leave(remain=False)
        await until(lambda: len(other.reading) == 4)
        await other.leave()

    asyncio.run(run())


@pytest.mark.parametrize("kind", [classic, modern])
def test_an_application_that_does_not_read_loses_its_partitions(server, kind):
    async def run():
        topic = await made_topic(server, 2)
        group = f"g-{topic}"
        settings = GroupSettings(group_id=group, heartbeat_interval_ms=300, max_poll_interval_ms=2000)
        made = ClassicMembership if kind is classic else ModernMembership
        slow = Member(server, lambda cluster: made(settings, cluster), Subscription([topic]))
        await until(lambda: len(slow.reading) == 2)
        old = slow.group.metadata
        slow.group.polled(slow.network.now())
        slow.network.wake()
        other = Member(server, kind(group), Subscription([topic]))
        await until(lambda: slow.lost == 1 and len(other.reading) == 2)
        assert slow.group.metadata is None
        assert await refused(other.network, old, topic) <= {25, 22, 110}
        slow.group.polled(slow.network.now(), waiting=True)
        slow.network.wake()
        await until(lambda: len(slow.reading) == len(other.reading) == 1)
        await slow.leave()
        await other.leave()

    asyncio.run(run())


def test_new_partitions_are_assigned(server):
    async def run():
        topic = await made_topic(server, 1)
        member = Member(server, classic(f"g-{topic}"), Subscription([topic]))
        await until(lambda: len(member.reading) == 1)
        kind = messages.CreatePartitionsRequest
        more = kind(topics=[kind.CreatePartitionsTopic(name=topic, count=3, assignments=None)], timeout_ms=10_000)
        found = await member.network.call(more, CONTROLLER)
        assert found.results[0].error_code == 0

        def three():
            member.network.cluster.refresh()
            member.network.wake()
            return len(member.reading) == 3

        await until(three)
        await member.leave()

    asyncio.run(run())


def test_a_group_of_ours_and_aiokafkas(server):
    async def run():
        topic = await made_topic(server, 6)
        group = f"g-{topic}"
        offered = [ASSIGNORS["range"](), ASSIGNORS["roundrobin"]()]  # aiokafka has only the second one
        mine = [Member(server, classic(group, offered), Subscription([topic])) for _ in range(2)]
        await until(lambda: all(len(member.reading) == 3 for member in mine))
        theirs = aiokafka.AIOKafkaConsumer(
            topic, bootstrap_servers=server, group_id=group, heartbeat_interval_ms=300, session_timeout_ms=10_000
        )
        await theirs.start()

        def equal():
            parts = [(part.topic, part.partition) for part in theirs.assignment()]
            return sorted([*spread(*mine), *parts]) == all_of(topic, 6) and len(parts) == 2

        await until(equal)
        await mine[0].leave()  # the leader, most likely: aiokafka or the other one assigns now
        await until(lambda: len(mine[1].reading) == len(theirs.assignment()) == 3)
        await theirs.stop()
        await until(lambda: spread(mine[1]) == all_of(topic, 6))
        await mine[1].leave()

    asyncio.run(run())


class Confluent:
    """librdkafka's consumer, polled in a thread."""

    def __init__(self, server, topic, **options):
        options = {name.replace("_", "."): value for name, value in options.items()}
        self._consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": server, "auto.offset.reset": "earliest", **options}
        )
        self._consumer.subscribe([topic])
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._poll)
        self._thread.start()
        self.reading = set()

    def _poll(self):
        while not self._ending.is_set():
            self._consumer.poll(0.05)
            self.reading = {(part.topic, part.partition) for part in self._consumer.assignment()}
        self._consumer.close()

    async def leave(self):
        self._ending.set()
        await asyncio.to_thread(self._thread.join)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (cooperative, {"partition_assignment_strategy": "cooperative-sticky", "heartbeat_interval_ms": 300}),
        (modern, {"group_protocol": "consumer"}),
    ],
)
def test_a_group_of_ours_and_librdkafkas(server, kind, options):
    async def run():
        topic = await made_topic(server, 6)
        group = f"g-{topic}"
        theirs = Confluent(server, topic, group_id=group, **options)
        await until(lambda: len(theirs.reading) == 6)
        mine = [Member(server, kind(group), Subscription([topic])) for _ in range(2)]
        await until(lambda: len(theirs.reading) == len(mine[0].reading) == len(mine[1].reading) == 2)
        assert spread(theirs, *mine) == all_of(topic, 6)
        await theirs.leave()
        await until(lambda: len(mine[0].reading) == len(mine[1].reading) == 3)
        assert spread(*mine) == all_of(topic, 6)
        for member in mine:
            await member.leave()

    asyncio.run(run())


def test_the_broker_evaluates_expressions(server):
    async def run():
        topic = await made_topic(server, 2)
        make = lambda cluster: ModernMembership(GroupSettings(group_id=f"g-{topic}"), cluster)  # noqa: E731
        member = Member(server, make, Subscription(broker_pattern=f"{topic[:-1]}.*"))
        await until(lambda: spread(member) == all_of(topic, 2), 30)
        await member.leave()
        wrong = Member(server, make, Subscription(broker_pattern="(a"))
        await until(lambda: wrong.error is not None)
        assert wrong.error.code == 128
        await wrong.network.close()

    asyncio.run(run())


def test_records_of_a_share_group_are_accepted_released_and_rejected(server):
    async def run():
        topic = await made_topic(server, 2)
        group = f"s-{topic}"
        await read_from_the_start(server, group)
        member = Member(
            server, lambda cluster: ShareMembership(GroupSettings(group_id=group), cluster), Subscription([topic])
        )
        producer = confluent_kafka.Producer({"bootstrap.servers": server})
        for number in range(10):
            producer.produce(topic, value=b"%d" % number, partition=number % 2)
        producer.flush()
        await until(lambda: len(member.reading) == 2)
        network = member.network
        reader = ShareReader(network.cluster, lambda: member.group.metadata, implicit=False)
        reader.assign(member.group.partitions)
        network.add(reader)
        # Even offsets are accepted at once, 3 is rejected, 1 is released until its third delivery.
        seen, results = {}, []

        def read():
            for fetched in reader.take():
                offsets = [record.offset for record in kc.iter_records(fetched.records)]
                for offset, count in reader.delivered(fetched, offsets).items():
                    seen.setdefault((fetched.partition.partition, offset), []).append(count)
                    kind = ACCEPT if offset % 2 == 0 or count == 3 else RELEASE if offset == 1 else REJECT
                    reader.acknowledge(fetched.partition, offset, kind)
            results.extend(reader.take_results())
            reader.fetch()
            network.wake()
            return sum(run.last - run.first + 1 for each in results for run in each.runs) == 10 + 2 * 2

        await until(read)
        assert seen == {(n, o): [1, 2, 3] if o == 1 else [1] for n in range(2) for o in range(5)}
        assert all(each.error is None for each in results)
        with pytest.raises(kc.errors.LocalProtocolError):
            reader.acknowledge(member.group.partitions[0], 0, ACCEPT)
        reader.close()
        network.wake()
        await until(lambda: reader.closed)
        await member.leave()

    asyncio.run(run())


async def read_from_the_start(server, group):
    """Share groups begin at the end of partitions unless they are configured."""
    network = Network(ClientSettings(bootstrap_servers=server))
    kind = messages.IncrementalAlterConfigsRequest
    config = kind.AlterableConfig(name="share.auto.offset.reset", config_operation=0, value="earliest")
    resource = kind.AlterConfigsResource(resource_type=32, resource_name=group, configs=[config])
    found = await network.call(kind(resources=[resource]), ANY)
    assert found.responses[0].error_code == 0
    await network.close()


def test_members_keep_their_partitions_while_the_coordinator_restarts(broker):
    async def run():
        topic = await made_topic(broker.server, 4)
        groups = {
            kind: [Member(broker.server, make(f"{kind}-{topic}"), Subscription([topic])) for _ in range(2)]
            for kind, make in KINDS.items()
        }
        members = [member for each in groups.values() for member in each]
        await until(lambda: all(len(member.reading) == 2 for member in members))
        await asyncio.to_thread(broker.kill)
        await asyncio.to_thread(broker.start)
        for first, second in groups.values():
            offsets = dict.fromkeys(first.group.partitions, CommittedOffset(3))
            network, metadata = first.network, first.group.metadata
            commit = OffsetCommit(network.cluster, offsets, lambda m=metadata: m, deadline=network.now() + 1000 * LATE)
            await done(network, commit)
            assert (commit.error, commit.errors) == (None, {})
            await first.leave()
            await until(lambda second=second: spread(second) == all_of(topic, 4))
            await second.leave()
        assert [member.lost for member in members] == [0] * 6

    asyncio.run(run())
