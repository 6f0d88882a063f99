"""The formats ``kafkalog`` and ``kafkabroker`` in a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkacodec.spark.environment.requirements import require_pyspark
from kafkacodec.spark.environment.shipping import require_interpreter, use_this_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register"]


def register(spark: SparkSession) -> None:
    """Register the formats ``kafkalog`` and ``kafkabroker`` with a session, for reading and writing.

    Not needed on one machine if this package is installed as a wheel: Spark finds the modules `pyspark_kafkacodec` and
    `pyspark_kafkabroker` by itself. Call it at the start of each thread that writes, apart from the one that made the
    session: it makes `spark` the active session of the thread, without which Spark finds no Python data source to write
    to. Settings ``fs.s3a.*`` of the session's Hadoop configuration apply as they are at the last call.

    Raises:
        KafkaCodecError: pyspark is not installed or too old, this package is imported from a zip, or the executors'
            Python is not on the driver.
    """
    require_pyspark()
    from pyspark.errors import AnalysisException
    from pyspark.sql.utils import is_remote

    from kafkacodec.spark.kafkabroker import KafkaBrokerDataSource
    from kafkacodec.spark.kafkalog import KafkaLogDataSource
    from kafkacodec.spark.object_access import hadoop_access

    local = not is_remote()
    if local:
        use_this_python(spark.sparkContext)
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
