"""``kafkacodec produce`` while brokers refuse its records: it says what it waits for, and a second signal ends it."""

from __future__ import annotations

import linecache
import signal
import subprocess
import sys
from itertools import count

import pytest

import kafkacodec as kc
from kafkacodec.cli.__main__ import INTERRUPTED, run
from kafkacodec.cli.commands import produce as produce_command
from kafkacodec.client import lifecycle
from kafkacodec.client.blocking import producer as blocking_producer
from kafkacodec.net import loop
from tests import interrupts
from tests.patience import SOON

REFUSED = "for at most 120 s; a second Ctrl-C or SIGTERM gives up"


@pytest.fixture
def produce():
    with kc.broker.serve(topics={"t": 1}) as broker, broker.inject("Produce", "NOT_ENOUGH_REPLICAS", times=None) as met:
        arguments = ["produce", "t", "-b", broker.bootstrap_servers]
        with subprocess.Popen(
            [sys.executable, "-m", "kafkacodec.cli", *arguments],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        ) as process:
            try:
                process.stdin.write("one\ntwo\nthree\n")
                yield process, met
            finally:
                process.kill()


def line_with(process: subprocess.Popen[str], text: str) -> str:
    return next(line for line in process.stderr if text in line)


@pytest.mark.parametrize(
    ("number", "code", "said"), [(signal.SIGTERM, 143, "ended by SIGTERM"), (signal.SIGINT, 130, "interrupted")]
)
def test_the_first_signal_is_answered_and_the_second_ends_it(produce, number, code, said):
    process, met = produce
    process.stdin.close()
    met.wait(2)
    process.send_signal(number)
    assert line_with(process, REFUSED) == f"t: waiting for 3 records that are not acknowledged, {REFUSED}\n"
    process.send_signal(number)
    assert process.wait(SOON) == code
    left = process.stderr.read().splitlines()
    assert any(line.startswith("t: 0 records went out") for line in left)
    assert f"kafkacodec: error: {said}" in left


def test_what_it_waits_for_is_said_without_a_signal(produce):
    process, _ = produce
    process.stdin.close()
    line = line_with(process, "wait")
    assert line.startswith("kafkacodec: warning: 3 records wait to be delivered; for ")
    assert "records of t-0 are refused: not enough replicas (NOT_ENOUGH_REPLICAS); the producer keeps trying" in line


def test_a_signal_with_nothing_to_wait_for_is_not_remarked_upon(capsys, monkeypatch, tmp_path):
    def interrupted(sent):
        sent._producer.flush()
        raise KeyboardInterrupt

    monkeypatch.setattr("kafkacodec.cli.commands.produce._Sent.finish", interrupted)
    path = tmp_path / "lines"
    path.write_text("one\n")
    with kc.broker.serve(topics={"t": 1}) as broker:
        assert run(["produce", "t", str(path), "--format", "lines", "-b", broker.bootstrap_servers]) == INTERRUPTED
    err = capsys.readouterr().err
    assert "t: 1 record went out" in err
    assert "acknowledged" not in err


class Interrupts(interrupts.Interrupts):
    """Steps are the lines of the client's calls, in the thread that makes them."""

    def steps(self, frame, event):
        if frame.f_code.co_filename not in (blocking_producer.__file__, lifecycle.__file__, loop.__file__):
            return None
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
        return event == "line" and not line.strip().startswith("with ")


def test_wherever_the_second_signal_comes_it_is_said_what_was_not_delivered(capsys, monkeypatch, tmp_path):
    """Interrupted in the middle of `close`, a producer did not count what it gave up."""
    path = tmp_path / "lines"
    path.write_text("one\ntwo\nthree\n")
    second, flush, waited = Interrupts(0), blocking_producer.Producer.flush, []

    def flushed(producer, timeout=None):
        flush(producer, timeout)
        if timeout is None:  # there is nothing left to be lost
            second.__exit__()
            waited.append(producer)

    def interrupted(sent):
        raise KeyboardInterrupt

    def told(sent, limit_ms):
        second.__enter__()

    monkeypatch.setattr(blocking_producer.Producer, "flush", flushed)
    monkeypatch.setattr(produce_command, "_SOON_SECONDS", 0)
    monkeypatch.setattr(produce_command._Sent, "finish", interrupted)
    monkeypatch.setattr(produce_command._Sent, "_tell_left", told)
    steps = 0
    with kc.broker.serve(topics={"t": 1}) as broker, broker.inject("Produce", "NOT_ENOUGH_REPLICAS", times=None):
        options = ["-b", broker.bootstrap_servers, "-X", "delivery.timeout.ms=1000", "-X", "request.timeout.ms=900"]
        for steps in count(1):
            second = Interrupts(steps)
            try:
                assert run(["produce", "t", str(path), "--format", "lines", *options]) == INTERRUPTED
            finally:
                second.__exit__()
            err = capsys.readouterr().err
            assert "t: 0 records went out, 3 failed\n" in err, steps
            assert "not closed" not in err
            if waited:
                break
    assert steps > 5
