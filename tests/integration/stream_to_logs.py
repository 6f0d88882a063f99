"""Two streaming queries that copy a log into logs, to be killed: `stream_to_logs.py PLACE`.

One uses the format `kafkalog` as a sink, the other one writes batches with versions. They end when they have copied
everything.
"""

import sys

import kafkacodec as kc
from tests.integration import ready_python

KINDS = "writeStream", "foreachBatch"
PER_BATCH = 20
"""Records of a micro-batch."""


def main(place):
    ready_python.use()
    spark = kc.spark.session({"spark.driver.memory": "600m"}, master="local[2]", quick_start=True)
    for query in start(spark, place):
        query.awaitTermination()


def start(spark, place):
    """The queries in a session that is there."""
    options = {"topic": "copy", "numPartitions": 3}

    def write(frame, number):
        txn = {"txnAppId": "copying", "txnVersion": number}
        writer = frame.repartition(2).write.format("kafkalog").mode("append").options(**options, **txn)
        writer.save(f"{place}/foreachBatch")

    def started(kind):
        stream = spark.readStream.format("kafkalog").option("maxOffsetsPerTrigger", PER_BATCH).load(f"{place}/source")
        writer = stream.select("key", "value").writeStream.option("checkpointLocation", f"{place}/{kind}.checkpoint")
        if kind == "writeStream":
            writer = writer.format("kafkalog").options(**options).option("path", f"{place}/{kind}")
        else:
            writer = writer.foreachBatch(write)
        return writer.trigger(availableNow=True).start()

    return [started(kind) for kind in KINDS]


if __name__ == "__main__":
    main(*sys.argv[1:])
