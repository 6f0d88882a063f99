"""Spark: a data source, DataFrame functions, and a session for one machine."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from kafkacodec.errors import KafkaCodecError
from kafkacodec.lazy import at_first_use

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kafkacodec.spark.environment.jvm import NoUsableJava, java_home, session
    from kafkacodec.spark.errors import OptionError, UnfinishedWrite
    from kafkacodec.spark.exporting.job import export
    from kafkacodec.spark.exporting.report import ExportReport
    from kafkacodec.spark.reading.progress import StreamLag, progress_lag
    from kafkacodec.spark.sql.column_functions import (
        batch_headers,
        crc_ok,
        decode_message,
        decode_records,
        kafka_partition,
        split_confluent,
    )
    from kafkacodec.spark.sql.functions import decode_batches
    from kafkacodec.spark.sql.register import register_functions
    from kafkacodec.spark.sql.values import decode_values
    from kafkacodec.spark.writing.recovery import recover_write
    from kafkacodec.spark.writing.staging import remove_abandoned

# Public name -> its module. The modules import pyspark and are loaded on first use.
_HOMES = {
    "ExportReport": "exporting.report",
    "NoUsableJava": "environment.jvm",
    "OptionError": "errors",
    "StreamLag": "reading.progress",
    "UnfinishedWrite": "errors",
    "batch_headers": "sql.column_functions",
    "crc_ok": "sql.column_functions",
    "decode_batches": "sql.functions",
    "decode_message": "sql.column_functions",
    "decode_records": "sql.column_functions",
    "decode_values": "sql.values",
    "export": "exporting.job",
    "java_home": "environment.jvm",
    "kafka_partition": "sql.column_functions",
    "progress_lag": "reading.progress",
    "recover_write": "writing.recovery",
    "register_functions": "sql.register",
    "remove_abandoned": "writing.staging",
    "session": "environment.jvm",
    "split_confluent": "sql.column_functions",
}

__all__ = [
    "ExportReport",
    "NoUsableJava",
    "OptionError",
    "StreamLag",
    "UnfinishedWrite",
    "batch_headers",
    "crc_ok",
    "decode_batches",
    "decode_message",
    "decode_records",
    "decode_values",
    "export",
    "java_home",
    "kafka_partition",
    "progress_lag",
    "recover_write",
    "register",
    "register_functions",
    "remove_abandoned",
    "require_pyspark",
    "session",
    "split_confluent",
]


def register(spark: SparkSession) -> None:
    """Register the formats ``kafkalog`` and ``kafkabroker`` with a session, for reading and writing.

    Not needed for ``kafkalog`` on one machine if this package is installed as a wheel: Spark finds the module
    `pyspark_kafkacodec` by itself. Call it at the start of each thread that writes, apart from the one that made the
    session: it makes `spark` the active session of the thread, without which Spark finds no Python data source to write
    to. Settings ``fs.s3a.*`` of the session's Hadoop configuration apply as they are at the last call.

    Raises:
        KafkaCodecError: pyspark is not installed or too old, this package is imported from a zip, or the executors'
            Python is not on the driver.
    """
    require_pyspark()
    from pyspark.errors import AnalysisException
    from pyspark.sql.utils import is_remote

    from kafkacodec.spark.environment.shipping import require_interpreter
    from kafkacodec.spark.live.datasource import KafkaBrokerDataSource
    from kafkacodec.spark.object_access import hadoop_access
    from kafkacodec.spark.reading.source import KafkaLogDataSource

    local = not is_remote()
    if local:
        require_interpreter(spark.sparkContext.pythonExec)
    # Python processes of Spark do not see the Hadoop configuration: the class, made here, brings it to them.
    name = KafkaLogDataSource.__name__
    log: type[KafkaLogDataSource] = type(name, (KafkaLogDataSource,), {"access": hadoop_access(spark)})
    for source in (log, KafkaBrokerDataSource):
        try:
            spark.dataSource.register(source)
        except AnalysisException as error:
            # Spark 4.0 refuses to register what it has found by itself.
            if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
                raise
    if local:
        spark._get_j_spark_session_class(spark._jvm).setActiveSession(spark._jsparkSession)


def require_pyspark() -> None:
    """Check that pyspark is installed and has Python data sources (Spark 4.0), with the packages it needs for Arrow.

    Raises:
        KafkaCodecError: a package is missing or too old, or this one is imported from a zip; the message names it and
            what to do.
    """
    from kafkacodec.spark.environment.shipping import require_unpacked

    require_unpacked()
    for package in ("pyspark", "pyarrow", "pandas"):
        if find_spec(package) is None:
            raise KafkaCodecError(f"kafkacodec.spark needs {package}; run: pip install 'kafkacodec[spark]'")
    from kafkacodec.spark.environment.versions import require_spark

    require_spark("kafkacodec.spark", (4, 0))


_imported = at_first_use(__name__, _HOMES)


def __getattr__(name: str) -> Any:
    if _HOMES.get(name) != "environment.jvm":
        require_pyspark()
    return _imported(name)


def __dir__() -> list[str]:
    return list(__all__)
