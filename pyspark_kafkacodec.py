"""Spark looks for modules whose names start with ``pyspark_`` and registers their `DefaultSource` by itself."""

from kafkacodec.spark.source import KafkaLogDataSource as DefaultSource

__all__ = ["DefaultSource"]
