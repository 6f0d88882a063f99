"""The clock of the embedded broker: stopped, put forward; what is due then."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

import kafkacodec as kc
from kafkacodec import client, errors
from kafkacodec.broker.clock import Clock
from kafkacodec.broker.host import runner
from tests import sasl_scripts
from tests.broker_wire import wire_to
from tests.patience import SOON, eventually

_YEAR = 366 * 86_400


@pytest.fixture(params=["manual", "running"])
def clock(request):
    return request.param


def heartbeat(wire, **fields):
    wanted = {"group_id": "g", "member_id": "", "member_epoch": 0, "rebalance_timeout_ms": 60_000, **fields}
    return wire.ask("ConsumerGroupHeartbeat", 0, **wanted)


def test_a_session_ends_when_its_time_has_passed(clock):
    with kc.broker.serve(topics=["t"], clock=clock) as kafka, wire_to(kafka) as wire:
        joined = heartbeat(wire, subscribed_topic_names=["t"], topic_partitions=[])
        member = {"member_id": joined.member_id, "member_epoch": joined.member_epoch}
        for _ in range(3):
            kafka.advance(40)
            assert heartbeat(wire, **member).error_code == 0
        kafka.advance(46)
        assert heartbeat(wire, **member).error_code == errors.UNKNOWN_MEMBER_ID


def test_retention_removes_what_is_too_old(clock):
    with kc.broker.serve(clock=clock) as kafka:
        kafka.create_topic("t", config={"retention.ms": 3_600_000})
        kafka.create_topic("kept", config={"retention.ms": -1})
        now = int(time.time() * 1000)
        for name in ("t", "kept"):
            kafka.write(name, [kc.Record(0, now, 0, None, b"old", ())])
        kafka.advance(3_000)
        assert len(kafka.records("t")) == 1
        kafka.advance(900)
        assert (len(kafka.records("t")), len(kafka.records("kept"))) == (0, 1)
        assert kafka.write("t", [(None, b"new")]) == 1


@pytest.mark.parametrize(("delay_ms", "is_there"), [(500_000, True), (200_000, False)])
def test_files_of_deleted_topics_go_after_the_brokers_delay_not_the_topics(tmp_path, delay_ms, is_there):
    config = {"log.segment.delete.delay.ms": delay_ms}
    with kc.broker.serve(tmp_path, config=config, clock="manual") as kafka:
        kafka.create_topic("t", config={"file.delete.delay.ms": 700_000 - delay_ms})
        with client.Admin(kafka.bootstrap_servers) as admin:
            admin.delete_topics(["t"])
        kafka.advance(301)
        assert any(path.name.endswith("-delete") for path in tmp_path.iterdir()) == is_there


def test_a_transaction_times_out(clock):
    with kc.broker.serve(topics=["t"], clock=clock) as kafka, wire_to(kafka) as wire:
        with client.Producer(kafka.bootstrap_servers, transactional_id="x", transaction_timeout_ms=60_000) as producer:
            producer.begin_transaction()
            producer.send("t", b"kept").result(SOON)
            producer.commit_transaction()
            kafka.advance(3_600)
            producer.begin_transaction()
            producer.send("t", b"late").result(SOON)
            kafka.advance(59)
            assert state(wire) == "Ongoing"
            kafka.advance(11)  # time-outs are looked at every ten seconds
            assert state(wire) == "CompleteAbort"
            with pytest.raises(errors.KafkaCodecError, match="open for longer than transaction_timeout_ms, 60,000"):
                producer.commit_transaction()
        assert kafka.records("t")["value"].tolist() == [b"kept"]


def state(wire):
    return wire.ask("DescribeTransactions", 0, transactional_ids=["x"]).transaction_states[0].transaction_state


def test_a_stopped_clock_stands_and_fetches_wait_as_ever():
    config = {"message.timestamp.type": "LogAppendTime"}
    with kc.broker.serve(topics=["t"], clock="manual", config=config) as kafka, wire_to(kafka) as wire:
        rows = [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}]
        wanted = {"topics": [{"topic": "t", "partitions": rows}], "session_epoch": -1}
        answer = wire.ask("Fetch", 12, max_wait_ms=20, min_bytes=1, **wanted)  # ends though the clock stands
        assert answer.responses[0].partitions[0].error_code == 0
        times = []
        for seconds in (0, 0, 0.25, _YEAR):
            kafka.advance(seconds)
            entry = {"index": 0, "records": kc.encode([(None, b"x")])}
            topic = {"name": "t", "partition_data": [entry]}
            answer = wire.ask("Produce", 9, topic_data=[topic], acks=-1, timeout_ms=9000)
            times.append(answer.responses[0].partition_responses[0].log_append_time_ms)
    assert [one - times[0] for one in times] == [0, 0, 250, 250 + 1000 * _YEAR]
    assert abs(times[0] / 1000 - time.time()) < 60


def test_a_paused_broker_does_what_is_due_when_it_goes_on(clock):
    with kc.broker.serve(topics=["t"], clock=clock) as kafka, wire_to(kafka) as wire:
        joined = heartbeat(wire, subscribed_topic_names=["t"], topic_partitions=[])
        kafka.pause()
        kafka.advance(60)
        kafka.resume()
        member = {"member_id": joined.member_id, "member_epoch": joined.member_epoch}
        assert heartbeat(wire, **member).error_code == errors.UNKNOWN_MEMBER_ID


def test_wrong_arguments():
    with pytest.raises(ValueError, match="clock must be"):
        kc.broker.serve(clock="broken")
    with kc.broker.serve() as kafka:
        for seconds in (-1, float("nan")):
            with pytest.raises(ValueError, match="seconds"):
                kafka.advance(seconds)


def test_times_of_the_host():
    goes, stands = Clock(), Clock(1000)
    for clock in (goes, stands):
        clock.advance(0.05)
    assert (goes(10), goes.of_host(60)) == (60, 10)
    assert (stands(10), stands.of_host(1050), stands.of_host(1051)) == (1050, 0, None)


def test_written_records_without_a_time_have_that_of_the_clock():
    """As what a producer sends has the time of its own clock (CreateTime)."""
    import pyarrow as pa

    with kc.broker.serve(clock="manual") as kafka:
        kafka.write("t", [kc.Record(offset, time, 0, None, b"", ()) for offset, time in enumerate((None, 7))])
        kafka.advance(90)
        table = pa.table({"value": [b"two", b"three"], "timestamp": pa.array([None, 9], pa.timestamp("ms"))})
        kafka.write("t", table)
        first, own, late, other = kafka.records("t")["timestamp"].astype(int).tolist()
    assert (own, other, late - first) == (7, 9, 90_000)


def test_a_clock_moves_by_numbers():
    with kc.broker.serve(clock="manual") as kafka, pytest.raises(TypeError, match="seconds must be a number, not '1'"):
        kafka.advance("1")


@pytest.fixture
def woken(monkeypatch):
    """A broker that was started a day ago on a machine that has slept since: the clock of its loop stood still."""
    monkeypatch.setattr(runner, "time", SimpleNamespace(time=lambda: time.time() - 86_400))
    options = {"listen": ["kafka://127.0.0.1:0", "kafka+sasl://127.0.0.1:0"], "tokens": "unsecured"}
    with kc.broker.serve(config={"log.retention.check.interval.ms": 50}, **options) as broker:
        yield broker


def test_records_of_the_present_are_taken_after_the_machine_has_slept(woken):
    """They were refused: more than message.timestamp.after.max.ms ahead of the loop's clock."""
    woken.create_topic("t")
    woken.create_topic("appended", config={"message.timestamp.type": "LogAppendTime"})
    began = int(time.time() * 1000)
    with client.Producer(woken.bootstrap_servers) as producer:
        assert producer.send("t", b"x", timestamp=began).result(SOON).offset == 0
        appended = producer.send("appended", b"x", timestamp=began - 5).result(SOON)
    assert began <= appended.timestamp <= time.time() * 1000


def test_clients_log_in_with_tokens_of_the_present_after_the_machine_has_slept(woken):
    """They were refused: made later than the loop's clock showed."""
    at = next(url.partition("://")[2] for url in woken.listeners if url.startswith("kafka+sasl:"))
    with client.Admin(
        at, security_protocol="SASL_PLAINTEXT", sasl_mechanism="OAUTHBEARER",
        sasl_oauth_token_provider=lambda: sasl_scripts.jws(sub="alice"),
    ) as admin:  # fmt: skip
        assert admin.list_topics() == {}


def test_retention_goes_by_the_systems_clock_after_the_machine_has_slept(woken):
    """Records of two hours were kept for another day."""
    woken.create_topic("t", config={"retention.ms": 3_600_000})
    woken.write("t", [kc.Record(0, int(time.time() * 1000) - 7_200_000, 0, None, b"old", ())])
    eventually(lambda: not woken.records("t"))
