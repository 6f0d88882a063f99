"""Every subcommand on every tree of the tests, real, damaged and strange, in every output format.

Each of these fails: a traceback, a signal, a control character in the output, an exit code that is not documented,
invalid JSON, an output file that is unreadable or remains after an error, a modified input, a time-out. By default runs
a part of all combinations, chosen by their names; KAFKACODEC_SWEEP=full runs all of them. KAFKACODEC_SWEEP_TREES names
more directories, every entry of which is a tree.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from tests import hostile_trees
from tests.command_runner import Runner, faults
from tests.corpus import ROOT
from tests.dialect_vectors import ROOT as DIALECTS

FULL = os.environ.get("KAFKACODEC_SWEEP") == "full"
MORE = [Path(path) for path in os.environ.get("KAFKACODEC_SWEEP_TREES", "").split(os.pathsep) if path]
csv.field_size_limit(1 << 30)
SUFFIXES = ("parquet", "arrow", "csv", "jsonl")

# PATH stands for the tree, OUT for a place that does not exist yet; {suffix} for each output format.
READING = [
    "topics PATH",
    "topics PATH --json --records",
    "topics PATH --partitions --sort size",
    "topics PATH --partitions --json",
    "scan PATH",
    "scan PATH --json",
    "scan PATH --batches",
    "scan PATH --batches --json --no-crc",
    "scan PATH --segments --start-offset 5 --end-offset 50",
    "dump PATH",
    "dump PATH --json",
    "dump PATH -n 3",
    "dump PATH --on-error skip",
    "dump PATH --json --on-error skip --control --no-crc",
    "dump PATH --json --on-error stop --isolation-level read_committed",
    "dump PATH --json --start-offset 7 --end-offset 90",
    "dump PATH --json --start-time 1700000000000 --end-time 2030-01-01",
    "dump PATH --tail 3 --control --json",
    "dump PATH --tail 2 --grep a --on-error skip",
    "dump PATH -E --grep a.|0 --columns offset,codec,producer_id,value --on-error skip",
    "dump PATH --raw --key a --header h -v --json --on-error stop",
    "dump PATH --log-format kafka07",
    "dump PATH --log-format kafka07 --json --on-error skip",
    "verify PATH",
    "verify PATH --json",
    "verify PATH --strict",
    "verify PATH --gaps accept",
    "verify PATH --topic * --partition 0 --json --strict",
    "stats PATH",
    "stats PATH --json --on-error skip --codec zstd",
    "bench PATH --seconds 0 --limit 1",
    "bench PATH --seconds 0 --limit 1 --json",
    "diff PATH PATH",
    "diff PATH PATH --json --limit 3",
]
WRITING = [
    "recover PATH OUT",
    "recover PATH OUT --json",
    "report PATH -o OUT.html",
    "report PATH -o OUT.html --no-verify",
    "convert PATH -o OUT.{suffix}",
    "convert PATH -o OUT.{suffix} --batch-columns --on-error skip",
    "convert PATH -o OUT.{suffix} --batch-columns --on-error stop --isolation-level read_committed --control",
    "convert PATH -o OUT.{suffix} --on-error skip --start-offset 3 --end-offset 60 --no-crc",
    "convert PATH -o OUT.{suffix} --gaps accept",
    "convert PATH -o OUT.csv --csv-safe --on-error skip --batch-columns",
    "convert PATH -o OUT.parquet --compression snappy --on-error skip",
    "convert PATH -o OUT.arrow --compression lz4 --on-error skip",
]
TABLES = [
    "lag PATH",
    "lag PATH --json --on-error skip --isolation-level read_committed",
    "lag PATH --on-error skip -o OUT.{suffix}",
    "offsets PATH",
    "offsets PATH --json",
    "offsets PATH --json --on-error skip --group g",
    "offsets PATH --on-error skip -o OUT.{suffix}",
    "groups PATH",
    "groups PATH --json",
    "groups PATH --json --on-error skip",
    "groups PATH --on-error skip -o OUT.{suffix}",
    "metadata PATH",
    "metadata PATH --json",
    "metadata PATH --on-error skip",
    "metadata PATH --json --on-error skip",
    *(f"metadata PATH --on-error skip -o OUT.{{suffix}} --table {table}" for table in ("topics", "partitions")),
    *(f"metadata PATH --on-error skip -o OUT.{{suffix}} --table {table}" for table in ("configs", "acls")),
    *(f"metadata PATH --on-error skip -o OUT.{{suffix}} --table {table}" for table in ("brokers", "features")),
]
WRONG = [
    "scan PATH --isolaton",
    "dump PATH --end-time now",
    "convert PATH -o OUT",
    "recover PATH PATH",
    "offsets PATH --format csv",
]
COMMANDS = [
    line.format(suffix=s) for line in READING + WRITING + TABLES + WRONG for s in (SUFFIXES if "{" in line else "-")
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    with Runner(tmp_path_factory.mktemp("runner")) as runner:
        yield runner


def sweep(run: Runner, trees: Iterator[tuple[str, Path]], place: Path, *, share: int) -> None:
    """All commands on each tree, or one of `share` of them."""
    wrong, count = [], 0
    for name, tree in trees:
        before = snapshot(tree)
        for line in COMMANDS:
            if not FULL and zlib.crc32(f"{name} {line}".encode("utf-8", "replace")) % share:
                continue
            out = place / "out"
            out.mkdir()
            arguments = [str(tree) if w == "PATH" else w.replace("OUT", str(out / "made")) for w in line.split()]
            outcome = run(arguments)
            found = faults(arguments, outcome) or left(out, outcome.code)
            wrong += [f"{line} on {name}: {fault}" for fault in found]
            count += 1
            shutil.rmtree(out)
        if snapshot(tree) != before:
            wrong.append(f"{name} was touched")
    assert count
    if wrong:
        pytest.fail(f"{len(wrong)} of {count}:\n" + "\n".join(wrong[:40]))


def snapshot(tree: Path) -> list[tuple[str, int, int]]:
    """Names, sizes and times of all files in a tree."""
    found = []
    for directory, _, names in os.walk(tree):
        for name in names:
            state = os.lstat(os.path.join(directory, name))
            found.append((os.path.join(directory, name), state.st_size, state.st_mtime_ns))
    return sorted(found)


def left(out: Path, code: int | None) -> list[str]:
    """What is wrong with the output: missing after success, present after a failure, or unreadable."""
    names = sorted(os.listdir(out))
    if code != 0:
        # recover keeps what it has saved until the input fails.
        return [f"left after an error: {names}"] if [name for name in names if name != "made"] else []
    if any("partial" in name for name in names):
        return [f"left: {names}"]
    for name in names:
        try:
            read(out / name)
        except Exception as error:
            return [f"{name}: {error!r}"]
    return []


def read(path: Path) -> None:
    if path.suffix == ".parquet":
        parquet.read_table(path).validate(full=True)
    elif path.suffix == ".arrow":
        pa.ipc.open_file(path).read_all().validate(full=True)
    elif path.suffix == ".jsonl":
        for line in filter(None, path.read_text("utf-8").split("\n")):
            json.loads(line)
    elif path.suffix == ".csv":
        with open(path, newline="", encoding="utf-8") as file:
            widths = {len(row) for row in csv.reader(file)}
        assert len(widths) <= 1, widths


# --- the trees --------------------------------------------------------------------------------------------------------

GOLDEN = [
    *sorted(path for path in (ROOT / "logs").iterdir() if path.name != "truncated"),
    *sorted((ROOT / "logs" / "truncated").iterdir()),
    *sorted((DIALECTS / "kafka07" / "segments").glob("broker-*")),
]


@pytest.mark.parametrize("tree", GOLDEN, ids=lambda path: path.name)
def test_golden_directories(run: Runner, tmp_path: Path, tree: Path) -> None:
    sweep(run, iter([(tree.name, tree)]), tmp_path, share=6)


def test_partitions_of_every_broker(run: Runner, tmp_path: Path) -> None:
    partitions = [path for tree in GOLDEN for path in sorted(tree.iterdir()) if path.is_dir()]
    sweep(run, ((str(path.relative_to(path.parents[1])), path) for path in partitions), tmp_path, share=150)


@pytest.mark.parametrize("kind", sorted(path.name for path in (ROOT / "blobs").iterdir()))
def test_blobs(run: Runner, tmp_path: Path, kind: str) -> None:
    blobs = sorted((ROOT / "blobs" / kind).glob("*.bin"))
    sweep(run, ((path.name, path) for path in blobs), tmp_path, share=150)


def test_damaged_kafka07_segments(run: Runner, tmp_path: Path) -> None:
    trees = sorted((DIALECTS / "kafka07/segments/damaged").iterdir())
    sweep(run, ((path.name, path) for path in trees), tmp_path, share=10)


@pytest.mark.parametrize("seed", range(8 if FULL else 1))
def test_damaged_directories(run: Runner, tmp_path: Path, seed: int) -> None:
    sweep(run, hostile_trees.damaged(tmp_path / "trees", seed), tmp_path, share=8)


@pytest.mark.parametrize("seed", range(40 if FULL else 2))
def test_damaged_records_of_the_coordinator_and_the_controller(run: Runner, tmp_path: Path, seed: int) -> None:
    sweep(run, hostile_trees.stored(tmp_path / "trees", seed), tmp_path, share=4)


def test_strange_files(run: Runner, tmp_path: Path) -> None:
    sweep(run, hostile_trees.strange_files(tmp_path / "trees"), tmp_path, share=8)


def test_strange_names_and_records(run: Runner, tmp_path: Path) -> None:
    sweep(run, hostile_trees.strange_names(tmp_path / "trees"), tmp_path, share=6)


if MORE:

    @pytest.mark.parametrize("tree", MORE, ids=lambda path: path.name)
    def test_more_trees(run: Runner, tmp_path: Path, tree: Path) -> None:
        sweep(run, ((path.name, path) for path in sorted(tree.iterdir())), tmp_path, share=1)
