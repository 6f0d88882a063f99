"""What hostile clients send: the connection ends, others are unharmed; and the command that serves."""

from __future__ import annotations

import os
import random
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import kafkacodec as kc
from kafkacodec import messages, protocol
from kafkacodec.broker.kafka.apis import OLD, READ
from kafkacodec.messages import APIS
from tests.patience import LATE

LOGS = Path(__file__).parents[1] / "data/kafka/logs"


@pytest.fixture(scope="module")
def broker():
    with kc.broker.serve(topics={"orders": 1}) as running:
        yield running


@pytest.fixture(scope="module", params=["several", "old clients", "read-only"])
def special(request):
    """Brokers that ask more of a request before it is answered."""
    options = {
        "several": {"topics": {"orders": 1}, "brokers": 2, "config": {"offsets.topic.num.partitions": 2}},
        "old clients": {"topics": {"orders": 1}, "release": "3.9"},
        "read-only": {"data": LOGS / "v2-2.8.2", "read_only": True},
    }
    with kc.broker.serve(**options[request.param]) as running:
        yield running


def connected(broker):
    host, _, port = broker.bootstrap_servers.partition(",")[0].rpartition(":")
    return socket.create_connection((host, int(port)), timeout=30)


def is_alive(broker):
    with connected(broker) as other:
        other.sendall(protocol.encode_request(messages.MetadataRequest(topics=[]), 1, 7, "me"))
        data = b""
        while not protocol.split_frames(data)[0]:
            data += other.recv(65536)
        answer = protocol.decode_response(bytes(data), 3, 1)[1].to_dict()
        return answer["controller_id"] in [row["node_id"] for row in answer["brokers"]]


def send_random(broker, key, versions, dice):
    """One request of each version with a random body, and what comes back until the connection ends."""
    for version in versions:
        flexible = APIS[key].request.flexible_versions
        tags = b"\0" if flexible and version >= flexible.start else b""
        with connected(broker) as one:
            body = dice.randbytes(dice.choice([0, 1, 7, 40]))
            data = struct.pack(">hhi", key, version, 1) + b"\0\1c" + tags + body
            one.sendall(struct.pack(">i", len(data)) + data)
            one.shutdown(socket.SHUT_WR)
            try:
                while one.recv(65536):
                    pass
            except ConnectionResetError:
                pass


@pytest.mark.parametrize(
    "data",
    [
        struct.pack(">i", -1), struct.pack(">i", 1 << 30), b"\0\0\0\0", b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 5000,
        struct.pack(">ihhi", 8, 3, 1, 1), b"\0\0\0\x0a" + struct.pack(">hhi", 999, 0, 1) + b"\xff\xff",
        b"\0\0\0\x0e" + struct.pack(">hhi", 3, 1, 1) + b"\xff\xff" + b"\x7f\xff\xff\xff",
    ],
)  # fmt: skip
def test_bytes_that_are_no_request_end_the_connection_alone(broker, data):
    with connected(broker) as one:
        one.sendall(data)
        assert one.recv(10) == b""
    assert is_alive(broker)


@pytest.mark.parametrize("key", sorted(READ))
def test_random_bodies_of_every_api_are_answered_or_end_the_connection(broker, key, caplog):
    send_random(broker, key, READ[key], random.Random(key))
    assert is_alive(broker)
    assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.parametrize("key", sorted(OLD))
def test_random_bodies_at_brokers_that_ask_more(special, key, caplog):
    versions = OLD[key] if special._serving._serves_old else READ[key]
    send_random(special, key, versions, random.Random(key + 1))
    assert is_alive(special)
    assert not [record for record in caplog.records if record.exc_info]


def test_the_command_serves_until_it_is_terminated(tmp_path):
    command = [
        sys.executable,
        "-m",
        "kafkacodec.cli",
        "serve",
        "--data",
        tmp_path / "data",
        "--listen",
        "kafka://127.0.0.1:0",
    ]
    process = subprocess.Popen([*command, "--topic", "orders:2"], stdout=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        assert line.startswith("listening on kafka://127.0.0.1:")
        assert (tmp_path / "data/orders-1").is_dir()
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(LATE) == 0
        process.stdout.close()
    assert os.path.exists(tmp_path / "data/.kafka_cleanshutdown")


@pytest.mark.parametrize("option", [["--topic", "a:b"], ["--config", "x"]])
def test_wrong_options_of_the_command(option):
    done = subprocess.run([sys.executable, "-m", "kafkacodec.cli", "serve", *option], capture_output=True, text=True)
    assert done.returncode == 2
    assert option[1] in done.stderr
