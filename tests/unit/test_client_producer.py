"""What a producer decides, from records, answers and a clock; no I/O."""

from __future__ import annotations

import contextlib

import pytest

import kafkacodec as kc
from kafkacodec import messages
from kafkacodec.client.core.calls import Answer
from kafkacodec.client.producing.queue import Queues
from kafkacodec.client.producing.settings import ProducerSettings
from kafkacodec.errors import DeadlineExceeded, EncodeError, RemoteProtocolError, UnsupportedVersion
from tests import model_producer
from tests.model_producer import ALL_VERSIONS, NOT_LEADER, ModelCluster


def sent(model, node=1):
    """The values of each batch of the requests in flight to a broker."""
    found = []
    for _, request, _ in model.flying[node]:
        for topic in request.topic_data:
            for part in topic.partition_data:
                found.append([record.value for record in kc.iter_records(bytes(part.records))])
    return found


def test_a_batch_lingers_and_a_full_one_does_not():
    model = ModelCluster(1, linger_ms=10, batch_size=100)
    model.poll()  # asks for the id only with a batch
    first = model.produce(b"a")
    model.poll(0)
    assert sent(model) == []
    assert model.sender.next_deadline() == pytest.approx(model.now + 10)
    model.poll(9)
    assert sent(model) == []
    model.poll(1)
    assert sent(model) == [[b"a"]]
    assert not first.done()
    assert first.offset is None
    model.answer(1)
    assert first.result(0) == ("t", 0, 0, 5)
    model.produce(b"x" * 30)
    model.produce(b"y" * 30)  # no room for it
    model.poll(0)
    assert sent(model) == [[b"x" * 30]]


def test_five_requests_with_sequences_are_in_flight_once_the_broker_knows_the_producer():
    model = ModelCluster(1, batch_size=0)
    for n in range(8):
        model.produce(b"%d" % n)
    model.poll()
    model.poll()
    assert sent(model) == [[b"0"]]
    model.answer(1)
    model.poll()
    assert sent(model) == [[b"%d" % n] for n in range(1, 6)]
    assert [kc.scan(bytes(r.topic_data[0].partition_data[0].records))["base_sequence"][0]
            for _, r, _ in model.flying[1]] == [1, 2, 3, 4, 5]  # fmt: skip


def test_sequences_wrap_after_the_largest():
    model = ModelCluster(1, batch_size=200)
    model.produce(b"a")
    model.poll()
    model.poll()
    model.answer(1)
    queue = model.queues.topics["t"].queues[0]
    model.logs[0].producers.clear()  # so that the model takes any first sequence
    queue.next_sequence = 2**31 - 2
    deliveries = [model.produce(b"b") for _ in range(4)]
    model.poll()
    model.answer(1)
    assert queue.next_sequence == 2
    assert [d.offset for d in deliveries] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("in_flight", "old", "wanted"), [(5, False, "acb"), (1, False, "abc"), (5, True, "abc")], ids=str
)
def test_the_order_after_a_broker_forgot_the_producer_and_refused_a_batch(in_flight, old, wanted):
    model = ModelCluster(1, batch_size=0, max_in_flight_requests_per_connection=in_flight)
    model.produce(b"a")
    model.finish()
    model.logs[0].producers.clear()
    model.logs[0].refuses_unknown = old
    model.forced[0] = [19]
    deliveries = [model.produce(b"b"), model.produce(b"c")]
    model.poll()
    model.answer(1)
    model.answer(1)
    model.finish()
    assert [value.decode() for _, _, value in model.logs[0].records] == list(wanted)
    assert [delivery.offset for delivery in deliveries] == [wanted.index(value) for value in "bc"]


def test_without_acks_a_record_counts_as_delivered_when_it_is_written():
    model = ModelCluster(1, acks=0)
    delivery = model.produce(b"a")
    model.poll()
    ((send, request, version),) = model.flying[1]
    assert request.acks == 0
    model.sender.answered(send, Answer(None, version, 1), model.now)
    assert delivery.result(0).offset == -1


def test_a_record_that_cannot_be_delivered_in_time_says_why():
    model = ModelCluster(1, delivery_timeout_ms=50)
    model.forced[0] = [7] * 99
    delivery = model.produce(b"a")
    for _ in range(100):
        model.poll(1)
        model.answer(1)
    with pytest.raises(DeadlineExceeded, match=r"not delivered to t-0 within 50 ms: REQUEST_TIMED_OUT") as caught:
        delivery.result(0)
    assert caught.value.sent
    assert model.queues.bytes == 0
    model.forced[0] = []
    after = model.produce(b"b")
    model.finish()
    assert after.offset == 0


