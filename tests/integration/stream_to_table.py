"""A streaming query to Parquet, to be killed: `stream_to_table.py LOGS OUT CHECKPOINT [OPTION=VALUE]`.

It reads `kafkalog`, or `kafkabroker` where the options have its servers and LOGS is empty. There may be several
options. With `once` among them it ends when it has read everything.
"""

import json
import sys

import kafkacodec as kc
from tests.integration import ready_python


def main(logs, out, checkpoint, *given):
    ready_python.use()
    spark = kc.spark.session({"spark.driver.memory": "700m"}, master="local[2]", quick_start=True)
    query = start(spark, logs, out, checkpoint, *given)
    try:
        query.awaitTermination()
    except Exception as error:
        print("FAILED", str(error)[:100000], flush=True)
        sys.exit(3)


def start(spark, logs, out, checkpoint, *given):
    """The query in a session that is there."""
    options = dict(pair.split("=", 1) for pair in given if "=" in pair)
    reader = spark.readStream.format("kafkalog" if logs else "kafkabroker").options(**options)
    stream = reader.load(logs) if logs else reader.load()
    rows = stream.selectExpr("partition", "offset", "string(key) AS key", "string(value) AS value")
    writer = rows.writeStream.format("parquet").option("checkpointLocation", checkpoint)
    trigger = {"availableNow": True} if "once" in given else {"processingTime": "100 milliseconds"}
    return writer.trigger(**trigger).start(out)


def written(out):
    """The files that the table has, by Spark's log of them: files of killed tasks lie beside."""
    log = sorted((out / "_spark_metadata").glob("[0-9]*"), key=lambda path: int(path.name.split(".")[0]))
    compact = [path for path in log if path.suffix == ".compact"]
    lines = [line for path in log[log.index(compact[-1]) if compact else 0 :] for line in path.read_text().splitlines()]
    return sorted({json.loads(line)["path"].removeprefix("file://") for line in lines if line.startswith("{")})


if __name__ == "__main__":
    main(*sys.argv[1:])
