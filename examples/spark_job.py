"""Counts orders by hour with Spark, from log files, without a broker.

python spark_job.py [DATA_DIRECTORY [TOPIC]]
"""

import sys

from pyspark.sql import functions as f

import kafkacodec as kc


def main(directory: str | None = None, topic: str = "orders") -> None:
    spark = kc.spark.session(master="local[2]")
    records = spark.read.format("kafkalog").option("subscribe", topic).load(directory or kc.sample().path)
    hours = records.groupBy(f.date_trunc("hour", "timestamp").alias("hour")).agg(f.count("*").alias("orders"))
    hours.orderBy("hour").show(5)
    print(hours.agg(f.sum("orders")).first()[0], "orders")
    spark.stop()


main(*sys.argv[1:])
