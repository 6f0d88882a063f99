"""Records that are waited for one by one: written and answered in the caller's thread while the client's loop sleeps,
and what happens if anything else does meanwhile."""

from __future__ import annotations

import linecache
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

import kafkacodec as kc
from kafkacodec.client.aio import producer as aio
from kafkacodec.client.blocking import producer as blocking
from kafkacodec.client.driver import network
from kafkacodec.client.producing import queue, shortcuts
from kafkacodec.client.producing._delivery import Delivery
from kafkacodec.client.producing.outcome import Outcome
from kafkacodec.errors import (
    NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    BrokerError,
    ClientClosed,
    ConnectionFailed,
    DeadlineExceeded,
    LocalProtocolError,
)
from kafkacodec.net.loop import epoll_of
from tests import interrupts
from tests.model_producer import ModelCluster, values_in
from tests.patience import SOON

RECORDS = 20

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="loops sleep in something else")


class Session:
    """A broker, and a producer that has sent a record."""

    def __init__(self, broker: Any, **options: Any) -> None:
        self.broker = broker
        self.producer = kc.client.Producer(broker.bootstrap_servers, **{"linger_ms": 0, **options})
        self.values: list[bytes] = []
        self._numbers = count()
        if epoll_of(self.producer._thread.loop) is None:
            self.producer.close()
            pytest.skip("the loop sleeps in something else")
        self.send().result(SOON)
        self.before = 0, 0

    def send(self, value: bytes | None = None, **more: Any) -> Any:
        self.values.append(b"%d" % next(self._numbers) if value is None else value)
        return self.producer.send("t", self.values[-1], **more)

    def used(self) -> tuple[int, int]:
        """How many records were written, and answers taken, past the loop since the last call."""
        shortcut = self.producer._queues.shortcut
        now = (shortcut.written, shortcut.taken) if shortcut is not None else (0, 0)
        before, self.before = self.before, now
        return now[0] - before[0], now[1] - before[1]

    def ready(self) -> None:
        """Send records until one takes the shortcut."""
        for _ in range(1000):
            self.send().result(SOON)
            if self.used()[1]:
                return
        raise AssertionError("no record has taken the shortcut")

    def check(self) -> None:
        """All records are there once, in their order."""
        self.producer.close()
        assert self.broker.records("t")["value"].tolist() == self.values


@pytest.fixture
def session() -> Iterator[Session]:
    with kc.broker.serve(topics={"t": 1}) as broker:
        made = Session(broker)
        try:
            made.ready()
            yield made
        finally:
            made.producer.close()


def test_records_that_are_waited_for_do_not_wake_the_loop(session: Session) -> None:
    before = session.producer.metrics()
    for number in range(RECORDS):
        place = session.send(b"x" * number, key=b"k", headers=[("h", b"v")], timestamp=number).result()
        assert place == ("t", 0, len(session.values) - 1, number)
    written, taken = session.used()
    assert written > RECORDS // 2  # the loop's own timers wake it too
    assert taken > RECORDS // 2
    after = session.producer.metrics()
    for name in ("requests.Produce", "producer.records", "producer.batches", "producer.batch_bytes.count"):
        assert after[name] - before[name] == RECORDS
    assert after["producer.queue_bytes"] == 0
    assert after["bytes_in"] > before["bytes_in"]
    session.check()


def test_what_nobody_waits_for_is_answered_in_the_loop(session: Session) -> None:
    for _ in range(RECORDS):
        told = threading.Event()
        delivery = session.send()
        delivery.add_done_callback(lambda _, told=told: told.set())
        assert told.wait(SOON)
        assert delivery.offset == len(session.values) - 1
    written, taken = session.used()
    assert written > 0
    assert taken == 0
    session.check()


def test_many_records_at_once_are_sent_in_batches(session: Session) -> None:
    for _ in range(RECORDS):
        made = [session.send() for _ in range(50)]
        for delivery in made:
            delivery.result(SOON)
        offsets = [delivery.offset for delivery in made]
        assert offsets == [*range(offsets[0], offsets[0] + 50)]
    assert session.used()[0] < RECORDS // 2  # a request for the first record alone would be one more each time
    session.check()


def test_partitions_and_sizes_have_ways_of_their_own() -> None:
    with kc.broker.serve(topics={"t": 3, "other": 1}) as broker:
        session = Session(broker)
        session.ready()
        for number in range(300):
            value = b"v" * (number * 7 % 2000)
            assert session.producer.send("t", value, partition=number % 3).result(SOON).partition == number % 3
            assert session.producer.send("other", value).result(SOON).offset == number
        written, taken = session.used()
        assert min(written, taken) > 300
        session.producer.close()
        assert broker.records("other")["value"].tolist() == [b"v" * (number * 7 % 2000) for number in range(300)]


OTHERS: list[dict[str, Any]] = [{"acks": 1}, {"acks": 0}, {"enable_idempotence": False}, {"compression_type": "lz4"}]


