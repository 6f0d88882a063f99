"""Options and columns of the sink `kafkabroker`: allowed values, and contradictions, checked before a job starts."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from pyspark.sql.types import StructType

from kafkacodec.arguments import columns_hint
from kafkacodec.client.checks import check_topic
from kafkacodec.client.producing.settings import ProducerSettings
from kafkacodec.datatypes import dataclass, field
from kafkacodec.spark.errors import OptionError
from kafkacodec.spark.live.client_options import SERVERS, client_options, is_client_option
from kafkacodec.spark.option_values import one_of, refuse_type, refuse_unknown, take

__all__ = ["SinkOptions", "check_sink_schema", "parse_sink_options"]

logger = logging.getLogger("kafkacodec.spark")

# Column -> the Spark types that it may have; those of Spark's own sink.
_COLUMNS = {
    "key": ("binary", "string"),
    "value": ("binary", "string"),
    "headers": ("array<struct<key:string,value:binary>>",),
    "topic": ("string",),
    "partition": ("int",),
    "timestamp": ("timestamp",),
}
_BATCH_OPTIONS = ("topic", "includeTimestamp", "transactionalIdPrefix")
# Spark gives the sink its own options of a query too. Its Kafka sink takes, and does not need, includeHeaders.
_OPTIONS = (*_BATCH_OPTIONS, "includeHeaders")
_STREAM_OPTIONS = (*_OPTIONS, "checkpointLocation", "queryName")

_NOT_THE_USERS = {
    "transactional_id": "kafka.transactional.id: each task needs its own; use transactionalIdPrefix",
    "acks": "kafka.acks: only all is possible; else Spark would take lost records for written",
}


@dataclass(frozen=True)
class SinkOptions:
    """The options of the sink, checked.

    Attributes:
        topic: of all rows; None if the column says it.
        producer: keyword options of the producers.
        transactional_id_prefix: of the producers' transactional ids, and the group that keeps which micro-batch was
            written last. None: no transactions.
        columns: what is sent of a row.
    """

    topic: str | None
    producer: Mapping[str, Any] = field(repr=False)
    transactional_id_prefix: str | None
    columns: tuple[str, ...] = ()


def parse_sink_options(options: Mapping[str, str], schema: StructType, *, streaming: bool = False) -> SinkOptions:
    """Check the options of ``df.write`` or ``df.writeStream``, and the columns.

    Raises:
        OptionError: an option is unknown or malformed; a column is missing or has another type.
    """
    own = {name: value for name, value in options.items() if not is_client_option(name)}
    given = refuse_unknown(own, (*(_STREAM_OPTIONS if streaming else _OPTIONS), SERVERS))
    producer = client_options(options, ProducerSettings)
    for name, reason in _NOT_THE_USERS.items():
        if producer.get(name, "all") not in ("all", -1):
            raise OptionError(reason)
    topic = take(given, "topic", _topic, None)
    with_time = take(given, "includeTimestamp", one_of("true", "false"), "false") == "true"
    return SinkOptions(
        topic=topic,
        producer={**producer, "acks": "all"},
        transactional_id_prefix=take(given, "transactionalIdPrefix", _prefix, None),
        columns=check_sink_schema(schema, topic, with_time=with_time),
    )


def check_sink_schema(schema: StructType, topic: str | None, *, with_time: bool) -> tuple[str, ...]:
    """The columns that are sent. Others are ignored, as Spark's own sink does, and named in the log.

    Raises:
        OptionError: a column is missing or has another type.
    """
    names = schema.fieldNames()
    for column in schema.fields:
        if column.name in _COLUMNS:
            refuse_type(column.name, column.dataType, _COLUMNS[column.name])
    if "value" not in names:
        raise OptionError(f"column 'value': missing; {columns_hint('value', names)}")
    if "topic" not in names and topic is None:
        raise OptionError("topic: missing; set the option topic or add a column topic")
    if with_time and "timestamp" not in names:
        raise OptionError("includeTimestamp: there is no column timestamp")
    sent = {*_COLUMNS} - ({"topic"} if topic is not None else set()) - (set() if with_time else {"timestamp"})
    ignored = [name for name in names if name not in _COLUMNS]
    if ignored:
        logger.warning("columns that are not sent: %s", ", ".join(ignored))
    return tuple(name for name in names if name in sent)


def _topic(name: str, value: str) -> str:
    try:
        check_topic(value)
    except ValueError as error:
        raise OptionError(f"{name}: {error}") from None
    return value


def _prefix(name: str, value: str) -> str:
    if not value.strip():
        raise OptionError(f"{name}: must not be empty")
    return value
