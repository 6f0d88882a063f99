"""Every command over every directory in `tests/data`, and over damaged copies, plain and with ``--json``.

`test_command_sweep` tries many options on a part of the trees; this is the reverse: few options, no directory left out.
Intact directories get one form of each command, in turn; with KAFKACODEC_SWEEP=full (`make proofs`), all forms.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from kafkacodec.cli.__main__ import BAD_INPUT, DONE, WRONG_USAGE
from kafkacodec.cli.app import COMMANDS
from tests import hostile_trees
from tests.command_runner import Runner, faults
from tests.corpus import ROOT
from tests.dialect_vectors import ROOT as DIALECTS

FULL = os.environ.get("KAFKACODEC_SWEEP") == "full"
DATA = ROOT.parent

# Command -> its arguments, as often as it has forms. PATH stands for the directory, OUT for one that does not exist.
READING = {
    "topics": ["PATH", "PATH --json"],
    "scan": ["PATH", "PATH --json", "PATH --batches", "PATH --batches --json"],
    "dump": ["PATH", "PATH --json"],
    "verify": ["PATH", "PATH --json"],
    "stats": ["PATH", "PATH --json"],
    "diff": ["PATH PATH", "PATH PATH --json"],
}
WRITING = {
    "convert": ["PATH -o OUT --format parquet", "PATH -o OUT --format json --on-error skip"],
    "recover": ["PATH OUT", "PATH OUT --json"],
}
# These take longer.
SUMMARIES = {"report": ["PATH -o OUT"], "diff": ["PATH PATH --json"]}
# Command -> its arguments, and the topic that it reads.
STORED = {
    "offsets": "__consumer_offsets",
    "groups": "__consumer_offsets",
    "lag": "__consumer_offsets",
    "metadata": "__cluster_metadata",
}
# No directory is their input.
OTHERS = {"encode", "message", "bench", "sample", "demo", "consume", "produce", "serve", "admin"}


BROKERS = [*(ROOT / "logs").iterdir(), *(DIALECTS / "kafka07/segments").glob("broker-*")]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KAFKACODEC_TIERED_KEYS", str(DATA / "tiered/private-key.pem"))
        with Runner(tmp_path_factory.mktemp("runner")) as runner:
            yield runner


def codes(run: Runner, tree: Path, out: Path, forms: dict[str, list[str]]) -> dict[str, set[int | None]]:
    """The exit codes of every command in its forms; fails on output that no command may have."""
    found: dict[str, set[int | None]] = {}
    wrong = []
    for command, lines in forms.items():
        for line in lines:
            words = {"PATH": str(tree), "OUT": str(out)}
            arguments = [command, *(words.get(word, word) for word in line.split())]
            outcome = run(arguments)
            wrong += [f"{command} {line} on {tree}: {fault}" for fault in faults(arguments, outcome)]
            found.setdefault(command, set()).add(outcome.code)
            shutil.rmtree(out) if out.is_dir() else out.unlink(missing_ok=True)
    assert not wrong, "\n".join(wrong)
    return found


def test_no_command_is_left_out() -> None:
    assert {*READING, *WRITING, *SUMMARIES, *STORED, *OTHERS} == set(COMMANDS)


@cache
def has(directory: Path, pattern: str, levels: int = 0) -> bool:
    """Whether the directory has such a file, or one in it, or one up to `levels` below that."""
    return any(any(directory.glob("*/" * depth + pattern)) for depth in range(levels + 2))


def is_of(directory: Path, topic: str) -> bool:
    """Whether the directory is a partition of the topic, or has one."""
    return directory.name.startswith(f"{topic}-") or any(directory.glob(f"{topic}-*/"))


def expected(directory: Path, commands: Iterable[str]) -> dict[str, set[int]]:
    """The exit codes by the table in docs/command.md."""
    found = {command: {DONE if can_read(directory, command) else BAD_INPUT} for command in commands}
    if "diff" in found and is_ambiguous(directory):
        found["diff"] = {WRONG_USAGE}
    return found


def is_ambiguous(tree: Path) -> bool:
    """Whether directories in a tree have partitions of the same name, so that `diff` cannot pair them."""
    names = [
        [path.name for path in tree.glob("*/" * depth + "*-*/") if is_partition(path)]
        + [f"{path.parent.name}/{path.name}" for path in tree.glob("*/" * depth + "*-*/[0-9]/") if has(path, UPLOAD)]
        for depth in range(3)
    ]
    return not names[0] and any(len(set(found)) < len(found) for found in names)


def is_partition(path: Path) -> bool:
    return path.name.rpartition("-")[2].isdecimal() and any(any(path.glob(suffix)) for suffix in ("*.log", "*.kafka"))


def can_read(directory: Path, command: str) -> bool:
    levels = LEVELS.get(command, 0)
    if command == "recover" and has(directory, f"{DIGITS}.kafka", levels):
        return False
    local = any(has(directory, DIGITS + suffix, levels) for suffix in (".log", ".kafka"))
    return local or has(directory, UPLOAD, levels + 1)


LEVELS = dict.fromkeys(["topics", "scan", "diff", "stats", "report", "verify", "recover"], 2)
"""For the commands that take trees of log directories, how deep."""

LARGE = 300_000
"""Bytes of segments."""

DIGITS = "[0-9]" * 20
UPLOAD = f"{DIGITS}-*.rsm-manifest"
"""In tiered storage, the partitions of a topic are in a directory of their own."""
DAMAGED = DIALECTS / "kafka07/segments/damaged"
INTACT = sorted(Path(path) for path, _, _ in os.walk(DATA) if not Path(path).is_relative_to(DAMAGED))


def reading(number: int) -> dict[str, list[str]]:
    """The forms of the commands for a directory: those in JSON for trees of many logs, which are read alone too."""
    large = sum(path.stat().st_size for path in INTACT[number].rglob("*.log")) >= LARGE
    forms = {command: [line for line in lines if "--json" in line or not large] for command, lines in READING.items()}
    return forms if FULL else {command: [lines[number % len(lines)]] for command, lines in forms.items()}


@pytest.mark.parametrize("part", range(8))
def test_every_directory(run: Runner, tmp_path: Path, part: int) -> None:
    for number in range(part, len(INTACT), 8):
        directory, out = INTACT[number], tmp_path / "out"
        assert codes(run, directory, out, reading(number)) == expected(directory, READING), directory
        stored = codes(run, directory, out, {command: ["PATH", "PATH --json"] for command in STORED})
        codes_by_topic = {c: {DONE if is_of(directory, topic) else BAD_INPUT} for c, topic in STORED.items()}
        assert stored == codes_by_topic, directory


@pytest.mark.parametrize("broker", BROKERS, ids=lambda path: path.name)
def test_what_is_written_from_every_broker(run: Runner, tmp_path: Path, broker: Path) -> None:
    forms = WRITING | SUMMARIES
    assert codes(run, broker, tmp_path / "out", forms) == expected(broker, forms)


@pytest.mark.parametrize("directory", sorted(DAMAGED.iterdir()), ids=lambda path: path.name)
def test_damaged_segments(run: Runner, tmp_path: Path, directory: Path) -> None:
    codes(run, directory, tmp_path / "out", READING | WRITING)


def test_damaged_copies(run: Runner, tmp_path: Path) -> None:
    for _, tree in hostile_trees.damaged(tmp_path / "trees"):
        codes(run, tree, tmp_path / "out", READING | WRITING | {command: ["PATH --json"] for command in STORED})
