"""The model of a cluster that client code is tested against behaves as brokers do."""

from __future__ import annotations

import pytest

import kafkacodec as kc
from kafkacodec import messages, protocol
from kafkacodec.client.core.backoff import Backoff
from kafkacodec.client.core.calls import ANY, CONTROLLER
from kafkacodec.client.core.retrying import Call
from kafkacodec.errors import DeadlineExceeded
from tests.reference.model_broker import ModelCluster
from tests.reference.model_log import Log
from tests.reference.model_network import ModelNetwork


def batch(*values, producer=-1, epoch=-1, sequence=-1, transactional=False):
    records = [(None, value) for value in values]
    return kc.encode(
        records, producer_id=producer, producer_epoch=epoch, base_sequence=sequence, is_transactional=transactional
    )


def produce(model, node, records, *, version=9, topic="t", partition=0, acks=-1):
    kind = messages.ProduceRequest
    data = kind.PartitionProduceData(index=partition, records=records)
    entry = kind.TopicProduceData(partition_data=[data])
    if version >= 13:
        entry.topic_id = model.topic_ids[topic]
    else:
        entry.name = topic
    response = model.request(node, kind(acks=acks, timeout_ms=1000, topic_data=[entry]), version)
    if response is None:
        return None
    part = response.responses[0].partition_responses[0]
    return part.error_code, part.base_offset


def fetch(model, node, offset, *, version=11, limit=1 << 20, least=0, wait=0, **fields):
    kind = messages.FetchRequest
    part = kind.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=limit)
    for name in ("current_leader_epoch", "last_fetched_epoch"):
        setattr(part, name, fields.pop(name, -1))
    entry = kind.FetchTopic(partitions=[part])
    if version >= 13:
        entry.topic_id = model.topic_ids["t"]
    else:
        entry.topic = "t"
    return model.request(
        node, kind(max_wait_ms=wait, min_bytes=least, max_bytes=1 << 20, topics=[entry], **fields), version
    )


def test_sequences_are_checked_as_brokers_do():
    log = Log()
    assert log.append(batch(b"a", b"b", producer=7, epoch=0, sequence=0), 0) == (0, 0, False)
    assert log.append(batch(b"c", producer=7, epoch=0, sequence=2), 0) == (0, 2, False)
    again = log.append(batch(b"a", b"b", producer=7, epoch=0, sequence=0), 0)
    assert again == (0, 0, True)
    assert log.append(batch(b"e", producer=7, epoch=0, sequence=4), 0).code == 45
    assert log.append(batch(b"x", producer=7, epoch=1, sequence=3), 0).code == 45
    assert log.append(batch(b"d", producer=7, epoch=1, sequence=0), 0) == (0, 3, False)
    assert log.append(batch(b"e", producer=7, epoch=0, sequence=3), 0).code == 47
    assert log.append(batch(b"f", producer=8, epoch=0, sequence=99), 0) == (0, 4, False)  # not known: may go on
    assert [value for _, _, value in log.records] == [b"a", b"b", b"c", b"d", b"f"]


def test_only_the_last_five_batches_are_recognized():
    log = Log()
    for sequence in range(6):
        assert log.append(batch(b"%d" % sequence, producer=7, epoch=0, sequence=sequence), 0).code == 0
    assert log.append(batch(b"1", producer=7, epoch=0, sequence=1), 0) == (0, 1, True)
    assert log.append(batch(b"0", producer=7, epoch=0, sequence=0), 0).code == 45


def test_producers_that_are_not_known_begin_with_0_before_kafka_2_5():
    log = Log()
    log.refuses_unknown = True
    data = batch(b"a", producer=8, epoch=0, sequence=99)
    assert log.append(data, 0).code == 59
    assert not log.has(data)
    log.refuses_unknown = False
    assert log.append(data, 0) == (0, 0, False)
    assert log.has(data)


def test_compaction_keeps_the_last_committed_record_of_each_key():
    log = Log()
    for offset, (key, producer) in enumerate([(b"a", -1), (b"b", -1), (b"b", 7), (b"a", -1), (b"c", -1)]):
        options = {"producer_id": producer, "producer_epoch": 0, "base_sequence": 0} if producer >= 0 else {}
        data = kc.encode([(key, b"%d" % offset)], is_transactional=producer >= 0, **options)
        assert log.append(data, 0).base == offset
    assert log.compact() == set()  # the first open transaction is at 2, and the last batch before it stays
    log.append_marker(7, 0, commit=False, epoch=0)
    assert log.compact() == {0, 2}
    assert [value for _, _, value in log.records] == [b"1", b"3", b"4"]
    assert log.end == 6


