"""Brokers with replicas as processes, and clients that note what they see."""

from __future__ import annotations

import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tests.replicas.history import Committed, Consumed, History, Owned, Produced

TOPIC, PARTITIONS = "orders", 2


def free_ports(count: int) -> list[int]:
    """Below those that the system gives to connections."""
    found: list[int] = []
    while len(found) < count:
        port = random.randrange(12_000, 30_000)
        with socket.socket() as one, suppress(OSError):
            one.bind(("127.0.0.1", port))
            found.append(port)
    return found


class Line:
    """A connection. Its methods raise OSError."""

    def __init__(self, port: int, timeout: float = 30) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout)
        self._file = self._socket.makefile("rwb")

    def ask_all(self, lines: list[str]) -> list[str]:
        """Send requests together; the answers in the order of the requests."""
        self._file.write("".join(f"V1|{number}|{line}\n" for number, line in enumerate(lines)).encode())
        self._file.flush()
        found: dict[int, str] = {}
        while len(found) < len(lines):
            line = self._file.readline().decode()
            if not line.endswith("\n"):
                raise ConnectionError("closed")
            _, number, answer = line.rstrip("\n").split("|", 2)
            found[int(number)] = answer
        return [found[number] for number in range(len(lines))]

    def ask(self, line: str) -> str:
        """Send one request."""
        return self.ask_all([line])[0]

    def close(self) -> None:
        """Close it."""
        with suppress(OSError):
            self._file.close()
        self._socket.close()


def fields(answer: str) -> dict[str, str]:
    """The payload of a success."""
    return dict(word.split("=", 1) for word in answer.removeprefix("OK|").split(" ")) if answer != "OK" else {}


class Cluster:
    """Three brokers."""

    def __init__(self, path: Path, count: int = 3) -> None:
        self.path = path
        self.ports = free_ports(count)
        self.processes: dict[int, subprocess.Popen[str]] = {}
        for number in range(count):
            self.start(number)

    def start(self, number: int) -> None:
        """Start a broker, and wait until it listens."""
        urls = ",".join(f"line://127.0.0.1:{port}" for port in self.ports)
        command = [sys.executable, "-m", "tests.replicas.server", str(self.path / str(number)), str(number), urls]
        with open(self.path / f"{number}.log", "a") as log:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert process.stdout is not None
        ready = process.stdout.readline()
        assert ready == "ready\n", (self.path / f"{number}.log").read_text()[-2000:]
        self.processes[number] = process

    def kill(self, number: int) -> None:
        """End a broker at once."""
        process = self.processes.pop(number)
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()

    def freeze(self, number: int, seconds: float) -> None:
        """Let a broker do nothing for a while."""
        self.processes[number].send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.processes[number].send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """End all."""
        for number in list(self.processes):
            self.kill(number)

    def promote(self, number: int, partition: int = 0) -> str:
        """Let a broker lead; its answer, or the error."""
        try:
            line = Line(self.ports[number])
            try:
                return line.ask(f"SET_PARTITION_ROLE|{TOPIC} {partition} leader")
            finally:
                line.close()
        except OSError as error:
            return f"{type(error).__name__}: {error}"

    def read(self, number: int, partition: int = 0) -> dict[int, str]:
        """All that a broker has committed. Raises OSError."""
        line = Line(self.ports[number])
        found: dict[int, str] = {}
        try:
            while True:
                start = max(found) + 1 if found else 0
                answer = line.ask(f"CONSUME|{TOPIC} {partition} {start}")
                messages = parsed(answer)
                if not messages:
                    return found
                found |= messages
        finally:
            line.close()


def parsed(answer: str) -> dict[int, str]:
    """The messages of an answer to CONSUME; values here have no commas."""
    text = fields(answer).get("messages", "") if answer.startswith("OK") else ""
    return {int(offset): value for offset, _, value in (one.partition(":") for one in text.split(",") if one)}


