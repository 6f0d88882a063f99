"""Faults that are injected into the embedded broker: errors, delays, lost answers, closed connections; pause."""

from __future__ import annotations

import uuid

import pytest

import kafkacodec as kc
from kafkacodec import client, errors
from kafkacodec.broker.kafka.apis import TABLE
from kafkacodec.broker.kafka.refusals import refusal
from kafkacodec.messages import APIS, keys
from tests.broker_wire import wire_to
from tests.patience import SOON


@pytest.fixture(scope="module")
def broker():
    with kc.broker.serve() as running:
        yield running


@pytest.fixture
def wire(broker):
    with wire_to(broker) as connection:
        yield connection


@pytest.fixture
def topic(broker):
    name = f"t-{uuid.uuid4().hex[:8]}"
    broker.create_topic(name)
    return name


def send_produce(wire, topic, value=b"x", **fields):
    partition = {"index": 0, "records": kc.encode([(None, value)])}
    entry = {"name": topic, "partition_data": [partition]}
    return wire.send("Produce", 9, topic_data=[entry], **{"acks": -1, "timeout_ms": 9000, **fields})


def produce(wire, topic, value=b"x"):
    answer = wire.receive(send_produce(wire, topic, value))
    return answer and answer.responses[0].partition_responses[0]


def values(broker, topic):
    return broker.records(topic)["value"].tolist()


def asked(key, version):
    """A request that has one row wherever it may have rows, as a dict."""

    def struct(spec):
        return {field.attribute: value(field) for field in spec.fields if version in field.versions and field.tag < 0}

    def value(field):
        one = struct(field.struct) if field.struct is not None else plain.get(field.type, 0)
        return [one] if field.array else one

    plain = {"string": "a", "uuid": uuid.UUID(int=5), "records": b"", "bytes": b"", "bool": False, "float64": 0.0}

    return struct(APIS[key].request._spec)


class Asked:
    """A request as the service has it."""

    def __init__(self, broker, key, version):
        self.key, self.version, self.to, self.received, self.broker = key, version, None, 0, 1
        fields = {"acks": 1} if key == keys.PRODUCE else {"forgotten_topics_data": []} if key == keys.FETCH else {}
        self.message = APIS[key].request.from_dict({**asked(key, version), **fields})
        self.session = type("Session", (), {"listener": type("Listener", (), {"address": ("h", 1)})})()


@pytest.mark.parametrize("key", sorted(TABLE), ids=lambda key: APIS[key].name)
def test_every_answer_of_every_version_has_the_error(broker, key):
    for version in TABLE[key].versions:
        response = refusal(broker._serving._node, Asked(broker, key, version), errors.KAFKA_STORAGE_ERROR)
        data = response.encode(version)
        read = APIS[key].response.decode(data, version)
        codes = list(found(read.to_dict()))
        if key == keys.DESCRIBE_LOG_DIRS and version < 3:
            assert not codes  # there is no place: clients take no directories for an error
        else:
            assert codes
            assert set(codes) == {errors.KAFKA_STORAGE_ERROR}, version


def found(value):
    """The codes of errors in a message; one of a row counts, also if there is a code 0 around it."""
    rows = value if isinstance(value, list) else value.values()
    for row in rows:
        if isinstance(row, (list, dict)):
            yield from found(row)
    if isinstance(value, dict):
        yield from {value.get("error_code"), value.get("partition_error_code")} - {None, 0}


def test_an_error_is_answered_so_many_times_and_nothing_is_carried_out(broker, wire, topic):
    with broker.inject("Produce", "NOT_LEADER_OR_FOLLOWER", times=2) as injected:
        for _ in range(2):
            row = produce(wire, topic)
            assert (row.error_code, row.base_offset) == (errors.NOT_LEADER_OR_FOLLOWER, -1)
        assert produce(wire, topic).error_code == 0
        assert injected.met == 2
    assert values(broker, topic) == [b"x"]


def test_for_ever_is_until_it_is_removed_and_the_first_rule_counts(broker, wire):
    injected = broker.inject("Metadata", errors.LEADER_NOT_AVAILABLE, times=None)
    broker.inject("Metadata", "INVALID_TOPIC_EXCEPTION")
    broker.create_topic(name := f"t-{uuid.uuid4().hex[:8]}")
    for rows in ([{"name": name}], None):
        answer = wire.ask("Metadata", 9, topics=rows)
        assert {row.error_code for row in answer.topics} == {errors.LEADER_NOT_AVAILABLE}
        assert name in [row.name for row in answer.topics]
        assert len(answer.brokers) == 1
    injected.remove()
    injected.remove()
    assert wire.ask("Metadata", 9, topics=[{"name": name}]).topics[0].error_code == errors.INVALID_TOPIC_EXCEPTION
    assert wire.ask("Metadata", 9, topics=[{"name": name}]).topics[0].error_code == 0


