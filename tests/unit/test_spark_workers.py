"""Processes of Spark do not search what they have imported for garbage after each task."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("pyspark")

# Calls methods as a process that runs the module argv[1]; prints for each of them whether objects are left out of
# searches then. Without an object, the methods fail after that.
PROGRAM = """
import gc, importlib, sys, weakref
from contextlib import suppress
from importlib.machinery import ModuleSpec

sys.modules["__main__"].__spec__ = ModuleSpec(sys.argv[1], None)
workers = importlib.import_module("kafkacodec.spark.environment.workers")
for place in sys.argv[2:]:
    module, _, name = place.partition(":")
    kind, _, method = name.partition(".")
    call = getattr(getattr(importlib.import_module(f"kafkacodec.spark.{module}"), kind), method)
    workers._settled = False
    gc.unfreeze()
    with suppress(AttributeError, TypeError):
        for _ in call(None, iter(())):
            pass
    print(name, gc.get_freeze_count() > 10_000)

class Circle:
    pass

circle = Circle()
circle.itself = circle
seen = weakref.ref(circle)
del circle
gc.collect()
print("garbage", seen() is None)
"""
IN_TASKS = (
    "kafkabroker:BrokerReader.read",
    "kafkalog:SegmentReader.read",
    "live.streaming:BrokerStreamReader.read",
    "reading.streaming:SegmentStreamReader.read",
    "reading.views:ViewReader.read",
    "exporting.task:ExportTask.run",
    "live.writing:BrokerWriter.write",
    "live.sink:BrokerSink.write",
    "writing.jobs:SegmentsWriter.write",
    "writing.sink:SegmentsSink.write",
)


def run(module: str, *places: str) -> dict[str, bool]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, module, *places], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return {name: found == "True" for name, found in map(str.split, done.stdout.splitlines())}


def test_tasks_of_all_kinds_leave_modules_out_and_find_garbage() -> None:
    found = run("pyspark.daemon", *IN_TASKS)
    assert found == {place.partition(":")[2]: True for place in IN_TASKS} | {"garbage": True}


def test_a_process_of_the_user_searches_everything() -> None:
    found = run("orders.jobs", *IN_TASKS[:2])
    assert found == {"BrokerReader.read": False, "SegmentReader.read": False, "garbage": True}
