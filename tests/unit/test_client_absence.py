"""A cluster that is not there: nobody listens at its addresses, or nobody knows its names."""

from __future__ import annotations

import logging
import socket
import traceback
from collections.abc import Iterator

import pytest

import kafkacodec as kc
from kafkacodec.client.core.absence import Absence
from kafkacodec.client.core.metadata import BrokerAddress
from kafkacodec.errors import AuthenticationFailed, ConnectionFailed, DeadlineExceeded
from tests.patience import eventually

ADDRESSES = [BrokerAddress(-1, "a", 1), BrokerAddress(-2, "b", 2)]


def refused(name):
    error = ConnectionFailed(f"broker {name}: connection refused")
    error.__cause__ = ConnectionRefusedError(111, "Connection refused")
    return error


def unknown(name):
    error = ConnectionFailed(f"broker {name}: name or service not known")
    error.__cause__ = socket.gaierror(-2, "Name or service not known")
    return error


def test_a_cluster_is_absent_when_nobody_was_at_any_address_for_the_whole_time():
    absence = Absence(ADDRESSES, 3000)
    assert absence.failed(-1, refused("a:1"), 100)
    assert not absence.decide(5000)  # the other address is not tried yet
    assert absence.failed(-2, unknown("b:2"), 200)
    assert absence.due_at == 3100
    assert not absence.decide(3099)
    assert absence.reason is None
    assert absence.decide(3100)
    assert str(absence.reason) == "no broker can be reached: a:1: connection refused; b:2: name or service not known"
    assert not absence.decide(3200)


@pytest.mark.parametrize(
    "other",
    [
        ConnectionFailed("broker b:2: no connection within 10000 ms"),
        AuthenticationFailed("broker b:2: the broker refused"),
        DeadlineExceeded("no answer"),
    ],
)
def test_an_address_where_somebody_may_be_is_waited_for(other):
    absence = Absence(ADDRESSES, 3000)
    absence.failed(-1, refused("a:1"), 0)
    assert not absence.failed(-2, other, 0)
    assert not absence.decide(10_000)
    absence.failed(-1, refused("a:1"), 10_000)
    absence.failed(-2, refused("b:2"), 11_000)
    assert absence.due_at == 13_000


def closed(name, **more):
    return ConnectionFailed(f"broker {name}: the broker closed the connection without an answer", **more)


def test_a_cluster_is_absent_that_closes_every_connection_without_an_answer():
    absence = Absence(ADDRESSES, 3000)
    assert absence.failed(-1, closed("a:1", closed_unanswered=True), 0)
    assert absence.failed(-2, refused("b:2"), 0)
    assert absence.decide(3000)
    assert "a:1: the broker closed the connection without an answer; b:2: connection refused" in str(absence.reason)


def test_a_connection_that_ended_later_is_no_such_thing():
    absence = Absence(ADDRESSES[:1], 3000)
    assert not absence.failed(-1, closed("a:1"), 0)
    assert not absence.decide(3000)


def test_a_connection_that_is_accepted_may_be_answered():
    """A broker that starts refuses connections, then accepts them, and answers when it is ready."""
    absence = Absence(ADDRESSES[:1], 3000)
    absence.failed(-1, refused("a:1"), 0)
    absence.accepted(-1)
    assert not absence.decide(10_000)
    absence.failed(-1, closed("a:1", closed_unanswered=True), 11_000)
    assert absence.decide(11_000)


def test_what_is_raised_late_is_told_at_once():
    absence = Absence(ADDRESSES[:1], 60_000)
    assert not absence.failed(-1, refused("a:1"), 0)
    assert absence.failed(-1, refused("a:1"), 55_000)


def test_brokers_that_were_reached_once_are_never_absent():
    absence = Absence(ADDRESSES, 0)
    absence.reached()
    assert not absence.failed(-1, refused("a:1"), 0)
    assert not absence.failed(-2, refused("b:2"), 0)
    assert not absence.decide(1)
    assert not Absence(ADDRESSES, 0).failed(7, refused("c:3"), 0)  # no address of the list


