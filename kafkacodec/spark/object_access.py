"""Credentials and address of S3 for driver and tasks: options of the source, and Hadoop's configuration under these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kafkacodec.log.storage.access import ENVIRONMENT, S3_PREFIX, S3_SETTINGS, S3Access
from kafkacodec.spark.errors import OptionError
from kafkacodec.spark.option_values import boolean

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["ACCESS_OPTIONS", "access_of", "hadoop_access"]

ACCESS_OPTIONS = tuple(S3_PREFIX + name for name in S3_SETTINGS)

_FLAGS = ("path.style.access", "connection.ssl.enabled")


def access_of(given: Mapping[str, str]) -> S3Access:
    """How to reach S3, as far as the options say.

    Raises:
        OptionError: one is malformed, or one half of the credentials is missing. The message shows no secret.
    """
    settings = {name: given[S3_PREFIX + name] for name in S3_SETTINGS if S3_PREFIX + name in given}
    for name in _FLAGS:
        if name in settings:
            settings[name] = str(boolean(S3_PREFIX + name, settings[name])).lower()
    if ("access.key" in settings) != ("secret.key" in settings):
        raise OptionError(f"{S3_PREFIX}access.key: goes with {S3_PREFIX}secret.key; set both or neither")
    return S3Access.of(settings)


def hadoop_access(spark: SparkSession) -> S3Access:
    """How to reach S3 according to a session's Hadoop configuration, which includes Spark's ``spark.hadoop.*``.

    A client of Spark Connect cannot see it.
    """
    from pyspark.sql.utils import is_remote

    if is_remote():
        return ENVIRONMENT
    context: Any = spark.sparkContext
    return S3Access.of(dict(context._jsc.hadoopConfiguration().getPropsWithPrefix(S3_PREFIX)))
