"""Clients of the line protocol that know three servers: they find who leads, and follow promotions."""

from __future__ import annotations

import signal
import threading
from collections import Counter
from contextlib import closing

import pytest

import kafkacodec as kc
from kafkacodec.dialects import line
from kafkacodec.errors import ConnectionFailed, DeadlineExceeded
from tests.patience import SOON
from tests.replicas.cluster import PARTITIONS, TOPIC, Cluster, Line, fields


@pytest.fixture
def cluster(tmp_path):
    brokers = Cluster(tmp_path)
    yield brokers
    brokers.stop()


@pytest.fixture
def addresses(cluster):
    return [f"127.0.0.1:{port}" for port in cluster.ports]


def promote(cluster, number):
    for partition in range(PARTITIONS):
        while not cluster.promote(number, partition).startswith("OK"):
            pass


class Sending(threading.Thread):
    """Sends records until it is ended, and notes what became of each."""

    def __init__(self, addresses, **options):
        super().__init__()
        self._producer = line.Producer(addresses, acks="all", **options)
        self._ends = threading.Event()
        self._changed = threading.Condition()
        self.placed: dict[str, line.Produced] = {}
        self.failed: dict[str, Exception] = {}
        self.start()

    def run(self):
        with self._producer as producer:
            number = 0
            while not self._ends.wait(0.001):
                value, number = f"v{number}", number + 1
                producer.send(TOPIC, f"k{number % 17}", value).add_done_callback(lambda d, v=value: self._done(v, d))

    def _done(self, value, delivery):
        with self._changed:
            if delivery.exception() is None:
                self.placed[value] = delivery.result()
            else:
                self.failed[value] = delivery.exception()
            self._changed.notify_all()

    def wait_for(self, count):
        """Until so many more are placed."""
        with self._changed:
            most = len(self.placed) + count
            assert self._changed.wait_for(lambda: len(self.placed) >= most, 60), f"{len(self.placed)} of {most}"

    def end(self):
        self._ends.set()
        self.join()


def test_a_producer_follows_promotions_and_survives_its_leader(cluster, addresses):
    sending = Sending(addresses)
    try:
        sending.wait_for(50)
        promote(cluster, 1)
        sending.wait_for(50)
        cluster.kill(1)
        promote(cluster, 2)
        sending.wait_for(50)
        cluster.start(1)
        promote(cluster, 1)
        sending.wait_for(50)
    finally:
        sending.end()
    assert sending.failed == {}
    logs = {partition: cluster.read(1, partition) for partition in range(PARTITIONS)}
    assert {value: logs[place.partition].get(place.offset) for value, place in sending.placed.items()} == {
        value: value for value in sending.placed
    }
    copies = Counter(value for log in logs.values() for value in log.values())
    twice = {value for value, count in copies.items() if count > 1}
    assert twice <= {value for value, place in sending.placed.items() if place.again}


def test_a_record_whose_fate_is_unknown_is_not_sent_again_unless_asked_to(cluster, addresses):
    with line.Producer(addresses, acks="all", send_again=False) as producer:
        place = producer.send(TOPIC, "k", "first").result(SOON)
        for number in (1, 2):
            cluster.processes[number].send_signal(signal.SIGSTOP)  # the leader cannot commit
        unsure = producer.send(TOPIC, "k", "second")
        with closing(Line(cluster.ports[0])) as asked:
            while fields(asked.ask(f"REPLICA_EPOCH|{TOPIC} {place.partition} 1000"))["end"] != "2":
                pass
        cluster.kill(0)
        with pytest.raises((ConnectionFailed, line.RequestRefused)) as failed:  # the second after 5 s
            unsure.result(SOON)
        assert getattr(failed.value, "sent", None)
        for number in (1, 2):
            cluster.processes[number].send_signal(signal.SIGCONT)
        promote(cluster, 1)
        assert producer.send(TOPIC, "k", "third").result(SOON)[:2] == (TOPIC, place.partition)
    values = [*cluster.read(1, place.partition).values()]
    assert values in (["first", "third"], ["first", "second", "third"])


def test_a_member_reads_on_from_the_new_leader(cluster, addresses):
    sending = Sending(addresses)
    found: Counter[str] = Counter()
    with line.Consumer(addresses, "g", TOPIC, heartbeat_interval_ms=200) as consumer:

        def read(count):
            most = len(found) + count
            while len(found) < most:
                try:
                    found.update(message.value for message in consumer.poll(timeout=10))
                except (ConnectionFailed, DeadlineExceeded):
                    continue  # nobody leads for the moment

        try:
            read(50)
            generations = consumer.generations
            promote(cluster, 1)
            sending.wait_for(50)
            read(50)
            consumer.commit()
            cluster.kill(1)
            promote(cluster, 2)
            sending.wait_for(50)
            read(50)
        finally:
            sending.end()
        logs = [value for partition in range(PARTITIONS) for value in cluster.read(2, partition).values()]
        read(len(set(logs)) - len(found))
        assert found.keys() == set(logs)
        assert sending.placed.keys() <= found.keys()
        assert consumer.generations == generations
    with line.Consumer(addresses, "g", TOPIC) as consumer:
        assert consumer.poll() == []


def test_servers_without_replicas_are_no_several_servers():
    with kc.broker.serve(listen="line://127.0.0.1:0") as one, kc.broker.serve(listen="line://127.0.0.1:0") as other:
        addresses = [broker.listeners[0].partition("://")[2] for broker in (one, other)]
        with line.Producer(addresses) as producer, pytest.raises(line.RequestRefused, match="REPLICA_LEADERS"):
            producer.send("orders", "k", "v").result(SOON)


def test_nobody_leads(cluster, addresses):
    cluster.kill(0)
    with (
        line.Producer(addresses, delivery_timeout_ms=300) as producer,
        pytest.raises(ConnectionFailed, match=f"leads {TOPIC}-") as failed,
    ):
        producer.send(TOPIC, "k", "v").result(SOON)
    assert not failed.value.sent
