#!/usr/bin/env bash
# PySpark: an error raised while a stream's Python reader is made is reported as an error of stopping it.
#
# Versions: pyspark 4.3.0, pyarrow 26.0.1, Python 3.11, Java 17 on PATH or in JAVA_HOME.
#
# `python_streaming_source_runner` makes the reader inside a try statement, whose finally clause stops it. If
# `DataSource.streamReader` raises, there is no reader yet, and the finally clause raises an UnboundLocalError.
# The query ends with that: it is the last line of the traceback that Spark shows. What the source has raised is above
# it, before "During handling of the above exception, another exception occurred". For a batch, the same source's error
# is the last line.
# Why it matters: `streamReader` is where a source checks its options, so every wrong option looks like a fault of Spark.
# A source can avoid it: return a reader whose methods raise the error.
#
# Output seen: see EXPECTED. The script fails if PySpark behaves differently.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet pyspark==4.3.0 pyarrow==26.0.1 pandas==2.3.3

cat > "$work/stream.py" <<'PYTHON'
import sys

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader

directory = sys.argv[1]


class Numbers(DataSource):
    @classmethod
    def name(cls):
        return "numbers"

    def schema(self):
        return "number int"

    def reader(self, schema):
        raise ValueError("the option 'limit' is missing")

    def streamReader(self, schema):
        raise ValueError("the option 'limit' is missing")


spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("OFF")
spark.dataSource.register(Numbers)


def ended(run):
    try:
        run()
    except Exception as error:
        return str(error)


def last_error(text):
    lines = [line.strip() for line in text.splitlines()]
    return ([line for line in lines if line.split(":")[0] in ("ValueError", "UnboundLocalError")] or lines)[-1]


batch = ended(lambda: spark.read.format("numbers").load().collect())
query = spark.readStream.format("numbers").load().writeStream.format("noop")
stream = ended(lambda: query.option("checkpointLocation", directory).start().awaitTermination())
print("batch:", last_error(batch))
print("stream:", last_error(stream))
spark.stop()
PYTHON

cat > "$work/EXPECTED" <<'EXPECTED'
batch: ValueError: the option 'limit' is missing
stream: UnboundLocalError: cannot access local variable 'reader' where it is not associated with a value
EXPECTED
PYSPARK_PYTHON="$work/venv/bin/python" "$work/venv/bin/python" "$work/stream.py" "$work/checkpoint" > "$work/seen" 2> "$work/log" || { tail -20 "$work/log"; exit 1; }
diff "$work/EXPECTED" "$work/seen" && cat "$work/seen"
