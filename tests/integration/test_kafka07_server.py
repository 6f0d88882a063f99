"""``kafkacodec serve --listen kafka07://`` as a process: twice on one directory, and with more clients than files."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from contextlib import contextmanager

import pytest

import kafkacodec as kc
from tests.kafka07_session import Client, fetch, message, produce
from tests.patience import SOON, eventually
from tests.processes import ROOT

M = message(b"abc")
LIMITED = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), int(sys.argv[1])))
os.execv(sys.argv[2], sys.argv[2:])
"""


@contextmanager
def serving(data, *, files=1024):
    """The URL of a server that may open so many files, its process, and what it says as a file."""
    listen = ["--data", str(data / "data"), "--listen", "kafka07://127.0.0.1:0"]
    command = [sys.executable, "-m", "kafkacodec.cli", "serve", *listen]
    with (data / "said").open("w+") as said:
        limited = [sys.executable, "-c", LIMITED, str(files), *command]
        process = subprocess.Popen(limited, cwd=ROOT, stdout=subprocess.PIPE, stderr=said, text=True)
        try:
            listening = process.stdout.readline()
            assert listening.startswith("listening on kafka07://127.0.0.1:"), (data / "said").read_text()
            yield listening.split()[2], process, data / "said"
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate()


def test_a_directory_has_one_server(tmp_path):
    with serving(tmp_path) as (url, process, _), Client(url) as client:
        client.send(produce("t", 0, M))
        assert client.read("t") == M
        with pytest.raises(OSError, match="has locked the log directory"):
            kc.broker.serve(tmp_path / "data", listen="kafka07://127.0.0.1:0")
        client.send(produce("t", 0, M))
        assert client.read("t") == M + M
        process.kill()
        process.wait()
    log = tmp_path / "data" / "t-0" / f"{0:020}.kafka"
    log.write_bytes(log.read_bytes() + M[:7])  # what a kill may leave
    with (
        kc.broker.serve(tmp_path / "data", listen="kafka07://127.0.0.1:0") as broker,
        Client(broker.listeners[0]) as client,
    ):
        assert client.read("t") == M + M


def test_a_flood_of_connections_leaves_files_for_logs(tmp_path):
    with serving(tmp_path, files=512) as (url, _, said), Client(url) as client:
        client.send(produce("t", 0, M))
        assert client.read("t") == M
        host, _, port = url.partition("://")[2].partition(":")
        flood = [socket.create_connection((host, int(port)), SOON) for _ in range(700)]
        for one in flood:
            one.setblocking(False)
        try:
            eventually(lambda: sum(map(is_closed, flood)) >= 700 - 256)
            for name in ("t", "new", "newer"):
                client.send(produce(name, 0, M))
            assert (client.read("t"), client.read("new"), client.read("newer")) == (M + M, M, M)
        finally:
            for one in flood:
                one.close()
        eventually(lambda: answers(url))
        assert "Traceback" not in said.read_text()


def is_closed(one: socket.socket) -> bool:
    """Whether a server has closed a connection to which it sends nothing."""
    try:
        return not one.recv(1)
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


def answers(url: str) -> bool:
    """Whether a new client is served."""
    with Client(url) as client:
        try:
            client.send(produce("late", 0, M))
            return client.ask(fetch("late", 0, 0)) is not None
        except ConnectionError:
            return False
