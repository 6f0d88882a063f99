"""The broker of Kafka 0.7 beside a real 0.7.2: bytes per second of processor time of the broker's process.

    python -m benchmarks.kafka07 .cache/kafka07

The directory is what `make kafka07-proof` builds. Both get the same frames over one connection, in turns, and flush
every 10,000 messages, as 0.7.2's sample configuration does. The best of the turns counts.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from kafkacodec.dialects.kafka07 import FetchRequest, OffsetsRequest, ProduceRequest, encode_messages
from tests.integration.kafka07_real import RealBroker
from tests.integration.zookeeper import ZooKeeperServer
from tests.kafka07_session import Client

_TURNS = 5
_TOTAL = 256 << 20
_INTERVAL = "log.flush.interval"
_OURS = """
import sys
import kafkacodec as kc
with kc.broker.serve(listen="kafka07://127.0.0.1:0", config={"log.flush.interval": 10000}) as broker:
    print(broker.listeners[0], flush=True)
    sys.stdin.read()
"""


@contextmanager
def _ours() -> Iterator[tuple[str, int]]:
    with subprocess.Popen(
        [sys.executable, "-c", _OURS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip(), process.pid
        process.communicate()


@contextmanager
def _real(built: Path, directory: Path) -> Iterator[tuple[str, int]]:
    zookeeper = ZooKeeperServer(directory)
    zookeeper.start()
    broker = RealBroker(built, directory / "real", zookeeper.server, 0, log_flush_interval=10_000)
    broker._command.remove("-XX:TieredStopAtLevel=1")
    broker.start()
    try:
        yield broker.server, broker.process
    finally:
        broker.stop()
        zookeeper.stop()


def _seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _produce(client: Client, topic: str, messages: int, size: int) -> int:
    """Send sets of so many messages; an answer at the end says that all are appended. Returns the bytes."""
    frame = ProduceRequest(topic, 0, encode_messages([bytes(size)] * messages)).encode()
    count = _TOTAL // len(frame)
    several = frame * max((1 << 20) // len(frame), 1)
    for _ in range(count // (len(several) // len(frame))):
        client.send(several)
    client.ask(OffsetsRequest(topic, 0, -1, 1).encode())
    return count * len(frame)


def _fetch(client: Client, topic: str, size: int) -> int:
    offset, total = 0, 0
    while total < 4 * _TOTAL:
        found = client.ask(FetchRequest(topic, 0, offset, size).encode())
        assert found is not None
        total += len(found)
        offset = 0 if len(found) < size else offset + size
    return total


def main(built: Path) -> None:
    """Print a line for each workload."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        brokers = {"kafkacodec": _ours(), "Kafka 0.7.2": _real(built, directory)}
        running = {name: stack.enter_context(broker) for name, broker in brokers.items()}
        for name, work in (
            ("produce 200 x 100 B", lambda c, turn: _produce(c, f"a{turn}", 200, 100)),
            ("produce 100 x 1 KiB", lambda c, turn: _produce(c, f"b{turn}", 100, 1024)),
            ("fetch 1 MiB", lambda c, turn: _fetch(c, f"b{turn}", 1 << 20)),
            ("fetch 64 KiB", lambda c, turn: _fetch(c, f"b{turn}", 1 << 16)),
        ):
            best = dict.fromkeys(running, 0.0)
            for turn in range(_TURNS):
                for broker, (address, pid) in running.items():
                    with Client(address) as client:
                        before = _seconds(pid)
                        count = work(client, turn)
                        spent = _seconds(pid) - before
                    best[broker] = max(best[broker], count / max(spent, 0.01) / 1e6)
            figures = ", ".join(f"{broker} {rate:,.0f} MB/s" for broker, rate in best.items())
            print(f"{name}: {figures}; {best['kafkacodec'] / best['Kafka 0.7.2']:.2f}x", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
