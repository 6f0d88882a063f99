"""The configurations of a broker: names, types and defaults of Apache Kafka, descriptions, and which have an effect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kafkacodec.broker.topics.configs import TOPIC_CONFIGS, between, is_boolean
from kafkacodec.datatypes import NamedTuple
from kafkacodec.protocol.terms import CONFIG_TYPES

__all__ = ["BROKER_CONFIGS", "BROKER_DEFAULTS", "RUNNING", "RUNNING_OF_GROUPS", "BrokerKey", "synonyms"]

_END: Final = 1 << 63
_ENDS: Final = {CONFIG_TYPES["int"]: 1 << 31, CONFIG_TYPES["long"]: _END}
_LOWEST: Final = {
    "log.cleaner.backoff.ms": 0, "log.cleaner.threads": 0, "log.flush.interval.ms": 0, "log.roll.hours": 1,
    "log.roll.jitter.hours": 0, "log.roll.jitter.ms": 0, "log.roll.ms": 1, "producer.id.expiration.ms": 1,
    **dict.fromkeys((f"group.{kind}.{limit}assignment.interval.ms" for kind in ("consumer", "share", "streams")
                     for limit in ("", "min.", "max.")), 0),
    **dict.fromkeys((
        "group.max.size", "log.retention.check.interval.ms", "max.connection.creation.rate", "num.partitions",
        "offsets.retention.check.interval.ms",
        "offsets.retention.minutes", "offsets.topic.num.partitions", "share.coordinator.state.topic.num.partitions",
        "share.coordinator.state.topic.prune.interval.ms",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms", "transaction.max.timeout.ms",
        "transaction.state.log.num.partitions", "transactional.id.expiration.ms",
        *(f"group.{kind}.{limit}{time}.ms" for kind in ("consumer", "share", "streams")
          for limit in ("", "min.", "max.") for time in ("heartbeat.interval", "session.timeout")),
    ), 1),
}  # fmt: skip
_RETENTION: Final = "retention.ms"
_UNCHECKED: Final = frozenset({"log.flush.interval.ms"})
"""May be changed to any number while Apache Kafka runs, but it does not start with one that topics cannot have."""


class BrokerKey(NamedTuple):
    """One configuration of a broker.

    Attributes:
        name: such as ``num.partitions``.
        kind: the type, by Kafka's number.
        default: as text; None if Apache Kafka has no value unless it is set.
        description: a sentence for those who ask.
        heeded: whether it has an effect; otherwise the broker only shows it.
        fixed: it cannot be changed while the broker runs.
        topic_name: of the configuration of topics that it is the default of; None if there is none.
        unit: what to multiply its number with for the number of the topic.
    """

    name: str
    kind: int
    default: str | None
    description: str
    heeded: bool = True
    fixed: bool = True
    topic_name: str | None = None
    unit: int = 1

    def wrong(self, text: str) -> str | None:
        """What is wrong with a value; None if nothing is."""
        own = self.topic_name == _RETENTION or self.name in _LOWEST or self.unit > 1
        if self.topic_name is not None and not own:
            return TOPIC_CONFIGS[self.topic_name].check(text)
        if self.kind == CONFIG_TYPES["boolean"]:
            return is_boolean(text)
        if self.kind not in _ENDS:
            return None
        end = _ENDS[self.kind]
        found = between(_LOWEST.get(self.name, -end), end - 1)(text)
        if found is None and self.topic_name == _RETENTION and not int(text):
            return "must be -1, for no limit, or at least 1"
        return found

    def wrong_change(self, text: str) -> str | None:
        """As `wrong`, for a change while the broker runs; a value that is wrong nevertheless has no effect."""
        if self.name in _UNCHECKED:
            return between(-_END, _END - 1)(text)
        return self.wrong(text)

    def for_topics(self, text: str) -> str:
        """The value of topics for a value of the broker, in the topic's unit; below 0 retention has no limit."""
        if self.topic_name != _RETENTION and self.unit == 1:
            return text
        return str(max(-1, int(text) * self.unit))


