"""Every public function on every bomb, in forks with little address space: `python -m tests.limits.budget GROUP`.

Prints a JSON line for each: the bomb, the function, and the outcome.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

import kafkacodec as kc
from kafkacodec import messages, protocol
from kafkacodec.cli.__main__ import run as run_command
from kafkacodec.dialects import kafka07
from kafkacodec.protocol import fetch_to_columns
from kafkacodec.records.plan import DEFAULT_MAX_VIEW_BYTES
from tests.limits import bombs, sandbox
from tests.limits.bombs import MAX_DECOMPRESSED, MAX_TOTAL

# The blocks of the table may have the next power of two as size, and the pool the blocks from which they grew. Other
# memory: a decompressed batch for each of three threads, likewise; thread stacks of 8 MiB; caches of libraries.
TABLE = 4 * MAX_TOTAL
OTHER = 3 * 4 * MAX_DECOMPRESSED + (32 << 20)

WITHIN: dict[str, Any] = {"max_total_bytes": MAX_TOTAL, "max_decompressed_bytes": MAX_DECOMPRESSED}
BATCH: dict[str, Any] = {"max_decompressed_bytes": MAX_DECOMPRESSED}

Call = Callable[[bytes], object]


def rows(chunks: Iterator[kc.RecordColumns]) -> int:
    return sum(len(chunk) for chunk in chunks)


def some_records(records: Iterator[kc.Record]) -> int:
    """The first ones, in which there are several batches."""
    found = headers = 0
    for record in records:
        found, headers = found + 1, headers + len(record.headers)
        if found == 10_000 or headers > 5 << 20:
            break
    return found


RECORD_CALLS: dict[str, Call] = {
    "decode": lambda data: len(kc.decode(data, **WITHIN)),
    "decode, stop": lambda data: len(kc.decode(data, on_error="stop", **WITHIN)),
    "decode, skip": lambda data: len(kc.decode(data, on_error="skip", **WITHIN)),
    "decode, threads": lambda data: len(kc.decode(data, threads=3, **WITHIN)),
    "decode, batch columns": lambda data: len(kc.decode(data, batch_columns=True, **WITHIN)),
    "decode, no columns": lambda data: len(kc.decode(data, columns=(), **WITHIN)),
    "decode_batches": lambda data: len(kc.decode_batches(pa.array([data[: len(data) // 2], data]), **WITHIN)),
    "fetch_to_columns": lambda data: len(fetch_to_columns(bombs.fetch_response(data), **WITHIN)),
    "iter_columns": lambda data: rows(kc.iter_columns(data, **BATCH)),
    "iter_columns, views": lambda data: rows(kc.iter_columns(data, columns=("value",), layout="view", **BATCH)),
    "iter_columns, views in threads": lambda data: rows(
        kc.iter_columns(data, columns=("value",), layout="view", threads=3, **BATCH)
    ),
    "decode, views": lambda data: len(kc.decode(data, layout="view", **WITHIN)),
    "iter_columns, headers": lambda data: rows(kc.iter_columns(data, columns=("headers",), on_error="skip", **BATCH)),
    "iter_records": lambda data: some_records(kc.iter_records(data, **BATCH)),
    "scan": lambda data: len(kc.scan(data, max_total_bytes=MAX_TOTAL)),
}

# The functions for all bombs. Without KAFKACODEC_LIMITS=full, the other functions are called only on `bombs.LOGS`.
FEW = ("decode", "decode, threads", "iter_columns", "iter_columns, views")
FULL = os.environ.get("KAFKACODEC_LIMITS") == "full"

OLD_CALLS: dict[str, Call] = {
    "kafka07.decode": lambda data: len(kafka07.decode(data, **WITHIN)),
    "kafka07.decode, skip": lambda data: len(kafka07.decode(data, on_error="skip", **WITHIN)),
    "kafka07.iter_columns": lambda data: rows(kafka07.iter_columns(data, **BATCH)),
    "kafka07.valid_bytes": kafka07.valid_bytes,
}

# The functions for logs and the command use the default limits: 128 MiB for a batch, above all bombs.
LOG_CALLS: dict[str, Callable[[str], object]] = {
    "Segment.scan": lambda path: len(kc.log.Segment(path).scan(max_total_bytes=MAX_TOTAL)),
    "Segment.read": lambda path: rows(kc.log.Segment(path).read()),
    "Segment.read, views": lambda path: rows(kc.log.Segment(path).read(columns=("value",), layout="view")),
    "Segment.read, views in threads": lambda path: rows(kc.log.Segment(path).read(layout="view", threads=3)),
    "Segment.verify": lambda path: kc.log.Segment(path).verify().num_records,
    "Segment.verify, threads": lambda path: kc.log.Segment(path).verify(threads=3).num_records,
    "Segment.ranges": lambda path: len(kc.log.Segment(path).ranges(max_bytes=1 << 20)),
    "Segment look-ups": lambda path: [kc.log.Segment(path).last_offset(), kc.log.Segment(path).offset_of_timestamp(1)],
    "Partition.read": lambda path: rows(kc.log.Partition(os.path.dirname(path)).read()),
    "Partition.read, committed": lambda path: rows(
        kc.log.Partition(os.path.dirname(path)).read(isolation_level="read_committed")
    ),
    "Partition.verify": lambda path: kc.log.Partition(os.path.dirname(path)).verify().num_records,
    "kafkacodec scan": lambda path: command("scan", "--batches", path),
    "kafkacodec scan --segments": lambda path: command("scan", "--segments", path),
    "kafkacodec verify": lambda path: command("verify", path),
    "kafkacodec dump": lambda path: command("dump", "--json", "-n", "2", path),
    "kafkacodec convert": lambda path: command("convert", path, "-o", path + ".parquet"),
}


def command(*arguments: str) -> int:
    """The command's exit code; its output is discarded."""
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115 the fork ends soon
    try:
        return run_command(list(arguments))
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 1


