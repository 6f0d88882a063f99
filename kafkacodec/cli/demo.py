"""``kafkacodec demo``: Spark reads a directory of segments and writes Parquet."""

from __future__ import annotations

import click


@click.command()
@click.argument("path", type=click.Path(exists=True), default="tests/data/kafka/logs/kraft-4.1.0")
@click.option("-o", "--output", type=click.Path(), default="out/demo", show_default=True, help="Directory to write to.")
def demo(path: str, output: str) -> None:
    """Let Spark read the segments below PATH and write Parquet.

    PATH is by default the data directory of a Kafka 4.1 broker that ships with the source of kafkacodec. Needs no
    broker and no Java. Prints what was read per topic and partition, the rates, and where the output is.
    """
    from kafkacodec.spark.demo import run

    run(path, output)
