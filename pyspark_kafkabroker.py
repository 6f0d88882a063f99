"""The format `kafkabroker` for sessions that have not registered it: see `pyspark_kafkacodec`."""

from contextlib import suppress

with suppress(ImportError):
    from kafkacodec.spark.kafkabroker import KafkaBrokerDataSource as DefaultSource

__all__ = ["DefaultSource"]
