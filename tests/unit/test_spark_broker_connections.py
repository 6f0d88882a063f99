"""Clients that a process keeps between tasks."""

import os

import pytest

from kafkacodec.spark.live import connections
from kafkacodec.spark.live.connections import borrowed, close_all


class Client:
    """Has what the pool needs of a client."""

    def __init__(self, **options):
        self.options, self.closed = options, False

    def close(self):
        self.closed = True


@pytest.fixture(autouse=True)
def empty():
    close_all()
    yield
    close_all()


def used(**options):
    with borrowed(Client, options) as client:
        assert not client.closed
        return client


def test_the_same_options_get_the_same_client():
    first = used(servers="a", size=1)
    assert used(size=1, servers="a") is first
    assert used(servers="b", size=1) is not first
    assert not first.closed


def test_two_at_once_are_two():
    with borrowed(Client, {"servers": "a"}) as first, borrowed(Client, {"servers": "a"}) as second:
        assert first is not second


def test_after_an_exception_it_is_closed():
    with pytest.raises(ZeroDivisionError), borrowed(Client, {"servers": "a"}) as client:
        1 / 0  # noqa: B018
    assert client.closed
    assert used(servers="a") is not client


def test_the_oldest_are_closed():
    clients = [used(servers=str(n)) for n in range(connections.MOST_KEPT + 2)]
    assert [client.closed for client in clients] == [True] * 2 + [False] * connections.MOST_KEPT


def test_the_idle_are_closed(monkeypatch):
    client = used(servers="a")
    monkeypatch.setattr(connections, "IDLE_SECONDS", -1.0)
    other = used(servers="b")
    assert client.closed
    assert not other.closed


def test_a_forked_process_makes_its_own():
    client = used(servers="a")
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.write(write, b"new" if used(servers="a") is not client else b"old")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 3) == b"new"
    os.close(read)
    os.close(write)
    assert used(servers="a") is client
