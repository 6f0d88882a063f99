"""A Spark session for one machine, with the formats registered."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING

from kafkacodec.signatures import suggests_options
from kafkacodec.spark.environment.jvm import java_home, java_home_set, private_directory, removed_by_jvm
from kafkacodec.spark.environment.requirements import require_pyspark
from kafkacodec.spark.sessions.formats import register

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["session"]

# For jobs of seconds: the compiler that starts fastest, and a garbage collector without threads.
_QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

# pyspark 4.3 does not support pandas 3 yet; pandas is not used here.
_PANDAS_WARNING = "PySpark does not yet fully support pandas"

_QUIET_LOG = """rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
"""


@suggests_options
def session(
    conf: Mapping[str, str] | None = None,
    *,
    master: str | None = None,
    app_name: str = "kafkacodec",
    quick_start: bool = False,
) -> SparkSession:
    """A Spark session with the formats ``kafkalog`` and ``kafkabroker`` registered.

    Starts Spark with a supported JVM even if it would not find one itself, makes the workers use the running
    interpreter, and silences Spark's start-up messages. If a session is active, applies `conf` to it and returns it.

    Args:
        conf: Spark settings by their full names; they override those set here.
        master: the cluster to run on; ``local[*]`` if neither this nor ``spark.master`` in `conf` is given.
        app_name: the application's name.
        quick_start: start the JVM in half the time. For jobs of seconds; longer ones run slower.

    Raises:
        NoUsableJava: no supported JVM was found.
        KafkaCodecError: pyspark is not installed or too old.
    """
    require_pyspark()
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    settings = {
        "spark.master": master or "local[*]",
        "spark.app.name": app_name,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        **(conf or {}),
    }
    if settings["spark.master"].startswith("local"):
        settings = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", **settings}
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if SparkSession.getActiveSession() is not None:
        return _started(settings)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    os.environ.setdefault("PYTHONWARNINGS", f"ignore:{_PANDAS_WARNING}")  # for the workers
    if SparkContext._gateway is not None:  # its JVM has its options already
        return _started(settings)
    home = java_home(quick_start=quick_start)
    place = private_directory()
    log = place / "log4j2.properties"
    log.write_text(_QUIET_LOG)
    java_options = [
        f"-Dlog4j2.configurationFile={log.as_uri()}",
        settings.get("spark.driver.extraJavaOptions", ""),
        *([_QUICK_START] if quick_start else []),
    ]
    settings["spark.driver.extraJavaOptions"] = " ".join(java_options)
    with java_home_set(home):
        spark = _started(settings)
    removed_by_jvm(*filter(None, [home, place]))
    return spark


def _started(settings: Mapping[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=_PANDAS_WARNING)
        spark = builder.getOrCreate()
        register(spark)
    return spark
