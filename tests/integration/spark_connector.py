"""Spark's own Kafka source and sink, to compare with: jars from Maven Central, added to a running session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.integration.kafka_jars import fetched

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["add_connector"]

# The newest that are published; what they depend on is part of Spark, or named here.
_JARS = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.1",
    "org.apache.commons:commons-pool2:2.12.1",
)
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>kafkacodec</groupId>
  <artifactId>spark-connector</artifactId>
  <version>1</version>
  <dependencies>
{dependencies}
  </dependencies>
</project>
"""
_DEPENDENCY = """    <dependency>
      <groupId>{}</groupId>
      <artifactId>{}</artifactId>
      <version>{}</version>
      <exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>
    </dependency>"""


def add_connector(spark: SparkSession) -> None:
    """Give a session the format `kafka`."""
    dependencies = "\n".join(_DEPENDENCY.format(*name.split(":")) for name in _JARS)
    for jar in sorted(fetched("spark-connector", _POM.format(dependencies=dependencies)).glob("*.jar")):
        spark.sql(f"ADD JAR '{jar}'")
