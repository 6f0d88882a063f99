"""The format `kafkalog`: Spark registers the `DefaultSource` of every module whose name starts with ``pyspark_``."""

from contextlib import suppress

# A missing package must not keep Spark from finding other data sources.
with suppress(ImportError):
    from kafkacodec.spark.kafkalog import KafkaLogDataSource as DefaultSource

__all__ = ["DefaultSource"]
