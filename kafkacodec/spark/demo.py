"""The job behind ``make demo``: a directory of Kafka's log segments to Parquet, with a look at what was in it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import DataFrame, Row, functions as F

from kafkacodec.spark.jvm import session

__all__ = ["run"]


class Figures(NamedTuple):
    """What the job read, and how long its steps took in seconds."""

    partitions: Sequence[Row]
    start: float
    convert: float


def run(source_dir: str | os.PathLike[str], out_dir: str | os.PathLike[str], *, master: str = "local[2]") -> None:
    """Read all segments under a directory with Spark, write them as Parquet and print what there was.

    Args:
        source_dir: a broker's data directory, or one partition's.
        out_dir: where the Parquet files go; replaced when it exists.
        master: Spark's master.

    Raises:
        NoUsableJava: when there is no JVM that Spark can run on.
        OptionError: when there are no segments.
    """
    source, out = Path(source_dir), Path(out_dir)
    begin = time.perf_counter()
    spark = session(master=master, app_name="kafkacodec demo", quick_start=True)
    started = time.perf_counter()
    try:
        records = spark.read.format("kafkalog").option("includeHeaders", True).load(str(source))
        records.write.mode("overwrite").parquet(str(out))
        written = time.perf_counter()
        partitions = _summary(spark.read.parquet(str(out))).collect()
    finally:
        spark.stop()
    figures = Figures(partitions, started - begin, written - started)
    _print(source, out, figures)


def _summary(records: DataFrame) -> DataFrame:
    """A row per partition: how many records and bytes, from which offset to which, how late."""
    size = F.coalesce(F.length("key"), F.lit(0)) + F.coalesce(F.length("value"), F.lit(0))
    return (
        records.groupBy("topic", "partition")
        .agg(
            F.count("*").alias("records"),
            F.sum(size).alias("bytes"),
            F.min("offset").alias("first"),
            F.max("offset").alias("last"),
            F.date_format(F.max("timestamp"), "yyyy-MM-dd HH:mm:ss").alias("newest"),
        )
        .orderBy("topic", "partition")
    )


_HEADINGS = ("Topic", "Partition", "Records", "Key and value bytes", "First offset", "Last offset", "Newest (UTC)")


def _cells(row: Row) -> tuple[str, ...]:
    numbers = [f"{row[name]:,}" for name in ("records", "bytes", "first", "last")]
    return (
        row["topic"] or "?",
        "?" if row["partition"] is None else str(row["partition"]),
        *numbers,
        row["newest"] or "-",
    )


def _print(source: Path, out: Path, figures: Figures) -> None:
    rows = [_cells(row) for row in figures.partitions]
    try:
        _print_table(f"Records under {source}", rows)
    except ImportError:
        _print_plain(rows)
    records = sum(row["records"] for row in figures.partitions)
    read = sum(path.stat().st_size for path in source.rglob("*.log"))
    files = list(out.glob("*.parquet"))
    written = sum(path.stat().st_size for path in files)
    print(
        f"{records:,} records in {len(rows)} partitions, {read / 1e6:.1f} MB of segments, "
        f"read and written in {figures.convert:.1f} s: "
        f"{records / figures.convert:,.0f} records/s, {read / 1e6 / figures.convert:.1f} MB/s "
        f"(Spark took {figures.start:.1f} s to start)"
    )
    print(f"Parquet: {out} ({len(files)} files, {written / 1e6:.1f} MB)")
    print(f"Look at it: {Path(sys.executable).name} -c \"import pyarrow.parquet as pq; print(pq.read_table('{out}'))\"")


def _print_table(title: str, rows: Sequence[tuple[str, ...]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left")
    for heading in _HEADINGS:
        table.add_column(heading, justify="left" if heading in ("Topic", "Newest (UTC)") else "right")
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def _print_plain(rows: Sequence[tuple[str, ...]]) -> None:
    widths = [max(map(len, column)) for column in zip(_HEADINGS, *rows, strict=True)]
    for row in (_HEADINGS, *rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
