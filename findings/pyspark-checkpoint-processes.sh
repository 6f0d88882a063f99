#!/usr/bin/env bash
# PySpark: a stream of one micro-batch with its checkpoint on a local disk runs 45 external programs.
#
# Versions: pyspark 4.3.0, Python 3.11, Java 17 on PATH; Linux, without Hadoop's native library, as `pip` installs it.
#
# Spark writes the files of a checkpoint through Hadoop's FileContext. Its local file system asks `readlink` whether a
# path is a symbolic link, and sets permissions with `chmod`: each call is a process that the JVM starts. A stream that
# reads one line of text, without a shuffle or state, runs readlink 32 times and chmod 13 times.
# Why it matters: tests of streams, and small local ones, spend a part of each micro-batch in it, which neither Spark's
# log nor its metrics show. With `spark.sql.streaming.checkpointFileManagerClass` set to
# FileSystemBasedCheckpointFileManager, readlink is not run.
#
# Output seen: see EXPECTED. The script fails if PySpark behaves differently.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet pyspark==4.3.0

# Programs that note their call and become the real ones.
mkdir "$work/bin" "$work/in"
for program in readlink chmod; do
    printf '#!/bin/sh\necho %s >> "$CALLS"\nexec %s "$@"\n' "$program" "$(command -v "$program")" > "$work/bin/$program"
done
chmod +x "$work/bin/"*
echo "a line" > "$work/in/lines.txt"

cat > "$work/stream.py" <<'PYTHON'
import os
import sys

from pyspark.sql import SparkSession

directory, calls = sys.argv[1], os.environ["CALLS"]
others = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("OFF")


def processes(name):
    """The programs that one micro-batch of a line ran."""
    open(calls, "w").close()
    lines = spark.readStream.text(f"{directory}/in")
    query = lines.writeStream.format("noop").option("checkpointLocation", f"{directory}/{name}")
    query.trigger(availableNow=True).start().awaitTermination()
    with open(calls) as file:
        return file.read().split()


default = processes("default")
spark.conf.set("spark.sql.streaming.checkpointFileManagerClass", others)
changed = processes("changed")
print("default: readlink", default.count("readlink"), "chmod", default.count("chmod"))
print("FileSystemBasedCheckpointFileManager: readlink", changed.count("readlink"), "chmod", changed.count("chmod"))
spark.stop()
PYTHON

cat > "$work/EXPECTED" <<'EXPECTED'
default: readlink 32 chmod 13
FileSystemBasedCheckpointFileManager: readlink 0 chmod 13
EXPECTED
export CALLS="$work/calls" PATH="$work/bin:$PATH" PYSPARK_PYTHON="$work/venv/bin/python"
"$PYSPARK_PYTHON" "$work/stream.py" "$work" > "$work/seen" 2> "$work/log" || { tail -20 "$work/log"; exit 1; }
diff "$work/EXPECTED" "$work/seen" && cat "$work/seen"