def test_a_request_is_chosen_by_what_is_in_it(broker, wire, topic):
    def chosen(request):
        return request.client_id == "me" and request.message.topic_data[0].name == topic

    with broker.inject("Produce", "KAFKA_STORAGE_ERROR", times=None, when=chosen):
        broker.create_topic(other := f"{topic}-b")
        assert produce(wire, other).error_code == 0
        assert produce(wire, topic).error_code == errors.KAFKA_STORAGE_ERROR


def test_a_choice_that_raises_closes_the_connection_and_the_test_gets_the_error(broker, wire, topic):
    injected = broker.inject("Produce", "KAFKA_STORAGE_ERROR", when=lambda request: 1 // 0)
    with pytest.raises(ZeroDivisionError), injected:
        assert produce(wire, topic) is None
    with pytest.raises(ZeroDivisionError):
        injected.wait()
    assert injected.met == 0
    assert values(broker, topic) == []


@pytest.mark.parametrize(("arguments", "options"), [((0, 3), {}), ((None, "X"), {}), (("Produce",), {"delay": "1"})])
def test_wrong_types_of_faults(broker, arguments, options):
    with pytest.raises(TypeError, match=r"^(api must be a name, such as 'Produce'|delay must be seconds), not "):
        broker.inject(*arguments, **options)


def test_errors_of_a_fetch_are_for_all_partitions_of_its_session_which_goes_on(broker, wire, topic):
    produce(wire, topic)
    rows = [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}]
    first = wire.ask("Fetch", 12, topics=[{"topic": topic, "partitions": rows}], session_epoch=0)
    more = {"session_id": first.session_id, "topics": []}
    with broker.inject("Fetch", "NOT_LEADER_OR_FOLLOWER"):
        answer = wire.ask("Fetch", 12, session_epoch=1, **more)
    assert (answer.error_code, answer.session_id) == (0, first.session_id)
    row = answer.responses[0].partitions[0]
    assert (row.error_code, row.high_watermark) == (errors.NOT_LEADER_OR_FOLLOWER, -1)
    assert wire.ask("Fetch", 12, session_epoch=2, **more).responses[0].partitions[0].error_code == 0
    with broker.inject("Fetch", "FETCH_SESSION_ID_NOT_FOUND"):
        answer = wire.ask("Fetch", 12, session_epoch=3, **more)
    assert (answer.error_code, answer.responses) == (errors.FETCH_SESSION_ID_NOT_FOUND, [])


def test_an_answer_is_lost_after_the_request_was_carried_out(broker, wire, topic):
    with broker.inject("Produce", close=True, after=True):
        assert produce(wire, topic, b"closed") is None
    with wire_to(broker) as other, broker.inject("Produce", "REQUEST_TIMED_OUT", after=True):
        assert produce(other, topic, b"refused").error_code == errors.REQUEST_TIMED_OUT
    with wire_to(broker) as other, broker.inject("Produce", drop=True, after=True) as injected:
        send_produce(other, topic, b"dropped")
        injected.wait()
        other.send("Metadata", 1, topics=[])
        assert other.is_silent()
    assert values(broker, topic) == [b"closed", b"refused", b"dropped"]


def test_closing_instead_of_an_answer_answers_those_before_it(broker, wire, topic):
    with broker.inject("Produce", close=True):
        before = wire.send("Metadata", 1, topics=[])
        sent = send_produce(wire, topic)
        assert wire.receive(before).controller_id == 1
        assert wire.receive(sent) is None
    assert values(broker, topic) == []


def test_what_is_dropped_holds_up_its_connection_only(broker, wire, topic):
    with broker.inject("Produce", drop=True) as injected:
        send_produce(wire, topic)
        injected.wait()
        wire.send("Metadata", 1, topics=[])
        with wire_to(broker) as other:
            assert produce(other, topic, b"other").error_code == 0
        assert wire.is_silent()
    assert values(broker, topic) == [b"other"]


def test_a_delay_keeps_the_order_of_a_connection(broker, wire, topic):
    with broker.inject("Produce", delay=0.05), wire_to(broker) as other:
        sent = [send_produce(wire, topic, b"%d" % n) for n in range(5)]
        assert other.ask("Metadata", 1, topics=[]).controller_id == 1
        answers = [wire.receive(one).responses[0].partition_responses[0] for one in sent]
    assert [row.base_offset for row in answers] == list(range(5))
    assert values(broker, topic) == [b"%d" % n for n in range(5)]


