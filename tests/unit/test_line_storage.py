"""The storage in files: persistence, kills, damage."""

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
from kafkacodec.dialects.line import group_files as storage_module
from kafkacodec.errors import CorruptRecord, LocalProtocolError


def ask(broker: line.Broker, text: str, now: int = 0) -> line.Response:
    (reply,) = broker.receive(f"V1|1|{text}", now)
    return line.parse_response(reply.line, text.partition("|")[0])


FILES = [".lock", "groups.json", "offsets.json", "records.log"]


def test_everything_outlives_the_broker(tmp_path: Path) -> None:
    config = line.BrokerConfig(topics={"t": 3}, session_timeout_ms=100)
    with line.FileStorage(tmp_path) as storage:
        broker = line.Broker(storage, config, partitioner=lambda key, n: 2)
        ask(broker, "JOIN|g t a assignor=range")
        ask(broker, "JOIN|g t b")
        for i in range(5):
            ask(broker, f"PRODUCE|t k:v{i}")
        ask(broker, "COMMIT|g t b 2 2 4")
    assert sorted(p.name for p in tmp_path.iterdir()) == FILES

    with line.FileStorage(tmp_path) as storage:
        assert storage.cut_bytes == 0
        later = line.Broker(storage, config, now=5000, partitioner=lambda key, n: 2)
        assert ask(later, "SYNC|g t a 2", 5000).fields == {"generation": 2, "assigned": [0, 1]}
        assert ask(later, "OFFSET|g t 2", 5000).fields == {"offset": 4}
        assert ask(later, "PRODUCE|t k:new", 5000).fields["offset"] == 5
        unread = ask(later, "CONSUME|t 2 4", 5000).fields["messages"]
        assert unread == [{"offset": 4, "value": "v4"}, {"offset": 5, "value": "new"}]
        assert ask(later, "JOIN|g t c", 5050).fields == {"generation": 3, "assigned": [2]}
        # The members from before the restart have one session timeout to return.
        assert ask(later, "JOIN|g t c", 5101).fields["generation"] == 4


def test_offsets_do_not_outlive_their_records(tmp_path: Path) -> None:
    """Otherwise records written after a loss would be skipped until the log passes the old offset."""
    config = line.BrokerConfig(session_timeout_ms=100)
    with line.FileStorage(tmp_path) as storage:
        broker = line.Broker(storage, config)
        for i in range(5):
            ask(broker, f"PRODUCE|t k:v{i}")
        ask(broker, "JOIN|g t a")
        ask(broker, "COMMIT|g t a 1 0 5")
    (tmp_path / "records.log").unlink()
    with line.FileStorage(tmp_path) as storage:
        broker = line.Broker(storage, config)
        (failure,) = broker.take_failures()
        assert str(failure) == "offsets: committed offset of group 'g' past the end of 't'-0 was lowered to it"
        assert ask(broker, "PRODUCE|t k:new").fields["offset"] == 0
        assert ask(broker, "OFFSET|g t 0").fields == {"offset": 0}
    # A lowered offset stays lowered when records are added.
    with line.FileStorage(tmp_path) as storage:
        broker = line.Broker(storage, config)
        assert ask(broker, "OFFSET|g t 0").fields == {"offset": 0}
        assert ask(broker, "COMMIT|g t a 1 0 1").ok


def test_partitions_added_while_the_broker_was_away_are_shared_out(tmp_path: Path) -> None:
    with line.FileStorage(tmp_path) as storage:
        ask(line.Broker(storage, line.BrokerConfig(topics={"t": 1})), "JOIN|g t a")
    with line.FileStorage(tmp_path) as storage:
        later = line.Broker(storage, line.BrokerConfig(topics={"t": 2}))
        assert ask(later, "JOIN|g t a").fields == {"generation": 2, "assigned": [0, 1]}


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    ours = [".groups.json.0123456789abcdef.unfinished", ".offsets.json.fedcba9876543210.unfinished"]
    others = ["groups.json.bak", "offsets.json.2", ".groups.json.0123456789abcdef.unfinished.bak", "records.log.old"]
    for name in ours + others:
        (tmp_path / name).write_text(name)
    directory = tmp_path / ".groups.json.00000000000000ff.unfinished"
    directory.mkdir()
    with line.FileStorage(tmp_path) as storage:
        storage.save_groups([])
        storage.save_offsets([])
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([*FILES, *others, directory.name])
    assert all((tmp_path / name).read_text() == name for name in others)


