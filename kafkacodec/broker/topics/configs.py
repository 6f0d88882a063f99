"""The configuration of topics: names, types, defaults, allowed values, and which have an effect.

Names, types and defaults are the same as in Apache Kafka 4.4.0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Final

from kafkacodec.datatypes import NamedTuple
from kafkacodec.log.growing.settings import DAY_MS, LogConfig
from kafkacodec.protocol.terms import CONFIG_TYPES

__all__ = ["TOPIC_CONFIGS", "BrokerDefault", "ConfigKey", "TopicConfig", "between", "check", "is_boolean", "parsed"]

_LONG: Final = (1 << 63) - 1
_INT: Final = (1 << 31) - 1
_MINUTE_MS: Final = 60_000
_HOUR_MS: Final = 60 * _MINUTE_MS
_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,19}")  # unlike Python's, without underscores
_DOUBLE: Final = re.compile(r"NaN|[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?[fFdD]?")
_REPLICA: Final = re.compile(r"(?:[0-9]+:[0-9]+)?")

Check = Callable[[str], str | None]


class BrokerDefault(NamedTuple):
    """A configuration of the broker with a default of topics.

    Attributes:
        name: such as ``log.roll.hours``.
        unit: what to multiply its number with for the number of the topic.
    """

    name: str
    unit: int = 1


class ConfigKey(NamedTuple):
    """One configuration.

    Attributes:
        name: such as ``retention.ms``.
        kind: the type, by Kafka's number.
        default: as text.
        description: a sentence for those who ask.
        check: returns the error of a value, or None.
        heeded: whether it has an effect; otherwise the broker stores and shows it.
        of_broker: the broker's configurations with its default; the first one that is set counts.
    """

    name: str
    kind: int
    default: str
    description: str
    check: Check
    heeded: bool = False
    of_broker: tuple[BrokerDefault, ...] = ()


def between(low: int, high: int) -> Check:
    """Return the check of a whole number."""

    def wrong(text: str) -> str | None:
        if not _INTEGER.fullmatch(text.strip()):
            return "not a number"
        return None if low <= int(text) <= high else f"must be from {low} to {high}"

    return wrong


def _share(text: str) -> str | None:
    try:
        value = _double(text)
    except ValueError:
        return "not a number"
    return "must be from 0 to 1" if value < 0 or value > 1 else None  # Kafka takes NaN


def _double(text: str) -> float:
    """A number as Java reads it: a letter may say that it is one. Raises ValueError."""
    if not _DOUBLE.fullmatch(text.strip()):
        raise ValueError(text)
    return float(text.strip().rstrip("fFdD"))


def _shown_double(value: float) -> str:
    """A number from 0 to 1, or none, as Java writes it."""
    if math.isnan(value):
        return "NaN"
    if value == 0 or value >= 1e-3:
        return repr(value)
    _, digits, _ = Decimal(repr(value)).as_tuple()
    first, *others = map(str, digits)
    return f"{first}.{''.join(others) or '0'}E{Decimal(repr(value)).adjusted()}"


def _one_of(*words: str) -> Check:
    return lambda text: None if text.strip().lower() in words else f"must be one of {', '.join(words)}"


def _exactly(*words: str) -> Check:
    return lambda text: None if text.strip() in words else f"must be one of {', '.join(words)}"


def _list_of(*words: str) -> Check:
    def wrong(text: str) -> str | None:
        parts = [part.strip() for part in text.split(",")] if text.strip() else []
        return None if all(part in words for part in parts) else f"must be a list of {', '.join(words)}"

    return wrong


def _gzip_level(text: str) -> str | None:
    return between(-1, 9)(text) or ("must be -1, for gzip's own, or from 1 to 9" if int(text) == 0 else None)


def _throttled(text: str) -> str | None:
    parts = [part.strip() for part in text.split(",")]
    if text.strip() == "*" or all(_REPLICA.fullmatch(part) for part in parts):
        return None
    return "must be * or a list of partition:broker"


def _disabled(text: str) -> str | None:
    found = is_boolean(text)
    return found or ("needs remote storage, which this broker has not" if text.strip().lower() == "true" else None)


is_boolean: Final = _one_of("true", "false")
"""The check of a truth value."""


def _key(
    name: str, kind: str, default: str, check: Check, description: str, *, heeded: bool = False, of_broker: str = "",
    in_units: tuple[tuple[str, int], ...] = (),
) -> ConfigKey:  # fmt: skip
    of_one = [BrokerDefault(of_broker)] if of_broker else []
    defaults = (*of_one, *(BrokerDefault(*row) for row in in_units))
    return ConfigKey(name, CONFIG_TYPES[kind], default, description, check, heeded, defaults)


TOPIC_CONFIGS: Final[Mapping[str, ConfigKey]] = {
    key.name: key
    for key in (
        _key("cleanup.policy", "list", "delete", _list_of("delete", "compact"),
             "What happens to old records: delete removes old segments, compact keeps the last record of each key.",
             heeded=True, of_broker="log.cleanup.policy"),
        _key("compression.gzip.level", "int", "-1", _gzip_level,
             "The level at which the broker compresses with gzip.", heeded=True, of_broker="compression.gzip.level"),
        _key("compression.lz4.level", "int", "9", between(1, 17),
             "The level at which the broker compresses with lz4.", heeded=True, of_broker="compression.lz4.level"),
        _key("compression.type", "string", "producer",
             _exactly("uncompressed", "gzip", "snappy", "lz4", "zstd", "producer"),
             "The codec in which batches are stored; producer keeps that of the client.", heeded=True,
             of_broker="compression.type"),
        _key("compression.zstd.level", "int", "3", between(-131072, 22),
             "The level at which the broker compresses with zstd.", heeded=True, of_broker="compression.zstd.level"),
        _key("delete.retention.ms", "long", "86400000", between(0, _LONG),
             "How long compaction keeps tombstones, so that consumers see that a key was deleted.", heeded=True,
             of_broker="log.cleaner.delete.retention.ms"),
        _key("errors.deadletterqueue.group.enable", "boolean", "false", is_boolean,
             "Whether share groups may write records that they gave up to this topic.", heeded=True),
        _key("file.delete.delay.ms", "long", "60000", between(0, _LONG),
             "How long the files of a deleted segment stay on the disk.", heeded=True,
             of_broker="log.segment.delete.delay.ms"),
        _key("flush.messages", "long", str(_LONG), between(1, _LONG),
             "After how many records the log is flushed to the disk.", heeded=True,
             of_broker="log.flush.interval.messages"),
        _key("flush.ms", "long", str(_LONG), between(0, _LONG),
             "After how many milliseconds the log is flushed to the disk.", heeded=True,
             of_broker="log.flush.interval.ms", in_units=(("log.flush.scheduler.interval.ms", 1),)),
        _key("follower.replication.throttled.replicas", "list", "", _throttled,
             "The replicas whose followers copy records at a limited rate."),
        _key("index.interval.bytes", "int", "4096", between(0, _INT),
             "How many bytes of records there are between two entries of the index.", heeded=True,
             of_broker="log.index.interval.bytes"),
        _key("leader.replication.throttled.replicas", "list", "", _throttled,
             "The replicas whose leaders send records to followers at a limited rate."),
        _key("local.retention.bytes", "long", "-2", between(-2, _LONG),
             "How many bytes stay on the disk once they are in remote storage; -2 is retention.bytes.",
             of_broker="log.local.retention.bytes"),
        _key("local.retention.ms", "long", "-2", between(-2, _LONG),
             "How long records stay on the disk once they are in remote storage; -2 is retention.ms.",
             of_broker="log.local.retention.ms"),
        _key("max.compaction.lag.ms", "long", str(_LONG), between(1, _LONG),
             "After how many milliseconds a record is compacted at the latest.", heeded=True,
             of_broker="log.cleaner.max.compaction.lag.ms"),
        _key("max.decompressed.message.bytes", "int", "2147483639", between(1, _INT),
             "The largest size of a batch after decompression."),
        _key("max.message.bytes", "int", "1048588", between(0, _INT),
             "The largest size of a batch, as it is sent.", heeded=True, of_broker="message.max.bytes"),
        _key("message.timestamp.after.max.ms", "long", "3600000", between(0, _LONG),
             "How far a timestamp may be ahead of the broker's clock.", heeded=True,
             of_broker="log.message.timestamp.after.max.ms"),
        _key("message.timestamp.before.max.ms", "long", str(_LONG), between(0, _LONG),
             "How far a timestamp may be behind the broker's clock.", heeded=True,
             of_broker="log.message.timestamp.before.max.ms"),
        _key("message.timestamp.type", "string", "CreateTime", _exactly("CreateTime", "LogAppendTime"),
             "Whether records keep the producer's timestamp, or get the time at which they are appended.",
             heeded=True, of_broker="log.message.timestamp.type"),
        _key("min.cleanable.dirty.ratio", "double", "0.5", _share,
             "The part of a log that must be new since its last compaction, before the next.", heeded=True,
             of_broker="log.cleaner.min.cleanable.ratio"),
        _key("min.compaction.lag.ms", "long", "0", between(0, _LONG),
             "How many milliseconds a record stays before it may be compacted.", heeded=True,
             of_broker="log.cleaner.min.compaction.lag.ms"),
        _key("min.insync.replicas", "int", "1", between(1, _INT),
             "How many replicas must be in sync, so that a write with acks=all succeeds.", heeded=True,
             of_broker="min.insync.replicas"),
        _key("preallocate", "boolean", "false", is_boolean,
             "Whether a new segment's file gets its full size at once.", of_broker="log.preallocate"),
        _key("remote.copy.lag.bytes", "long", "-1", between(-1, _LONG),
             "How many bytes of full segments may wait to be copied to remote storage."),
        _key("remote.copy.lag.ms", "long", "0", between(-1, _LONG),
             "How long full segments may wait to be copied to remote storage."),
        _key("remote.log.copy.disable", "boolean", "false", is_boolean,
             "Whether no more segments are copied to remote storage."),
        _key("remote.log.delete.on.disable", "boolean", "false", is_boolean,
             "Whether what is in remote storage is deleted when remote storage is turned off."),
        _key("remote.storage.enable", "boolean", "false", _disabled,
             "Whether segments are copied to remote storage."),
        _key("retention.bytes", "long", "-1", between(-_LONG - 1, _LONG),
             "The size of a partition above which its oldest segments are deleted; -1 is no limit.", heeded=True,
             of_broker="log.retention.bytes"),
        _key("retention.ms", "long", "604800000", between(-1, _LONG),
             "The age of records after which segments are deleted; -1 is no limit.", heeded=True,
             of_broker="log.retention.ms",
             in_units=(("log.retention.minutes", _MINUTE_MS), ("log.retention.hours", _HOUR_MS))),
        _key("segment.bytes", "int", "1073741824", between(1 << 20, _INT),
             "The size at which a segment ends.", heeded=True, of_broker="log.segment.bytes"),
        _key("segment.index.bytes", "int", "10485760", between(4, _INT),
             "The largest size of an index; a segment ends when its index is full.", heeded=True,
             of_broker="log.index.size.max.bytes"),
        _key("segment.jitter.ms", "long", "0", between(0, _LONG),
             "The largest random time that is taken from segment.ms, so that segments end at different times.",
             of_broker="log.roll.jitter.ms", in_units=(("log.roll.jitter.hours", _HOUR_MS),)),
        _key("segment.ms", "long", "604800000", between(1, _LONG),
             "The time after which a segment ends, although it is not full.", heeded=True, of_broker="log.roll.ms",
             in_units=(("log.roll.hours", _HOUR_MS),)),
        _key("unclean.leader.election.enable", "boolean", "false", is_boolean,
             "Whether a replica that is not in sync may lead when no other can.",
             of_broker="unclean.leader.election.enable"),
    )
}  # fmt: skip
"""All configurations of topics, by name, in the order in which brokers show them."""


def check(name: str, value: str | None) -> str | None:
    """Return the error of a topic configuration; None if it is valid."""
    key = TOPIC_CONFIGS.get(name)
    if key is None:
        return f"Unknown topic config name: {name}"
    if value is None:
        return f"Null value not supported for topic configs: {name}"
    wrong = key.check(value)
    return None if wrong is None else f"Invalid value {value} for configuration {name}: {wrong}"


def parsed(key: ConfigKey, text: str) -> str:
    """A valid value of a topic as DescribeConfigs shows it, whatever was around it when it was set."""
    text = text.strip()
    if key.kind == CONFIG_TYPES["boolean"]:
        return text.lower()
    if key.kind in (CONFIG_TYPES["int"], CONFIG_TYPES["long"]):
        return str(int(text))
    if key.kind == CONFIG_TYPES["double"]:
        return _shown_double(_double(text))
    if key.kind == CONFIG_TYPES["list"]:
        parts = [part.strip() for part in text.split(",")]
        return ",".join(dict.fromkeys(parts) if key.name == "cleanup.policy" else parts)
    return text


class TopicConfig:
    """The configuration of a topic as values.

    Args:
        values: the settings, as text by name; others have their default.
        defaults: defaults of this broker, as text by name.
        producer_expiration_ms: after this time without a batch producers are forgotten.
    """

    def __init__(
        self, values: Mapping[str, str], defaults: Mapping[str, str], producer_expiration_ms: int = DAY_MS
    ) -> None:
        def text(name: str) -> str:
            return values.get(name, defaults.get(name, TOPIC_CONFIGS[name].default)).strip()

        self.producer_expiration_ms = producer_expiration_ms
        policies = [part.strip() for part in text("cleanup.policy").split(",")]
        self.is_compacted = "compact" in policies
        self.is_deleted = "delete" in policies
        self.compression = text("compression.type")
        self.max_message_bytes = int(text("max.message.bytes"))
        self.after_max_ms = int(text("message.timestamp.after.max.ms"))
        self.before_max_ms = int(text("message.timestamp.before.max.ms"))
        self.has_append_time = text("message.timestamp.type") == "LogAppendTime"
        # Whether all that can be wrong with a plain batch are its size and a timestamp in the future.
        self.takes_plain = not (self.is_compacted or self.has_append_time) and self.compression == "producer"
        self.takes_plain = self.takes_plain and self.before_max_ms >= _LONG
        self.min_insync_replicas = int(text("min.insync.replicas"))
        self.flush_messages = int(text("flush.messages"))
        self.flush_ms = int(text("flush.ms"))
        self.retention_ms = int(text("retention.ms"))
        self.retention_bytes = int(text("retention.bytes"))
        self.segment_bytes = int(text("segment.bytes"))
        self.min_compaction_lag_ms = int(text("min.compaction.lag.ms"))
        self.max_compaction_lag_ms = int(text("max.compaction.lag.ms"))
        self.min_cleanable_dirty_ratio = _double(text("min.cleanable.dirty.ratio"))
        self.delete_retention_ms = int(text("delete.retention.ms"))
        self.segment_ms = int(text("segment.ms"))
        if self.is_compacted:  # so that the cleaner comes in time
            self.segment_ms = min(self.segment_ms, self.max_compaction_lag_ms)
        self.file_delete_delay_ms = int(text("file.delete.delay.ms"))
        self.index_interval_bytes = int(text("index.interval.bytes"))
        self.segment_index_bytes = int(text("segment.index.bytes"))
        self._levels = {name: int(text(f"compression.{name}.level")) for name in ("gzip", "lz4", "zstd")}

    def level(self, codec: str) -> int | None:
        """Return the compression level of a codec; None for its default."""
        found = self._levels.get(codec, -1)
        return None if found < 0 else found

    def of_log(self) -> LogConfig:
        """Return the options of the log."""
        return LogConfig(
            segment_bytes=self.segment_bytes, segment_ms=self.segment_ms, retention_bytes=self.retention_bytes,
            retention_ms=self.retention_ms, delete=self.is_deleted, file_delete_delay_ms=self.file_delete_delay_ms,
            index_interval_bytes=self.index_interval_bytes, segment_index_bytes=self.segment_index_bytes,
            compact=self.is_compacted, min_compaction_lag_ms=self.min_compaction_lag_ms,
            delete_retention_ms=self.delete_retention_ms, producer_id_expiration_ms=self.producer_expiration_ms,
        )  # fmt: skip
