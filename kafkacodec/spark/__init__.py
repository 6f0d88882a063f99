"""Spark: data source, functions and helpers built on the columnar decoder."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from kafkacodec.errors import KafkaCodecError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kafkacodec.spark.errors import OptionError
    from kafkacodec.spark.functions import decode_batches, split_confluent
    from kafkacodec.spark.jvm import NoUsableJava, java_home, session
    from kafkacodec.spark.staging import remove_abandoned

# Public name -> the module that holds it; the modules load pyspark, so they load on first use.
_HOMES = {
    "NoUsableJava": "jvm",
    "OptionError": "errors",
    "decode_batches": "functions",
    "java_home": "jvm",
    "remove_abandoned": "staging",
    "session": "jvm",
    "split_confluent": "functions",
}

__all__ = [
    "NoUsableJava",
    "OptionError",
    "decode_batches",
    "java_home",
    "register",
    "remove_abandoned",
    "require_pyspark",
    "session",
    "split_confluent",
]


def register(spark: SparkSession) -> None:
    """Make ``spark.read.format("kafkalog")`` and ``df.write.format("kafkalog")`` known to a session.

    Not needed where the workers' Python path has the module `pyspark_kafkacodec`, that is, wherever this package is
    installed as a wheel: Spark finds that by itself.

    Raises:
        KafkaCodecError: when pyspark is not installed.
    """
    require_pyspark()
    from kafkacodec.spark.source import KafkaLogDataSource

    spark.dataSource.register(KafkaLogDataSource)


def require_pyspark() -> None:
    """Check that pyspark and what it needs for Arrow are there.

    Raises:
        KafkaCodecError: naming the first package that is missing and how to install it.
    """
    for package in ("pyspark", "pyarrow", "pandas"):
        if find_spec(package) is None:
            raise KafkaCodecError(f"kafkacodec.spark needs {package}: pip install 'kafkacodec[spark]'")


def __getattr__(name: str) -> Any:
    try:
        home = _HOMES[name]
    except KeyError:
        raise AttributeError(f"module 'kafkacodec.spark' has no attribute {name!r}") from None
    if home != "jvm":
        require_pyspark()
    value = getattr(importlib.import_module(f"kafkacodec.spark.{home}"), name)
    globals()[name] = value
    return value
