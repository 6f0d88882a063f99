"""Progress counts every byte once, in steps."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import kafkacodec as kc
from kafkacodec.cli.files.json_rows import Names
from kafkacodec.cli.files.readers import READERS
from kafkacodec.cli.files.sources import Source
from kafkacodec.log import LogDirectory, recover
from tests.corpus import ROOT

STEP = 10 << 20
"""More than what is read between two calls, with records of this size."""


@pytest.fixture(params=["intact", "damaged"])
def log(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A log directory with a segment of 25 MB."""
    data = bytearray(kc.encode([(None, bytes([n % 251]) * 1_000) for n in range(25_000)], codec="none"))
    if request.param == "damaged":
        data[5_000_000] ^= 1
    (tmp_path / "logs/t-0").mkdir(parents=True)
    (tmp_path / "logs/t-0" / f"{0:020d}.log").write_bytes(data)
    return tmp_path / "logs"


@pytest.mark.parametrize("threads", [1, 2])
def test_of_verify(log: Path, threads: int) -> None:
    steps: list[int] = []
    partition = LogDirectory(log).partition("t", 0)
    partition.verify(threads=threads, advance=steps.append)
    assert sum(steps) == partition.size_in_bytes > 25e6
    assert 0 < min(steps) <= max(steps) < STEP


def test_of_recover(log: Path, tmp_path: Path) -> None:
    steps: list[int] = []
    recover(log, tmp_path / "saved", advance=steps.append)
    assert sum(steps) == LogDirectory(log).partition("t", 0).size_in_bytes
    assert 0 < min(steps) <= max(steps) < STEP


def test_of_logs_of_old_versions() -> None:
    for directory in (ROOT / "logs/v0-0.8.2.2", ROOT / "logs/v1-0.10.2.2", ROOT / "logs/kraft-4.1.0"):
        for partition in LogDirectory(directory).all_partitions:
            steps: list[int] = []
            partition.verify(advance=steps.append)
            assert sum(steps) == partition.size_in_bytes


@pytest.mark.parametrize("kind", ["parquet", "arrow", "arrow-stream", "csv", "lines"])
def test_of_encode(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "rows"
    table = pa.table({"value": [f"{n:0100d}" for n in range(100_000)]})
    if kind == "parquet":
        parquet.write_table(table, path, compression="none")
    elif kind in ("csv", "lines"):
        csv.write_csv(table, path)
    else:
        write = pa.ipc.new_file if kind == "arrow" else pa.ipc.new_stream
        with pa.OSFile(str(path), "wb") as file, write(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=5_000)
    source, steps = Source(str(path), kind), list[int]()
    source.advance = steps.append
    names = Names({name: name for name in ("key", "value", "timestamp", "headers")}, frozenset(), False)
    assert sum(batch.num_rows for batch in READERS[kind](source, names)) >= 100_000
    assert source.size_in_bytes * 0.99 <= sum(steps) <= source.size_in_bytes
    assert len(steps) > (1 if kind == "csv" else 5)  # rows of CSV may be 16 MiB long, and blocks have that size
