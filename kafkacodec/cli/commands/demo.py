"""``kafkacodec demo``: records, transactions, a damaged copy and SQL, on the sample in the package."""

from __future__ import annotations

import os
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

from kafkacodec.cli.console import say
from kafkacodec.cli.output import Column, counted, print_table, text, timestamp
from kafkacodec.temporary import temporary_directory

if TYPE_CHECKING:
    from kafkacodec.log import LogDirectory, Topic

QUERY = """\
SELECT get_json_object(CAST(value AS STRING), '$.item') AS item, count(*) AS orders,
       round(sum(get_json_object(CAST(value AS STRING), '$.price')), 2) AS revenue
FROM orders GROUP BY 1 ORDER BY 3 DESC LIMIT 4"""

NEXT = ["kafkacodec sample my-logs", "kafkacodec topics my-logs", "kafkacodec dump my-logs --topic payments --limit 5"]


@click.command()
@click.option("--spark/--no-spark", default=None, help="Run the SQL query. Default: if Spark is installed.")
def demo(spark: bool | None) -> None:
    """Show what kafkacodec does, with a small log directory that a Kafka broker wrote.

    Prints records, what a read_committed consumer gets, what is found and recovered in a damaged copy, and a SQL query
    in Spark. Needs neither a broker nor an installed Java, and leaves no files.
    """
    import kafkacodec

    log = kafkacodec.sample()
    _records(log)
    _transactions(log.topic("payments"))
    _damage()
    if spark is None and find_spec("pyspark") is None:
        say("The SQL query is left out, since Spark is not installed: pip install 'kafkacodec[spark]'")
        say("")
    elif spark is not False:
        _sql(log)
    say("Try next:", bold=True)
    for line in NEXT:
        say(f"  {line}")


def _records(log: LogDirectory) -> None:
    orders = log.topic("orders")
    begin = time.perf_counter()
    count = sum(len(chunk) for chunk in orders.read())
    seconds = time.perf_counter() - begin
    say(f"Records: 5 of {count} orders, decoded in {seconds * 1000:.0f} ms", bold=True)
    columns = [Column("partition", right=True), Column("offset", right=True), Column("UTC"), Column("key")]
    chosen = orders.head(5, columns=["partition", "offset", "timestamp", "key", "value"])
    rows = (
        [str(r.partition), str(r.offset), timestamp(r.timestamp)[11:19], text(r.key), text(r.value)] for r in chosen
    )
    print_table([*columns, Column("value", stretch=True)], rows)
    say("")


def _transactions(payments: Topic) -> None:
    say("Transactions: the same topic for two consumers", bold=True)
    open_from = payments.partition(0).last_stable_offset()
    everything, committed = payments.count(), payments.count(isolation_level="read_committed")
    undecided = payments.count(start_offset=open_from)
    left_out = f"without {everything - committed - undecided} of aborted and {undecided} of open transactions"
    rows = [["read_uncommitted", str(everything), "every record"], ["read_committed", str(committed), left_out]]
    print_table([Column("isolation level"), Column("payments", right=True), Column("")], rows)
    say("")


def _damage() -> None:
    import kafkacodec

    with temporary_directory("kafkacodec-demo-") as scratch:
        broken, saved = os.path.join(scratch, "broken"), os.path.join(scratch, "saved")
        log = kafkacodec.sample(broken, damaged=True)
        intact = kafkacodec.sample().verify().num_records
        report = log.verify()
        errors = [finding for finding in report.findings if finding.level == "error"]
        say(f"A damaged copy: {counted(len(errors), 'error')} found", bold=True)
        lost = [(f.end_offset or 0) - (f.first_offset or 0) for f in errors]
        rows = ([os.path.relpath(f.path, broken), str(count), f.text] for f, count in zip(errors, lost, strict=True))
        columns = [Column("file", stretch=True, cut_start=True), Column("records lost", right=True)]
        print_table([*columns, Column("finding", wrap=True)], rows)
        recovered = kafkacodec.log.recover(broken, saved)
        found = kafkacodec.log.LogDirectory(saved).verify()
        saved_records = f"{found.num_records} of {intact} records"
        say(f"Recovered {saved_records} to a new directory; {recovered.missing_offsets} are lost.")
        say("")


def _sql(log: LogDirectory) -> None:
    from kafkacodec.spark.sessions.demo import run

    say("SQL in Spark, which takes some seconds to start", bold=True)
    for line in QUERY.splitlines():
        say(f"  {line}")
    result = run(log, "orders", QUERY)
    numbers = {name: name != "item" for name in result.columns}
    print_table(
        [Column(name, right=right) for name, right in numbers.items()],
        ([str(cell) for cell in row] for row in result.rows),
    )
    say(f"Spark took {result.seconds_to_start:.1f} s to start and {result.seconds:.1f} s for the query.")
    say("")