def test_bad_batches_are_refused():
    log = Log()
    good = batch(b"a")
    assert log.append(good[:-1] + b"?", 0).code == 2
    assert log.append(good + good, 0).code == 87
    assert log.append(b"", 0).code == 87
    assert log.end == 0


@pytest.mark.parametrize("version", messages.APIS[0].valid_versions)
def test_produce_and_fetch_in_all_versions(version):
    model = ModelCluster(2, {"t": 1})
    if version < 3:
        assert produce(model, 1, kc.encode([(None, b"v")], magic=1), version=version)[0] == 43
        return
    assert produce(model, 1, batch(b"a", b"b"), version=version) == (0, 0)
    assert produce(model, 1, batch(b"c"), version=version, acks=0) is None
    assert produce(model, 2, batch(b"d"), version=version) == (6, -1)
    for asked in messages.APIS[1].valid_versions:
        response = fetch(model, 1, 0, version=asked)
        columns = protocol.fetch_to_columns(response, topic_names={model.topic_ids["t"]: "t"})
        assert columns["offset"].tolist() == [0, 1, 2]


def test_a_fetch_waits():
    model = ModelCluster(1, {"t": 1})
    found = []
    kind = messages.FetchRequest
    part = kind.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=100)
    request = kind(max_wait_ms=500, min_bytes=1, topics=[kind.FetchTopic(topic="t", partitions=[part])])
    model.receive(1, request, 11, found.append)
    assert found == []
    assert produce(model, 1, batch(b"a")) == (0, 0)
    assert len(found[0].responses[0].partitions[0].records) == len(batch(b"a"))
    part.fetch_offset = 1
    model.receive(1, request, 11, found.append)
    model.advance(499)
    assert len(found) == 1
    model.advance(1)
    assert found[1].responses[0].partitions[0].records == b""


def test_limits_of_a_fetch():
    model = ModelCluster(1, {"t": 1})
    for value in (b"a" * 100, b"b" * 100):
        produce(model, 1, batch(value))
    size = len(batch(b"a" * 100))

    def taken(limit, version):
        (topic,) = fetch(model, 1, 0, limit=limit, version=version).responses
        return len(topic.partitions[0].records)

    assert taken(size + 20, 11) == size + 20  # cut in the middle of the second
    assert taken(20, 11) == size  # the first one whole
    assert taken(20, 2) == 20


def test_sessions():
    model = ModelCluster(1, {"t": 1})
    produce(model, 1, batch(b"a"))
    first = fetch(model, 1, 0, session_epoch=0)
    assert first.session_id > 0
    assert len(first.responses[0].partitions[0].records) > 0
    kind = messages.FetchRequest
    going_on = kind(session_id=first.session_id, session_epoch=1, max_bytes=1000)
    moved = kind.FetchPartition(partition=0, fetch_offset=1, partition_max_bytes=1000)
    going_on.topics = [kind.FetchTopic(topic="t", partitions=[moved])]
    quiet = model.request(1, going_on, 11)
    assert (quiet.error_code, quiet.session_id, quiet.responses) == (0, first.session_id, [])
    going_on.session_epoch, going_on.topics = 2, []
    produce(model, 1, batch(b"b"))
    (topic,) = model.request(1, going_on, 11).responses
    assert topic.partitions[0].high_watermark == 2
    assert model.request(1, going_on, 11).error_code == 71
    going_on.session_id = 99
    assert model.request(1, going_on, 11).error_code == 70


