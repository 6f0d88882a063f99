"""Tries what kafkacodec does with Spark, for test_spark_versions.py; prints the outcomes as JSON.

Usage: python -m tests.integration.spark_version SEGMENT DIRECTORY BROKER
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


def column_functions(spark, *_):
    rows = spark.createDataFrame([(bytearray(b"user-1"),)], "key binary")
    return rows.select(kc.spark.kafka_partition("key", 12).alias("p")).first()[0]


def sql_functions(spark, segment, _):
    kc.spark.register_functions(spark)
    with open(segment, "rb") as file:
        spark.createDataFrame([(bytearray(file.read()),)], "blob binary").createOrReplaceTempView("raw")
    return spark.sql("SELECT * FROM kafka_records(TABLE(SELECT blob FROM raw))").count()


def views(spark, *_):
    reader = spark.read.format("kafkalog")
    return [reader.option("view", view).load(kc.sample().path).count() for view in ("offsets", "groups", "topics")]


def metadata(spark, segment, _):
    rows = spark.read.format("kafkalog").option("columns", "offset,_metadata").load(segment)
    return rows.select("_metadata.file").distinct().count()


def export(spark, segment, directory):
    kc.spark.export(spark, segment, f"{directory}/exported")
    return spark.read.parquet(f"{directory}/exported").count()


def write_to_broker(spark, *_):
    rows = spark.range(100).selectExpr("string(id) AS value", "'versions' AS topic")
    servers = {"kafka.bootstrap.servers": sys.argv[3]}
    rows.write.format("kafkabroker").mode("append").options(**servers).save()
    return "sent"


def read_broker(spark, *_):
    servers = {"kafka.bootstrap.servers": sys.argv[3], "subscribe": "orders"}
    return spark.read.format("kafkabroker").options(**servers).load().count()


def stream_broker(spark, _, directory):
    servers = {"kafka.bootstrap.servers": sys.argv[3], "subscribe": "orders", "startingOffsets": "earliest"}
    records = spark.readStream.format("kafkabroker").options(**servers).load()
    query = records.writeStream.format("memory").queryName("live").option("checkpointLocation", f"{directory}/live")
    query.trigger(availableNow=True).start().awaitTermination()
    return spark.table("live").count()


ATTEMPTS = (
    read,
    read_filtered,
    write,
    write_in_thread,
    read_stream,
    write_stream,
    decode_batches,
    split_confluent,
    column_functions,
    sql_functions,
    views,
    metadata,
    export,
    write_to_broker,
    read_broker,
    stream_broker,
)


def outcome(call, *arguments):
    """What a call returns, or the sentence of this package's error in what Spark shows."""
    try:
        return call(*arguments)
    except Exception as error:
        shown = str(error)
        found = re.search(r"KafkaCodecError: (.*)", shown)
        return found[1] if found else shown


def main(segment, directory, _broker):
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
