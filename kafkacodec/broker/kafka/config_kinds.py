"""Configurations of groups, client metrics and brokers: names, types, defaults, allowed values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from kafkacodec import errors
from kafkacodec.broker.config_keys import BROKER_CONFIGS, BROKER_DEFAULTS
from kafkacodec.broker.options import BrokerConfig
from kafkacodec.broker.topics.configs import between, check, is_boolean
from kafkacodec.datatypes import NamedTuple
from kafkacodec.protocol.terms import CONFIG_RESOURCES, CONFIG_TYPES

__all__ = ["DEAD_LETTER_TOPIC", "GROUP_CONFIGS", "METRICS_CONFIGS", "RESETS", "OtherKey", "wrong_value"]

RESETS: Final = re.compile(
    r"earliest|latest|by_duration:P(?=.)(?:(\d+)D)?(?:T(?=.)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?"
)
"""The values of share.auto.offset.reset; the groups are days, hours, minutes and seconds."""

_WORDS: Final = frozenset({"client_id", "client_instance_id", "client_software_name", "client_software_version",
                           "client_source_address", "client_source_port"})  # fmt: skip

DEAD_LETTER_TOPIC: Final = "errors.deadletterqueue.topic.name"
"""The configuration of a share group with the topic for what it gives up."""

_OF_KAFKA: Final = "__"  # the beginning of the names of internal topics
_UNBOUNDED: Final = (1 << 31) - 1

_NAMED_OTHERWISE: Final = {"group.streams.max.num.standby.replicas": "group.streams.max.standby.replicas"}
"""Limits whose names do not follow from that of the configuration."""


class OtherKey(NamedTuple):
    """A configuration: name, type, default, description, for a number its range; the broker's one behind it."""

    name: str
    kind: int
    default: str
    description: str
    low: int | None = None
    high: int | None = None
    choices: tuple[str, ...] = ()
    of_broker: str | None = None


def _of_broker(kind: str, *rows: tuple[str, int | None, int | None]) -> list[OtherKey]:
    """Those with the same name as the broker's default, and its description."""
    names = [(f"group.{name}", name, low, high) for name, low, high in rows]
    return [OtherKey(name, CONFIG_TYPES[kind], BROKER_DEFAULTS[of], BROKER_CONFIGS[of].description, low, high, (), of)
            for of, name, low, high in names]  # fmt: skip


def _words(*rows: tuple[str, str, str, str, tuple[str, ...]]) -> list[OtherKey]:
    return [OtherKey(name, CONFIG_TYPES[kind], default, described, choices=choices)
            for name, kind, default, described, choices in rows]  # fmt: skip


def _by_name(keys: list[OtherKey]) -> dict[str, OtherKey]:
    return {key.name: key for key in keys}


GROUP_CONFIGS: Final[Mapping[str, OtherKey]] = _by_name([
    *_words(
        ("errors.deadletterqueue.copy.record.enable", "boolean", "false",
         "Whether what a share group gives up is copied to its topic for that with key and value.", ()),
        ("errors.deadletterqueue.topic.name", "string", "",
         "The topic that gets a record about each one that a share group gives up; empty for none.", ()),
        ("share.auto.offset.reset", "string", "latest", "Where a share group begins that has read nothing yet.", ()),
        ("share.isolation.level", "string", "read_uncommitted",
         "Whether a share group gets records of transactions that are open or were aborted.",
         ("read_committed", "read_uncommitted")),
        ("share.renew.acknowledge.enable", "boolean", "true",
         "Whether members of a share group may renew the locks of records.", ()),
        ("streams.assignor.name", "string", "sticky", "The assignor of a streams group.", ("sticky",)),
    ),
    *_of_broker("list", ("streams.rack.aware.assignment.tags", None, None)),
    *_of_broker(
        "int",
        ("consumer.assignment.interval.ms", 0, 15_000),
        ("consumer.heartbeat.interval.ms", 5000, 15_000),
        ("consumer.session.timeout.ms", 45_000, 60_000),
        ("share.assignment.interval.ms", 0, 15_000),
        ("share.delivery.count.limit", 2, 10),
        ("share.heartbeat.interval.ms", 5000, 15_000),
        ("share.partition.max.record.locks", 100, 4_000),
        ("share.record.lock.duration.ms", 15_000, 60_000),
        ("share.session.timeout.ms", 45_000, 60_000),
        ("streams.assignment.interval.ms", 0, 15_000),
        ("streams.heartbeat.interval.ms", 5000, 15_000),
        ("streams.initial.rebalance.delay.ms", 0, _UNBOUNDED),
        ("streams.num.standby.replicas", 0, 2),
        ("streams.session.timeout.ms", 45_000, 60_000),
    ),
])  # fmt: skip
"""The configurations of groups of Apache Kafka 4.4.0."""

