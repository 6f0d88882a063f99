"""Loads a topic of a dead broker's data directory into DuckDB, chunk by chunk: the log may be bigger than memory.

python dead_cluster_to_duckdb.py [DATA_DIRECTORY [TOPIC [DATABASE]]]
"""

import sys

import duckdb

import kafkacodec as kc


def main(directory: str | None = None, topic: str = "payments", database: str = "kafka.duckdb") -> None:
    log = kc.log.LogDirectory(directory) if directory else kc.sample()
    # Damaged batches are left out and told at the end; aborted transactions are not in the table.
    records = log.topic(topic).reader(isolation_level="read_committed", on_error="skip")
    with duckdb.connect(database) as connection:
        connection.execute(f'CREATE OR REPLACE TABLE "{topic}" AS SELECT * FROM records')
        found = connection.execute(f'SELECT count(*), min("timestamp"), max("timestamp") FROM "{topic}"').fetchone()
    count, first, last = found
    times = "" if first is None else f" from {first:%Y-%m-%d} to {last:%Y-%m-%d}"  # records may have no timestamps
    print(f"{count} records{times} are in {database}")


main(*sys.argv[1:])
