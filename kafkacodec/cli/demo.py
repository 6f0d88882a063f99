"""``kafkacodec demo``: convert a directory of segments to Parquet with Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kafkacodec.cli.console import say
from kafkacodec.cli.output import Column, counted, print_table, size, timestamp

if TYPE_CHECKING:
    from kafkacodec.spark.demo import Summary


@click.command()
@click.argument("path", type=click.Path(exists=True), default="tests/data/kafka/logs/kraft-4.1.0")
@click.option("-o", "--output", type=click.Path(), default="out/demo", show_default=True, help="Directory to write to.")
def demo(path: str, output: str) -> None:
    """Read the segments below PATH with Spark and write them as Parquet.

    PATH is by default the data directory of a Kafka 4.1 broker in the source tree of kafkacodec. Needs neither a broker
    nor an installed Java. Prints a table of the partitions, the rates and the output directory. Replaces Parquet files
    in the output directory.
    """
    from kafkacodec.spark.demo import run

    say(f"Starting Spark on {path} ...")
    result = run(path, output)
    columns = [
        Column("topic", stretch=True),
        Column("partition", right=True),
        Column("records", right=True),
        Column("bytes", right=True),
        Column("offsets", right=True),
        Column("newest (UTC)"),
    ]
    print_table(columns, map(_row, result.partitions))
    records = sum(summary.records for summary in result.partitions)
    of_what = counted(len(result.partitions), "partition")
    say(f"{counted(records, 'record')} from {size(result.size_in_bytes)} of segments in {of_what}")
    cold = _rate(records, result.size_in_bytes, result.seconds)
    say(f"  Spark, cold, to Parquet   {cold}; {result.seconds_to_start:.1f} s to start")
    say(f"  kafkacodec alone          {_rate(records, result.size_in_bytes, result.seconds_alone)}")
    files = list(Path(output).glob("*.parquet"))
    say(f"Parquet: {output} ({counted(len(files), 'file')}, {size(sum(file.stat().st_size for file in files))})")


def _row(summary: Summary) -> list[str]:
    return [
        "-" if summary.topic is None else summary.topic,
        "-" if summary.partition is None else str(summary.partition),
        f"{summary.records:,}",
        f"{summary.size_in_bytes:,}",
        f"{summary.first_offset}..{summary.last_offset}",
        timestamp(summary.newest)[:10],
    ]


def _rate(count: int, size_in_bytes: int, seconds: float) -> str:
    return f"{seconds:8.3f} s  {count / seconds:12,.0f} records/s  {size_in_bytes / 1e6 / seconds:8.1f} MB/s"