def decode_message(name: str, version: int, body: bytes) -> object:
    made = getattr(messages, name).decode(body, version)
    return type(made).__name__


def cases(group: str, directory: str) -> Iterator[tuple[str, str, int, Callable[[], object]]]:
    """Name of the bomb, name of the call, limit on its memory in bytes, and the call."""
    if group == "records":
        for name, make in bombs.RECORD_SETS.items():
            data = make()
            for called, call in RECORD_CALLS.items():
                if not (FULL or name in bombs.LOGS or called in FEW):
                    continue
                # Records are Python objects here, about 60 bytes for each header of two bytes.
                more = 60 * MAX_DECOMPRESSED if called == "iter_records" else 0
                # At most 18 chunks of 4 MiB are in memory for each thread (docs/records.md).
                more += 3 * 18 * DEFAULT_MAX_VIEW_BYTES if called == "iter_columns, views in threads" else 0
                yield name, called, TABLE + OTHER + more, lambda call=call, data=data: call(data)
    elif group == "unbounded":
        for name in bombs.LOGS[:3]:
            data = bombs.RECORD_SETS[name]()
            yield name, "decode", TABLE + OTHER, lambda data=data: len(kc.decode(data))
    elif group == "kafka07":
        for name, make in bombs.OLD_SETS.items():
            data = make()
            for called, call in OLD_CALLS.items():
                yield name, called, TABLE + OTHER, lambda call=call, data=data: call(data)
    elif group == "messages":
        for name, make in bombs.MESSAGES.items():
            cls, version, body = make()
            with contextlib.suppress(kc.DecodeError):
                getattr(messages, cls).decode(b"", version)  # reads its table
            within = 200 * len(body) + (16 << 20)  # docs/protocol/README.md
            yield name, f"{cls}.decode", within, lambda a=(cls, version, body): decode_message(*a)
            frame = (len(body) + 8).to_bytes(4, "big") + bytes(8) + body
            yield name, "split_frames", 16 << 20, lambda frame=frame: len(protocol.split_frames(frame)[0])
    elif group == "log":
        for number, name in enumerate(bombs.LOGS):
            path = Path(directory) / str(number) / "t-0" / f"{0:020}.log"
            path.parent.mkdir(parents=True)
            path.write_bytes(bombs.RECORD_SETS[name]())
            for called, call in LOG_CALLS.items():
                # Arrow's writers and their threads hold some batches. JSON is built from Python objects.
                more = 1 << 30 if called in ("kafkacodec convert", "kafkacodec dump") else 128 << 20
                yield name, called, TABLE + more, lambda call=call, path=str(path): call(path)


def main(group: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        for bomb, called, extra, call in cases(group, directory):
            outcome = sandbox.run_within(extra, call)
            print(json.dumps([bomb, called, outcome.kind, outcome.detail]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
