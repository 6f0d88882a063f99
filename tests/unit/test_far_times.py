"""What the command shows and writes of times that are micro- or nanoseconds, and of the largest offsets."""

import csv

import pyarrow as pa
import pytest

from kafkacodec.cli.__main__ import DONE, run
from kafkacodec.log import LogWriter

MOST = (1 << 63) - 1
TIMES = [1_700_000_000_000, 1_700_000_000_000_001, 1_700_000_000_000_000_001, MOST, -MOST, -1]
# numpy's text of the times, which has years of 64 bits.
TEXTS = [
    "2023-11-14 22:13:20.000Z",
    "55840-11-08 22:13:20.001Z",
    "53872825-06-17 22:13:20.001Z",
    "292278994-08-17 07:12:55.807Z",
    "-292275055-05-16 16:47:04.193Z",
    "",
]


def rows(times, start=0):
    return [(start + n, time, 0, None, b"v", []) for n, time in enumerate(times)]


@pytest.fixture
def log(tmp_path):
    with LogWriter(tmp_path / "log", "clicks", 0) as writer:
        for n, time in enumerate(TIMES):  # a batch for each
            writer.write(rows([time], n))
    return tmp_path / "log"


@pytest.mark.parametrize(
    "line", ["topics", "topics --partitions", "scan", "scan --batches", "dump", "stats", "scan --segments"]
)
def test_tables_show_all_digits(log, capsys, line):
    assert run([*line.split(), str(log)]) == DONE
    words = capsys.readouterr().out.split()
    assert str(MOST) in words or line == "stats"
    assert not [word for word in words if word.lstrip("-").isdigit() and 15 < len(word) < 19 and str(MOST)[:15] in word]
    if line in ("scan --batches", "dump"):
        assert {"1700000000000001", "1700000000000000001", f"-{MOST}"} <= set(words)


@pytest.mark.parametrize("more", [[], ["--batch-columns"]])
def test_csv(log, tmp_path, more):
    """pyarrow's own text has years of 16 bits."""
    path = tmp_path / "out.csv"
    assert run(["convert", str(log), "-o", str(path), *more]) == DONE
    with open(path, newline="") as file:
        assert [row["timestamp"] for row in csv.DictReader(file)] == TEXTS


def test_csv_with_times_that_change_from_chunk_to_chunk(tmp_path):
    times = [1_700_000_000_000] * 9000 + [1_700_000_000_000_000_001] * 9000 + [1_700_000_000_000] * 9000
    with LogWriter(tmp_path / "log", "clicks", 0) as writer:
        writer.write(rows(times))
    path = tmp_path / "out.csv"
    assert run(["convert", str(tmp_path / "log"), "-o", str(path)]) == DONE
    with open(path, newline="") as file:
        found = [row["timestamp"] for row in csv.DictReader(file)]
    assert found == [TEXTS[0]] * 9000 + [TEXTS[2]] * 9000 + [TEXTS[0]] * 9000
    first = pa.array(times[:1], pa.timestamp("ms", "UTC")).cast(pa.string())[0].as_py()
    assert first == TEXTS[0]


@pytest.mark.parametrize(
    "line",
    ["topics --partitions", "scan", "dump --json", "verify --json", "stats --json", "dump --tail 2", "diff", "recover"],
)
def test_offsets_of_63_bits(tmp_path, capsys, line):
    """The last offset of the log is the largest that a record can have."""
    start = MOST - 1 - len(TIMES) + 1
    with LogWriter(tmp_path / "log", "clicks", 0, start_offset=start) as writer:
        writer.write(rows([1_700_000_000_000] * len(TIMES), start))
    assert writer.next_offset == MOST
    paths = {"diff": ["log", "log"], "recover": ["log", "saved"]}.get(line, ["log"])
    assert run([*line.split(), *(str(tmp_path / name) for name in paths)]) == DONE
    printed = capsys.readouterr().out
    assert str(MOST - 1) in printed or line in ("verify --json", "stats --json", "diff", "recover")
    assert "-92233720368547758" not in printed