def test_what_the_broker_refuses_fails_with_its_words_and_the_next_goes_on():
    model = ModelCluster(1, batch_size=0)
    model.forced[0] = [0, 87]
    deliveries = [model.produce(b"%d" % n) for n in range(5)]
    for _ in range(4):
        model.poll()
        model.answer(1)
    model.finish()
    assert deliveries[1].error.code == 87
    assert "INVALID_RECORD: t-0" in str(deliveries[1].error)
    assert [d.offset for d in deliveries] == [0, None, 1, 2, 3]


def test_a_producer_without_an_id_sleeps_when_nothing_waits_for_it():
    model = ModelCluster(1, delivery_timeout_ms=200, request_timeout_ms=200)
    late = model.produce(b"late")
    not_yet = messages.InitProducerIdResponse(error_code=14)
    while not late.done():
        model.now += 20
        for send in model.sender.poll(model.now):
            model.sender.answered(send, Answer(not_yet, 0, 1), model.now)
    assert model.sender.poll(model.now + 1000) == []
    assert model.sender.next_deadline() is None
    model.now += 2000
    with model.queues.lock:
        delivery, woken = model.queues.append(model.queues.topic("t"), None, None, b"next", (), 5)
    assert woken
    model.finish()
    assert delivery.offset == 0


def test_an_answer_after_which_nothing_is_left_needs_no_poll_unless_it_has_an_error():
    model = ModelCluster(1, retries=0, enable_idempotence=False)
    settled = []
    for code in (0, NOT_LEADER, 0):
        model.forced[0] = [code]
        delivery = model.produce(b"a")
        model.poll()
        ((send, _, _),) = model.flying[1]
        model.answer(1)
        assert delivery.done()
        settled.append(send.settles)
        # After an error, the cluster may want new metadata now, before the next record.
        assert send.settles or model.cluster.next_deadline() <= model.now + 1
    assert settled == [True, False, True]


@pytest.mark.parametrize("retries", [0, 2])
def test_retries_are_limited_if_asked_for(retries):
    model = ModelCluster(1, retries=retries, enable_idempotence=False)
    model.forced[0] = [7, 7, 7]
    delivery = model.produce(b"a")
    for _ in range(20):
        model.poll(100)
        model.answer(1)
    assert delivery.error.code == 7
    assert len(model.forced[0]) == 2 - retries


def test_old_brokers_get_old_messages_and_one_warning(caplog):
    model = ModelCluster(1)
    for produce, magic in ((0, 0), (2, 1)):
        model.versions = {0: range(produce + 1), 3: range(2)}
        delivery = model.produce(b"value", key=b"key")
        model.poll()
        model.poll()
        ((send, request, version),) = model.flying.pop(1)
        assert version == produce
        records = bytes(request.topic_data[0].partition_data[0].records)
        assert kc.scan(records)["magic"][0] == magic
        assert [(r.key, r.value) for r in kc.iter_records(records)] == [(b"key", b"value")]
        answer = messages.ProduceResponse.PartitionProduceResponse(index=0, base_offset=9)
        topic = messages.ProduceResponse.TopicProduceResponse(name="t", partition_responses=[answer])
        model.sender.answered(send, Answer(messages.ProduceResponse(responses=[topic]), version, 1), model.now)
        assert delivery.offset == 9
    refused, taken = model.produce(b"v", headers=[("h", b"x")]), model.produce(b"w", partition=0)
    model.poll()
    assert isinstance(refused.error, EncodeError)
    assert isinstance(taken.error, EncodeError)  # of the same batch
    assert [record.message for record in caplog.records if "idempotence" in record.message] == [
        caplog.records[0].message
    ]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4"])
def test_an_old_broker_gets_one_compressed_message_for_a_batch(codec):
    model = ModelCluster(1, compression_type=codec)
    model.versions = {0: range(3), 3: range(2)}
    for n in range(1000):
        model.produce(b"%050d" % n)
    model.poll()
    model.poll()
    ((_, request, _),) = model.flying.pop(1)
    records = bytes(request.topic_data[0].partition_data[0].records)
    assert int.from_bytes(records[8:12], "big") == len(records) - 12  # Kafka 0.10 numbers the first message only
    assert [r.value for r in kc.iter_records(records)] == [b"%050d" % n for n in range(1000)]


