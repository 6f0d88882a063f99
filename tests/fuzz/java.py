"""Holds the decoder against Kafka's own reader on damaged golden record sets; needs Java and Maven.

    python -m tests.fuzz.java [--seconds N] [--seed N]

Record sets go to a JVM in batches, through a pipe. What both readers give must be the same, value by value. Which of
them gives up first may differ in the ways that docs/compression.md names: a payload that cannot be decompressed as a
whole gives no records here, and those before the damage in Java.
"""

from __future__ import annotations

import argparse
import random
import re
import struct
import subprocess
import time
from collections import Counter
from threading import Thread
from typing import Any

import crc32c

import kafkacodec as kc
from tests.corpus import blobs
from tests.fuzz import counts
from tests.fuzz.driver import Finding
from tests.integration import kafka_jars
from tests.property.test_column_choice import spoil
from tests.property.test_damaged_formats import damaged

BATCH = 200
LONGEST = 4096
Fields = tuple[Any, ...]


class Reader:
    """Kafka's reader in a JVM."""

    def __init__(self) -> None:
        command = [*kafka_jars.java(), "RecordTool"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def read(self, sets: list[bytes]) -> list[tuple[list[Fields], str]]:
        """The records of each set, and what ended the reading."""
        asked, answers = self._process.stdin, self._process.stdout
        assert asked is not None
        assert answers is not None

        def ask() -> None:
            for data in sets:
                asked.write(struct.pack(">i", len(data)) + data)
            asked.flush()

        asking = Thread(target=ask)  # the JVM answers meanwhile, and a pipe holds only so much
        asking.start()
        found = [_answer(answers) for _ in sets]
        asking.join()
        return found

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._process.wait() == 0


def _answer(pipe: Any) -> tuple[list[Fields], str]:
    records = []
    while pipe.read(1) == b"\1":
        offset, timestamp, kind = struct.unpack(">qqb", pipe.read(17))
        key, value, (count,) = _bytes(pipe), _bytes(pipe), struct.unpack(">i", pipe.read(4))
        headers = [((_bytes(pipe) or b"").decode(), _bytes(pipe)) for _ in range(count)]
        records.append((offset, None if timestamp == -1 else timestamp, kind, key, value, headers))
    return records, pipe.read(struct.unpack(">H", pipe.read(2))[0]).decode()


def _bytes(pipe: Any) -> bytes | None:
    (size,) = struct.unpack(">i", pipe.read(4))
    return None if size < 0 else pipe.read(size)


def ours(data: bytes) -> tuple[list[Fields], str]:
    """The same by this library."""
    table = kc.decode(data, include_control=True, on_error="stop")
    records = [(*record[:5], list(record.headers)) for record in table.records()]
    return records, "".join(str(problem.exception) for problem in table.problems)


def comparable(fields: Fields) -> Fields:
    """Without header keys that are not UTF-8: what stands for a bad byte differs in number."""
    headers = [("?" if "\ufffd" in key else key, value) for key, value in fields[5]]
    return (*fields[:5], headers)


def compare(data: bytes, java: tuple[list[Fields], str]) -> str:
    """What the two readers made of a set, in a word; Finding where a value differs."""
    mine, fault = ours(data)
    theirs, error = java
    for mine_record, java_record in zip(mine, theirs, strict=False):
        if comparable(mine_record) != comparable(java_record):
            raise Finding(f"{data.hex()}: {mine_record} here, {java_record} in Java")
    if not fault and not error and len(mine) != len(theirs):
        raise Finding(f"{data.hex()}: {len(mine)} records here, {len(theirs)} in Java")
    if bool(fault) == bool(error):
        return "refused by both" if fault else "read by both"
    reason = re.sub("[0-9]+", "N", fault.removeprefix("batch at offset ")).split("(")[0]
    return f"refused in Java alone: {error.split(':')[0]}" if error else f"refused here alone: {reason}"


def mutated(seeds: list[bytes], rnd: random.Random) -> bytes:
    """A damaged set; half of those of magic 2 have right checksums, so that the damage is read."""
    data = bytearray(rnd.choice(seeds))
    if len(data) > 80 and data[16] == 2 and rnd.random() < 0.7:
        end = 12 + struct.unpack_from(">i", data, 8)[0]
        if 61 < end <= len(data):
            records = data[61:end]
            spoil(records, rnd)
            header = data[:61]
            if rnd.random() < 0.2:
                header[rnd.randrange(22, 61)] = rnd.randrange(256)
            header[8:12] = (len(records) + 49).to_bytes(4, "big")
            header[17:21] = crc32c.crc32c(bytes(header[21:] + records)).to_bytes(4, "big")
            return bytes(header + records + data[end:])
    return damaged(bytes(data), rnd)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Compares damaged record sets with Kafka's reader.")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    seeds = [data[:LONGEST] for data in (sample.data() for sample in blobs("builder", "foreign", "corrupt", "fetch"))]
    rnd, reader, outcomes = random.Random(options.seed), Reader(), Counter[str]()
    stop = time.monotonic() + options.seconds
    while time.monotonic() < stop:
        sets = [mutated(seeds, rnd) for _ in range(BATCH)]
        outcomes.update(compare(data, java) for data, java in zip(sets, reader.read(sets), strict=True))
    reader.close()
    counts.add("java", outcomes.total())
    print(f"java, seed {options.seed}: {outcomes.total()} record sets compared")
    for outcome, times in outcomes.most_common(40):
        print(f"{times:8} {outcome[:120]}")


if __name__ == "__main__":
    main()