@pytest.mark.parametrize("name", [".lock", "records.log"])
def test_links_lead_nowhere(tmp_path: Path, name: str) -> None:
    directory, elsewhere = tmp_path / "data", tmp_path / "elsewhere"
    directory.mkdir()
    (directory / name).symlink_to(elsewhere)
    with pytest.raises(OSError, match="symbolic links"):
        line.FileStorage(directory)
    assert not elsewhere.exists()


def test_a_directory_belongs_to_one_storage(tmp_path: Path) -> None:
    code = "import sys; from kafkacodec.dialects.line import FileStorage; FileStorage(sys.argv[1])"
    with line.FileStorage(tmp_path) as storage:
        storage.append("t", 0, "k", "v")
        with pytest.raises(LocalProtocolError, match="in use: another broker"):
            line.FileStorage(tmp_path)
        other = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=60)
        assert "LocalProtocolError" in other.stderr
        assert storage.append("t", 0, "k", "v") == 1
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], timeout=60).returncode == 0
    with line.FileStorage(tmp_path) as storage:
        assert storage.end("t", 0) == 2


VALUES = ["a", "", "\r,1:x", "ж" * 100, "\u2028\x00", "b"]


def filled(directory: Path) -> list[bytes]:
    """The lines of a record file with `VALUES` in two partitions."""
    with line.FileStorage(directory) as storage:
        for i, value in enumerate(VALUES):
            storage.append("t/../x", i % 2, f"k{i}", value)
    return (directory / "records.log").read_bytes().splitlines(keepends=True)


def stored(storage: line.FileStorage) -> list[str]:
    values = [[value for _, value in storage.read("t/../x", p, 0, 99)] for p in range(2)]
    return [values[i % 2][i // 2] for i in range(len(values[0]) + len(values[1]))]


def test_a_torn_end_is_cut_wherever_it_is_torn(tmp_path: Path) -> None:
    lines = filled(tmp_path)
    path = tmp_path / "records.log"
    whole, last = b"".join(lines[:-1]), lines[-1]
    tails = [last[:n] for n in range(len(last))] + [b"\0" * 5000, b"\xff\n" * 100, last[:-1] + b" \n"]
    for tail in tails:
        path.write_bytes(whole + tail)
        with line.FileStorage(tmp_path) as storage:
            assert storage.cut_bytes == len(tail)
            assert stored(storage) == VALUES[:-1]
            assert storage.append("t/../x", 1, "k", "again") == 2
        with line.FileStorage(tmp_path) as storage:
            assert storage.cut_bytes == 0
            assert stored(storage) == [*VALUES[:-1], "again"]
    # Killed during creation.
    for n in range(len(lines[0])):
        path.write_bytes(lines[0][:n])
        with line.FileStorage(tmp_path) as storage:
            assert stored(storage) == []
            assert storage.append("t", 0, "k", "v") == 0
        assert path.read_bytes().startswith(lines[0])


@pytest.mark.parametrize("damage", ["flip", "cut", "insert", "other", "remove", "repeat"])
def test_damage_before_the_end_is_reported_and_nothing_is_cut(tmp_path: Path, damage: str) -> None:
    lines = filled(tmp_path)
    position = len(b"".join(lines[:3]))
    lines[3] = {
        "flip": lines[3].replace(b"k2", b"k3"),
        "cut": lines[3][:-3],
        "insert": b"x\n" + lines[3],
        "other": lines[0],
        "remove": b"",
        "repeat": lines[2],
    }[damage]
    # A missing line is detected at the next line of its partition.
    position += len(lines[4]) if damage == "remove" else 0
    path = tmp_path / "records.log"
    path.write_bytes(b"".join(lines))
    with pytest.raises(CorruptRecord, match=r"records\.log") as caught:
        line.FileStorage(tmp_path)
    assert caught.value.position == position
    assert path.read_bytes() == b"".join(lines)


@pytest.mark.parametrize("content", [b"my notes", b"my notes\n", b"\0", b'{"format":1}\n'])
def test_a_file_of_another_kind_is_not_touched(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "records.log"
    path.write_bytes(content)
    with pytest.raises(CorruptRecord):
        line.FileStorage(tmp_path)
    assert path.read_bytes() == content


def test_a_file_that_changes_meanwhile_is_answered_for(tmp_path: Path) -> None:
    with line.FileStorage(tmp_path) as storage:
        broker = line.Broker(storage)
        ask(broker, "PRODUCE|t k:value")
        path = tmp_path / "records.log"
        for content in (path.read_bytes().replace(b"value", b"valve"), b""):
            path.write_bytes(content)
            assert ask(broker, "CONSUME|t 0 0").code == "STORAGE_ERROR"
            assert isinstance(broker.take_failures()[0], CorruptRecord)
        assert ask(broker, "PING|").ok


def test_records_are_on_the_disk_before_offsets_are(tmp_path: Path, monkeypatch: Any) -> None:
    with line.FileStorage(tmp_path) as storage:
        steps = []
        for name in ("fsync", "replace"):
            real = getattr(os, name)

            def step(*args: Any, name: str = name, real: Any = real) -> Any:
                where = os.readlink(f"/proc/self/fd/{args[0]}") if name == "fsync" else str(args[1])
                steps.append((name, Path(where).name))
                return real(*args)

            monkeypatch.setattr(os, name, step)
        for _ in range(2):
            storage.append("t", 0, "k", "v")
            storage.save_offsets([])
            assert steps[0] == ("fsync", "records.log")
            assert ("replace", "offsets.json") in steps
            steps.clear()


FULL_DISK = """
import resource, sys
from kafkacodec.dialects.line import Broker, FileStorage, parse_response
def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
with FileStorage(sys.argv[1]) as storage:
    broker, kept, failed = Broker(storage), [], 0
    for size in range(200, 6000, 97):
        limit(size)
        for _ in range(3):
            value = f"v{len(kept)}" + "x" * (size % 41)
            (reply,) = broker.receive(f"V1|1|PRODUCE|t k:{value}", 0)
            if reply.line.startswith("V1|1|OK"):
                kept.append(value)
            else:
                assert "STORAGE_ERROR" in reply.line, reply.line
                failed += 1
    assert failed > 20 and len(kept) > 20, (failed, len(kept))
    assert [value for _, value in storage.read("t", 0, 0, 9999)] == kept
    limit(resource.RLIM_INFINITY)
with FileStorage(sys.argv[1]) as storage:
    assert [value for _, value in storage.read("t", 0, 0, 9999)] == kept
    assert storage.cut_bytes == 0
"""


def test_a_disk_that_fills_up_and_empties_loses_nothing(tmp_path: Path) -> None:
    """With real short writes and errors of the file system."""
    run = subprocess.run([sys.executable, "-c", FULL_DISK, str(tmp_path)], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr


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
                {"generation": -1},
                {"generation": 1 << 63},
                {"assignments": {"a": [-1]}},
            )
        ),
    ],
)
def test_damaged_files_are_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "groups.json").write_text(content)
    for _ in range(2):  # the lock is released
        with pytest.raises(CorruptRecord, match=r"groups\.json"):
            line.FileStorage(tmp_path)


