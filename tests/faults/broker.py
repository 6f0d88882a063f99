"""Runs the embedded broker repeatedly, with a fault at the first, second, … system call on its directory.

    LD_PRELOAD=shim.so python -m tests.faults.broker FAULT,FAULT DIRECTORY [RUNS]

Each run is a process: it starts a broker that flushes always, and asks it for all that is written, with an answer for
each request. Once the fault was met the disk is sound again, and everything is asked for once more. Then another
process starts a broker on the directory: what was acknowledged is there, nothing is there twice, and nothing of a
transaction that was not committed is visible. Failures are printed, and the exit status is then 1.
"""

from __future__ import annotations

import ctypes
import errno
import json
import logging
import os
import shutil
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kafkacodec as kc
from kafkacodec import errors
from tests.broker_wire import Wire
from tests.faults.__main__ import CLOSE, HALF, KILL, MOST_CALLS, NAME, READ, REMOVE, SYNC, WRITE, Fault

FAULTS = {
    "full": Fault(errno.ENOSPC, WRITE | NAME, True),
    "write": Fault(errno.EIO, WRITE, False),
    "name": Fault(errno.EIO, NAME | REMOVE, False),
    "read": Fault(errno.EIO, READ | CLOSE, False),
    "sync": Fault(errno.EIO, SYNC, False),
    "short": Fault(HALF, READ | WRITE, False),
    "kill": Fault(KILL, READ | WRITE | SYNC | NAME | REMOVE | CLOSE, False),
}
OPTIONS: dict[str, Any] = {
    "flush": "always",
    "config": {
        "segment.ms": 1, "index.interval.bytes": 100, "offsets.topic.num.partitions": 1,
        "transaction.state.log.num.partitions": 1,
    },
}  # fmt: skip
# What a client takes as "ask again", and what another request that was refused leads to.
RETRIABLE = {
    errors.KAFKA_STORAGE_ERROR, errors.NOT_COORDINATOR, errors.COORDINATOR_NOT_AVAILABLE,
    errors.COORDINATOR_LOAD_IN_PROGRESS, errors.CONCURRENT_TRANSACTIONS, errors.REQUEST_TIMED_OUT,
    errors.NOT_LEADER_OR_FOLLOWER,
}  # fmt: skip
FOLLOWS = {
    errors.UNKNOWN_TOPIC_OR_PARTITION, errors.TOPIC_ALREADY_EXISTS, errors.INVALID_TXN_STATE,
    errors.INVALID_PRODUCER_ID_MAPPING, errors.INVALID_PRODUCER_EPOCH, errors.PRODUCER_FENCED,
    errors.OUT_OF_ORDER_SEQUENCE_NUMBER,
}  # fmt: skip


class Wrong(Exception):
    """What a broker may not do."""


