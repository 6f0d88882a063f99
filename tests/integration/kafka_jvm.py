"""Kafka's own classes and a broker of its own for tests."""

from __future__ import annotations

import json
import random
import socket
import struct
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kafkacodec import client
from kafkacodec.errors import INVALID_REPLICATION_FACTOR, ItemErrors
from tests.integration import kafka_format
from tests.integration.kafka_jars import java
from tests.patience import eventually

# A broker deletes records from some years ago when it has run for 30 seconds: tests have such records.
KEEPS_OLD_RECORDS = "log.retention.hours=876000"

# A broker that was killed loses its partitions, and may come back, after three seconds instead of nine.
SOON_BACK = {"broker_session_timeout_ms": "3000", "broker_heartbeat_interval_ms": "500"}


class JavaRecord(NamedTuple):
    """A record as Kafka's classes read it; `source` is the number of its partition or file."""

    source: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


def random_rows(count: int, seed: int) -> list[Any]:
    """Rows shaped like `kafkacodec.Record`, from offset 77 on, with nulls, gaps in time and headers."""
    rnd = random.Random(seed)
    found = []
    for n in range(count):
        key = None if rnd.random() < 0.1 else rnd.randbytes(rnd.randrange(40))
        value = None if rnd.random() < 0.1 else rnd.randbytes(rnd.randrange(8)) * rnd.randrange(60)
        pairs = [(f"h{i}ü", None if rnd.random() < 0.3 else rnd.randbytes(9)) for i in range(rnd.randrange(4))]
        time = 1_700_000_000_000 + rnd.randrange(-(10**9), 10**9)
        found.append((77 + n, time, 0, key, value, pairs if rnd.random() < 0.3 else []))
    return found


class JavaMessage(NamedTuple):
    """A message in Kafka's classes: the bytes that reading left over, and what they write as bytes and as JSON.

    `encoded` is empty where they do not write again what they have read.
    """

    remaining: int
    encoded: bytes
    shown: Any


def tool(*arguments: Any, program: str = "KafkaTool", text: str | None = None) -> list[str]:
    """Run one of the Java programs; the lines that it prints."""
    command = [*java(), program, *map(str, arguments)]
    finished = subprocess.run(command, input=text, capture_output=True, text=True, timeout=120, check=False)
    assert finished.returncode == 0, finished.stderr[-2000:]
    return finished.stdout.splitlines()


def create_topic(servers: str, name: str, partitions: int = 1, replicas: int = 1) -> None:
    """Make a topic; brokers of a cluster that has just started may be too few for its replicas at first."""
    with client.Admin(servers) as admin:
        eventually(lambda: _is_created(admin, client.NewTopic(name, partitions, replicas)))


def _is_created(admin: client.Admin, topic: client.NewTopic) -> bool:
    try:
        admin.create_topics(topic)
    except ItemErrors as raised:
        if [getattr(error, "code", None) for error in raised.errors.values()] != [INVALID_REPLICATION_FACTOR]:
            raise
        return False
    return True


def background(
    *arguments: Any, output: Path, program: str = "KafkaTool", jars: Sequence[Path] = ()
) -> subprocess.Popen[bytes]:
    """Start one of the Java programs, or one in other directories of jars.

    Its lines go to a file, and its input is a pipe.
    """
    command = [*java("jars", *jars), program, *map(str, arguments)]
    with open(output, "wb") as lines:
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=lines)


def records(lines: list[str]) -> list[JavaRecord]:
    """The records that KafkaTool printed."""
    found = []
    for line in lines:
        source, offset, timestamp, key, value, *headers = line.split(" ")
        pairs = [((_bytes(k) or b"").decode(), _bytes(v)) for k, v in zip(headers[::2], headers[1::2], strict=True)]
        found.append(JavaRecord(int(source), int(offset), int(timestamp), _bytes(key), _bytes(value), pairs))
    return found


