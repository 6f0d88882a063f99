"""Options of the source `kafkabroker`: those of Spark's own Kafka source, and `columns`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from kafkacodec.client.consuming.settings import ConsumerSettings
from kafkacodec.datatypes import dataclass, field
from kafkacodec.spark.errors import OptionError
from kafkacodec.spark.live.client_options import SERVERS, client_options, is_client_option
from kafkacodec.spark.option_values import boolean, one_of, positive, refuse_unknown, take
from kafkacodec.spark.reading.bounds import EARLIEST, LATEST, Bound, Selection, parse_end, parse_selection, parse_start
from kafkacodec.spark.reading.options import parse_columns
from kafkacodec.spark.schema import COLUMNS

__all__ = ["BrokerReadOptions", "parse_broker_options", "wanted_columns"]

_BATCH_ONLY = ("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp")
_STREAM_ONLY = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")
_KNOWN = (
    "subscribe",
    "subscribePattern",
    "assign",
    "startingOffsets",
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    *_BATCH_ONLY,
    *_STREAM_ONLY,
    "includeHeaders",
    "columns",
    "minPartitions",
    "maxRecordsPerPartition",
    "failOnDataLoss",
    "groupIdPrefix",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
)

# As in Spark's own source.
_POLL_TIMEOUT_MS: Final = 120_000
_RETRIES: Final = 3
_RETRY_MS: Final = 1000
_TRIGGER_DELAY_MS: Final = 15 * 60_000

_TIME = re.compile(r"\s*(\d+)\s*([a-z]*)\s*")
_UNITS_MS: Final = {"": 1, "ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


@dataclass(frozen=True)
class BrokerReadOptions:
    """The source's options, checked. Times are in ms; `client` are the keyword options of a consumer."""

    client: Mapping[str, Any] = field(repr=False)  # it may have passwords
    selection: Selection
    start: Bound
    end: Bound
    latest_when_no_later_record: bool
    min_partitions: int | None
    max_records: int | None
    fail_on_data_loss: bool
    poll_timeout_ms: int
    retries: int
    retry_ms: int
    max_offsets_per_trigger: int | None
    min_offsets_per_trigger: int | None
    max_trigger_delay_ms: int

    @property
    def read_committed(self) -> bool:
        """Whether only records of committed transactions are read."""
        return self.client.get("isolation_level") == "read_committed"


def wanted_columns(options: Mapping[str, str]) -> tuple[tuple[str, ...] | None, bool]:
    """The value of `columns`, and whether to read headers. Raises OptionError."""
    return parse_columns(options, (*_KNOWN, SERVERS), is_client_option, COLUMNS)


def parse_broker_options(options: Mapping[str, str], *, streaming: bool) -> BrokerReadOptions:
    """Check all options of ``spark.read`` or ``spark.readStream``.

    Raises:
        OptionError: an option is unknown, malformed or contradicts another one. The message starts with its name.
    """
    given = refuse_unknown(options, (*_KNOWN, SERVERS), is_client_option)
    for name in _STREAM_ONLY:
        if name in given and not streaming:
            raise OptionError(f"{name}: only streams have triggers; remove it from the batch")
    wanted_columns(options)
    selection = parse_selection(given)
    if selection.option is None:
        raise OptionError("subscribe: missing; set one of subscribe, subscribePattern and assign")
    start = parse_start(given, streaming, default=LATEST if streaming else EARLIEST)
    strategy = take(given, "startingOffsetsByTimestampStrategy", one_of("error", "latest"), None)
    if strategy is not None and not start.by_timestamp:
        raise OptionError(
            "startingOffsetsByTimestampStrategy: requires startingTimestamp or startingOffsetsByTimestamp"
        )
    most = take(given, "maxOffsetsPerTrigger", positive, None)
    least = take(given, "minOffsetsPerTrigger", positive, None)
    if most is not None and least is not None and least > most:
        raise OptionError(f"minOffsetsPerTrigger: {least} is more than maxOffsetsPerTrigger, {most}")
    return BrokerReadOptions(
        client={
            **{"auto_offset_reset": "none", "allow_auto_create_topics": False},
            **client_options(options, ConsumerSettings),
        },
        selection=selection,
        start=start,
        end=parse_end(given, streaming),
        latest_when_no_later_record=strategy == "latest",
        min_partitions=take(given, "minPartitions", positive, None),
        max_records=take(given, "maxRecordsPerPartition", positive, None),
        fail_on_data_loss=take(given, "failOnDataLoss", boolean, True),
        poll_timeout_ms=take(given, "kafkaConsumer.pollTimeoutMs", positive, _POLL_TIMEOUT_MS),
        retries=take(given, "fetchOffset.numRetries", positive, _RETRIES),
        retry_ms=take(given, "fetchOffset.retryIntervalMs", positive, _RETRY_MS),
        max_offsets_per_trigger=most,
        min_offsets_per_trigger=least,
        max_trigger_delay_ms=take(given, "maxTriggerDelay", _time, _TRIGGER_DELAY_MS),
    )


def _time(name: str, value: str) -> int:
    """A time such as ``15m`` in ms; a number without a unit is in ms."""
    match = _TIME.fullmatch(value.lower())
    if match is None or match[2] not in _UNITS_MS:
        raise OptionError(f"{name}: {value!r} is not a time such as 500ms, 30s, 15m, 1h or 1d")
    return int(match[1]) * _UNITS_MS[match[2]]