class Work:
    """Requests to a broker; what was acknowledged is told at once."""

    def __init__(self, kafka: Any, tell: Callable[[Any], None], turn: int) -> None:
        self._kafka, self._tell, self._turn = kafka, tell, turn
        self._wire = Wire(kafka)
        self.codes: list[int] = []

    def run(self) -> list[int]:
        """Ask for everything; the errors that were answered, -1 for a connection that was closed."""
        for n in range(6):
            self._produce(n)
        self._create()
        self._commit_offset()
        self._transaction("commit", True)
        self._transaction("abort", False)
        self._ask("DeleteRecords", 2, lambda a: [p.error_code for t in a.topics for p in t.partitions], timeout_ms=9000,
                  topics=[{"name": "gone", "partitions": [{"partition_index": 0, "offset": -1}]}])  # fmt: skip
        self._ask("DeleteTopics", 4, lambda a: [row.error_code for row in a.responses], timeout_ms=9000,
                  topic_names=[f"made-{self._turn}"])  # fmt: skip
        self._wire.socket.close()
        return self.codes

    def _produce(self, n: int) -> None:
        names = ("a", "b", "gone")
        values = {name: f"{name}-{self._turn}-{n}-{'x' * 500}" for name in names}
        topics = [topic_data(name, kc.encode([(b"k", value.encode())])) for name, value in values.items()]
        for name in names:
            self._tell(["asked", name, values[name]])

        def codes(answer: Any) -> list[int]:
            found = {row.name: row.partition_responses[0].error_code for row in answer.responses}
            for name in names:
                if not found[name]:
                    self._tell(["kept", name, values[name]])
            return list(found.values())

        self._ask("Produce", 9, codes, topic_data=topics, acks=-1, timeout_ms=9000)

    def _create(self) -> None:
        name = f"made-{self._turn}"
        topics = [{"name": one, "num_partitions": 2, "replication_factor": 1} for one in (name, f"kept-{self._turn}")]
        if self._ask("CreateTopics", 4, lambda a: [row.error_code for row in a.topics], timeout_ms=9000, topics=topics):
            self._tell(["topic", f"kept-{self._turn}", name])

    def _commit_offset(self) -> None:
        row = {"partition_index": 0, "committed_offset": self._turn * 100, "committed_leader_epoch": -1}
        done = self._ask(
            "OffsetCommit", 7, lambda a: [p.error_code for t in a.topics for p in t.partitions], group_id="g",
            generation_id_or_member_epoch=-1, member_id="", topics=[{"name": "a", "partitions": [row]}],
        )  # fmt: skip
        if done:
            self._tell(["offset", "a", self._turn * 100])

    def _transaction(self, name: str, committed: bool) -> None:
        """One that the client gives up at the first error, as a producer that ends."""
        found: list[Any] = []

        def one(answer: Any) -> list[int]:
            found.append(answer)
            return [answer.error_code]

        # Nothing waits here for the end of a transaction that an error left open: the broker may still be at it.
        if not self._ask("InitProducerId", 3, one, transactional_id=name, transaction_timeout_ms=60_000):
            return
        producer, epoch = found[0].producer_id, found[0].producer_epoch
        who = {"transactional_id": name, "producer_id": producer, "producer_epoch": epoch}
        if not self._ask("AddPartitionsToTxn", 3, lambda a: [
            p.partition_error_code for t in a.results_by_topic_v3_and_below for p in t.results_by_partition
        ], v3_and_below_transactional_id=name, v3_and_below_producer_id=producer, v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=[{"name": "a", "partitions": [0]}, {"name": "b", "partitions": [0]}]):  # fmt: skip
            return
        value = f"{name}-{self._turn}"
        data = [
            topic_data(topic, kc.encode([(b"t", value.encode())], producer_id=producer, producer_epoch=epoch,
                                        base_sequence=0, is_transactional=True))
            for topic in ("a", "b")
        ]  # fmt: skip
        self._tell(["asked both", value])
        if not self._ask("Produce", 9, lambda a: [row.partition_responses[0].error_code for row in a.responses],
                         transactional_id=name, topic_data=data, acks=-1, timeout_ms=9000):  # fmt: skip
            return
        if committed:
            self._tell(["committing", value])
        if self._ask("EndTxn", 3, one, committed=committed, **who) and committed:
            self._tell(["kept both", value])

    def _ask(self, api: str, version: int, codes: Callable[[Any], list[int]], **fields: Any) -> bool:
        try:
            answer = self._wire.ask(api, version, **fields)
        except (ConnectionResetError, BrokenPipeError):
            answer = None
        except TimeoutError:
            raise Wrong(f"{api} is not answered") from None
        found = [-1] if answer is None else codes(answer)
        if answer is None:
            self._wire.socket.close()
            self._wire = Wire(self._kafka)
        self.codes += [code for code in found if code]
        if unknown := set(found) - RETRIABLE - FOLLOWS - {0, -1}:
            raise Wrong(f"{api} is answered {unknown}")
        return not any(found)


def topic_data(name: str, records: bytes) -> dict[str, Any]:
    return {"name": name, "partition_data": [{"index": 0, "records": records}]}