class Messages:
    """Kafka's generated message classes of one release, in a JVM that answers batches of questions."""

    def __init__(self, release: str) -> None:
        self._process = subprocess.Popen([*java(release), "MessageTool"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def versions(self) -> dict[str, range]:
        """The versions of every message, by the simple name of its class."""
        answer = _Answer(self._batch(_utf("list")))
        return {
            answer.bytes().decode(): range(answer.integer("h"), answer.integer("h") + 1)
            for _ in range(answer.integer("i"))
        }

    def decode(self, asked: list[tuple[str, int, bytes]]) -> list[JavaMessage | str]:
        """What becomes of each body of a class and version; the exception's text where it is refused."""
        return self._ask("decode", asked)

    def make(self, asked: list[tuple[str, int, int]]) -> list[JavaMessage | str]:
        """Random messages of a class and version, by seed; a message of defaults for seed 0."""
        return self._ask("make", [(name, version, seed.to_bytes(8, "big")) for name, version, seed in asked])

    def close(self) -> None:
        """End the process."""
        self._process.communicate()
        assert self._process.returncode == 0

    def _ask(self, command: str, asked: list[tuple[str, int, bytes]]) -> list[JavaMessage | str]:
        entries = (_utf(command) + _utf(name) + struct.pack(">hi", v, len(data)) + data for name, v, data in asked)
        answer = _Answer(self._batch(b"".join(entries)))
        return [answer.message() for _ in asked]

    def _batch(self, questions: bytes) -> bytes:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(len(questions).to_bytes(4, "big") + questions)
        self._process.stdin.flush()
        return self._process.stdout.read(int.from_bytes(self._process.stdout.read(4), "big"))


class _Answer:
    """Reads the answers of MessageTool."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def integer(self, form: str) -> int:
        (value,) = struct.unpack_from(f">{form}", self._data, self._at)
        self._at += struct.calcsize(form)
        return int(value)

    def bytes(self) -> bytes:
        size = self.integer("i")
        self._at += size
        return self._data[self._at - size : self._at]

    def message(self) -> JavaMessage | str:
        if self.integer("b"):
            return JavaMessage(self.integer("i"), self.bytes(), json.loads(self.bytes()))
        return self.bytes().decode()


def _utf(text: str) -> bytes:
    return len(text).to_bytes(2, "big") + text.encode()


class Server:
    """A broker's process, which listens on the loopback interface.

    Attributes:
        server: host and port.
        logs: its log directory.
    """

    def __init__(self, directory: Path, release: str, *command: Any) -> None:
        self.server = f"127.0.0.1:{free_port()}"
        self.logs = directory / "logs"
        self._output_path = directory / "broker.out"
        self._command = [*java(release), *command]

    def start(self) -> None:
        """Wait until it answers."""
        self.launch()
        self.wait()

    def launch(self) -> None:
        """Start it without waiting."""
        with open(self._output_path, "ab") as output:
            self._process = subprocess.Popen(self._command, stdout=output, stderr=output)

    def wait(self) -> None:
        """Wait until it answers."""
        host, port = self.server.split(":")
        for _ in range(1800):
            assert self._process.poll() is None, self._output_path.read_text()[-2000:]
            with socket.socket() as probe:
                if probe.connect_ex((host, int(port))) == 0:
                    return
            time.sleep(0.1)
        raise AssertionError("the broker does not listen")

    @property
    def process(self) -> int:
        """The number of the process."""
        return self._process.pid

    def stop(self) -> None:
        """Shut down in good order; kill what does not."""
        self._process.terminate()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def signal(self, number: int) -> None:
        """Send a signal to the process."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """End it at once, as a crash does."""
        self._process.kill()
        self._process.wait()


class Broker(Server):
    """A KRaft broker, controller included."""

    def __init__(self, directory: Path, release: str = "jars", scram: Sequence[str] = (), **settings: str) -> None:
        """`release` is one of `RELEASES`; `settings` are more server properties, with underscores for dots.

        `scram` are users such as ``SCRAM-SHA-256=[name=alice,password=secret]``.
        """
        properties = directory / "server.properties"
        super().__init__(directory, release, "kafka.Kafka", properties)
        controller = free_port()
        listeners = [*self.listeners(), f"CONTROLLER://127.0.0.1:{controller}"]
        properties.write_text(
            f"""process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners={",".join(listeners)}
controller.listener.names=CONTROLLER
log.dirs={self.logs}
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
{KEEPS_OLD_RECORDS}
"""
            + property_lines(settings)
        )
        if scram or "log_dirs" in settings:
            kafka_format.by_kafka(release, properties, scram)
        else:
            kafka_format.by_copy(release, self.logs, settings.get("node_id", "1"))

    def listeners(self) -> list[str]:
        """The listeners for clients, as the server's properties name them."""
        return [f"PLAINTEXT://{self.server}"]


def property_lines(settings: dict[str, str]) -> str:
    """Properties for a file; their names have underscores for dots."""
    return "".join(f"{name.replace('_', '.')}={value}\n" for name, value in settings.items())


def _bytes(text: str) -> bytes | None:
    return None if text == "-" else bytes.fromhex(text[1:])


_given_ports: set[int] = set()
_random = random.SystemRandom()  # tests and workers may share a seed


def free_port() -> int:
    """A port that nothing listens on, and that this process was not given before.

    It lies below the ports of outgoing connections, none of which can take it before a broker does.
    """
    while True:
        port = _random.randrange(10_000, 32_768)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in _given_ports:
            _given_ports.add(port)
            return port
