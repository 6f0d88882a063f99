"""Tracebacks of errors for the user: they begin at the application's call, and those of faults have all frames."""

from __future__ import annotations

import logging
import socket
import sys
import traceback

import pytest

import kafkacodec as kc
from kafkacodec.client import Admin, Producer
from kafkacodec.errors import LocalProtocolError
from kafkacodec.net.loop import LoopThread
from kafkacodec.signatures import suggests_options
from tests.reference.model_broker import ModelCluster
from tests.reference.model_traffic import SERVER, modelled


def frames(call):
    """The error of a call, and the modules of its frames but those of this file."""
    with pytest.raises(Exception) as caught:
        call()
    names = [frame.f_globals["__name__"] for frame, _ in traceback.walk_tb(caught.tb)]
    return caught.value, [name for name in names if name != __name__]


def taken_port():
    taken = socket.create_server(("127.0.0.1", 0))
    return taken, f"kafka://127.0.0.1:{taken.getsockname()[1]}"


@pytest.mark.parametrize(
    ("kind", "call"),
    [
        (ValueError, lambda: Producer("localhost:abc")),
        (TypeError, lambda: Producer(SERVER, linger_ms="5")),
        (TypeError, lambda: Producer({"bootstrap.servers": SERVER})),
        (ValueError, lambda: kc.values.Registry("registry:8081")),
        (ValueError, lambda: kc.broker.serve(listen="http://127.0.0.1:0")),
    ],
)
def test_a_wrong_argument_has_no_frames_of_its_checks(kind, call):
    error, names = frames(call)
    assert isinstance(error, kind)
    assert names == ["kafkacodec.signatures"]
    assert error.__cause__ is None
    assert error.__suppress_context__


def test_a_taken_port_is_said_at_the_call():
    taken, url = taken_port()
    with taken:
        error, names = frames(lambda: kc.broker.serve(listen=url))
    assert isinstance(error, OSError)
    assert names == ["kafkacodec.signatures"]


@pytest.fixture
def model(monkeypatch):
    return modelled(monkeypatch, ModelCluster(1, {"t": 1}))


def test_blocking_clients_raise_what_their_loop_finds_at_the_call(model):
    with Admin(SERVER) as admin, Producer(SERVER) as producer, kc.client.Consumer(bootstrap_servers=SERVER) as consumer:
        for call in (
            lambda: admin.describe_configs(("topic", "orders")),
            lambda: producer.send("bad topic"),
            consumer.commit,
        ):
            _, names = frames(call)
            assert len(names) <= 6
            assert not any(name.startswith(("asyncio", "concurrent", "kafkacodec.client.aio")) for name in names)
        assert isinstance(frames(consumer.commit)[0], LocalProtocolError)


def test_frames_of_the_inside_go_to_the_log_at_debug(model, caplog):
    with caplog.at_level(logging.DEBUG, "kafkacodec"), Admin(SERVER) as admin:
        frames(lambda: admin.describe_configs(("topic", "orders")))
    assert "describe_configs" in caplog.text


def run(make):
    thread = LoopThread("test")
    try:
        return thread.run(make)
    finally:
        thread.close()


async def fault():
    return len(None)


async def of_the_application():
    raise ValueError("mine")


@pytest.mark.parametrize("make", [fault, of_the_application])
def test_a_fault_and_an_error_of_the_application_keep_all_frames(make):
    with pytest.raises((TypeError, ValueError)) as caught:
        run(make)
    assert make.__name__ in [frame.f_code.co_name for frame, _ in traceback.walk_tb(caught.tb)]


def test_a_wrong_operation_inside_keeps_all_frames():
    source = "def inner(value):\n    return value + 1\n\ndef outer(value):\n    return inner(value)\n"
    names = {"__name__": "kafkacodec.made_up"}
    exec(compile(source, "made_up.py", "exec"), names)
    with pytest.raises(TypeError) as caught:
        suggests_options(names["outer"])("text")  # type: ignore[type-var]
    assert [frame.f_code.co_name for frame, _ in traceback.walk_tb(caught.tb)][-2:] == ["outer", "inner"]


def test_a_missing_package_is_named_in_one_way(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(ModuleNotFoundError) as caught:
        kc.client.export_metrics(None)
    assert str(caught.value) == "export_metrics needs opentelemetry-api: pip install 'kafkacodec[otel]'"
    assert caught.value.name == "opentelemetry-api"
    assert caught.value.__suppress_context__
