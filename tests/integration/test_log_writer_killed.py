"""A writer that is killed, at any moment, leaves a log that is whole up to its last committed segment."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path
from typing import NoReturn

import kafkacodec as kc
from kafkacodec.log import LogWriter, Partition

KILLS = 200


def write_until_killed(directory: Path, pipe: int) -> NoReturn:
    """Commit a few records at a time, saying so each time; several segments at once now and then."""
    try:
        writer = LogWriter(directory, "t", 0, append=True, segment_bytes=1000, sync=False)
        while True:
            first = writer.next_offset
            writer.write([(b"%d" % n, b"x" * 50) for n in range(first, first + 20)], batch_bytes=500)
            writer.commit()
            os.write(pipe, b"%d\n" % writer.next_offset)
    finally:
        os._exit(1)


def committed_by_a_killed_writer(directory: Path, rnd: random.Random) -> int:
    """The offset up to which the writer said it had committed. It dies a moment after up to three commits."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        write_until_killed(directory, write)
    os.close(write)
    with open(read) as lines:
        said = [lines.readline() for _ in range(rnd.randrange(4))]
        time.sleep(rnd.random() * 0.005)
        os.kill(child, signal.SIGKILL)
        assert os.waitpid(child, 0)[1] == signal.SIGKILL, "the writer ended by itself"
        return max((int(line) for line in [*said, *lines]), default=0)


def test_killed_writers_lose_nothing_that_was_committed(tmp_path: Path) -> None:
    rnd = random.Random(7)
    committed, kills_with_leftovers = 0, 0
    for _ in range(KILLS):
        committed = max(committed, committed_by_a_killed_writer(tmp_path, rnd))
        kills_with_leftovers += any((tmp_path / "t-0").glob("*.tmp"))
        if (tmp_path / "t-0").is_dir():
            assert Partition(tmp_path / "t-0").end_offset() >= committed
    assert committed > 20 * KILLS
    assert kills_with_leftovers > 10
    data = b"".join(Path(s.path).read_bytes() for s in Partition(tmp_path / "t-0").segments)
    result = kc.decode(data, columns=["offset", "key"])
    assert result.consumed == len(data)
    assert result["offset"].tolist() == list(range(len(result)))
    LogWriter(tmp_path, "t", 0, append=True, sync=False)
    assert not list((tmp_path / "t-0").glob("*.tmp"))