def test_a_producer_that_wants_no_answer_is_cut_off_by_an_error(broker, wire, topic):
    with broker.inject("Produce", "NOT_LEADER_OR_FOLLOWER"):
        assert wire.receive(send_produce(wire, topic, acks=0)) is None


def test_an_unknown_version_of_api_versions_is_answered_as_brokers_do(broker, wire):
    software = {"client_software_name": "a", "client_software_version": "1"}
    with broker.inject("ApiVersions", "UNSUPPORTED_VERSION"):
        key, _ = wire.send("ApiVersions", 3, **software)
        answer = wire.receive((key, 0))
    assert answer.error_code == errors.UNSUPPORTED_VERSION
    assert [row.api_key for row in answer.api_keys] == [18]


def test_an_idempotent_producer_writes_once_though_answers_are_lost(broker, topic):
    with (
        broker.inject("Produce", close=True, after=True, times=3) as closed,
        client.Producer(broker.bootstrap_servers, retry_backoff_ms=1) as producer,
    ):
        sent = [producer.send(topic, b"%d" % n) for n in range(5)]
        assert sorted(one.result(SOON).offset for one in sent) == list(range(5))
        assert closed.met
    assert values(broker, topic) == [b"%d" % n for n in range(5)]


def test_a_paused_broker_reads_and_answers_when_it_goes_on(broker, wire, topic):
    produce(wire, topic, b"before")
    rows = [{"partition": 0, "fetch_offset": 1, "partition_max_bytes": 1 << 20}]
    waiting = wire.send("Fetch", 12, topics=[{"topic": topic, "partitions": rows}], session_epoch=-1,
                        max_wait_ms=60_000, min_bytes=1)  # fmt: skip
    with wire_to(broker) as other, wire_to(broker) as third:
        asked = third.ask("Metadata", 1, topics=[])
        broker.pause()
        broker.pause()
        sent = [send_produce(other, topic, b"%d" % n) for n in range(3)]
        broker.write(topic, [(None, b"by hand")])
        late = third.send("Metadata", 1, topics=[])
        with wire_to(broker) as new:
            first = new.send("Metadata", 1, topics=[])
            assert all(one.is_silent() for one in (other, third, new, wire))
            broker.resume()
            assert new.receive(first).controller_id == 1
        answers = [other.receive(one).responses[0].partition_responses[0].base_offset for one in sent]
        assert answers == [2, 3, 4]
        assert third.receive(late).controller_id == asked.controller_id
    records = wire.receive(waiting).responses[0].partitions[0].records
    assert kc.decode(records)["value"].tolist()[0] == b"by hand"
    assert values(broker, topic) == [b"before", b"by hand", b"0", b"1", b"2"]


def test_a_paused_broker_stops(topic):
    with kc.broker.serve() as paused, wire_to(paused) as wire:
        paused.pause()
        sent = wire.send("Metadata", 1, topics=[])
        paused.stop()
        assert wire.receive(sent) is None


def test_waiting_for_requests_that_do_not_come_ends(broker):
    with broker.inject("ElectLeaders", drop=True) as injected, pytest.raises(TimeoutError, match="0 of 2"):
        injected.wait(2, timeout=0)


@pytest.mark.parametrize(
    ("arguments", "options", "says"),
    [
        (["Produse", "UNKNOWN_SERVER_ERROR"], {}, "did you mean 'Produce'"),
        (["Produce", "NOT_LEADER_OR_FOLOWER"], {}, "did you mean 'NOT_LEADER_OR_FOLLOWER'"),
        (["Produce", "NONE"], {}, "not an error"),
        (["Produce", 0], {}, "not an error code"),
        (["Produce", 9999], {}, "not an error code"),
        (["Produce"], {}, "has no effect"),
        (["Produce"], {"after": True, "delay": 1}, "after needs"),
        (["Produce"], {"drop": True, "close": True}, "exclude"),
        (["Produce", 5], {"close": True}, "exclude"),
        (["Produce"], {"drop": True, "delay": 1}, "delay"),
        (["Produce", 5], {"delay": -1}, "negative"),
        (["Produce", 5], {"times": 0}, "at least 1"),
    ],
)
def test_arguments_that_make_no_sense(broker, arguments, options, says):
    with pytest.raises(ValueError, match=says):
        broker.inject(*arguments, **options)