_OWN: Final = (
    ("allow.everyone.if.no.acl.found", "boolean", "false",
     "Whether everybody may use what has no access control entries."),
    ("authorizer.class.name", "string", "",
     "The class that decides about rights; without one everybody may do everything."),
    ("auto.create.topics.enable", "boolean", "true", "Whether a topic is created when a client asks for it by name."),
    ("connection.failed.authentication.delay.ms", "int", "100",
     "How long a connection stays open after a log-in that failed."),
    ("connections.max.reauth.ms", "long", "0",
     "How long a client stays logged in before it must log in again; 0 is for ever."),
    ("default.replication.factor", "int", "1", "The number of replicas of a new topic that does not say how many."),
    ("delegation.token.expiry.time.ms", "long", "86400000",
     "How long a delegation token is valid unless it is renewed."),
    ("delegation.token.max.lifetime.ms", "long", "604800000", "How long a delegation token can be renewed."),
    ("delegation.token.secret.key", "password", "",
     "The secret with which delegation tokens are signed; without one there are none."),
    ("errors.deadletterqueue.auto.create.topics.enable", "boolean", "false",
     "Whether the topic for what a share group gave up is created when it is missing."),
    ("errors.deadletterqueue.topic.name.prefix", "string", "dlq.",
     "How the names of topics for what share groups gave up must begin."),
    ("group.consumer.assignment.interval.ms", "int", "0",
     "How long the assignment of a consumer group stays at least."),
    ("group.consumer.heartbeat.interval.ms", "int", "5000", "How often members of consumer groups send heartbeats."),
    ("group.consumer.max.assignment.interval.ms", "int", "15000",
     "The largest assignment interval that a consumer group may have."),
    ("group.consumer.max.heartbeat.interval.ms", "int", "15000",
     "The largest heartbeat interval that a consumer group may have."),
    ("group.consumer.max.session.timeout.ms", "int", "60000",
     "The largest session time-out that a consumer group may have."),
    ("group.consumer.min.assignment.interval.ms", "int", "0",
     "The smallest assignment interval that a consumer group may have."),
    ("group.consumer.min.heartbeat.interval.ms", "int", "5000",
     "The smallest heartbeat interval that a consumer group may have."),
    ("group.consumer.min.session.timeout.ms", "int", "45000",
     "The smallest session time-out that a consumer group may have."),
    ("group.consumer.session.timeout.ms", "int", "45000", "When a silent member of a consumer group is removed."),
    ("group.initial.rebalance.delay.ms", "int", "0",
     "How long a new group of the classic protocol waits for more members."),
    ("group.max.session.timeout.ms", "int", "1800000",
     "The largest session time-out that a member of the classic protocol may ask for."),
    ("group.max.size", "int", "2147483647", "The largest number of members of a group of the classic protocol."),
    ("group.min.session.timeout.ms", "int", "6000",
     "The smallest session time-out that a member of the classic protocol may ask for."),
    ("group.share.assignment.interval.ms", "int", "0", "How long the assignment of a share group stays at least."),
    ("group.share.delivery.count.limit", "int", "5",
     "How often a record is delivered to a share group before it is given up."),
    ("group.share.heartbeat.interval.ms", "int", "5000", "How often members of share groups send heartbeats."),
    ("group.share.max.assignment.interval.ms", "int", "15000",
     "The largest assignment interval that a share group may have."),
    ("group.share.max.delivery.count.limit", "int", "10", "The largest delivery count that a share group may have."),
    ("group.share.max.heartbeat.interval.ms", "int", "15000",
     "The largest heartbeat interval that a share group may have."),
    ("group.share.max.partition.max.record.locks", "int", "4000",
     "The largest limit of records of a partition in delivery that a share group may have."),
    ("group.share.max.record.lock.duration.ms", "int", "60000",
     "The longest lock of records that a share group may have."),
    ("group.share.max.session.timeout.ms", "int", "60000", "The largest session time-out that a share group may have."),
    ("group.share.max.share.sessions", "int", "2000", "The largest number of share sessions that the broker keeps."),
    ("group.share.max.size", "int", "200", "The largest number of members of a share group."),
    ("group.share.min.assignment.interval.ms", "int", "0",
     "The smallest assignment interval that a share group may have."),
    ("group.share.min.delivery.count.limit", "int", "2", "The smallest delivery count that a share group may have."),
    ("group.share.min.heartbeat.interval.ms", "int", "5000",
     "The smallest heartbeat interval that a share group may have."),
    ("group.share.min.partition.max.record.locks", "int", "100",
     "The smallest limit of records of a partition in delivery that a share group may have."),
    ("group.share.min.record.lock.duration.ms", "int", "15000",
     "The shortest lock of records that a share group may have."),
    ("group.share.min.session.timeout.ms", "int", "45000",
     "The smallest session time-out that a share group may have."),
    ("group.share.partition.max.record.locks", "int", "2000",
     "How many records of a partition a share group can have in delivery."),
    ("group.share.record.lock.duration.ms", "int", "30000",
     "How long a member of a share group has for the records that it acquired."),
    ("group.share.session.timeout.ms", "int", "45000", "When a silent member of a share group is removed."),
    ("group.streams.assignment.interval.ms", "int", "1000",
     "How long the assignment of a streams group stays at least."),
    ("group.streams.heartbeat.interval.ms", "int", "5000", "How often members of streams groups send heartbeats."),
    ("group.streams.initial.rebalance.delay.ms", "int", "0",
     "How long a new streams group waits for more members."),
    ("group.streams.max.assignment.interval.ms", "int", "15000",
     "The largest assignment interval that a streams group may have."),
    ("group.streams.max.heartbeat.interval.ms", "int", "15000",
     "The largest heartbeat interval that a streams group may have."),
    ("group.streams.max.session.timeout.ms", "int", "60000",
     "The largest session time-out that a streams group may have."),
    ("group.streams.max.size", "int", "2147483647", "The largest number of members of a streams group."),
    ("group.streams.max.standby.replicas", "int", "2",
     "The largest number of standby copies that a streams group may have."),
    ("group.streams.min.assignment.interval.ms", "int", "0",
     "The smallest assignment interval that a streams group may have."),
    ("group.streams.min.heartbeat.interval.ms", "int", "5000",
     "The smallest heartbeat interval that a streams group may have."),
    ("group.streams.min.session.timeout.ms", "int", "45000",
     "The smallest session time-out that a streams group may have."),
    ("group.streams.num.standby.replicas", "int", "0",
     "How many standby copies a streams group keeps of each of its states."),
    ("group.streams.rack.aware.assignment.tags", "list", "",
     "The tags that members of streams groups should have; they are told if they lack one."),
    ("group.streams.session.timeout.ms", "int", "45000", "When a silent member of a streams group is removed."),
    ("log.cleaner.backoff.ms", "long", "15000", "How long compaction waits when it finds nothing to do."),
    ("log.retention.check.interval.ms", "long", "300000", "How often the broker looks for segments to delete."),
    ("max.connection.creation.rate", "int", "2147483647",
     "How many connections per second the broker accepts."),
    ("max.incremental.fetch.session.cache.slots", "int", "1000",
     "The largest number of fetch sessions that the broker keeps."),
    ("metadata.log.max.record.bytes.between.snapshots", "long", "20971520",
     "How many bytes of metadata are written until the next snapshot of them."),
    ("num.partitions", "int", "1", "The number of partitions of a new topic that does not say how many."),
    ("offset.metadata.max.bytes", "int", "4096", "The largest size of the text that is committed with an offset."),
    ("offsets.retention.check.interval.ms", "long", "600000",
     "How often the broker looks for committed offsets to delete."),
    ("offsets.retention.minutes", "int", "10080",
     "How long committed offsets are kept after a group has lost its last member."),
    ("offsets.topic.num.partitions", "int", "50", "The number of partitions of the topic of committed offsets."),
    ("producer.id.expiration.ms", "int", "86400000", "How long the broker remembers a producer that writes nothing."),
    ("replica.lag.time.max.ms", "long", "10000", "How far behind a replica may be before it is no longer in sync."),
    ("sasl.enabled.mechanisms", "list", "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
     "The mechanisms with which clients can log in."),
    ("share.coordinator.state.topic.num.partitions", "int", "50",
     "The number of partitions of the topic of the states of share groups."),
    ("share.coordinator.state.topic.prune.interval.ms", "int", "300000",
     "How often superseded states of share groups are deleted."),
    ("super.users", "string", "", "The users who may do everything, separated by semicolons."),
    ("transaction.abort.timed.out.transaction.cleanup.interval.ms", "int", "10000",
     "How often the broker looks for transactions that have timed out."),
    ("transaction.max.timeout.ms", "int", "900000", "The largest time-out that a transaction may have."),
    ("transaction.state.log.num.partitions", "int", "50",
     "The number of partitions of the topic of the states of transactions."),
    ("transactional.id.expiration.ms", "int", "604800000",
     "How long a transactional id is kept after its last transaction."),
)  # fmt: skip
_SHOWN: Final = (
    ("broker.id", "int", "1", "The id of the broker."),
    ("log.cleaner.threads", "int", "1", "The number of threads for compaction."),
    ("node.id", "int", "1", "The id of the node."),
)
_UNSET: Final = frozenset({
    "delegation.token.secret.key", "log.flush.interval.ms", "log.retention.minutes", "log.retention.ms",
    "log.roll.jitter.ms", "log.roll.ms",
})  # fmt: skip
"""What has no value, in Apache Kafka, unless it is set: another configuration counts then."""
_FIRST: Final = {"log.retention.hours": "168", "log.roll.hours": "168", "log.roll.jitter.hours": "0"}
"""Defaults in other units than that of topics."""

