"""Spark: a data source, DataFrame functions, and a session for one machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafkacodec.lazy import at_first_use

if TYPE_CHECKING:
    from kafkacodec.spark.environment.jvm import NoUsableJava, java_home
    from kafkacodec.spark.environment.requirements import require_pyspark
    from kafkacodec.spark.errors import LostOffsets, OptionError, UnfinishedWrite
    from kafkacodec.spark.exporting.job import export
    from kafkacodec.spark.exporting.report import ExportReport
    from kafkacodec.spark.reading.progress import StreamLag, progress_lag
    from kafkacodec.spark.sessions.formats import register
    from kafkacodec.spark.sessions.session import session
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

# Public name -> its module. Most modules import pyspark and are loaded on first use.
_HOMES = {
    "ExportReport": "exporting.report",
    "LostOffsets": "errors",
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
    "register": "sessions.formats",
    "register_functions": "sql.register",
    "remove_abandoned": "writing.staging",
    "require_pyspark": "environment.requirements",
    "session": "sessions.session",
    "split_confluent": "sql.column_functions",
}

__all__ = [
    "ExportReport",
    "LostOffsets",
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


_WITHOUT_PYSPARK = (
    "ExportReport",
    "LostOffsets",
    "NoUsableJava",
    "OptionError",
    "export",
    "java_home",
    "register",
    "require_pyspark",
    "session",
)
"""Names that are there without pyspark; the functions that need it check that themselves."""

_imported = at_first_use(__name__, _HOMES)


def __getattr__(name: str) -> Any:
    if name not in _WITHOUT_PYSPARK:
        _imported("require_pyspark")()
    return _imported(name)


def __dir__() -> list[str]:
    return list(__all__)
