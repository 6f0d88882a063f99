"""The embedded broker is killed at random moments under a streams group: members go on, no committed offset is lost."""

from __future__ import annotations

import os
import random
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafkacodec.errors import FENCED_MEMBER_EPOCH, UNKNOWN_MEMBER_ID
from tests.broker_wire import Wire
from tests.differential.streams_members import ROLES, part, topology
from tests.integration.test_broker_killed import Killed
from tests.patience import eventually

pytestmark = pytest.mark.slow
KILLS = 200 if os.environ.get("KAFKACODEC_LONG") else 8
TOPICS = ("both", "plain")
TOPOLOGY = topology(*(part(name, name) for name in TOPICS))
Task = tuple[str, int]


class Lost(Exception):
    """The broker was killed before it answered."""


class Application:
    """Two members, one of which leaves now and then, and what they were told; it goes on through every crash."""

    def __init__(self, server: str, rnd: random.Random) -> None:
        self.server, self.rnd = server, rnd
        self._wire: Wire | None = None
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._guarded)
        self.failed: list[BaseException] = []
        self.number = self.epoch = self.beats = 0
        self.tried: dict[Task, int] = {}
        self.committed: dict[Task, int] = {}
        self.members = [Member(self, "first"), Member(self, "other-0")]
        self.leaving: Member | None = None

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._ends.set()
        self._thread.join()

    def _guarded(self) -> None:
        try:
            while not self._ends.is_set():
                with suppress(Lost):
                    self._go_on()
        except BaseException as error:
            self.failed.append(error)

    def _go_on(self) -> None:
        if self._wire is None:
            self.look()
        if self.leaving is not None:
            self.leaving.leave()
            self.leaving = None
        for member in self.members:
            member.beat()
            member.commit()
        self.beats += 1
        if self.rnd.random() < 0.1:
            self.leaving, self.members[1] = self.members[1], Member(self, f"other-{self.beats}")

    def _connect(self) -> None:
        def connected() -> bool:
            try:
                self._wire = Wire(SimpleNamespace(bootstrap_servers=self.server))
            except ConnectionError:
                return False
            return True

        eventually(connected)

    def disconnect(self) -> None:
        if self._wire is not None:
            self._wire.close()
        self._wire = None

    def ask(self, api: str, version: int, **fields: Any) -> Any:
        """The answer; raises Lost."""
        assert self._wire is not None
        answer = None
        with suppress(ConnectionError):
            answer = self._wire.ask(api, version, **fields)
        if answer is None:
            self.disconnect()
            raise Lost
        return answer

    def look(self) -> None:
        """What was acknowledged is there; what was not may be, too. The epoch of the group has not gone back."""
        self.disconnect()
        self._connect()
        wanted = [{"name": name, "partition_indexes": [0, 1]} for name in TOPICS]
        answer = self.ask("OffsetFetch", 9, groups=[{"group_id": "app", "topics": wanted}])
        for topic in answer.groups[0].topics:
            for row in topic.partitions:
                place = topic.name, row.partition_index
                known = {self.committed.get(place, -1), self.tried.get(place, -1)}
                assert row.committed_offset in known, (place, row.committed_offset, known)
                self.committed[place] = self.tried[place] = row.committed_offset
        group = self.ask("StreamsGroupDescribe", 1, group_ids=["app"]).groups[0]
        assert group.group_epoch >= self.epoch
        self.epoch = group.group_epoch


class Member:
    """A member. What it is to run is not told again if an answer is lost, as in Apache Kafka: then it joins again."""

    def __init__(self, app: Application, name: str) -> None:
        self._app, self.name = app, name
        self.epoch, self.unsure, self._leaves = 0, False, False
        self.runs: set[Task] = set()

    def beat(self) -> None:
        rows = [{"subtopology_id": name, "partitions": [n for part, n in self.runs if part == name]} for name in TOPICS]
        fields = {**dict.fromkeys(ROLES, ()), ROLES[0]: [row for row in rows if row["partitions"]]}
        if self.epoch == 0:
            fields |= {"topology": TOPOLOGY, "rebalance_timeout_ms": 60_000, "process_id": self.name}
        unsure, self.unsure = self.unsure, True  # until it is answered
        answer = self._ask(self.epoch, **fields)
        self.unsure = False
        if unsure and (answer.error_code == FENCED_MEMBER_EPOCH or (self.epoch and answer.active_tasks is None)):
            self.epoch, self.runs = 0, set()
            return
        assert answer.error_code == 0, (self.name, self.epoch, answer.error_code)
        assert answer.member_epoch >= self.epoch
        self.epoch = answer.member_epoch
        if answer.active_tasks is not None:
            self.runs = {(row.subtopology_id, number) for row in answer.active_tasks for number in row.partitions}

    def _ask(self, epoch: int, **fields: Any) -> Any:
        every = {"group_id": "app", "member_id": self.name, "member_epoch": epoch}
        return self._app.ask("StreamsGroupHeartbeat", 1, **every, **fields)

    def commit(self) -> None:
        for place in sorted(self.runs):
            self._app.number += 1
            offset = self._app.tried[place] = self._app.number
            rows = [{"partition_index": place[1], "committed_offset": offset}]
            asked = {"topics": [{"name": place[0], "partitions": rows}], "generation_id_or_member_epoch": self.epoch}
            answer = self._app.ask("OffsetCommit", 9, group_id="app", member_id=self.name, **asked)
            assert answer.topics[0].partitions[0].error_code == 0
            self._app.committed[place] = offset

    def leave(self) -> None:
        again, self._leaves = self._leaves, True
        code = self._ask(-1).error_code
        assert code == 0 or (again and code == UNKNOWN_MEMBER_ID)


def test_members_go_on_and_committed_offsets_are_there(tmp_path: Path) -> None:
    rnd = random.Random(KILLS)
    broker = Killed(tmp_path)
    broker.start()
    app = Application(broker.server, rnd)
    app.start()
    try:
        for _ in range(KILLS):
            before = app.beats
            eventually(lambda before=before: app.beats > before + 3 or app.failed)  # type: ignore[misc]
            time.sleep(rnd.uniform(0, 0.3))
            broker.kill()
            broker.start()
    finally:
        app.end()
    try:
        assert not app.failed
        app.look()
        held = [task for member in app.members for task in member.runs]
        assert len(held) == len(set(held))
    finally:
        app.disconnect()
        broker.kill()
        broker.end()
    print(f"{app.number} commits, epoch {app.epoch}; restarts: {broker.times} ms")