@pytest.mark.parametrize("step", ["os.open", "os.fsync", "os.replace"])
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
from kafkacodec.dialects.line import Broker, FileStorage, parse_response
storage = FileStorage(sys.argv[1])
broker, n = Broker(storage), storage.end("t", 0)
(joined,) = broker.receive("V1|1|JOIN|g t a", 0)
generation = parse_response(joined.line, "JOIN").fields["generation"]
print("ready", flush=True)
while True:
    (reply,) = broker.receive(f"V1|1|PRODUCE|t k:{'x' * (n * 37 % 3000)}", 0)
    n = parse_response(reply.line, "PRODUCE").fields["offset"] + 1
    print(n, flush=True)
    if n % 10 == 0:
        (reply,) = broker.receive(f"V1|1|COMMIT|g t a {generation} 0 {n}", 0)
        assert reply.line.startswith("V1|1|OK"), reply.line
        print("committed", n, flush=True)
"""


def test_a_kill_at_any_moment_loses_nothing_acknowledged(tmp_path: Path) -> None:
    committed = 0
    for delay in (0.0, 0.003, 0.011, 0.02, 0.037):
        process = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.05 + delay)
        os.kill(process.pid, signal.SIGKILL)
        # The output before the kill; the last line may be partial.
        lines = process.stdout.read().splitlines()[:-1]
        process.wait()
        process.stdout.close()
        with line.FileStorage(tmp_path) as storage:
            produced = [int(text) for text in lines if text.isdecimal()]
            assert storage.end("t", 0) >= max(produced, default=0)
            offsets = {row["partition"]: row["offset"] for row in storage.load_offsets()}
            commits = [int(text.split()[1]) for text in lines if text.startswith("committed")]
            assert max([committed, *commits]) <= offsets.get(0, 0) <= storage.end("t", 0)
            committed = offsets.get(0, 0)
            assert [len(v) for _, v in storage.read("t", 0, 0, 1 << 40)] == [
                n * 37 % 3000 for n in range(storage.end("t", 0))
            ]
        assert not [path.name for path in tmp_path.iterdir() if path.name not in FILES]
    assert committed > 0
