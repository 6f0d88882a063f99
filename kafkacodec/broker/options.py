"""The configuration of the broker: names and defaults of Apache Kafka, and which have an effect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from kafkacodec.broker.state.options import GroupOptions, TransactionOptions
from kafkacodec.broker.topics.configs import TOPIC_CONFIGS, between
from kafkacodec.protocol.terms import CONFIG_TYPES

__all__ = [
    "BROKER_CONFIGS",
    "GROUP_SETTINGS",
    "STANDARD_AUTHORIZER",
    "BrokerConfig",
    "BrokerKey",
    "group_options",
    "transaction_options",
]  # fmt: skip


class BrokerKey(NamedTuple):
    """One configuration of a broker.

    Attributes:
        name: such as ``num.partitions``.
        kind: the type, by Kafka's number.
        default: as text.
        heeded: whether it has an effect; otherwise the broker only shows it.
        fixed: it cannot be changed while the broker runs.
        topic_name: of the configuration of topics that it is the default of; None if there is none.
    """

    name: str
    kind: int
    default: str
    heeded: bool = True
    fixed: bool = True
    topic_name: str | None = None

    def wrong(self, text: str) -> str | None:
        """What is wrong with a value; None if nothing is."""
        if self.topic_name is not None:
            return TOPIC_CONFIGS[self.topic_name].check(text)
        if self.kind not in _RANGES:
            return None
        low, high = _RANGES[self.kind]
        return between(_LOWEST.get(self.name, low), high)(text)


_RANGES: Final = {CONFIG_TYPES["int"]: (-(1 << 31), (1 << 31) - 1), CONFIG_TYPES["long"]: (-(1 << 63), (1 << 63) - 1)}
_LOWEST: Final = {"log.cleaner.backoff.ms": 0, "log.cleaner.threads": 0, "producer.id.expiration.ms": 1}

GROUP_SETTINGS: Final = (
    "consumer.heartbeat.interval.ms", "consumer.session.timeout.ms", "share.heartbeat.interval.ms",
    "share.session.timeout.ms",
)  # fmt: skip
"""Settings of a group that the coordinator needs."""

_OWN: Final = (
    ("allow.everyone.if.no.acl.found", "boolean", "false"),
    ("authorizer.class.name", "string", ""),
    ("auto.create.topics.enable", "boolean", "true"),
    ("connection.failed.authentication.delay.ms", "int", "100"),
    ("connections.max.reauth.ms", "long", "0"),
    ("default.replication.factor", "int", "1"),
    ("delegation.token.expiry.time.ms", "long", "86400000"),
    ("delegation.token.max.lifetime.ms", "long", "604800000"),
    ("delegation.token.secret.key", "password", ""),
    ("group.consumer.heartbeat.interval.ms", "int", "5000"),
    ("group.consumer.max.heartbeat.interval.ms", "int", "15000"),
    ("group.consumer.max.session.timeout.ms", "int", "60000"),
    ("group.consumer.min.heartbeat.interval.ms", "int", "5000"),
    ("group.consumer.min.session.timeout.ms", "int", "45000"),
    ("group.consumer.session.timeout.ms", "int", "45000"),
    ("group.initial.rebalance.delay.ms", "int", "0"),
    ("group.max.session.timeout.ms", "int", "1800000"),
    ("group.max.size", "int", "2147483647"),
    ("group.min.session.timeout.ms", "int", "6000"),
    ("group.share.delivery.count.limit", "int", "5"),
    ("group.share.heartbeat.interval.ms", "int", "5000"),
    ("group.share.max.heartbeat.interval.ms", "int", "15000"),
    ("group.share.max.record.lock.duration.ms", "int", "60000"),
    ("group.share.max.session.timeout.ms", "int", "60000"),
    ("group.share.max.share.sessions", "int", "2000"),
    ("group.share.max.size", "int", "200"),
    ("group.share.min.heartbeat.interval.ms", "int", "5000"),
    ("group.share.min.record.lock.duration.ms", "int", "15000"),
    ("group.share.min.session.timeout.ms", "int", "45000"),
    ("group.share.partition.max.record.locks", "int", "2000"),
    ("group.share.record.lock.duration.ms", "int", "30000"),
    ("group.share.session.timeout.ms", "int", "45000"),
    ("log.cleaner.backoff.ms", "long", "15000"),
    ("log.retention.check.interval.ms", "long", "300000"),
    ("max.incremental.fetch.session.cache.slots", "int", "1000"),
    ("metadata.log.max.record.bytes.between.snapshots", "long", "20971520"),
    ("num.partitions", "int", "1"),
    ("offset.metadata.max.bytes", "int", "4096"),
    ("offsets.retention.check.interval.ms", "long", "600000"),
    ("offsets.retention.minutes", "int", "10080"),
    ("offsets.topic.num.partitions", "int", "50"),
    ("producer.id.expiration.ms", "int", "86400000"),
    ("replica.lag.time.max.ms", "long", "10000"),
    ("sasl.enabled.mechanisms", "list", "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER"),
    ("share.coordinator.state.topic.num.partitions", "int", "50"),
    ("share.coordinator.state.topic.prune.interval.ms", "int", "300000"),
    ("super.users", "string", ""),
    ("transaction.abort.timed.out.transaction.cleanup.interval.ms", "int", "10000"),
    ("transaction.max.timeout.ms", "int", "900000"),
    ("transaction.state.log.num.partitions", "int", "50"),
    ("transactional.id.expiration.ms", "int", "604800000"),
)
_SHOWN: Final = (
    ("broker.id", "int", "1"),
    ("log.cleaner.threads", "int", "1"),
    ("log.retention.hours", "int", "168"),
    ("log.roll.hours", "int", "168"),
    ("node.id", "int", "1"),
)
STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
"""The only supported authorizer."""

_RUNNING: Final = ("log.cleaner.backoff.ms", "producer.id.expiration.ms")
"""Settings of the broker that apply at once, in the order of `RunningConfig`."""
_CHANGEABLE: Final = frozenset({*_RUNNING, "log.cleaner.threads"})


def _table() -> dict[str, BrokerKey]:
    rows = [(*row, heeded) for part, heeded in ((_OWN, True), (_SHOWN, False)) for row in part]
    table = {
        name: BrokerKey(name, CONFIG_TYPES[kind], default, heeded, name not in _CHANGEABLE)
        for name, kind, default, heeded in rows
    }
    for key in TOPIC_CONFIGS.values():
        if key.of_broker is not None:
            table[key.of_broker] = BrokerKey(key.of_broker, key.kind, key.default, key.heeded, False, key.name)
    return dict(sorted(table.items()))


BROKER_CONFIGS: Final[Mapping[str, BrokerKey]] = _table()
"""The configurations of the broker by name. The rebalance delay is 0 (Kafka: 3,000), as tests wait for it."""

_OF_BOTH: Final = ("log.roll.hours",)  # shown to Kafka's clients, heeded by Kafka 0.7's logs
_HOURS: Final = "log.retention.hours"
_BY_UNIT: Final = {"log.retention.minutes": 60_000, "log.retention.hours": 3_600_000}


class RunningConfig(NamedTuple):
    """What may be changed while the broker runs.

    Attributes:
        topic_defaults: defaults of topics that differ from Kafka's, as text.
        clean_ms: how often the broker looks for a log to clean.
        producer_expiration_ms: producers are forgotten when they have not written for this long.
    """

    topic_defaults: Mapping[str, str]
    clean_ms: int
    producer_expiration_ms: int


class BrokerConfig:
    """The configuration of a broker as values.

    Args:
        given: the settings by Kafka's names; values may be text or numbers. Topic configurations are defaults for all
            topics.
        flush: "always": `flush.messages` is 1 by default; "system": Kafka's default.

    Attributes:
        texts: the broker's settings, as text.
        topic_defaults: topic defaults that differ from Kafka's, as text.
        flushes_always: `flush` is "always".
        kafka07: properties of Kafka 0.7's broker, as text, for ``kafka07://``.
        rewrite: properties for ``rewrite://``, as text.

    Raises:
        ValueError: an unknown name, or a value that is not allowed.
    """

    def __init__(self, given: Mapping[str, Any] | None = None, flush: str = "system") -> None:
        if flush not in ("system", "always"):
            raise ValueError(f"flush must be 'system' or 'always', not {flush!r}")
        self.flushes_always = flush == "always"
        self.texts: dict[str, str] = {}
        self.topic_defaults: dict[str, str] = {}
        self.kafka07: dict[str, str] = {}
        self.rewrite: dict[str, str] = {}
        of_broker = {key.of_broker: key.name for key in TOPIC_CONFIGS.values() if key.of_broker}
        for name, value in (given or {}).items():
            text = _text(value)
            topic_name = name if name in TOPIC_CONFIGS else of_broker.get(name)
            if name in _BY_UNIT:
                _refuse(name, text, BROKER_CONFIGS[_HOURS].wrong(text))
                self.topic_defaults["retention.ms"] = str(max(-1, int(text) * _BY_UNIT[name]))
            elif topic_name is not None:
                _refuse(name, text, TOPIC_CONFIGS[topic_name].check(text))
                self.topic_defaults[topic_name] = text
            elif name not in BROKER_CONFIGS and not self._takes_other(name, text):
                raise ValueError(f"config has {name!r}, which this broker does not know: see docs/broker.md")
            if name in BROKER_CONFIGS:
                _refuse(name, text, BROKER_CONFIGS[name].wrong(text))
                self.texts[name] = text
            if name in _OF_BOTH:
                self._takes_kafka07(name, text)
        if self.flushes_always and "flush.messages" not in self.topic_defaults:
            self.topic_defaults["flush.messages"] = self.texts["log.flush.interval.messages"] = "1"

    def _takes_kafka07(self, name: str, text: str) -> bool:
        from kafkacodec.dialects.kafka07.settings import NAMES, BrokerSettings

        if name not in NAMES:
            return False
        BrokerSettings.parse({name: text})  # raises ValueError
        self.kafka07[name] = text
        return True

    def _takes_other(self, name: str, text: str) -> bool:
        return self._takes_kafka07(name, text) or self._takes_rewrite(name, text)

    def _takes_rewrite(self, name: str, text: str) -> bool:
        if not name.startswith("rewrite."):
            return False
        from kafkacodec.dialects.rewrite.settings import NAMES, ServerSettings

        if name not in NAMES:
            return False
        ServerSettings.parse({name: text})  # raises ValueError
        self.rewrite[name] = text
        return True

    def running(self, changed: Mapping[str, str]) -> RunningConfig:
        """What logs heed, with what was changed while the broker runs, as text by name; wrong values are left out."""
        right = {
            name: text
            for name, text in changed.items()
            if (key := BROKER_CONFIGS.get(name)) is not None and not key.fixed and key.wrong(text) is None
        }
        of_topics = {key.topic_name: right[name] for name, key in BROKER_CONFIGS.items() if name in right}
        texts = self.texts | right
        return RunningConfig(
            {name: text for name, text in (self.topic_defaults | of_topics).items() if name is not None},
            *(int(texts.get(name, BROKER_CONFIGS[name].default)) for name in _RUNNING),
        )

    def text(self, name: str) -> str:
        """A configuration as text."""
        return self.texts.get(name, BROKER_CONFIGS[name].default)

    def number(self, name: str) -> int:
        """A configuration that is a number."""
        return int(self.text(name))

    def flag(self, name: str) -> bool:
        """A configuration that is true or false."""
        return self.text(name).lower() == "true"


def group_options(config: BrokerConfig) -> GroupOptions:
    """Return the options of the group coordinator."""
    return GroupOptions(
        group_min_session_timeout_ms=config.number("group.min.session.timeout.ms"),
        group_max_session_timeout_ms=config.number("group.max.session.timeout.ms"),
        group_initial_rebalance_delay_ms=config.number("group.initial.rebalance.delay.ms"),
        group_max_size=config.number("group.max.size"),
        group_consumer_heartbeat_interval_ms=config.number("group.consumer.heartbeat.interval.ms"),
        group_consumer_session_timeout_ms=config.number("group.consumer.session.timeout.ms"),
        group_share_heartbeat_interval_ms=config.number("group.share.heartbeat.interval.ms"),
        group_share_session_timeout_ms=config.number("group.share.session.timeout.ms"),
        group_share_max_size=config.number("group.share.max.size"),
        offset_metadata_max_bytes=config.number("offset.metadata.max.bytes"),
        offsets_retention_ms=config.number("offsets.retention.minutes") * 60_000,
        offsets_retention_check_interval_ms=config.number("offsets.retention.check.interval.ms"),
    )


def transaction_options(config: BrokerConfig) -> TransactionOptions:
    """Return the options of the transaction coordinator."""
    return TransactionOptions(
        transaction_max_timeout_ms=config.number("transaction.max.timeout.ms"),
        transactional_id_expiration_ms=config.number("transactional.id.expiration.ms"),
        transaction_abort_timed_out_transaction_cleanup_interval_ms=config.number(
            "transaction.abort.timed.out.transaction.cleanup.interval.ms"
        ),
    )


def _refuse(name: str, text: str, wrong: str | None) -> None:
    if wrong is not None:
        raise ValueError(f"config {name}={text!r}: {wrong}")


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)
