"""Addresses at which there is no broker."""

import socket
import threading
import time

import pytest

from kafkacodec.spark.live.reaching import why_unreachable
from tests.patience import SOON

NOBODY = ("127.0.0.1", 1)


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


@pytest.fixture
def silent(listener):
    """An address that answers nothing: its queue of connections is full."""
    full = socket.create_server(("127.0.0.1", 0), backlog=0)
    waiting = [socket.socket() for _ in range(3)]
    for client in waiting:
        client.setblocking(False)
        client.connect_ex(full.getsockname())
    yield full.getsockname()
    for each in (*waiting, full):
        each.close()


def test_one_of_several_is_enough(listener, silent):
    begin = time.monotonic()
    assert why_unreachable([NOBODY, silent, listener.getsockname()], tries=1, wait=0) is None
    assert time.monotonic() - begin < SOON


def test_why_none_is_reached(silent):
    reason = why_unreachable([NOBODY, ("nowhere.invalid", 9092), silent], tries=3, wait=0.01, seconds=0.3)
    first, second, third = reason.split("; ")
    assert first == "127.0.0.1:1: connection refused"
    assert second.startswith("nowhere.invalid:9092: ")
    assert third == f"127.0.0.1:{silent[1]}: no answer within 0.3 s"


def test_a_broker_that_starts_meanwhile(listener):
    place = listener.getsockname()
    listener.close()
    again = []
    timer = threading.Timer(0.1, lambda: again.append(socket.create_server(place)))
    timer.start()
    assert why_unreachable([place], tries=1200, wait=0.05) is None
    timer.join()
    again[0].close()


def test_the_number_of_tries():
    begin = time.monotonic()
    assert why_unreachable([NOBODY], tries=3, wait=0.05) == "127.0.0.1:1: connection refused"
    assert 0.1 <= time.monotonic() - begin < SOON


def test_what_is_no_host_name() -> None:
    reason = why_unreachable([("a" * 64, 9092)], tries=1, wait=0)
    assert reason == f"{'a' * 64}:9092: not a host name"