@pytest.fixture(scope="module")
def nobody() -> Iterator[str]:
    """An address that refuses connections: bound, but nobody listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{bound.getsockname()[1]}"


def listed(server: str) -> None:
    with kc.client.Admin(server, bootstrap_timeout_ms=200) as admin:
        admin.list_topics()


def created(server: str) -> None:
    with kc.client.Admin(server, bootstrap_timeout_ms=200) as admin:
        admin.create_topics({"a": 1, "b": 1})


def read(server: str) -> None:
    with kc.client.Consumer("t", bootstrap_servers=server, bootstrap_timeout_ms=200) as consumer:
        for _ in consumer:
            pass


def joined(server: str) -> None:
    with kc.client.Consumer("t", bootstrap_servers=server, group_id="g", bootstrap_timeout_ms=200) as consumer:
        consumer.getmany(timeout=None)


def shared(server: str) -> None:
    with kc.client.ShareConsumer("t", bootstrap_servers=server, group_id="g", bootstrap_timeout_ms=200) as consumer:
        for _ in consumer:
            pass


def sent(server: str) -> None:
    with kc.client.Producer(server, bootstrap_timeout_ms=200) as producer:
        producer.send("t", b"value")


def begun(server: str) -> None:
    with kc.client.Producer(server, transactional_id="t", bootstrap_timeout_ms=200) as producer, producer.transaction():
        pass


@pytest.mark.parametrize("call", [listed, created, read, joined, shared, sent, begun])
def test_calls_end_soon_with_one_sentence(call, nobody, caplog):
    with pytest.raises(ConnectionFailed) as caught:
        call(nobody)
    assert str(caught.value) == f"no broker can be reached: {nobody}: connection refused"
    assert len(traceback.format_exception(caught.value)) < 12
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize("call", [listed, created, read, joined, shared, sent, begun])
def test_calls_end_soon_at_a_listener_that_needs_sasl(call, caplog):
    reason = r"no broker can be reached: .*: its listener may need SASL"
    with (
        kc.broker.serve(listen="kafka+sasl://127.0.0.1:0", users={"alice": "sesame"}) as kafka,
        pytest.raises(ConnectionFailed, match=reason) as caught,
    ):
        call(kafka.bootstrap_servers)
    assert len(traceback.format_exception(caught.value)) < 12
    warned = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert [record.getMessage() for record in warned if record.name != "kafkacodec.broker"] == []
    assert {record.name for record in warned} == {"kafkacodec.broker"}  # which says that the client does not log in


CLOSED = [
    ("ApiVersions", "without an answer: it is shutting down, or its listener uses another security_protocol"),
    ("SaslHandshake", "during the authentication by PLAIN: it is shutting down, or its log says why"),
    ("SaslAuthenticate", "during the authentication by PLAIN: it is shutting down, or its log says why"),
    ("Metadata", "at the first request"),
]


@pytest.mark.parametrize(("api", "when"), CLOSED, ids=[case[0] for case in CLOSED])
def test_a_client_with_sasl_is_not_told_to_use_it(api, when):
    login = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN", "sasl_plain_username": "alice"}
    with (
        kc.broker.serve(listen="kafka+sasl://127.0.0.1:0", users={"alice": "sesame"}) as kafka,
        kafka.inject(api, close=True, times=None),
        kc.client.Admin(
            kafka.bootstrap_servers, bootstrap_timeout_ms=200, sasl_plain_password="sesame", **login
        ) as admin,
        pytest.raises(ConnectionFailed) as caught,
    ):
        admin.list_topics()
    reason = f"{kafka.bootstrap_servers}: the broker closed the connection {when}"
    assert str(caught.value) == f"no broker can be reached: {reason}"


def test_calls_end_soon_at_a_listener_without_tls():
    options = {"security_protocol": "SSL", "bootstrap_timeout_ms": 200}
    with (
        kc.broker.serve() as kafka,
        kc.client.Admin(kafka.bootstrap_servers, **options) as admin,
        pytest.raises(ConnectionFailed, match=r"no broker can be reached: .*: its listener may not use TLS"),
    ):
        admin.list_topics()


def test_a_broker_that_comes_later_is_found():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        server = f"127.0.0.1:{free.getsockname()[1]}"
    with kc.client.Admin(server, bootstrap_timeout_ms=0, reconnect_backoff_max_ms=50) as admin:
        with pytest.raises(ConnectionFailed):
            admin.list_topics()
        with kc.broker.serve(listen=f"kafka://{server}"):

            def found() -> bool:
                try:
                    return not admin.list_topics()
                except ConnectionFailed:
                    return False

            eventually(found)


def test_what_is_slow_is_waited_for_and_told(caplog):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = f"127.0.0.1:{silent.getsockname()[1]}"
        with kc.client.Admin(server, default_api_timeout_ms=3000) as admin, pytest.raises(DeadlineExceeded):
            admin.list_topics()
    told = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert told == [f"waiting for broker {server}: connected, but no answer for 2 s"]
