#!/usr/bin/env bash
# PySpark: a Python stream whose offsets take more than 64 KiB often waits 40 ms more for each trigger.
#
# Versions: pyspark 4.3.0, Python 3.11, Java 17 on PATH; Linux.
#
# For each trigger the JVM sends the start offset, as JSON, to the Python process of the source. Its stream buffers
# 64 KiB: shorter offsets leave it in one piece with the number of the call and the length before them. Longer ones are
# written apart from these eight bytes, on a socket without TCP_NODELAY. So the system keeps the last, incomplete
# segment of the offset until the other side acknowledges the first ones, which Linux may put off for 40 ms.
# Why it matters: a source with an entry for each of a thousand partitions or files is there quickly, and idle triggers
# take five times as long, while neither process uses its processor. Shorter offsets avoid it.
#
# Output seen: 60,000 bytes had 970 to 1,000 triggers in 14 s, one in 11 ms; 66,000 to 200,000 bytes had 340 to 560, of
# which about a third took 50 to 60 ms. The script fails unless longer offsets cost at least a quarter of the triggers.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet pyspark==4.3.0 pyarrow==25.0.0

cat > "$work/stream.py" <<'PYTHON'
import sys
import time

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable

directory = sys.argv[1]
SECONDS = 14


class Reader(DataSourceStreamReader):
    def __init__(self, options):
        self.length, self.calls = int(options["length"]), options["calls"]

    def getDefaultReadLimit(self):
        return ReadAllAvailable()

    def initialOffset(self):
        return {"offset": "x" * self.length}

    def latestOffset(self, start, limit):
        with open(self.calls, "a") as file:
            print(file=file)
        return self.initialOffset()

    def partitions(self, start, end):
        return [InputPartition(0)]

    def read(self, partition):
        return iter([])


class Source(DataSource):
    @classmethod
    def name(cls):
        return "long_offsets"

    def schema(self):
        return "a int"

    def streamReader(self, schema):
        return Reader(self.options)


spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("OFF")
spark.dataSource.register(Source)


def lines(path):
    with open(path) as file:
        return len(file.readlines())


def triggers(length, turn):
    """How many triggers a stream has, after the first ten."""
    calls = f"{directory}/calls-{length}-{turn}"
    open(calls, "w").close()
    rows = spark.readStream.format("long_offsets").option("length", length).option("calls", calls).load()
    query = rows.writeStream.format("noop").option("checkpointLocation", f"{calls}.checkpoint").start()
    while lines(calls) < 10:
        time.sleep(0.1)
    time.sleep(SECONDS)
    query.stop()
    return lines(calls) - 10


short, long = zip(*((triggers(60_000, turn), triggers(100_000, turn)) for turn in range(2)))
print(f"triggers in {SECONDS} s: 60,000 bytes", *short, "100,000 bytes", *long)
spark.stop()
sys.exit(0 if sum(long) < 0.75 * sum(short) else "longer offsets did not have fewer triggers")
PYTHON

export PYSPARK_PYTHON="$work/venv/bin/python"
"$PYSPARK_PYTHON" "$work/stream.py" "$work" 2> "$work/log" || { tail -5 "$work/log"; exit 1; }