def test_idempotence_that_is_asked_for_needs_a_broker_that_has_it():
    model = ModelCluster(1, enable_idempotence=True)
    model.versions = {0: range(3), 3: range(2)}
    delivery = model.produce(b"a")
    model.poll()
    model.poll()
    assert isinstance(delivery.error, UnsupportedVersion)
    assert "0.11" in str(delivery.error)


def test_zstd_needs_a_broker_that_has_it():
    model = ModelCluster(1, compression_type="zstd")
    model.versions = {**ALL_VERSIONS, 0: range(7)}
    delivery = model.produce(b"a")
    model.poll()
    model.poll()
    assert "zstd needs Kafka 2.1" in str(delivery.error)


def test_records_of_a_key_share_a_partition_and_others_fill_one_batch_after_the_other():
    model = ModelCluster(3, linger_ms=10**6, batch_size=200)
    partitions = {key: kc.partition([key], 3)[0] for key in (b"a", b"b", b"c", b"d", b"e")}
    for key in partitions:
        model.produce(b"v", key=key)
        model.produce(b"v", key=key)
    topic = model.queues.topics["t"]
    counts = {number: queue.open.count if queue.open else 0 for number, queue in topic.queues.items()}
    assert counts == {n: 2 * list(partitions.values()).count(n) for n in range(3)}
    model = ModelCluster(3, linger_ms=10**6, batch_size=2000)
    for _ in range(60):
        model.produce(b"x" * 100)
    loads = sorted(queue.load for queue in model.queues.topics["t"].queues.values())
    assert loads == [1, 1, 2]  # 18 records fill a batch


def test_a_partition_without_a_leader_gets_no_record_without_a_key_and_waits_for_one():
    model = ModelCluster(2)
    model.leaders[0] = -1
    model.epoch += 1
    model.cluster.refresh()
    model.poll(1000)
    lone = model.produce(b"l", 0)
    others = [model.produce(b"o") for _ in range(5)]
    model.poll()
    model.poll()
    assert sent(model, 2) == [[b"o"] * 5]
    model.answer(2)
    assert all(d.done() for d in others)
    assert not lone.done()
    model.move(0, 1)
    model.finish()
    assert lone.offset == 0


def test_no_memory_is_kept_and_full_is_said():
    model = ModelCluster(1, linger_ms=10**6, buffer_memory=1000)
    while not model.queues.full:
        model.produce(b"x" * 100)
    assert 1000 <= model.queues.bytes < 1200
    model.finish()
    assert model.queues.bytes == 0
    assert not model.queues.active or not any(q.load for q in model.queues.active)


def test_wrong_records_are_refused_at_once_and_leave_no_trace():
    model = ModelCluster(1, max_request_size=1000)
    for value, more in [(b"x" * 1000, {}), (5, {}), ("\ud800", {}), (b"", {"headers": [5]}), (b"", {"headers": [(None, b"")]}), (b"", {"headers": 5})]:  # fmt: skip  # noqa: E501
        with pytest.raises(EncodeError):
            model.produce(value, **more)
    with pytest.raises(EncodeError, match="no partition 7"):
        model.produce(b"", 7)
    assert model.queues.bytes == 0
    model.finish()
    assert model.logs[0].records == []


def test_headers_that_come_only_once_are_there_after_a_batch_that_was_full():
    model = ModelCluster(1, linger_ms=0, batch_size=200)
    for _ in range(6):
        model.produce(b"x" * 60, headers=((name, b"v") for name in "ab"))
    found = []
    while len(found) < 6:
        model.poll()
        for _, request, _ in model.flying[1]:
            found += kc.iter_records(bytes(request.topic_data[0].partition_data[0].records))
        model.answer(1)
    assert [record.headers for record in found] == [(("a", b"v"), ("b", b"v"))] * 6


