"""Programs to run with faults: each changes files in a directory from one known state to another."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from contextlib import redirect_stderr
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import kafkacodec as kc
from kafkacodec.cli.__main__ import run
from kafkacodec.log import LogDirectory, LogWriter, recover
from kafkacodec.log.formats import layout
from kafkacodec.log.writing.recovery import REPORT_FILE
from kafkacodec.spark.writing import publish as spark_publish
from kafkacodec.spark.writing.journal import Transaction
from kafkacodec.spark.writing.publish import StagedTask

State = dict[str, list[bytes]]
"""The values of each partition, or the content of a file."""


@dataclass(frozen=True)
class Program:
    """
    Attributes:
        set_up: creates the initial files in a directory; files without faults are outside of it.
        action: the change; raises an OSError if it fails.
        look: returns the state of the files; raises an AssertionError if they are not valid.
        states: allowed states: the initial one first, the final one last (None: the result of a run without faults),
            and valid intermediate states.
        again: a second run, from the given state; returns the expected state.
    """

    set_up: Callable[[Path], None]
    action: Callable[[Path], None]
    look: Callable[[Path], State]
    states: list[State | None]
    again: Callable[[Path, State], State | None]


def records(start: int, count: int) -> list[tuple[bytes | None, bytes]]:
    return [(None, b"%d" % n * 30) for n in range(start, start + count)]


def values_of(rows: list[tuple[bytes | None, bytes]]) -> list[bytes]:
    return [value for _, value in rows]


def partitions(directory: Path) -> State:
    """All records of a log directory, which must be valid."""
    if not directory.is_dir():
        return {}
    log = LogDirectory(directory)
    found = {}
    for partition in log.all_partitions:
        report = partition.verify()
        # A snapshot is written before its segment; brokers and the next writer remove a stray one.
        bad = [f for f in report.findings if f.level == "error" or f.kind not in ("producer-snapshot",)]
        bad = [f for f in bad if f.level != "note"]
        if bad:
            raise AssertionError(f"not in order: {bad}")
        values = [record.value for chunk in partition.read() for record in chunk.records()]
        if values:
            found[os.path.basename(partition.path)] = values
    return found


# --- LogWriter --------------------------------------------------------------------------------------------------------

OLD, NEW = records(0, 20), records(20, 30)
HALF = 10  # records of NEW that fill the first segment
PRODUCER = {"producer_id": 7, "producer_epoch": 0}


def old_log(place: Path) -> None:
    with LogWriter(place / "log", "t", 0, sync=False) as writer:
        writer.write(OLD)


def append(place: Path) -> None:
    """Two segments, the second one with an aborted transaction: all kinds of files."""
    with LogWriter(place / "log", "t", 0, append=True, leader_epoch=3) as writer:
        writer.write(NEW[:HALF])
        writer.commit()
        base = writer.next_offset
        data = kc.encode(NEW[HALF:], base_offset=base, is_transactional=True, base_sequence=0, **PRODUCER)
        writer.write_batches(data + kc.control_batch("abort", offset=base + len(NEW) - HALF, **PRODUCER))


def append_again(place: Path, state: State) -> State:
    append(place)
    return {"t-0": state["t-0"] + NEW_VALUES}


def write_new(place: Path) -> None:
    with LogWriter(place / "new" / "log", "t", 5) as writer:
        writer.write(NEW, codec="zstd")


def write_again(place: Path, state: State) -> State:
    if not state:
        write_new(place)
    return {"t-5": NEW_VALUES}


# --- Spark ------------------------------------------------------------------------------------------------------------

FULL: State = {"t-0": values_of(OLD) + values_of(NEW[: 2 * HALF]), "t-1": values_of(NEW[: 2 * HALF])}
STAGED = layout.staging_name("0123456789abcdef" * 2)


def staged_job(place: Path) -> None:
    """A log with one partition, and the output of two tasks for it and for a new one."""
    old_log(place)
    stage(place)


def stage(place: Path) -> None:
    for task in range(2):
        for partition in range(2):
            with LogWriter(place / "log" / STAGED / str(task), "t", partition, sync=False) as writer:
                writer.write(NEW[task * HALF : (task + 1) * HALF])


def publish(place: Path) -> None:
    tasks = [StagedTask(str(place / "log" / STAGED / str(task)), 2 * HALF) for task in range(2)]
    spark_publish.publish(str(place / "log"), tasks, transaction=Transaction("app", 0))


def publish_again(place: Path, state: State) -> State:
    """Exactly once, wherever the first run ended."""
    shutil.rmtree(place / "log" / STAGED)
    stage(place)
    publish(place)
    return FULL


def published() -> list[State | None]:
    """No segments, then one more partition at a time, as after a kill between the renames."""
    old = {"t-0": values_of(OLD)}
    return [old, {"t-0": FULL["t-0"]}, FULL]


# --- recover and convert ----------------------------------------------------------------------------------------------


def damaged_log(place: Path) -> None:
    """Created without faults, since it is only read."""
    source = place.parent / "source"
    if not source.exists():
        with LogWriter(source, "t", 0, sync=False, segment_bytes=500) as writer:
            writer.write(OLD, batch_bytes=200)
        with LogWriter(source, "t", 1, sync=False) as writer:
            writer.write(OLD)


def save(place: Path) -> None:
    recover(place.parent / "source", place / "saved")


def save_again(place: Path, state: State) -> State | None:
    if not state:
        save(place)
    return WHOLE


def saved(place: Path) -> State:
    found = partitions(place / "saved")
    if (place / "saved").exists() and not json.loads((place / "saved" / REPORT_FILE).read_bytes())["ok"]:
        raise AssertionError("the report says that something was lost")
    return found


class Reported(Exception):
    """The standard error of the command."""


def convert_to(suffix: str) -> Program:
    def set_up(place: Path) -> None:
        damaged_log(place)
        (place / f"out.{suffix}").write_bytes(b"old")

    def action(place: Path) -> None:
        said = StringIO()
        with redirect_stderr(said):
            code = run(["convert", str(place.parent / "source"), "-o", str(place / f"out.{suffix}"), "--force"])
        if code:
            raise Reported(said.getvalue().strip())

    def look(place: Path) -> State:
        return {"out": [(place / f"out.{suffix}").read_bytes()]}

    def again(place: Path, state: State) -> None:
        action(place)

    return Program(set_up, action, look, [{"out": [b"old"]}, None], again)


OLD_VALUES, NEW_VALUES = values_of(OLD), values_of(NEW)
WHOLE: State = {"t-0": OLD_VALUES, "t-1": OLD_VALUES}
PROGRAMS = {
    "append": Program(
        old_log,
        append,
        lambda place: partitions(place / "log"),
        [{"t-0": OLD_VALUES}, {"t-0": OLD_VALUES + NEW_VALUES[:HALF]}, {"t-0": OLD_VALUES + NEW_VALUES}],
        append_again,
    ),
    "write": Program(
        lambda place: None,
        write_new,
        lambda place: partitions(place / "new" / "log"),
        [{}, {"t-5": NEW_VALUES}],
        write_again,
    ),
    "publish": Program(staged_job, publish, lambda place: partitions(place / "log"), published(), publish_again),
    "recover": Program(damaged_log, save, saved, [{}, WHOLE], save_again),
    "convert parquet": convert_to("parquet"),
    "convert csv": convert_to("csv"),
    "convert jsonl": convert_to("jsonl"),
}


def clear(place: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