@pytest.mark.parametrize("options", OTHERS)
def test_other_options(options: dict[str, Any]) -> None:
    with (
        kc.broker.serve(topics={"t": 1}) as broker,
        kc.client.Producer(broker.bootstrap_servers, linger_ms=0, **options) as producer,
    ):
        for number in range(RECORDS):
            producer.send("t", b"%d" % number).result(SOON)
        producer.close()
        assert broker.records("t")["value"].tolist() == [b"%d" % number for number in range(RECORDS)]


@pytest.mark.parametrize(
    "fault",
    [
        {"error": "NOT_LEADER_OR_FOLLOWER"},
        {"error": "NOT_ENOUGH_REPLICAS_AFTER_APPEND", "after": True},
        {"close": True},
        {"close": True, "after": True},
        {"delay": 0.05},
    ],
)
def test_a_record_that_is_not_simply_acknowledged(session: Session, fault: dict[str, Any]) -> None:
    for _ in range(3):
        session.ready()
        with session.broker.inject("Produce", times=1, **fault) as rule:
            session.send().result(SOON)
            assert rule.met == 1
        assert session.used()[0] == 1
    session.send().result(SOON)
    session.check()


def test_a_record_that_is_refused(session: Session) -> None:
    refused = pytest.raises(BrokerError, match="MESSAGE_TOO_LARGE")
    with session.broker.inject("Produce", error="MESSAGE_TOO_LARGE"), refused:
        session.producer.send("t", b"refused").result(SOON)
    assert session.used()[0] == 1
    session.ready()
    session.check()


def test_an_answer_that_does_not_come() -> None:
    with kc.broker.serve(topics={"t": 1}) as broker:
        session = Session(broker, request_timeout_ms=4000, delivery_timeout_ms=4000)
        session.ready()
        with broker.inject("Produce", drop=True), pytest.raises(DeadlineExceeded):
            session.producer.send("t", b"late").result(SOON)
        assert session.used()[0] == 1
        session.producer.close()


@pytest.mark.parametrize("timeout", [0, 0.01])
def test_a_wait_that_takes_too_long(session: Session, timeout: float) -> None:
    with session.broker.inject("Produce", delay=0.3, times=1):
        delivery = session.send()
        with pytest.raises(TimeoutError):
            delivery.result(timeout)
        assert delivery.result(SOON).offset == len(session.values) - 1
    assert session.used()[0] == 1
    session.ready()
    session.check()


def test_a_thread_that_waits_is_woken_when_the_loop_wakes(session: Session) -> None:
    """Others send, ask the client or wait for the same record meanwhile."""
    for others in (
        lambda _: session.producer.partitions_for("t"),
        lambda _: session.producer.flush(SOON),
        lambda _: session.send().result(SOON),
        lambda delivery: delivery.result(SOON),
        lambda delivery: delivery.add_done_callback(print),
    ):
        session.ready()
        with session.broker.inject("Produce", delay=0.1, times=1) as rule:
            delivery = session.send()

            def other(call: Any = others, delivery: Any = delivery, rule: Any = rule) -> None:
                while not rule.met:
                    os.sched_yield()
                call(delivery)

            thread = threading.Thread(target=other)
            thread.start()
            delivery.result(SOON)
            thread.join(SOON)
    session.check()


class Interrupted(BaseException):
    """What Ctrl-C raises, but not for pytest."""


@pytest.fixture
def interrupting() -> Iterator[None]:
    def handle(*_: object) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGUSR1, handle)
    yield
    signal.signal(signal.SIGUSR1, before)


@pytest.mark.usefixtures("interrupting")
def test_a_signal_ends_the_wait_and_nothing_else(session: Session) -> None:
    for _ in range(5):
        session.ready()
        with session.broker.inject("Produce", delay=0.3, times=1) as rule:
            delivery = session.send()

            def interrupt(rule: Any = rule) -> None:
                while not rule.met:
                    os.sched_yield()
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

            thread = threading.Thread(target=interrupt)

            def wait(thread: Any = thread, delivery: Any = delivery) -> None:
                thread.start()
                delivery.result(SOON)
                thread.join(SOON)

            with pytest.raises(Interrupted):
                wait()
            assert delivery.result(SOON).offset == len(session.values) - 1
    session.check()


def test_a_handler_that_sends_while_a_record_is_waited_for(session: Session) -> None:
    sent, handling = [], []

    def handle(*_: object) -> None:
        if handling:
            return
        handling.append(True)
        try:
            sent.append(session.send().result(SOON))
        except LocalProtocolError:  # inside send()
            session.values.pop()
        handling.clear()

    before = signal.signal(signal.SIGALRM, handle)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
        while len(sent) < RECORDS:
            session.producer.send("u", b"").result(SOON)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    session.check()


class Interrupts(interrupts.Interrupts):
    def steps(self, frame: Any, event: str) -> int | None:
        if frame.f_code.co_filename not in (queue.__file__, shortcuts.__file__, blocking.__file__):
            return None
        # CPython looks for signals after calls, not where a block is left; and what has been interrupted ends unharmed.
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
        if line.startswith(("with ", "except ", "raise")) or sys.exc_info()[0] is not None:
            return 0
        return event == "line"


