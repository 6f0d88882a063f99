"""groups.json and offsets.json: what lasts, and what a kill leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from kafkacodec.dialects import line
from kafkacodec.dialects.line import storage as storage_module
from kafkacodec.errors import CorruptRecord


def ask(broker: line.Broker, text: str, now: int = 0) -> line.Response:
    (reply,) = broker.receive(f"V1|1|{text}", now)
    return line.parse_response(reply.line, text.partition("|")[0])


def test_groups_and_offsets_outlive_the_broker(tmp_path: Path) -> None:
    config = line.BrokerConfig(topics={"t": 3}, session_timeout_ms=100)
    broker = line.Broker(line.FileStorage(tmp_path), config)
    ask(broker, "JOIN|g t a")
    ask(broker, "JOIN|g t b assignor=range")
    ask(broker, "COMMIT|g t b 2 2 41")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["groups.json", "offsets.json"]

    later = line.Broker(line.FileStorage(tmp_path), config, now=5000)
    assert ask(later, "SYNC|g t a 2", 5000).fields == {"generation": 2, "assigned": [0, 1]}
    assert ask(later, "OFFSET|g t 2", 5000).fields == {"offset": 41}
    assert ask(later, "JOIN|g t c", 5050).fields == {"generation": 3, "assigned": [2]}
    # Members that were there before have a whole session to come back, and no more.
    assert ask(later, "JOIN|g t c", 5101).fields["generation"] == 4


def test_partitions_added_while_the_broker_was_away_are_shared_out(tmp_path: Path) -> None:
    ask(line.Broker(line.FileStorage(tmp_path), line.BrokerConfig(topics={"t": 1})), "JOIN|g t a")
    later = line.Broker(line.FileStorage(tmp_path), line.BrokerConfig(topics={"t": 2}))
    assert ask(later, "JOIN|g t a").fields == {"generation": 2, "assigned": [0, 1]}


GROUP = {"group": "g", "topic": "t", "generation": 1, "assignor": "range", "members": ["a"], "assignments": {"a": [0]}}


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "[" * 100_000,
        '{"format":2,"rows":[]}',
        '{"format":1,"rows":{}}',
        '{"format":1,"rows":[1]}',
        *(
            json.dumps({"format": 1, "rows": [{**GROUP, **change}]})
            for change in (
                {"generation": "1"},
                {"generation": True},
                {"assignor": "sticky"},
                {"members": [1]},
                {"assignments": {"b": [0]}},
                {"assignments": {"a": ["0"]}},
                {"extra": 1},
            )
        ),
    ],
)
def test_damaged_files_are_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "groups.json").write_text(content)
    with pytest.raises(CorruptRecord, match=r"groups\.json"):
        line.FileStorage(tmp_path)


@pytest.mark.parametrize("step", ["os.fdopen", "os.fsync", "os.replace"])
def test_a_failure_at_any_step_leaves_the_old_file(tmp_path: Path, monkeypatch: Any, step: str) -> None:
    path = tmp_path / "groups.json"
    storage_module.write_atomically(path, b"old")

    def fail(*_: Any) -> None:
        raise OSError(step)

    monkeypatch.setattr(step, fail)
    with pytest.raises(OSError, match=step):
        storage_module.write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


WRITER = """
import sys
from kafkacodec.dialects.line import FileStorage
storage = FileStorage(sys.argv[1])
print("ready", flush=True)
n = 0
while True:
    n += 1
    storage.save_offsets([{"group": "g", "topic": "t", "partition": p, "offset": n} for p in range(500)])
"""


def test_a_kill_at_any_moment_leaves_a_whole_file(tmp_path: Path) -> None:
    last = 0
    for delay in (0.0, 0.003, 0.011, 0.02, 0.037):
        process = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.05 + delay)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        rows = line.FileStorage(tmp_path).load_offsets()
        assert [row["partition"] for row in rows] == list(range(500))
        assert len({row["offset"] for row in rows}) == 1
        assert [path.name for path in tmp_path.iterdir()] == ["offsets.json"]
        last = max(last, rows[0]["offset"])
    assert last > 1