class Load:
    """Threads that send and read until they are told to stop."""

    def __init__(self, cluster: Cluster, senders: int = 2, members: int = 2) -> None:
        self.history = History()
        self._cluster, self._ends = cluster, threading.Event()
        self._threads = [threading.Thread(target=self._send, args=(number,)) for number in range(senders)]
        self._threads += [threading.Thread(target=self._join, args=(f"member-{number}",)) for number in range(members)]
        self._threads.append(threading.Thread(target=self._read))
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Wait for the threads."""
        self._ends.set()
        for thread in self._threads:
            thread.join()

    def wait_for(self, count: int, seconds: float = 120) -> None:
        """Until so many more records are acknowledged."""
        most, end = len(self.history.produced) + count, time.monotonic() + seconds
        while len(self.history.produced) < most:
            assert time.monotonic() < end, f"only {len(self.history.produced)} records were acknowledged"
            time.sleep(0.01)

    def _values(self, sender: int) -> Iterator[str]:
        number = 0
        while True:
            yield f"{sender}-{number}"
            number += 1

    def _send(self, sender: int) -> None:
        values, at, random_ = self._values(sender), 0, random.Random(sender)
        while not self._ends.is_set():
            at = (at + 1) % len(self._cluster.ports)
            with suppress(OSError):
                line = Line(self._cluster.ports[at])
                try:
                    while not self._ends.is_set() and self._sent(line, values, random_):
                        pass
                finally:
                    line.close()
            self._ends.wait(0.02)

    def _sent(self, line: Line, values: Iterator[str], random_: random.Random) -> bool:
        sent = [next(values) for _ in range(random_.randrange(1, 30))]
        begin = time.monotonic()
        answers = line.ask_all([f"PRODUCE|{TOPIC} {value[-1]}:{value} acks=all" for value in sent])
        end = time.monotonic()
        for value, answer in zip(sent, answers, strict=True):
            if answer.startswith("OK"):
                found = fields(answer)
                self.history.produced.append(Produced(begin, end, int(found["partition"]), int(found["offset"]), value))
        return "NOT_LEADER" not in answers[-1]

    def _read(self) -> None:
        random_ = random.Random(9)
        while not self._ends.wait(0.01):
            with suppress(OSError):
                line = Line(random_.choice(self._cluster.ports))
                try:
                    begin, partition = time.monotonic(), random_.randrange(PARTITIONS)
                    known = [one.offset for one in self.history.produced[-50:] if one.partition == partition]
                    start = max(0, max(known, default=0) - random_.randrange(200))
                    answer = line.ask(f"CONSUME|{TOPIC} {partition} {start}")
                    self.history.consumed.append(Consumed(begin, time.monotonic(), partition, parsed(answer)))
                finally:
                    line.close()

    def _join(self, member: str) -> None:
        at, random_ = 0, random.Random(member)
        while not self._ends.wait(0.02):
            at = (at + 1) % len(self._cluster.ports)
            with suppress(OSError):
                line = Line(self._cluster.ports[at])
                try:
                    answer = line.ask(f"JOIN|workers {TOPIC} {member}")
                    while answer.startswith("OK") and not self._ends.wait(0.005):
                        answer = self._worked(line, member, answer, random_)
                finally:
                    line.close()

    def _worked(self, line: Line, member: str, answer: str, random_: random.Random) -> str:
        """Do what a member does in a generation, once; the last answer."""
        found = fields(answer)
        generation, owned = int(found["generation"]), parsed_partitions(found["assigned"])
        self.history.owned.append(Owned(generation, member, owned))
        if random_.random() < 0.02:
            line.ask(f"LEAVE|workers {TOPIC} {member} {generation}")
            return "left"
        for partition in owned:
            begin = time.monotonic()
            answer = line.ask(f"OFFSET|workers {TOPIC} {partition}")
            if not answer.startswith("OK"):
                return answer
            offset = int(fields(answer)["offset"])
            self.history.committed.append(Committed(begin, time.monotonic(), partition, offset, True))
            begin, offset = time.monotonic(), offset + 1
            answer = line.ask(f"COMMIT|workers {TOPIC} {member} {generation} {partition} {offset}")
            if not answer.startswith("OK"):
                return answer
            self.history.committed.append(Committed(begin, time.monotonic(), partition, offset, False))
        return line.ask(f"SYNC|workers {TOPIC} {member} {generation}")


def parsed_partitions(text: str) -> tuple[int, ...]:
    """The partitions in a list such as [0,1]."""
    return tuple(int(one) for one in text.strip("[]").split(",") if one)
