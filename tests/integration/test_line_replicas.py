"""Brokers of the line protocol with replicas, as processes that are killed: what is acknowledged stays."""

from __future__ import annotations

import os
import random
import time
from contextlib import ExitStack, closing
from itertools import count

import pytest

import kafkacodec as kc
from tests.replicas.cluster import PARTITIONS, Cluster, Line, Load, free_ports
from tests.replicas.tour import Tour

ROUNDS = 200 if os.environ.get("KAFKACODEC_LONG") else 6


@pytest.fixture
def cluster(tmp_path):
    brokers = Cluster(tmp_path)
    yield brokers
    brokers.stop()


def test_a_tour_of_dead_and_deposed_leaders(cluster):
    tour = Tour(cluster)
    tour.run()
    assert tour.history.faults(tour.last()) == []


def test_kills_at_random_moments(cluster):
    """Brokers are killed, frozen and promoted under load."""
    random_ = random.Random(6)
    load = Load(cluster)
    try:
        load.wait_for(50)
        for _ in range(ROUNDS):
            disturb(cluster, random_)
            load.wait_for(20)
    finally:
        load.stop()
    assert load.history.faults(settled(cluster)) == []
    assert load.history.consumed
    assert load.history.owned
    assert load.history.committed


def disturb(cluster, random_):
    number, other = random_.sample(range(3), 2)
    partition = random_.randrange(PARTITIONS)
    match random_.choice(["kill", "kill and promote", "promote", "freeze"]):
        case "kill":
            cluster.kill(number)
            cluster.start(number)
        case "kill and promote":
            cluster.kill(number)
            cluster.promote(other, partition)
            cluster.start(number)
        case "promote":
            cluster.promote(number, partition)
        case "freeze":
            cluster.freeze(number, random_.random())


def settled(cluster):
    """What all brokers have, once they have the same."""
    found = {}
    for partition in range(PARTITIONS):
        for _ in count():
            logs = [cluster.read(number, partition) for number in range(3)]
            if logs[0] == logs[1] == logs[2]:
                break
            time.sleep(0.05)
        found[partition] = logs[0]
    return found


def test_too_few_replicas(tmp_path):
    """A broker alone neither acknowledges nor leads, and says why; it leads if it is told to all the same."""
    urls = [f"line://127.0.0.1:{port}" for port in free_ports(3)]
    with (
        kc.broker.serve(tmp_path, listen=urls[1], node_id=1, replicas=urls) as broker,
        closing(Line(int(broker.listeners[0].rpartition(":")[2]))) as line,
    ):
        assert line.ask("PRODUCE|orders k:v").startswith("ERR|NOT_LEADER|")
        assert line.ask("SET_PARTITION_ROLE|orders 0 leader") == (
            "ERR|NOT_LEADER|1 replicas can be reached, and 2 are needed"
        )
        assert line.ask("SET_PARTITION_ROLE|orders 0 leader unclean=true").startswith("OK|")
        assert line.ask("PRODUCE|orders k:v acks=1") == "OK|partition=0 offset=0 hw=0"
        assert line.ask("CONSUME|orders 0 0") == "OK|messages= hw=0"
        assert line.ask("PRODUCE|orders k:v acks=all").startswith("ERR|REPLICATION_TIMEOUT|")


def test_records_that_a_leader_could_not_store_are_not_acknowledged_with_others_at_their_offsets(tmp_path):
    urls = [f"line://127.0.0.1:{port}" for port in free_ports(2)]
    with ExitStack() as stack:
        leader, _ = (
            stack.enter_context(kc.broker.serve(tmp_path / str(i), listen=urls[i], node_id=i, replicas=urls))
            for i in range(2)
        )
        line = stack.enter_context(closing(Line(int(leader.listeners[0].rpartition(":")[2]))))
        assert line.ask("PRODUCE|orders k:first acks=all") == "OK|partition=0 offset=0 hw=1"
        log = leader._serving._topics.partition("orders", 0)
        log.failed = True  # as after a flush that failed
        lost = line.ask_all([f"PRODUCE|orders k:lost{number} acks=all" for number in range(9)])
        assert all(answer.startswith("ERR|STORAGE_ERROR|") for answer in lost)
        log.failed = False
        assert line.ask("PRODUCE|orders k:second acks=all") == "OK|partition=0 offset=1 hw=2"
        assert line.ask("CONSUME|orders 0 0") == "OK|messages=0:first,1:second hw=2"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"listen": "kafka://127.0.0.1:0"}, "only line://"),
        ({"node_id": None}, "node_id"),
        ({"node_id": 2}, "node_id"),
        ({"replicas": ["line://127.0.0.1:1"]}, "two or more URLs"),
        ({"replicas": ["nonsense"]}, "replicas: 'nonsense' is not"),
        ({"data": None}, "need data"),
        ({"config": {"min.insync.replicas": 3}}, "the number of brokers is 2"),
    ],
)
def test_options_that_do_not_fit(tmp_path, options, reason):
    given = {
        "data": tmp_path,
        "listen": "line://127.0.0.1:0",
        "node_id": 0,
        "replicas": ["line://127.0.0.1:1", "line://127.0.0.1:2"],
        **options,
    }
    with pytest.raises(ValueError, match=reason):
        kc.broker.serve(**given)