METRICS_CONFIGS: Final[Mapping[str, OtherKey]] = _by_name([
    OtherKey("interval.ms", CONFIG_TYPES["int"], "300000", "How often clients send these metrics.", 100, 3_600_000),
    *_words(
        ("match", "list", "", "Which clients send these metrics: pairs of a property and a regular expression.", ()),
        ("metrics", "list", "", "The beginnings of the names of metrics to send.", ()),
    ),
])  # fmt: skip
"""The configurations of subscriptions to clients' metrics (KIP-714)."""


def wrong_value(kind: int, name: str, value: str, broker: BrokerConfig) -> tuple[int, str] | None:
    """Return the error code and text for an invalid configuration; None if it is valid.

    The broker may have other limits for groups, such as ``group.share.min.record.lock.duration.ms``.
    """
    if kind == CONFIG_RESOURCES["topic"]:
        wrong = check(name, value)
        return None if wrong is None else (errors.INVALID_CONFIG, wrong)
    if kind in (CONFIG_RESOURCES["broker"], CONFIG_RESOURCES["broker_logger"]):
        key = BROKER_CONFIGS.get(name)
        if key is not None and key.fixed:
            return errors.INVALID_REQUEST, f"Cannot update these configs dynamically: {name}"
        wrong = None if key is None else key.wrong_change(value)
        text = f"Invalid value {value} for configuration {name}: {wrong}"
        return None if wrong is None else (errors.INVALID_REQUEST, text)
    metrics = kind == CONFIG_RESOURCES["client_metrics"]
    found = (METRICS_CONFIGS if metrics else GROUP_CONFIGS).get(name)
    refused = errors.INVALID_REQUEST if metrics else errors.INVALID_CONFIG
    if found is None:
        return refused, f"Unknown configuration {name}"
    if found.low is not None and found.high is not None:
        wrong = _wrong_number(found, value, broker)
        return None if wrong is None else (refused, wrong)
    if found.kind == CONFIG_TYPES["boolean"]:
        wrong = is_boolean(value)
        return None if wrong is None else (refused, f"Invalid value {value} for configuration {name}: {wrong}")
    if name == DEAD_LETTER_TOPIC and value.startswith(_OF_KAFKA):
        return refused, f"{name}: the name of the topic must not begin with {_OF_KAFKA}"
    if found.choices and value not in found.choices:
        return errors.INVALID_CONFIG, f"{name} must be one of {', '.join(found.choices)}"
    if name == "share.auto.offset.reset" and not RESETS.fullmatch(value):
        return errors.INVALID_CONFIG, f"{name} must be earliest, latest or by_duration: and an ISO 8601 duration"
    if name == "match" and not all(part.partition("=")[0].strip() in _WORDS for part in value.split(",") if part):
        return errors.INVALID_CONFIG, f"match has an unknown name: {value}"
    return None


def _wrong_number(key: OtherKey, value: str, broker: BrokerConfig) -> str | None:
    low, high = (_limit(key.name, *limit, broker) for limit in (("min", key.low), ("max", key.high)))
    wrong = between(low, high)(value)
    return None if wrong is None else f"Invalid value {value} for configuration {key.name}: {wrong}"


def _limit(name: str, word: str, default: int | None, broker: BrokerConfig) -> int:
    family, _, rest = name.partition(".")
    named = f"group.{family}.{word}.{rest}"
    named = _NAMED_OTHERWISE.get(named, named)
    if named in BROKER_CONFIGS:
        return broker.number(named)
    assert default is not None
    return default