def test_a_call_that_is_interrupted_leaves_the_order_of_the_others(monkeypatch):
    class Interrupted(Queues):
        def put(self, topic, batch, key, value, *arguments):
            made = super().put(topic, batch, key, value, *arguments)
            if value == b"interrupted":
                raise KeyboardInterrupt  # Python calls signal handlers when a C function returns
            return made

    monkeypatch.setattr(model_producer, "Queues", Interrupted)
    model = ModelCluster(1, linger_ms=10)
    first = model.produce(b"a")
    for value in (b"interrupted", b"b", b"interrupted"):
        with contextlib.suppress(KeyboardInterrupt):
            third = model.produce(value)
    model.poll(10)
    model.poll()
    assert sent(model) == [[b"a", b"interrupted", b"b", b"interrupted"]]
    model.answer(1)
    assert (first.result(0).offset, third.result(0).offset) == (0, 2)
    model.produce(b"c")
    model.poll(10)
    [(_, request, _)] = model.flying[1]
    assert list(kc.scan(bytes(request.topic_data[0].partition_data[0].records))["base_sequence"]) == [4]


def test_callbacks_come_in_order_and_may_fail(caplog):
    model = ModelCluster(1)
    found = []
    for n in range(4):
        delivery = model.produce(b"%d" % n)
        delivery.add_done_callback(lambda d: found.append(d.offset))
    delivery.add_done_callback(lambda d: 1 / 0)
    model.finish()
    delivery.add_done_callback(lambda d: found.append("late"))
    assert found == [0, 1, 2, 3, "late"]
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"acks": 2}, "acks must be"),
        ({"acks": True}, "acks must be"),
        ({"compression_type": "brotli"}, "compression_type"),
        ({"compression_type": "gzip", "compression_level": 77}, "level"),
        ({"acks": 1, "enable_idempotence": True}, "enable_idempotence needs acks='all', not 1"),
        ({"acks": 1, "transactional_id": "x"}, "transactional_id needs acks"),
        ({"retries": 0, "enable_idempotence": True}, "needs retries"),
        ({"max_in_flight_requests_per_connection": 6, "enable_idempotence": True}, "at most 5"),
        ({"transactional_id": ""}, "empty"),
        ({"linger_ms": -1}, "linger_ms"),
        ({"partitioner": "murmur2"}, "callable"),
    ],
)
def test_wrong_options(options, words):
    with pytest.raises((ValueError, TypeError), match=words):
        ProducerSettings(bootstrap_servers="a", **options)


def test_a_topic_that_is_not_sent_to_any_more_is_forgotten_and_met_again():
    model = ModelCluster(1, metadata_max_idle_ms=4000)
    first = model.produce(b"a")
    model.finish()
    for _ in range(3):
        model.poll(1000)
        model.cluster.refresh()
        model.poll_cluster()
    assert "t" in model.cluster.topics
    for _ in range(8):
        model.cluster.refresh()
        model.poll(1000)
    assert model.queues.topic("t") is None
    model.cluster.want(["t"])
    model.poll()
    again = model.produce(b"b")
    model.finish()
    assert (first.result(0).offset, again.result(0).offset) == (0, 1)  # its sequences went on


def test_nonsense_instead_of_a_producer_id_fails_what_waits_and_not_what_comes_later():
    model = ModelCluster(1)
    nonsense = RemoteProtocolError("broker h:1: unexpected correlation id 7")
    first = model.produce(b"a")
    for _ in range(3):
        (send,) = model.sender.poll(model.now)
        assert type(send.request).__name__ == "InitProducerIdRequest"
        assert not first.done()
        model.sender.failed(send, nonsense, model.now)
        model.now += 1000
    model.poll()
    assert first.error is nonsense
    later = model.produce(b"b")
    model.finish()
    assert later.result(0).offset == 0


@pytest.mark.parametrize("idempotent", [True, False])
@pytest.mark.parametrize("how", ["broken", "incomplete"])
def test_nonsense_instead_of_an_answer_fails_a_batch_and_not_what_comes_later(how, idempotent):
    """Three times in a row, as for other requests; it was sent again until the delivery time-out."""
    model = ModelCluster(1, enable_idempotence=idempotent)
    first = model.produce(b"a")
    for attempt in range(3):
        for _ in range(9):
            model.poll(1000)
            if model.flying.get(1):
                break
            model.answer(1)
        assert not first.done(), attempt
        ((send, _, version),) = model.flying.pop(1)
        if how == "broken":
            model.sender.failed(send, RemoteProtocolError("broker h:1: unexpected correlation id 7"), model.now)
        else:
            model.sender.answered(send, Answer(messages.ProduceResponse(responses=[]), version, 1), model.now)
    assert isinstance(first.error, RemoteProtocolError)
    assert "unexpected correlation id 7" in str(first.error) or "did not answer for every part" in str(first.error)
    later = model.produce(b"b")
    model.finish()
    assert later.result(0).offset == 0
