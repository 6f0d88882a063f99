"""Spark looks for modules whose names start with ``pyspark_`` and registers their `DefaultSource` by itself."""

from contextlib import suppress

# Where a package that the data source needs is missing, other data sources must still be found.
with suppress(ImportError):
    from kafkacodec.spark.source import KafkaLogDataSource as DefaultSource

__all__ = ["DefaultSource"]
