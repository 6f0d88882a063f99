"""The broker at its line:// listener: records by one connection, through one and through two processes; idle ones."""

from __future__ import annotations

import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from benchmarks.broker_servers import Server, printing

RECORDS, REPLICATED, IDLE = 100_000, 30_000, 1_000
COMMITS, MEMBERS, PARTITIONS, QUIET_SECONDS = 2_000, 20, 500, 5
_VALUE, _IN_FLIGHT, _TOGETHER = "x" * 100, 2_000, 200
_MIB = 1 << 20
_SERVE = """
import sys
import kafkacodec as kc
data, listen, number, replicas, partitions = sys.argv[1:]
config = {"min.insync.replicas": 2, "num.partitions": int(partitions)}
options = {"config": config, "node_id": int(number), "replicas": replicas.split(",")}
with kc.broker.serve(data, listen=listen, **(options if replicas else {})) as broker:
    print(broker.listeners[0].partition("://")[2], flush=True)
    sys.stdin.read()
"""


def run() -> list[str]:
    """What is said about each."""
    return [_alone(), _replicated(), _commits(), _promotions(), _idle()]


@contextmanager
def _serving(directory: str, number: int = 0, urls: str = "", partitions: int = 1) -> Iterator[Server]:
    listen = urls.split(",")[number] if urls else "line://127.0.0.1:0"
    with printing(
        [sys.executable, "-c", _SERVE, f"{directory}/{number}", listen, str(number), urls, str(partitions)]
    ) as server:
        yield server


def _alone() -> str:
    with tempfile.TemporaryDirectory() as directory, _serving(directory) as server:
        _produced(server, 1_000, "1")
        before = server.processor_seconds()
        _produced(server, RECORDS, "1")
        spent = server.processor_seconds() - before
    return f"line protocol: {RECORDS / spent:,.0f} records with acks=1 a processor second of the broker."


def _replicated() -> str:
    with _pair() as servers:
        _produced(servers[0], 1_000, "all")
        before = [server.processor_seconds() for server in servers]
        seconds = _produced(servers[0], REPLICATED, "all")
        spent = [server.processor_seconds() - start for server, start in zip(servers, before, strict=True)]
    return (
        f"line protocol, two brokers: {REPLICATED / seconds:,.0f} records with acks=all a second, on both disks; the "
        f"leader used {spent[0] / seconds:.0%} of a processor, the follower {spent[1] / seconds:.0%}."
    )


def _commits() -> str:
    """Members of groups that each wait for the answer to a commit before they send the next."""
    with _pair() as servers:
        _produced(servers[0], 1, "all")
        _answers(servers[0], [f"V1|1|JOIN|g{number} orders m" for number in range(MEMBERS)])
        lines = [f"V1|1|COMMIT|g{number} orders m 1 0 1\n".encode() for number in range(MEMBERS)]
        before = [server.processor_seconds() for server in servers]
        start = time.perf_counter()
        with ExitStack() as stack:
            threads = [threading.Thread(target=_repeated, args=(stack.enter_context(_connected(servers[0])), line))
                       for line in lines]  # fmt: skip
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        seconds = time.perf_counter() - start
        spent = [server.processor_seconds() - start for server, start in zip(servers, before, strict=True)]
    return (
        f"line protocol, two brokers: {COMMITS / seconds:,.0f} commits a second of {MEMBERS} connections, on both "
        f"disks; {spent[0] * 1000 / COMMITS:.2f} ms of the leader's processor each, {spent[1] * 1000 / COMMITS:.2f} of "
        "the follower's."
    )


def _promotions() -> str:
    """All partitions of a topic are led by the other broker at once; then nothing happens."""
    with _pair(PARTITIONS) as servers:
        while b"|OK|" not in _answers(servers[0], ["V1|1|PRODUCE|orders key:v acks=all"])[0]:
            time.sleep(1)  # so many logs are made first
        lines = [f"V1|1|SET_PARTITION_ROLE|orders {number} leader" for number in range(PARTITIONS)]
        _answers(servers[0], lines)
        start = time.perf_counter()
        refused = [answer for answer in _answers(servers[1], lines) if b"|OK|" not in answer]
        seconds = time.perf_counter() - start
        if refused:
            raise RuntimeError(f"{len(refused)} promotions were refused: {refused[0]!r}")
        time.sleep(QUIET_SECONDS)
        before = [server.processor_seconds() for server in servers]
        time.sleep(QUIET_SECONDS)
        spent = sum(server.processor_seconds() - start for server, start in zip(servers, before, strict=True))
    return (
        f"line protocol, two brokers: {PARTITIONS / seconds:,.0f} partitions a second are promoted; with "
        f"{PARTITIONS:,} partitions and nothing to do both use {spent / QUIET_SECONDS:.1%} of a processor."
    )


@contextmanager
def _pair(partitions: int = 1) -> Iterator[list[Server]]:
    urls = ",".join(f"line://127.0.0.1:{port}" for port in _free_ports(2))
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        yield [stack.enter_context(_serving(directory, number, urls, partitions)) for number in range(2)]


def _connected(server: Server) -> socket.socket:
    host, port = server.address.rsplit(":", 1)
    return socket.create_connection((host, int(port)))


def _answers(server: Server, lines: list[str]) -> list[bytes]:
    """Those to some lines, which are sent at once."""
    with _connected(server) as connection, connection.makefile("rb") as answers:
        thread = threading.Thread(target=connection.sendall, args=("".join(f"{line}\n" for line in lines).encode(),))
        thread.start()
        found = [answers.readline() for _ in lines]
        thread.join()
        return found


def _repeated(connection: socket.socket, line: bytes) -> None:
    for _ in range(COMMITS // MEMBERS):
        connection.sendall(line)
        if b"|OK|" not in (answer := connection.recv(1000)):
            raise RuntimeError(f"a commit was refused: {answer!r}")


def _idle() -> str:
    with tempfile.TemporaryDirectory() as directory, _serving(directory) as server, ExitStack() as stack:
        host, port = server.address.rsplit(":", 1)
        for _ in range(IDLE):
            one = stack.enter_context(socket.create_connection((host, int(port))))
            one.sendall(b"V1|1|PING|\n")
            one.recv(100)
        memory = server.resident_bytes() / _MIB
    return f"line protocol: {memory:.0f} MiB resident with {IDLE:,} idle connections."


def _produced(server: Server, count: int, acks: str) -> float:
    """Send records by one connection, with so many unanswered at most; the seconds until all are acknowledged."""
    host, port = server.address.rsplit(":", 1)
    room, refused = threading.Semaphore(_IN_FLIGHT), list[bytes]()
    with socket.create_connection((host, int(port))) as connection, connection.makefile("rb") as answers:

        def receive() -> None:
            for _ in range(count):
                answer = answers.readline()
                if b"|OK|" not in answer:
                    refused.append(answer)
                room.release()

        start = time.perf_counter()
        thread = threading.Thread(target=receive)
        thread.start()
        for first in range(0, count, _TOGETHER):
            numbers = range(first, min(first + _TOGETHER, count))
            for _ in numbers:
                room.acquire()
            lines = (f"V1|{number}|PRODUCE|orders key:{_VALUE} acks={acks}\n" for number in numbers)
            connection.sendall("".join(lines).encode())
        thread.join()
        seconds = time.perf_counter() - start
    if refused:
        raise RuntimeError(f"{len(refused)} records were refused: {refused[0]!r}")
    return seconds


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


if __name__ == "__main__":
    print(*run(), sep="\n")