@pytest.mark.parametrize("options", [{}, {"compression_type": "lz4"}])
def test_an_interrupt_of_send_leaves_nothing(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """At whatever line, the record is sent or it is not, and no other waits for a timer or loses its place."""
    monkeypatch.setattr(network, "SLOW_MS", 1e9)
    monkeypatch.setattr(aio, "SLOW_MS", 1e9)
    with kc.broker.serve(topics={"t": 1}) as broker:
        session = Session(broker, request_timeout_ms=10**6, delivery_timeout_ms=10**7, **options)
        try:
            for at in count(1):
                session.send().result(SOON)
                raised = False
                try:
                    with Interrupts(at):
                        delivery = session.send(b"%d" % at + b"x" * at)  # of a size that is not known yet
                except KeyboardInterrupt:
                    raised = True
                if not raised:
                    delivery.result(SOON)
                    break
                session.send().result(SOON)
                found = broker.records("t")["value"].tolist()
                assert found in (session.values, session.values[:-2] + session.values[-1:])
                session.values = found
            assert at > 20
            assert bool(session.used()[0]) is not bool(options)
            session.check()
        finally:
            session.producer.close(0)


def test_a_wait_that_begins_while_the_loop_wakes() -> None:
    class Shortcut:
        def wait(self, *_: object) -> bool:
            return False

    for at in count(1):
        outcome, left = Outcome(), at

        def trace(frame: Any, event: str, _: object, outcome: Any = outcome) -> Any:
            nonlocal left
            if frame.f_code.co_name != "wait" or event not in ("call", "line"):
                return None
            left -= event == "line"
            if left == 0:
                outcome.shortcut = None
            return trace

        outcome.shortcut = Shortcut()
        sys.settrace(trace)
        try:
            with pytest.raises(TimeoutError):
                Delivery(outcome, 0).result(0)
        finally:
            sys.settrace(None)
        if left > 0:
            break
    assert at > 5


def test_closing_while_a_record_is_waited_for(session: Session) -> None:
    with session.broker.inject("Produce", delay=0.2, times=1) as rule:
        delivery, problems = session.send(), []

        def wait() -> None:
            try:
                delivery.result(SOON)
            except ClientClosed as error:
                problems.append(error)

        thread = threading.Thread(target=wait)
        thread.start()
        while not rule.met:
            os.sched_yield()
        session.producer.close(0)
        thread.join(SOON)
        assert len(problems) == 1
        with pytest.raises(ClientClosed):
            session.send()


def test_the_broker_ends_while_a_record_is_waited_for() -> None:
    with kc.broker.serve(topics={"t": 1}) as broker:
        session = Session(broker)
        session.ready()
        rule, delivery = broker.inject("Produce", drop=True), session.send()

        def end() -> None:
            while not rule.met:
                os.sched_yield()
            broker.stop()
            session.producer.close(0)

        thread = threading.Thread(target=end)
        thread.start()
        with pytest.raises((ClientClosed, ConnectionFailed)):
            delivery.result(SOON)
        thread.join(SOON)


def test_a_socket_that_takes_only_a_part(session: Session) -> None:
    (link,) = (node.link for node in session.producer._face._network._traffic._nodes if node.ready and node.number >= 0)
    link._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
    rests, adopt = [], link.adopt

    def adopted(number: int, message: Any, version: int, rest: bytes | None) -> None:
        rests.append(rest)
        adopt(number, message, version, rest)

    link.adopt = adopted
    for number in range(10, 10 + RECORDS):
        session.send(b"%d" % number * 30_000).result(SOON)
    assert any(rests)
    session.check()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_process_does_not_wait_for_its_parents_record(session: Session) -> None:
    with session.broker.inject("Produce", delay=0.2, times=1):
        delivery = session.send()
        child = os.fork()
        if not child:
            try:
                delivery.result(SOON)
            except ClientClosed:
                os._exit(7)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert delivery.result(SOON).offset == len(session.values) - 1
    session.ready()
    session.check()


def test_ways_end_with_what_they_depend_on(session: Session) -> None:
    session.producer.forget_topics()
    session.ready()
    session.check()


def test_no_batch_follows_one_that_is_retried() -> None:
    """A broker finds a repeated batch among the last five. A batch that it stores, and refuses again and again, fell
    behind with one more after it each time, and was stored a second time."""
    model = ModelCluster(1, retry_backoff_ms=1, retry_backoff_max_ms=1)
    model.produce(b"first", 0)
    while model.queues.pending:
        model.poll()
        model.answer(1)
    for number in range(8):
        model.produce(b"%d" % number, 0)
        model.forced[0].append(NOT_ENOUGH_REPLICAS_AFTER_APPEND)
        model.poll(1000)
        assert len(model.flying[1]) == 1
        model.answer(1)
    model.finish()
    assert values_in(model.logs[0])[0] == b"first"