def child(action: Callable[[Callable[[Any], None]], None]) -> tuple[int, list[Any]]:
    """Run in a process of its own; its status, and what it told."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 0
        os.close(read)

        def tell(event: Any) -> None:
            os.write(write, json.dumps(event).encode() + b"\n")

        logging.disable()
        try:
            action(tell)
        except BaseException as error:
            status = 1
            tell(["wrong", f"{type(error).__name__}: {error}", traceback.format_exc()])
        os._exit(status)
    os.close(write)
    with open(read) as told:
        events = [json.loads(line) for line in told]
    return os.waitpid(pid, 0)[1], events


def set_up(place: Path) -> None:
    """A directory with topics and records, that was closed in good order."""

    def action(tell: Any) -> None:
        with kc.broker.serve(place, topics=["a", "b", "gone"], **OPTIONS) as kafka:
            assert not Work(kafka, lambda event: None, 0).run()

    status, events = child(action)
    assert status == 0, events


def live(place: Path, fault: Fault, number: int, tell: Callable[[Any], None]) -> None:
    """One life of a broker, with a fault at a call."""
    shim = shim_of()
    shim.fault_arm(os.fsencode(place), fault.what, number, fault.calls, fault.stays)

    def sound() -> bool:
        """The disk is sound again, if there was a fault."""
        hit = (shim.fault_hit() or b"").decode()
        if hit:
            tell(["hit", hit])
            shim.fault_arm(b"/", 0, 0, 0, 0)
        return bool(hit)

    turns = iter(range(1, 4))
    try:
        kafka = kc.broker.serve(place, **OPTIONS)
    except OSError as error:
        if not sound():
            raise Wrong(f"does not start: {error}") from error
        kafka = kc.broker.serve(place, **OPTIONS)
    codes = Work(kafka, tell, next(turns)).run()
    if sound():
        again = Work(kafka, tell, next(turns)).run()
        # A log that could not be flushed stays closed until the broker starts anew. A transaction that the fault left
        # open is ended when its producer begins again.
        if not fault.calls & (SYNC | READ) and set(again) - {errors.CONCURRENT_TRANSACTIONS}:
            raise Wrong(f"does not recover: {codes}, then {again}")
    elif codes:
        raise Wrong(f"errors without a fault: {codes}")
    try:
        kafka.stop()
    except OSError as error:
        if not sound():
            raise Wrong(f"does not stop: {error}") from error
    tell(["seen", shim.fault_seen()])


def look(place: Path, tell: Callable[[Any], None]) -> None:
    """What a broker finds that starts on the directory."""
    with kc.broker.serve(place, **OPTIONS) as kafka:
        names = {"a", "b", "gone"}
        for name in sorted(names):
            tell(["found", name, [value.decode() for value in kafka.records(name)["value"].tolist()]])
            log = kc.log.LogDirectory(place).partition(name, 0)  # also what an open transaction hides
            tell(["stored", name, [bytes(record.value).decode() for chunk in log.read() for record in chunk.records()]])
        wire = Wire(kafka)
        metadata: Any = wire.ask("Metadata", 9, topics=None)
        tell(["topics", [row.name for row in metadata.topics]])
        offsets: Any = wire.ask("OffsetFetch", 7, group_id="g", topics=None)
        tell(["offset", [p.committed_offset for t in offsets.topics for p in t.partitions]])
        codes = Work(kafka, lambda event: None, 4).run()
        assert not set(codes) - {errors.CONCURRENT_TRANSACTIONS}, f"does not serve: {codes}"


def check(fault: Fault, status: int, events: list[Any], found: list[Any]) -> None:
    """Raise Wrong if what a broker said is not what the next one finds."""
    of = {kind: [event[1:] for event in events if event[0] == kind] for kind in {event[0] for event in events}}
    if status and not (fault.what == KILL and os.WTERMSIG(status) == signal.SIGKILL):
        raise Wrong(of.get("wrong", status))
    if found[-1][0] == "wrong":
        raise Wrong(found[-1])
    values = {event[1]: event[2] for event in found if event[0] == "found"}
    stored = {event[1]: event[2] for event in found if event[0] == "stored"}
    topics, offset = found[-2][1], found[-1][1]
    for name, value in of.get("kept", ()):
        if name != "gone" and stored[name].count(value) != 1:
            raise Wrong(f"acknowledged, and {stored[name].count(value)} times in {name}: {value[:20]}")
    for name, have in values.items():
        asked = {value for topic, value in of.get("asked", ()) if topic == name}
        repeated = [value for value, count in Counter(have).items() if count > 1]
        strange = [v for v in have if v.count("-") == 3 and v.split("-")[1] != "0" and v not in asked]
        if repeated or strange:
            raise Wrong(f"in {name} twice: {repeated}; nobody sent: {strange}")
    for (value,) in of.get("kept both", ()):
        if not all(value in values[name] for name in ("a", "b")):
            raise Wrong(f"committed, and not there: {value}")
    for (value,) in of.get("asked both", ()):
        there = [value in values[name] for name in ("a", "b")]
        if any(there) and ([value] not in of.get("committing", ()) or not all(there)):
            raise Wrong(f"half a transaction: {value} {there}")
    for kept, gone in of.get("topic", ()):
        if kept not in topics:
            raise Wrong(f"made, and not there: {kept} and {gone}")
    committed = [value for _, value in of.get("offset", ())]
    if committed and not offset[0] >= committed[-1]:
        raise Wrong(f"committed {committed}, found {offset}")


def shim_of() -> ctypes.CDLL:
    shim = ctypes.CDLL(None)
    shim.fault_seen.restype = ctypes.c_long
    shim.fault_arm.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_long, ctypes.c_int, ctypes.c_int]
    shim.fault_hit.restype = ctypes.c_char_p
    return shim


def main(kinds: str, directory: str, runs: int | None = None) -> int:
    """The exit status."""
    before = Path(directory).resolve() / "before"
    set_up(before)
    return max([try_fault(kind, before, runs) for kind in kinds.split(",")])


def try_fault(kind: str, before: Path, runs: int | None) -> int:
    """Whether the broker fails with a fault, as an exit status; what it does then is printed."""
    fault, place = FAULTS[kind], before.with_name(f"place-{kind}")
    shutil.copytree(before, place)
    status, events = child(lambda tell: live(place, fault, MOST_CALLS, tell))
    assert status == 0, events
    calls = next(event[1] for event in events if event[0] == "seen")
    step = 1.0 if runs is None else max(1.0, (calls - 1) / max(1, runs - 1))
    numbers = sorted({round(1 + i * step) for i in range(calls)} & set(range(1, calls + 1)))
    met: Counter[str] = Counter()
    faults = 0
    for number in numbers:
        shutil.rmtree(place)
        shutil.copytree(before, place)
        status, events = child(lambda tell, number=number: live(place, fault, number, tell))  # type: ignore[misc]
        met.update(event[1] for event in events if event[0] == "hit")
        found = child(lambda tell: look(place, tell))[1]
        try:
            check(fault, status, events, found)
        except Wrong as error:
            faults += 1
            hit = [event[1] for event in events if event[0] == "hit"]
            print(f"{kind} at call {number} {hit}: {str(error)[:3000]}")
    print(f"{kind}: {len(numbers)} runs over {calls} calls; {dict(met)}")
    return int(faults > 0 or calls == 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3], runs=int(sys.argv[3]) if len(sys.argv) > 3 else None))
