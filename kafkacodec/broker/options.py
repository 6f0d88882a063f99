"""The configuration of a broker as values: as it was given, and as it was changed while the broker runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kafkacodec.arguments import meant
from kafkacodec.broker.config_elsewhere import elsewhere
from kafkacodec.broker.config_keys import BROKER_CONFIGS, BROKER_DEFAULTS, RUNNING
from kafkacodec.broker.state.options import GroupOptions, TransactionOptions
from kafkacodec.broker.topics.configs import TOPIC_CONFIGS
from kafkacodec.datatypes import NamedTuple

__all__ = [
    "GROUP_SETTINGS",
    "SHARED",
    "STANDARD_AUTHORIZER",
    "BrokerConfig",
    "group_options",
    "is_true",
    "transaction_options",
]  # fmt: skip


GROUP_SETTINGS: Final = (
    "consumer.assignment.interval.ms", "consumer.heartbeat.interval.ms", "consumer.session.timeout.ms",
    "share.assignment.interval.ms", "share.heartbeat.interval.ms", "share.session.timeout.ms",
    "streams.assignment.interval.ms", "streams.heartbeat.interval.ms", "streams.initial.rebalance.delay.ms",
    "streams.num.standby.replicas", "streams.rack.aware.assignment.tags", "streams.session.timeout.ms",
)  # fmt: skip
"""Settings of a group that the coordinator needs."""

STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
"""The only supported authorizer."""

SHARED: Final = ("log.roll.hours",)
"""Settings that Kafka's clients are shown, and Kafka 0.7's logs heed."""


class RunningConfig(NamedTuple):
    """What may be changed while the broker runs.

    Attributes:
        topic_defaults: defaults of topics that differ from Kafka's, as text.
        clean_ms: how often the broker looks for a log to clean.
        producer_expiration_ms: producers are forgotten when they have not written for this long.
        texts: the broker's settings, as text.
    """

    topic_defaults: Mapping[str, str]
    clean_ms: int
    producer_expiration_ms: int
    texts: Mapping[str, str]

    def text(self, name: str) -> str:
        """A configuration as text; empty if it has no value."""
        return _valued(self.texts, name)


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
        self.kafka07: dict[str, str] = {}
        self.rewrite: dict[str, str] = {}
        self._of_topics: dict[str, str] = {}  # topic configurations without one of the broker
        for name, value in (given or {}).items():
            self._take(name, _text(value))
        if self.flushes_always:
            self.texts.setdefault("log.flush.interval.messages", "1")
        self.topic_defaults = self._topic_defaults(self.texts)

    def _take(self, name: str, text: str) -> None:
        instead = elsewhere(name)
        if instead is not None:
            raise ValueError(f"config {name}: {instead}")
        key, of_topics = BROKER_CONFIGS.get(name), TOPIC_CONFIGS.get(name)
        if key is not None:
            _refuse(name, text, key.wrong(text))
            self.texts[name] = text
        elif of_topics is not None:
            _refuse(name, text, of_topics.check(text))
            known = of_topics.of_broker
            (self.texts if known else self._of_topics)[known[0].name if known else name] = text
        elif not self._takes_other(name, text):
            similar = meant(name, [*TOPIC_CONFIGS, *BROKER_CONFIGS]) or "the page on the broker lists those it knows"
            raise ValueError(f"config has {name!r}, which this broker does not know; {similar}")
        if name in SHARED:
            self._takes_kafka07(name, text)

    def _topic_defaults(self, texts: Mapping[str, str]) -> dict[str, str]:
        """The defaults of topics that follow from the broker's settings; the first of several for one topic counts."""
        found = dict(self._of_topics)
        for key in TOPIC_CONFIGS.values():
            name = next((default.name for default in key.of_broker if default.name in texts), None)
            if name is not None:
                found[key.name] = BROKER_CONFIGS[name].for_topics(texts[name])
        return found

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
        texts = self.texts | right
        clean_ms, producer_expiration_ms = (int(_valued(texts, name)) for name in RUNNING)
        return RunningConfig(self._topic_defaults(texts), clean_ms, producer_expiration_ms, texts)

    def text(self, name: str) -> str:
        """A configuration as text; empty if it has no value."""
        return _valued(self.texts, name)

    def number(self, name: str) -> int:
        """A configuration that is a number."""
        return int(self.text(name))

    def flag(self, name: str) -> bool:
        """A configuration that is true or false."""
        return is_true(self.text(name))


def group_options(config: BrokerConfig) -> GroupOptions:
    """Return the options of the group coordinator."""
    return GroupOptions(
        group_min_session_timeout_ms=config.number("group.min.session.timeout.ms"),
        group_max_session_timeout_ms=config.number("group.max.session.timeout.ms"),
        group_initial_rebalance_delay_ms=config.number("group.initial.rebalance.delay.ms"),
        group_max_size=config.number("group.max.size"),
        group_consumer_heartbeat_interval_ms=config.number("group.consumer.heartbeat.interval.ms"),
        group_consumer_session_timeout_ms=config.number("group.consumer.session.timeout.ms"),
        group_consumer_assignment_interval_ms=config.number("group.consumer.assignment.interval.ms"),
        group_share_heartbeat_interval_ms=config.number("group.share.heartbeat.interval.ms"),
        group_share_session_timeout_ms=config.number("group.share.session.timeout.ms"),
        group_share_assignment_interval_ms=config.number("group.share.assignment.interval.ms"),
        group_share_max_size=config.number("group.share.max.size"),
        group_streams_heartbeat_interval_ms=config.number("group.streams.heartbeat.interval.ms"),
        group_streams_session_timeout_ms=config.number("group.streams.session.timeout.ms"),
        group_streams_max_size=config.number("group.streams.max.size"),
        group_streams_initial_rebalance_delay_ms=config.number("group.streams.initial.rebalance.delay.ms"),
        group_streams_assignment_interval_ms=config.number("group.streams.assignment.interval.ms"),
        group_streams_num_standby_replicas=config.number("group.streams.num.standby.replicas"),
        group_streams_rack_aware_assignment_tags=config.text("group.streams.rack.aware.assignment.tags"),
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


def is_true(text: str) -> bool:
    """Whether a configuration that is true or false is true."""
    return text.strip().lower() == "true"


def _valued(texts: Mapping[str, str], name: str) -> str:
    return texts.get(name, BROKER_DEFAULTS.get(name, ""))


def _refuse(name: str, text: str, wrong: str | None) -> None:
    if wrong is not None:
        raise ValueError(f"config {name}={text!r}: {wrong}")


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)
