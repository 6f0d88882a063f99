"""Compare the instructions of core calls with the counts in instructions.json: `make instructions`.

Callgrind counts them, so a busy machine makes no difference. A call that needs over 3 % more instructions than before
fails; `make instructions-update` stores new counts. With another compiler, Python, C library or package version, the
counts differ and the differences are only reported.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from benchmarks import callgrind, consuming, sending, sessions, waited
from benchmarks.cases import CASES, record_set, records
from benchmarks.messages import Body, bodies, reading_arrays

KEPT = Path(__file__).parent / "instructions.json"
MOST_GROWTH = 0.03
RECORD_BYTES = 1_000_000
# The first calls count more than the others, until the interpreter has adapted its code: they get memory from the
# system and fill caches of hashes. The first row of read_committed took 4.72 million instructions in the first call,
# 4.46 in the fifth and 4.30 from about the fifteenth on.
WARM_UP = 20
WARM_UP_SESSION = 100
ROUNDS = 3
# A kernel that valgrind and current x86-64 processors support. On other machines the name is unknown and ignored.
KERNEL = {"KAFKACODEC_FORCE_KERNEL": "sse42"}
PACKAGES = ("cython", "numpy", "pyarrow", "lz4", "fastavro")

READ = ("none", "none, 1 KiB values", "none, 2 headers", "lz4", "magic 1")
SMALL = [(b"key-%06d" % i, b"v" * 100) for i in range(10)]
MESSAGES = ("Metadata response v12", "Fetch response v12", "Produce request v9")

Calls = Iterator[tuple[str, Callable[[], object]]]


def main() -> None:
    parser = argparse.ArgumentParser(prog="make instructions", description=__doc__)
    parser.add_argument("--update", action="store_true", help="store the counts in instructions.json")
    arguments = parser.parse_args()
    if missing := unable():
        print(f"skipped: {missing}")
        return
    counted, tools = count()
    kept = json.loads(KEPT.read_text())
    comparison = Comparison(kept["instructions"], counted, kept["tools"], tools)
    print(comparison)
    if arguments.update:
        KEPT.write_text(json.dumps({"tools": tools, "instructions": counted}, indent=1) + "\n")
        print("These counts are in instructions.json now.")
    else:
        sys.exit(comparison.failed)


def unable() -> str | None:
    """Why instructions cannot be counted here."""
    if shutil.which("valgrind") is None:
        return "valgrind is missing"
    with tempfile.TemporaryDirectory() as directory:
        try:
            callgrind.build(directory)
        except (OSError, subprocess.CalledProcessError) as error:
            return f"a C compiler with valgrind's headers is missing ({error})"
    return None


def count() -> tuple[dict[str, int], dict[str, str]]:
    """The instructions of every call, and the versions of the tools that they depend on."""
    with tempfile.TemporaryDirectory() as inputs:
        for name in READ:
            (Path(inputs) / name).write_bytes(record_set(_case(name)))
        rounds = callgrind.run("benchmarks.instructions", inputs, environment=KERNEL)
        tools = json.loads((Path(inputs) / "tools.json").read_text())
    return {name: min(rounds[name]) for name in sorted(rounds)}, tools


@dataclass(frozen=True)
class Comparison:
    """New and stored counts by call, and the tools that they depend on by kind."""

    kept: dict[str, int]
    counted: dict[str, int]
    kept_tools: dict[str, str]
    tools: dict[str, str]

    @property
    def other_tools(self) -> list[str]:
        kinds = sorted({*self.tools, *self.kept_tools})
        pairs = [(kind, self.kept_tools.get(kind), self.tools.get(kind)) for kind in kinds]
        return [f"{kind}: {before} then, {now} now" for kind, before, now in pairs if before != now]

    @property
    def grown(self) -> list[str]:
        """Calls that need too many instructions, that have no stored count, or that are no longer counted."""
        return [
            name
            for name in sorted({*self.kept, *self.counted})
            if not 0 < self.counted.get(name, 0) <= self.kept.get(name, 0) * (1 + MOST_GROWTH)
        ]

    @property
    def fallen(self) -> list[str]:
        """Calls that need far fewer instructions, so that a later growth to the old count would go unnoticed."""
        return [name for name, now in self.counted.items() if now < self.kept.get(name, 0) * (1 - MOST_GROWTH)]

    @property
    def failed(self) -> bool:
        return bool(self.grown) and not self.other_tools

    def __str__(self) -> str:
        lines = []
        for name in sorted({*self.kept, *self.counted}):
            before, now = self.kept.get(name, 0), self.counted.get(name, 0)
            change = f"{now / before - 1:+8.2%}" if before and now else "    only " + ("kept" if before else "counted")
            lines.append(f"{name:36} {before:14,} {now:14,} {change}{'  GROWN' if name in self.grown else ''}")
        if self.other_tools:
            lines += ["The stored counts are from other tools, so growth is not a failure:", *self.other_tools]
        elif self.grown:
            lines.append(f"FAILED: over {MOST_GROWTH:.0%} above instructions.json; make instructions-update accepts it")
        elif self.fallen:
            lines.append(f"Some fell by over {MOST_GROWTH:.0%}; make instructions-update stores that.")
        return "\n".join(lines)


# --- in valgrind ----------------------------------------------------------------------------------------------------


def inside(library: str, directory: str, inputs: str) -> None:
    """Count the calls. The inputs are made outside of valgrind, which is faster."""
    import kafkacodec as kc

    counter = callgrind.Counter(library)
    sets = {name: (Path(inputs) / name).read_bytes() for name in READ}
    for name, call in chain(
        _reading(kc, sets),
        _writing(kc),
        _files(kc, directory),
        _transactions(kc, directory),
        _printed(kc),
        _values(kc),
        _messages(kc),
        _broker(),
        _clients(),
    ):
        for _ in range(WARM_UP):
            call()
        counter.count([(name, call)] * ROUNDS)
    (Path(inputs) / "tools.json").write_text(json.dumps(_tools(kc)))


def _case(name: str) -> Any:
    return replace(next(case for case in CASES if case.name == name), total_bytes=RECORD_BYTES)


def _reading(kc: Any, sets: dict[str, bytes]) -> Calls:
    def columns(data: bytes) -> Callable[[], object]:
        return lambda: sum(len(chunk) for chunk in kc.iter_columns(data))

    for name, data in sets.items():
        yield f"iter_columns: {name}", columns(data)
    data = sets["none"]
    yield "decode: none", lambda: kc.decode(data)
    yield "iter_records: none", lambda: sum(1 for _ in kc.iter_records(data))
    yield "records of a consumer: none", consuming.records_of(data)
    yield "scan: none", lambda: kc.scan(data)
    one, decoder = kc.encode(SMALL[:1]), kc.Decoder()
    yield "Decoder.decode: one record", lambda: decoder.decode(one)
    yield "Decoder.iter_records: one record", lambda: [*decoder.iter_records(one)]
    yield "decode: one record", lambda: kc.decode(one)


def _columns() -> Any:
    from benchmarks.writing import table

    return table(list(records(_case("none"))))


def _writing(kc: Any) -> Calls:
    columns = _columns()
    yield "encode: none", lambda: kc.encode(columns)
    yield "iter_encoded: none", lambda: sum(batch.num_records for batch in kc.iter_encoded(columns))
    yield "encode: lz4", lambda: kc.encode(columns, codec="lz4")
    encoder = kc.Encoder()
    yield "Encoder.encode: ten records", lambda: encoder.encode(SMALL)


def _files(kc: Any, directory: str) -> Calls:
    with kc.log.SegmentWriter(directory, base_offset=0) as writer:
        for batch in kc.iter_encoded(_columns()):
            writer.append(batch)
    (path,) = Path(directory).glob("*.log")
    segment = kc.log.Segment(path)
    yield "verify: none", segment.verify


def _transactions(kc: Any, directory: str) -> Calls:
    """A partition of small transactions, and its first row, which needs few of them."""
    partition = Path(directory) / "transactions-0"
    partition.mkdir()
    with kc.log.SegmentWriter(partition, base_offset=0) as writer:
        for offset in range(0, 4000, 2):
            (batch,) = kc.iter_encoded(SMALL[:1], base_offset=offset, producer_id=1, is_transactional=True)
            marker = kc.control_batch("commit", offset=offset + 1, producer_id=1, producer_epoch=0, timestamp=1)
            writer.append(batch)
            writer.append(kc.EncodedBatch(marker, offset + 1, offset + 1, 1, 1))

    def committed() -> int:
        return sum(map(len, kc.log.Partition(partition).read(isolation_level="read_committed")))

    yield "read_committed: 2000 transactions", committed
    yield "read_committed: the first row", lambda: kc.log.Partition(partition).head(1, isolation_level="read_committed")


def _printed(kc: Any) -> Calls:
    """Records of a partition as text."""
    from kafkacodec.cli.rows.record_output import print_formatted, print_json, print_rows
    from kafkacodec.cli.rows.record_rows import Origin, pages

    table, place = kc.decode(kc.encode(SMALL * 100)), Origin("t", 0, "t-0")
    columns = ("offset", "timestamp", "key", "value")
    printers: dict[str, Callable[[Any], None]] = {
        "JSON lines": partial(print_json, columns=None, raw=False),
        "a table": partial(print_rows, columns=columns, raw=False),
        "a format": partial(print_formatted, template=rb"%o\t%k\t%s\n"),
    }

    def printing(printer: Callable[[Any], None]) -> None:
        with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stdout(nowhere):
            printer(pages(place, [table]))

    for name, printer in printers.items():
        yield f"1000 records as {name}", partial(printing, printer)


def _values(kc: Any) -> Calls:
    numbers = {"type": "array", "items": "long"}
    fields = [("id", "long"), ("flag", "boolean"), ("note", ["null", "string"]), ("numbers", numbers)]
    row = {"id": 1 << 40, "flag": True, "note": "text", "numbers": [*range(100)]}
    schema = {"type": "record", "name": "Row", "fields": [{"name": name, "type": kind} for name, kind in fields]}
    encoder = kc.values.Encoder({1: json.dumps(schema)}, subject="rows")
    yield "values.Encoder: a record of Avro", lambda: encoder(row)


def _messages(kc: Any) -> Calls:
    def both(body: Body) -> Calls:
        cls = getattr(kc.messages, body.name)
        message = cls.decode(body.data, body.version)
        yield f"decode: {body}", lambda: cls.decode(body.data, body.version)
        yield f"decode, every array read: {body}", reading_arrays(body)
        yield f"encode: {body}", lambda: message.encode(body.version)

    for body in bodies():
        if str(body) in MESSAGES:
            yield from both(body)


def _broker() -> Calls:
    for name, count, value_bytes in (("one record", 1, 100), ("a batch of 16 KiB", 16, 1000)):
        with sessions.producing(count, value_bytes) as ask:
            for _ in range(WARM_UP_SESSION):
                ask()
            yield f"broker, produce: {name}", ask


def _clients() -> Calls:
    for name, send in sending.RECORDS.items():
        yield f"Producer.send, {sending.CALLS} times: {name}", sending.calls(send)
    yield f"Producer.send, {sending.CALLS} times: callback", sending.callbacks()
    yield f"Producer.send_columns, {sending.TABLES} tables of {sending.ROWS}", sending.tables()
    if (wait := waited.waiting()) is not None:
        for _ in range(WARM_UP_SESSION):
            wait()
        yield "Producer.send, a record that is waited for", wait


def _tools(kc: Any) -> dict[str, str]:
    """The machine and the tools that the counts depend on."""
    checksums = sys.modules[kc.crc32c.__module__]
    return {
        "machine": platform.machine(),
        "compiler": _compiler(str(checksums.__file__)),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "libc": " ".join(platform.libc_ver()),
        "kernels": f"{checksums.crc32c_kernel()}, {checksums.crc32_kernel()}",
        **{name: importlib.metadata.version(name) for name in PACKAGES},
    }


def _compiler(extension: str) -> str:
    """The compiler's name and version, from an extension module."""
    found = re.search(rb"(GCC: [ -~]+|[ -~]*clang version [ -~]+)", Path(extension).read_bytes())
    return found[1].decode() if found else "unknown"


if __name__ == "__main__":
    if len(sys.argv) == 4:
        inside(*sys.argv[1:])
    else:
        main()
