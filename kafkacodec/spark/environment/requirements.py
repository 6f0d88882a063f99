"""Whether the packages that everything here needs are installed."""

from __future__ import annotations

from importlib.util import find_spec

from kafkacodec.errors import KafkaCodecError
from kafkacodec.spark.environment.shipping import require_unpacked

__all__ = ["require_pyspark"]


def require_pyspark() -> None:
    """Check that pyspark is installed and has Python data sources (Spark 4.0), with the packages it needs for Arrow.

    Raises:
        KafkaCodecError: a package is missing or too old, or this one is imported from a zip; the message names it and
            what to do.
    """
    require_unpacked()
    for package in ("pyspark", "pyarrow", "pandas"):
        if find_spec(package) is None:
            raise KafkaCodecError(f"kafkacodec.spark needs {package}; run: pip install 'kafkacodec[spark]'")
    from kafkacodec.spark.environment.versions import require_spark

    require_spark("kafkacodec.spark", (4, 0))