RUNNING: Final = ("log.cleaner.backoff.ms", "producer.id.expiration.ms")
"""Settings of the broker that apply at once, in the order of `kafkacodec.broker.options.RunningConfig`."""
RUNNING_OF_GROUPS: Final = tuple(f"group.{kind}.assignment.interval.ms" for kind in ("consumer", "share", "streams"))
"""Settings of all groups that apply at once."""
_CHANGEABLE: Final = frozenset({
    *RUNNING, *RUNNING_OF_GROUPS, "errors.deadletterqueue.auto.create.topics.enable",
    "errors.deadletterqueue.topic.name.prefix", "log.cleaner.threads", "max.connection.creation.rate",
})  # fmt: skip


def _own() -> list[BrokerKey]:
    rows = [(*row, heeded) for part, heeded in ((_OWN, True), (_SHOWN, False)) for row in part]
    return [
        BrokerKey(
            name, CONFIG_TYPES[kind], None if name in _UNSET else default, description, heeded, name not in _CHANGEABLE
        )
        for name, kind, default, description, heeded in rows
    ]


def _of_topics() -> list[BrokerKey]:
    """The defaults of topics; only the first for each can be changed while the broker runs."""
    found = []
    for key in TOPIC_CONFIGS.values():
        for at, (name, unit) in enumerate(key.of_broker):
            default = None if name in _UNSET else _FIRST.get(name, key.default)
            kind = CONFIG_TYPES["int"] if unit > 1 else key.kind
            described = f"The default of topics for {key.name}. {key.description}"
            found.append(BrokerKey(name, kind, default, described, key.heeded, at > 0, key.name, unit))
    return found


BROKER_CONFIGS: Final[Mapping[str, BrokerKey]] = {
    key.name: key for key in sorted([*_own(), *_of_topics()], key=lambda key: key.name)
}
"""The configurations of the broker by name. The rebalance delays (Kafka: 3,000) are 0, as tests wait for them, and so
are the assignment intervals of consumer and share groups (Kafka: 1,000)."""

BROKER_DEFAULTS: Final[Mapping[str, str]] = {
    key.name: key.default for key in BROKER_CONFIGS.values() if key.default is not None
}
"""The default values of those that have one."""


def synonyms(name: str) -> tuple[str, ...]:
    """The configurations of the broker for the same thing, the first of which that is set counts."""
    key = BROKER_CONFIGS.get(name)
    if key is None or key.topic_name is None:
        return (name,)
    return tuple(default.name for default in TOPIC_CONFIGS[key.topic_name].of_broker)
