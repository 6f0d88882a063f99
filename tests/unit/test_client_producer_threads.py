"""Threads that send while a topic gets partitions: each partition has one queue, which numbers its batches."""

from __future__ import annotations

import sys
import threading
import time
import uuid
from collections import Counter
from itertools import islice

import pytest

import kafkacodec as kc
from kafkacodec.client.core.cluster import Cluster
from kafkacodec.client.core.metadata import Partition, Topic
from kafkacodec.client.producing.queue import Queues
from kafkacodec.client.producing.settings import ProducerSettings
from kafkacodec.errors import EncodeError
from tests.patience import SOON


@pytest.fixture(autouse=True)
def _threads_change_often():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def grow(cluster, partitions):
    """What new metadata do."""
    cluster.topics["t"] = Topic("t", partitions={number: Partition(number, 1) for number in range(partitions)})
    cluster.generation += 1


def test_sends_while_a_topic_gets_partitions():
    cluster = Cluster([("127.0.0.1", 1)])
    grow(cluster, 1)
    settings = ProducerSettings(bootstrap_servers="x", buffer_memory=1 << 40)
    queues = Queues(cluster, settings, lambda: time.monotonic() * 1000)
    problems, stop, rounds = [], threading.Event(), [0] * 4

    def send(sender):
        own = object()
        while not stop.is_set():
            try:
                own = queues.topic("t")
                last = own.numbers[-1]
                assert own.queues[last].number == last  # as tables read it, without the lock
                with queues.lock:
                    queues.append(own, None, b"%d-%d" % (sender, rounds[sender]), b"", (), 1)
                    queues.append(own, last, None, b"", (), 1)
            except Exception as problem:
                problems.append(repr(problem))
            rounds[sender] += 1

    threads = [threading.Thread(target=send, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for partitions in range(500, 10_001, 500):
        grow(cluster, partitions)
        reached = [n + 3 for n in rounds]
        while any(now < wanted for now, wanted in zip(rounds, reached, strict=True)):
            time.sleep(0.001)
    stop.set()
    for thread in threads:
        thread.join()
    assert problems == []
    assert Counter(queue.number for queue in queues.active).most_common(1)[0][1] == 1


def test_a_topic_that_is_made_again_with_fewer_partitions():
    """What a producer knows of the old one's partitions holds no more; if there are more again, their sequences do."""
    cluster = Cluster([("127.0.0.1", 1)])
    queues = Queues(cluster, ProducerSettings(bootstrap_servers="x"), lambda: 0.0)

    def known(partitions, number):
        grow(cluster, partitions)
        cluster.topics["t"].topic_id = uuid.UUID(int=number)
        return queues.topic("t")

    own = known(4, 1)
    queue = own.queues[3]
    own.sticky, queue.proven, queue.next_sequence = queue, True, 7
    assert known(4, 1).queues[3].proven
    own = known(2, 2)
    assert own.sticky is None
    assert own.choose_sticky().number < 2
    with pytest.raises(EncodeError, match="topic 't' has no partition 3"):
        queues.append(own, 3, None, b"", (), 1)
    own = known(4, 2)
    assert own.queues[3] is queue
    assert (queue.proven, queue.next_sequence) == (False, 7)
    queues.append(own, 3, None, b"", (), 1)


def test_what_many_threads_send_is_there_once_and_in_the_order_of_each(tmp_path):
    """Batches are closed and sent while threads add to them, since they are small."""
    threads, each, partitions = 4, 3000, 2
    deliveries = [[] for _ in range(threads)]

    def send(sender):
        for number in range(each):
            value = b"%d" % number
            deliveries[sender].append(producer.send("t", value, key=b"%d" % sender, headers=[("n", value)]))

    with kc.broker.serve(tmp_path, topics={"t": partitions}) as broker:
        with kc.client.Producer(broker.bootstrap_servers, linger_ms=0, batch_size=400) as producer:
            senders = [threading.Thread(target=send, args=(n,)) for n in range(threads)]
            for thread in senders:
                thread.start()
            for thread in senders:
                thread.join()
            results = [[delivery.result(SOON) for delivery in own] for own in deliveries]
        with kc.client.Consumer(bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
            consumer.assign([("t", number) for number in range(partitions)])
            records = list(islice(consumer, threads * each))
    for sender, own in enumerate(results):
        sent = [record for record in records if record.key == b"%d" % sender]
        assert [record.value for record in sent] == [b"%d" % number for number in range(each)]
        assert [(record.partition, record.offset) for record in sent] == [(r.partition, r.offset) for r in own]
        assert all(record.headers == (("n", record.value),) for record in sent)
