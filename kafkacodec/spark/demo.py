"""The job behind ``make demo``: a directory of Kafka's log segments to Parquet, with a look at what was in it."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kafkacodec.log import Partition, discover
from kafkacodec.spark.jvm import session

__all__ = ["run"]


class Summary(NamedTuple):
    """A partition's row in the table; its fields are the columns' headings."""

    topic: str
    partition: int | None
    records: int
    bytes: int
    offsets: str
    newest: str


_HEADINGS = tuple(name.capitalize() for name in Summary._fields)


def run(source_dir: str | os.PathLike[str], out_dir: str | os.PathLike[str], *, master: str = "local[2]") -> None:
    """Read all segments under a directory with Spark, write them as Parquet and print what there was.

    Args:
        source_dir: a broker's data directory, or one partition's.
        out_dir: where the Parquet files go; what is there is replaced.
        master: Spark's master.

    Raises:
        NoUsableJava: there is no JVM that Spark can run on.
        OSError: there are no segments, or they cannot be read.
    """
    source, out = Path(source_dir), Path(out_dir)
    partitions = discover([source])
    print(f"Starting Spark on {source} ...", flush=True)
    begin = time.perf_counter()
    spark = session(master=master, app_name="kafkacodec demo", quick_start=True)
    started = time.perf_counter()
    records = spark.read.format("kafkalog").option("includeHeaders", True).load(str(source))
    records.write.mode("overwrite").parquet(str(out))
    written = time.perf_counter()
    rows = _summary(out)
    _print_table(rows)
    files = sorted(out.glob("*.parquet"))
    count, size = sum(row.records for row in rows), sum(partition.size_in_bytes for partition in partitions)
    print(f"{count:,} records from {size / 1e6:.1f} MB of segments in {len(rows)} partitions")
    print(f"  Spark, cold, to Parquet   {_rate(count, size, written - started)}; {started - begin:.1f} s to start")
    print(f"  kafkacodec alone          {_rate(count, size, _seconds_to_decode(partitions))}")
    print(f"Parquet: {out} ({len(files)} files, {sum(file.stat().st_size for file in files) / 1e6:.1f} MB)")


def _seconds_to_decode(partitions: Sequence[Partition]) -> float:
    """How long one core takes for all columns of all records, without Spark; the best of three."""
    best = float("inf")
    for _ in range(3):
        begin = time.perf_counter()
        for partition in partitions:
            for _ in partition.read():
                pass
        best = min(best, time.perf_counter() - begin)
    return best


def _rate(count: int, size: int, seconds: float) -> str:
    return f"{seconds:8.3f} s  {count / seconds:12,.0f} records/s  {size / 1e6 / seconds:8.1f} MB/s"


def _summary(out: Path) -> list[Summary]:
    """A row per partition, from the Parquet files: how many records and bytes, which offsets, how late."""
    table = pq.read_table(out, columns=["topic", "partition", "offset", "timestamp", "key", "value"])
    lengths = [pc.fill_null(pc.binary_length(table[name]), 0) for name in ("key", "value")]
    table = table.select(["topic", "partition", "offset", "timestamp"])
    table = table.append_column("bytes", pc.cast(pc.add(*lengths), pa.int64()))
    wanted = [("offset", "count"), ("bytes", "sum"), ("offset", "min"), ("offset", "max"), ("timestamp", "max")]
    grouped = (
        table.group_by(["topic", "partition"])
        .aggregate(wanted)
        .sort_by([("topic", "ascending"), ("partition", "ascending")])
    )
    return [
        Summary(
            row["topic"] or "?",
            row["partition"],
            row["offset_count"],
            row["bytes_sum"],
            f"{row['offset_min']} - {row['offset_max']}",
            f"{row['timestamp_max']:%Y-%m-%d}" if row["timestamp_max"] else "-",
        )
        for row in grouped.to_pylist()
    ]


def _print_table(rows: Sequence[Summary]) -> None:
    cells = [tuple(f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row) for row in rows]
    try:
        from rich import box
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        widths = [max(map(len, column)) for column in zip(_HEADINGS, *cells, strict=True)]
        for line in (_HEADINGS, *cells):
            print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
        return
    table = Table(box=box.SIMPLE_HEAD)
    for heading in _HEADINGS:
        table.add_column(heading, justify="left" if heading == "Topic" else "right", no_wrap=True)
    for line in cells:
        table.add_row(*line)
    Console().print(table)
