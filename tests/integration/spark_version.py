"""Tries what kafkacodec does with Spark, for test_spark_versions.py; prints the outcomes as JSON.

Usage: python -m tests.integration.spark_version SEGMENT DIRECTORY
"""

import json
import re
import sys
import threading

import kafkacodec as kc


def read(spark, segment, _):
    return spark.read.format("kafkalog").load(segment).count()


def read_filtered(spark, segment, _):
    spark.conf.set("spark.sql.python.filterPushdown.enabled", True)
    return spark.read.format("kafkalog").load(segment).where("offset BETWEEN 20 AND 39").count()


def write(spark, _, directory):
    rows = spark.range(100).selectExpr("string(id) AS value")
    rows.write.format("kafkalog").mode("append").option("topic", "written").save(f"{directory}/written")
    return read(spark, f"{directory}/written", directory)


def write_in_thread(spark, segment, directory):
    """As `write`, in a thread that has registered the format."""
    counts = []

    def run():
        kc.spark.register(spark)
        counts.append(write(spark, segment, f"{directory}/thread"))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return counts[0] if counts else "failed"


def read_stream(spark, segment, directory):
    records = spark.readStream.format("kafkalog").load(segment)
    query = records.writeStream.format("memory").queryName("records").option("checkpointLocation", f"{directory}/in")
    query.trigger(availableNow=True).start().awaitTermination()
    return spark.table("records").count()


def write_stream(spark, _, directory):
    rows = spark.readStream.schema("value string").text(f"{directory}/text")
    query = rows.writeStream.format("kafkalog").option("topic", "streamed")
    query = query.option("checkpointLocation", f"{directory}/out").trigger(availableNow=True)
    query.start(f"{directory}/streamed").awaitTermination()
    return read(spark, f"{directory}/streamed", directory)


def decode_batches(spark, segment, _):
    with open(segment, "rb") as file:
        blobs = spark.createDataFrame([(bytearray(file.read()),)], "value binary")
    return kc.spark.decode_batches(blobs, mode="PERMISSIVE", problems=True).count()


def split_confluent(spark, *_):
    values = spark.createDataFrame([(bytearray(b"\0\0\0\0\7payload"),)], "value binary")
    return values.select(kc.spark.split_confluent("value").alias("s")).select("s.schema_id").first()[0]


ATTEMPTS = (read, read_filtered, write, write_in_thread, read_stream, write_stream, decode_batches, split_confluent)


def outcome(call, *arguments):
    """What a call returns, or the sentence of this package's error in what Spark shows."""
    try:
        return call(*arguments)
    except Exception as error:
        shown = str(error)
        found = re.search(r"KafkaCodecError: (.*)", shown)
        return found[1] if found else shown


def main(segment, directory):
    outcomes = {}
    try:
        spark = kc.spark.session(master="local[1]", quick_start=True)
    except kc.KafkaCodecError as error:
        outcomes["session"] = str(error)
    else:
        kc.spark.register(spark)  # a second time: must be harmless
        outcomes |= {attempt.__name__: outcome(attempt, spark, segment, directory) for attempt in ATTEMPTS}
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main(*sys.argv[1:])