def test_leader_epochs():
    model = ModelCluster(3, {"t": 1})
    produce(model, 1, batch(b"a", b"b"))
    model.move_leader("t", 0)
    assert produce(model, 1, batch(b"x")) == (6, -1)
    assert produce(model, 2, batch(b"c")) == (0, 2)
    assert model.logs["t", 0].end_of_epoch(0) == (0, 2)
    assert model.logs["t", 0].end_of_epoch(1) == (1, 3)
    model.lose("t", 0, 1)
    assert (model.leaders["t", 0].leader, model.leaders["t", 0].epoch) == (3, 2)
    assert model.logs["t", 0].end == 0  # the batch goes as a whole
    produce(model, 3, batch(b"d"))

    def code(epoch):
        return fetch(model, 3, 0, current_leader_epoch=epoch).responses[0].partitions[0].error_code

    assert [code(epoch) for epoch in (1, 2, 3)] == [74, 0, 75]
    (topic,) = fetch(model, 3, 5, version=12).responses
    assert topic.partitions[0].error_code == 1
    (topic,) = fetch(model, 3, 5, version=12, last_fetched_epoch=1).responses
    assert (topic.partitions[0].diverging_epoch.epoch, topic.partitions[0].diverging_epoch.end_offset) == (1, 0)


def test_injected_failures():
    model = ModelCluster(1, {"t": 2})
    model.fail("Produce", 7, applied=True, place=("t", 1))
    assert produce(model, 1, batch(b"a")) == (0, 0)
    assert produce(model, 1, batch(b"a"), partition=1) == (7, -1)
    assert model.logs["t", 1].end == 1
    assert produce(model, 1, batch(b"b"), partition=1) == (0, 1)
    model.fail("InitProducerId", 51)
    asked = messages.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1)
    assert model.request(1, asked, 4).error_code == 51
    assert model.request(1, asked, 4).producer_id > 0


def test_offsets_by_time_and_after_a_deletion():
    model = ModelCluster(1, {"t": 1})
    records = [kc.Record(n, 1000 + 10 * n, 0, None, b"v", []) for n in range(5)]
    for record in records:
        produce(model, 1, kc.encode([record]))
    model.logs["t", 0].delete_before(2)
    kind = messages.ListOffsetsRequest

    def offset(timestamp, version=7):
        wanted = kind.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        request = kind(topics=[kind.ListOffsetsTopic(name="t", partitions=[wanted])])
        part = model.request(1, request, version).topics[0].partitions[0]
        return (part.offset, part.timestamp) if version else part.old_style_offsets

    for version in messages.APIS[2].valid_versions:
        assert offset(-1, version) == ((5, -1) if version else [5])
    assert offset(-2) == (2, -1)
    assert offset(-3) == (4, 1040)
    assert offset(1025) == (3, 1030)
    assert offset(0) == (2, 1020)
    assert offset(2000) == (-1, -1)
    assert fetch(model, 1, 1).responses[0].partitions[0].error_code == 1


# The network


def call(network, request, to=ANY):
    made = Call(
        request,
        to,
        cluster=network.cluster,
        deadline=network.now + 60_000,
        attempt_ms=10_000,
        backoff=Backoff(100, 1000, jitter=0.0),
    )
    network.add(made)
    return made


def test_a_call_survives_lost_connections_and_errors():
    model = ModelCluster(3, {"t": 1})
    network = ModelNetwork(model)
    network.cluster.want(["t"])
    assert network.run(1000, lambda: network.cluster.leader("t", 0) == 1)
    made = call(network, messages.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1))
    (link,) = network.busy()
    network.apply(link)
    network.drop(link)
    assert not made.done
    model.fail("InitProducerId", 15, times=2)
    assert network.run(10_000, lambda: made.done)
    assert made.answer.message.producer_id == 1002  # the first one was given out and lost


def test_a_broker_that_hangs_and_one_that_ends():
    model = ModelCluster(2, {"t": 2})
    network = ModelNetwork(model)
    network.cluster.want(["t"])
    network.run(1000, lambda: network.cluster.leader("t", 1) == 2)
    hanging = network.links[1, 0]
    hanging.hangs = True
    made = call(network, messages.MetadataRequest(topics=[]), CONTROLLER)
    network.run(20_000, lambda: made.done)
    hanging.hangs = False
    network.run(20_000, lambda: made.done)
    assert made.answer.message.controller_id == 1
    network.stop(1)
    assert network.run(10_000, lambda: network.cluster.leader("t", 0) == 2)
    made = call(network, messages.MetadataRequest(topics=[]), 1)
    network.run(70_000, lambda: made.done)
    assert isinstance(made.error, DeadlineExceeded)
