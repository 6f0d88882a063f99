"""Putting a broker together: directory, metadata, coordinators, service, host."""

from __future__ import annotations

import asyncio
import errno
import logging
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kafkacodec import errors
from kafkacodec.broker.dialects.inside import Inside, Replication
from kafkacodec.broker.host.arrivals import Arrivals
from kafkacodec.broker.host.background import Background
from kafkacodec.broker.host.host import Host
from kafkacodec.broker.host.limits import MAX_BYTES
from kafkacodec.broker.host.runner import Runner
from kafkacodec.broker.kafka.apis import ADVERTISED, OLD, OLD_ADVERTISED, READ
from kafkacodec.broker.kafka.clustering.brokers import Brokers
from kafkacodec.broker.kafka.fetch_sessions import FetchSessions
from kafkacodec.broker.kafka.loading import loaded
from kafkacodec.broker.kafka.metadata_log import formatted_records, metadata_records
from kafkacodec.broker.kafka.node import Node
from kafkacodec.broker.kafka.request import KafkaCodec
from kafkacodec.broker.kafka.security.logins import Login, Logins
from kafkacodec.broker.kafka.security.peers import Peer
from kafkacodec.broker.kafka.service import KafkaService
from kafkacodec.broker.kafka.sharing.offsets import Shares
from kafkacodec.broker.options import GROUP_SETTINGS, group_options, transaction_options
from kafkacodec.broker.protocols import Dialects
from kafkacodec.broker.state.catalog import Catalog
from kafkacodec.broker.state.coordinator import GroupCoordinator
from kafkacodec.broker.state.leaders import moved, registrations, started, stopped
from kafkacodec.broker.state.sharing.states import ShareStates
from kafkacodec.broker.state.transactions import TransactionCoordinator
from kafkacodec.broker.statistics import Statistics, statistics_of
from kafkacodec.broker.topics.committed import committed_records
from kafkacodec.broker.topics.topics import Topics
from kafkacodec.broker.topics.waiting import Waiting
from kafkacodec.errors import BrokerError, error
from kafkacodec.log.growing.directory import GrowingDirectory
from kafkacodec.net.frames import FrameBuffers
from kafkacodec.net.service import Effect
from kafkacodec.protocol.terms import CONFIG_RESOURCES

if TYPE_CHECKING:
    from kafkacodec.broker.clock import Clock
    from kafkacodec.broker.host.listener import Listener
    from kafkacodec.broker.kafka.faults import Rule
    from kafkacodec.broker.listening import Url
    from kafkacodec.broker.options import BrokerConfig
    from kafkacodec.broker.security import Security
    from kafkacodec.broker.state.catalog import Topic
    from kafkacodec.net.service import Codec
    from kafkacodec.records.columns import RecordColumns

__all__ = ["Serving"]

_log = logging.getLogger("kafkacodec.broker")
_STEPS: Final = 1000  # more follow from a time only if they take time themselves
_KEPT_BYTES: Final = 16 << 20
_METADATA_ID: Final = uuid.UUID(int=1)  # that of __cluster_metadata in every cluster


class Serving:
    """A broker in an event loop. All methods but the constructor run in the loop's thread.

    Args:
        path: see `path`.
        config: of the broker.
        ids: the id of the broker, or of all brokers that it appears as.
        clock: its clock, also an attribute.
        keeps: whether the directory is used again; otherwise it stays as after a crash, which is faster.
        serves_old: whether it also serves clients of 0.8 to 0.11.
        frozen: read-only directories.
        partitions: of topics outside the catalog.
        replication: the brokers of the line protocol with the same partitions.

    Attributes:
        path: the data directory.
        ids: see above.
        addresses: the bound host and port of each listener, broker after broker.
    """

    def __init__(
        self, path: str, config: BrokerConfig, ids: Sequence[int], clock: Clock, *, keeps: bool, serves_old: bool,
        frozen: Sequence[str] = (), partitions: Mapping[str, int] | None = None, replication: Replication | None = None,
    ) -> None:  # fmt: skip
        self._serves_old, self._frozen, self._partitions = serves_old, list(frozen), partitions or {}
        self.path, self._config, self.ids, self._keeps = path, config, tuple(ids), keeps
        self._node_id, self.clock, self._replication = self.ids[0], clock, replication
        self.addresses: list[tuple[str, int]] = []
        self._live = False  # the metadata is loaded
        self._listeners: dict[int, list[Listener]] = {}  # by broker

    async def start(self, urls: Sequence[Url], topics: Mapping[str, int], security: Security) -> None:
        """Open the directory and listen. Raises OSError."""
        loop = asyncio.get_running_loop()
        self._directory = self._opened()
        self._host = Host(loop)
        try:
            self._assemble(loop)
            self._logins = Logins(self._node, security.users, security.tokens)
            self._urls, self._tls, self._buffers = urls, security.tls, FrameBuffers(_KEPT_BYTES, MAX_BYTES)
            for broker in self.ids:
                await self._listen(broker)
                self.addresses += [listener.address for listener in self._listeners[broker]]
            self._directory.begin()
            await self._dialects.start(urls, self.addresses)
            if self._frozen:
                self._replay()
            else:
                self._load(topics)
            self._dialects.begin()
            for warning in security.warnings(urls, anyone=self._logins.anyone()):
                _log.warning("%s", warning)
            self._run(self._service.tick(self._runner.now))  # what is due at intervals begins
        except BaseException as failure:
            try:
                await self._host.stop()
            finally:
                self._directory.give_back()
            if isinstance(failure, BrokerError) and failure.code == errors.KAFKA_STORAGE_ERROR:
                raise OSError(errno.EIO, failure.args[0], self.path) from failure
            raise

    async def stop(self) -> None:
        """Answer received requests, close the connections, then the files."""
        await self._dialects.end()
        await self._host.stop()
        self._topics.stop()
        self._background.close()
        if self._keeps:
            self._leave()
            self._directory.close(broker_epoch=self._node.catalog.epoch)
        else:
            self._directory.abandon()

    def _opened(self) -> Any:
        """The data directory, which grows unless it is only read. Raises OSError."""
        if self._frozen:
            from kafkacodec.log.growing.frozen_directory import FrozenDirectory

            return FrozenDirectory(self._frozen)
        return GrowingDirectory(self.path, node_id=self._node_id, clock=self.clock.now)

    async def _listen(self, broker: int) -> None:
        """Listen as a broker, at the ports after those of the first, or at its previous ports. Raises OSError."""
        brokers, begun = self._node.brokers, self._listeners.setdefault(broker, [])
        before = brokers.addresses(broker)
        try:
            for number, url in enumerate(self._urls):
                port = before[number][1] if before else url.port + self.ids.index(broker) if url.port else 0
                context = self._tls if url.has_tls else None
                name = f"{url.text()} of broker {broker}, {number}" if brokers.several else url.text()
                runner, codec = self._answering(url)
                listener = await self._host.listen(name, runner, codec, url.host, port, context)
                begun.append(listener)
                if url.protocol == "kafka":
                    brokers.listens(broker, number, name, listener.address)
        except BaseException:
            await self._host.end(begun)
            begun.clear()
            raise

    async def statistics(self) -> Statistics:
        """Return its numbers since the start."""
        return statistics_of(self._host.traffic(), self._node.catalog.metadata.topics)

    # Several brokers

    async def leader(self, topic: str, number: int) -> int:
        """Return the broker that leads a partition, -1 for none. Raises KeyError."""
        self._known(topic, number)
        return self._node.brokers.leader(topic, number)

    async def move_leader(self, topic: str, number: int, to: int) -> None:
        """Make another broker lead a partition. Raises KeyError, ValueError, BrokerError."""
        found = self._known(topic, number)
        brokers = self._node.brokers
        if self._frozen:
            raise OSError(errno.EROFS, "the directory is served read-only", self.path)
        if to not in brokers.ids:
            raise ValueError(f"there is no broker {to}; the brokers are {list(brokers.ids)}")
        if to not in brokers.running:
            raise ValueError(f"broker {to} does not run")
        if brokers.leader(topic, number) != to:
            self._decide([moved(self._node.catalog, found, number, to, brokers.running)])

    async def stop_broker(self, broker: int) -> None:
        """Make other brokers lead one's partitions, and close its connections. Raises ValueError, BrokerError."""
        brokers, catalog = self._node.brokers, self._node.catalog
        if broker not in brokers.running:
            raise ValueError(f"broker {broker} does not run; the running brokers are {brokers.running}")
        if len(self.ids) == 1:
            raise ValueError("this is the only broker: stop it with stop()")
        brokers.stopped(broker)
        try:
            self._decide([catalog.fenced(broker, fenced=True), *stopped(catalog, broker, brokers.running)])
        except BrokerError:
            brokers.started(broker)
            raise
        listeners = self._listeners.pop(broker)
        await self._host.end(listeners)

    async def start_broker(self, broker: int) -> None:
        """Start a stopped broker at its addresses. Raises ValueError, OSError, BrokerError."""
        brokers, catalog = self._node.brokers, self._node.catalog
        if broker not in brokers.away:
            raise ValueError(f"broker {broker} is not stopped; the stopped brokers are {brokers.away}")
        await self._listen(broker)
        brokers.started(broker)
        try:
            self._decide([catalog.fenced(broker, fenced=False), *started(catalog, broker, brokers.running)])
        except BrokerError:
            brokers.stopped(broker)
            await self._host.end(self._listeners.pop(broker))
            raise

    def _known(self, topic: str, number: int) -> Topic:
        found = self._node.catalog.known(topic)
        if self._node.catalog.partition(topic, number) is None:
            raise KeyError(f"topic {topic!r} has no partition {number}")
        return found

    def _decide(self, records: Sequence[bytes]) -> None:
        """Append records to the metadata log, and answer requests that wait for the change. Raises BrokerError."""
        self._record(records, "the metadata log cannot be written")
        self._run(self._service.woken(self._runner.now))

    # What tests ask for

    async def create_topic(self, name: str, partitions: int, config: Mapping[str, Any]) -> None:
        """Make a topic. Raises BrokerError."""
        self._create(name, partitions, config)

    async def read(self, topic: str) -> Callable[[], RecordColumns]:
        """Return a function that decodes the committed records of a topic. Raises KeyError."""
        if (owner := self._dialects.owner(topic, self._urls)) is not None:
            return owner.read(topic)
        found = self._node.catalog.known(topic)
        logs = [self._topics.partition(topic, number) for number in range(found.partitions)]
        return committed_records(log for log in logs if log is not None)

    async def append(self, topic: str, number: int, data: bytes) -> int:
        """Append batches; returns the first offset. Raises KeyError, EncodeError, OSError."""
        if (owner := self._dialects.owner(topic, self._urls)) is not None:
            return await owner.append(topic, number, data)
        if self._node.catalog.topic(topic) is None:
            self._create(topic, self._config.number("num.partitions"), {})
        if self._topics.partition(topic, number) is None:
            raise KeyError(f"topic {topic!r} has no partition {number}")
        found = self._topics.append((topic, number), data)
        if self._topics.must_flush((topic, number)):
            await self._flushed((topic, number))
        self._run(self._service.woken(self._runner.now))
        return found.base_offset

    async def inject(self, rule: Rule) -> None:
        """Add a rule for faults."""
        self._service.faults.rules.append(rule)

    async def advance(self, seconds: float) -> None:
        """Move the clock forward, and do what is due then. Raises TypeError, ValueError."""
        self.clock.advance(seconds)
        self._dialects.tick()
        for _ in range(_STEPS):
            self._run(self._service.tick(self._runner.now))
            deadline = self._service.next_deadline()
            if deadline is None or deadline > self._runner.now:
                return
            await asyncio.sleep(0)

    async def remove(self, rule: Rule) -> None:
        """Remove a rule for faults."""
        self._service.faults.remove(rule)

    async def pause(self) -> None:
        """Answer nothing."""
        self._service.faults.paused = True

    async def resume(self) -> None:
        """Answer the requests that came meanwhile, and continue."""
        self._service.faults.paused = False
        self._run(self._service.woken(self._runner.now))
        self._run(self._service.tick(self._runner.now))

    async def _flushed(self, log: tuple[str, int]) -> None:
        done = self._loop.create_future()
        self._runner.flusher.flush([log], lambda error: done.set_exception(error) if error else done.set_result(None))
        await done

    # Putting together

    def _answering(self, url: Url) -> tuple[Runner, Callable[[], Codec]]:
        """Return the runner of a listener, and a function that makes codecs of connections."""
        if url.protocol == "kafka":
            return self._runner, partial(self._codec, url)
        return self._dialects.answering(url.protocol)

    def _wake(self) -> None:
        """Wake Kafka clients that wait for records, after the current work."""
        self._loop.call_soon(lambda: self._run(self._service.woken(self._runner.now)))

    def _codec(self, url: Url) -> KafkaCodec:
        """For a new connection of a listener."""
        peer = Peer(certified=url.has_tls and not url.has_sasl)
        if url.has_sasl:
            Login(self._logins, peer)
        return KafkaCodec(OLD if self._serves_old else READ, self._buffers, peer, self._node.quotas)

    def _assemble(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        config = self._config
        self._waiting = Waiting()
        self._background = Background(loop)
        self._topics = Topics(
            self._directory, config.running({}), self._waiting, config.number("log.retention.check.interval.ms"),
            self._background, config.number("metadata.log.max.record.bytes.between.snapshots"),
        )  # fmt: skip
        catalog = Catalog(self._node_id, self._directory.identity.directory_uuid, self._changed)
        catalog.access.super_users = frozenset(filter(None, config.text("super.users").split(";")))
        catalog.access.open_without_entries = config.flag("allow.everyone.if.no.acl.found")
        slots = config.number("max.incremental.fetch.session.cache.slots")
        frozen = self._topics.frozen = bool(self._frozen)
        brokers = Brokers(self.ids, catalog, lambda: FetchSessions(slots), frozen=frozen)
        self._node = Node(
            self._node_id, self._directory.identity.cluster_id, config, catalog, self._topics, self._waiting, brokers
        )
        self._node.frozen = frozen
        self._host.arrivals = Arrivals(self._node.quotas.arrivals)
        self._node.limit_arrivals = self._host.arrivals.limit
        self._node.versions = OLD_ADVERTISED if self._serves_old else ADVERTISED
        self._node.shares = Shares(self._node, config.number("group.share.max.share.sessions"))
        self._groups = GroupCoordinator(
            self._node,
            config.number("offsets.topic.num.partitions"),
            group_options(config),
            share_enabled=lambda: self._node.shares.enabled,
        )
        self._states = ShareStates(
            self._node,
            config.number("share.coordinator.state.topic.num.partitions"),
            config.number("share.coordinator.state.topic.prune.interval.ms"),
        )
        self._transactions = TransactionCoordinator(
            self._node,
            self._node.take_producer_id,
            self._groups.log_of,
            config.number("transaction.state.log.num.partitions"),
            transaction_options(config),
        )
        self._node.groups = self._groups
        self._node.machines = {
            **dict.fromkeys(self._groups.handlers, self._groups),
            **dict.fromkeys(self._transactions.handlers, self._transactions),
            **dict.fromkeys(self._states.handlers, self._states),
        }
        for machine in self._node.running:
            machine.alarm = self._waiting.alarm
        self._service = KafkaService(self._node, self.clock)
        self._runner = Runner(self._service, self._topics, loop)
        inside = Inside(
            self.path, self._node_id, config, self.clock, catalog, self._topics, self._directory.was_clean,
            self._partitions, partial(self._create, config={}), self._wake, self._replication,
        )  # fmt: skip
        self._dialects = Dialects(inside, self._topics, loop, keeps=self._keeps)
        self._host.closing.append(self._dialects.close)
        self._node.is_taken = lambda name: self._dialects.has_topic(name) or self._topics.is_of_kafka07(name)
        self._topics.flushes.flush = self._runner.flusher.flush
        self._topics.is_kept = self._keeps

    def _changed(self, record: Any) -> None:
        """Apply a record of the metadata, unless it is being loaded."""
        name = type(record).__name__ if self._live else ""
        if name == "PartitionRecord":
            topic = self._node.catalog.topic_of(record.topic_id)
            if topic is not None:
                self._groups.topics_changed()
                values = self._node.catalog.configs("topic", topic.name)
                try:
                    self._topics.open(topic.name, topic.id, [(record.partition_id, record.leader_epoch)], values)
                except OSError as error:  # requests for it get an error until the disk has room
                    _log.error("partition %s-%d cannot be created now: %s", topic.name, record.partition_id, error)
        elif name == "PartitionChangeRecord":
            topic = self._node.catalog.topic_of(record.topic_id)
            now = None if topic is None else self._node.catalog.partition(topic.name, record.partition_id)
            if topic is not None and now is not None:
                self._node.leads_anew(topic, record.partition_id, now["leader_epoch"])
        elif name == "ClientQuotaRecord":
            self._node.quotas.changed()
        elif name == "RemoveTopicRecord":
            self._node.shares.partitions.forget_topic(record.topic_id)
            gone = self._topics.delete(record.topic_id)
            if gone is not None:
                self._loop.call_soon(self._forget_offsets, gone)
        elif name == "ConfigRecord" and record.resource_type == CONFIG_RESOURCES["topic"]:
            self._topics.configure(record.resource_name, record.name, record.value)
        elif name == "ConfigRecord" and record.resource_type == CONFIG_RESOURCES["broker"]:
            self._node.configure_all()
        elif name == "ConfigRecord" and record.resource_type == CONFIG_RESOURCES["group"]:
            self._configure_group(record.resource_name, record.name, record.value)
            self._node.shares.partitions.configured(record.resource_name)

    def _configure_group(self, group: str, name: str, value: str | None) -> None:
        if name in GROUP_SETTINGS:
            self._groups.configure(group, name, value)

    def _forget_offsets(self, topic: str) -> None:
        effect = self._groups.topics_deleted([topic], self._now)
        self._run(self._node.routed(self._groups, effect))

    def _load(self, topics: Mapping[str, int]) -> None:
        """Read the metadata, open the logs, load the coordinators, create the requested topics."""
        now = self._now
        catalog = self._node.catalog
        metadata = self._topics.open_metadata(_METADATA_ID)
        self._take(metadata_records(metadata))
        formatted = [] if metadata.high_watermark else formatted_records(self.path, metadata.log.path)
        self._record(formatted, "the format records of the directory cannot be written")
        self._record(registrations(catalog, self.ids, self._node.brokers.addresses), "the brokers cannot be recorded")
        for machine in (self._states, self._groups, self._transactions):
            self._run(loaded(self._node, machine, now))
        self._topics.tell_unserved(self._dialects.has_topic)
        for name, count in topics.items():
            if catalog.topic(name) is None:
                self._create(name, count or self._config.number("num.partitions"), {})

    def _take(self, records: Iterable[Any]) -> None:
        """Apply the records of the metadata, and open the logs of its topics."""
        catalog = self._node.catalog
        for record in records:
            catalog.apply(record)
        self._node.configure_all()
        for name in catalog.names():
            topic = catalog.topic(name)
            if topic is not None:
                epochs = [one for one in catalog.leader_epochs(name) if self._node.brokers.leader(name, one[0]) >= 0]
                self._topics.open(name, topic.id, epochs, catalog.configs("topic", name))
        for group in catalog.configured("group"):
            for key, value in catalog.configs("group", group).items():
                self._configure_group(group, key, value)
        self._live = True

    def _replay(self) -> None:
        """Read read-only directories; open transactions stay open."""
        from kafkacodec.broker.state.replayed import replayed

        self._topics.open_metadata(_METADATA_ID)
        self._take(replayed(self._directory, self._node_id, self._config.number("offsets.topic.num.partitions")))
        self._topics.set_offline(self._directory.unreadable)
        for machine in (self._states, self._groups):
            self._run(loaded(self._node, machine, self._now))
        self._run(self._node.routed(self._transactions, self._transactions.loaded(self._now)))

    def _create(self, name: str, partitions: int, config: Mapping[str, Any]) -> None:
        if self._frozen:
            raise OSError(errno.EROFS, "the directory is served read-only", self.path)
        from kafkacodec import messages
        from kafkacodec.broker.kafka.topics import refuses_topic

        request = messages.CreateTopicsRequest.CreatableTopic(name=name, num_partitions=partitions)
        request.replication_factor = -1
        made = messages.CreateTopicsRequest.CreatableTopicConfig
        request.configs = [made(name=key, value=value) for key, value in config.items()]
        wrong = refuses_topic(self._node, request, ())
        if wrong is not None:
            raise error(wrong.code)(wrong.text)
        _, records = self._node.new_topic(name, partitions, config)
        self._record(records, f"topic {name!r} cannot be stored: the log has the reason")

    def _leave(self) -> None:
        """Record that no broker runs, so that another one, also Apache Kafka, can register with its id at once."""
        catalog = self._node.catalog
        known = catalog.metadata.brokers
        gone = [catalog.fenced(broker, fenced=True) for broker in known if not known[broker]["fenced"]]
        self._run(self._node.change(gone, lambda code: Effect(), self._now))

    def _record(self, records: Sequence[bytes], wrong: str) -> None:
        """Append records to the metadata log, and apply them. Raises BrokerError."""
        failed: list[int] = []

        def done(code: int) -> Effect:
            failed.append(code)
            return Effect()

        self._run(self._node.change(records, done, self._now))
        if failed != [errors.NONE]:
            raise error(errors.KAFKA_STORAGE_ERROR)(wrong)

    @property
    def _now(self) -> float:
        """The broker's time."""
        return self.clock(self._runner.now)

    def _run(self, effect: Effect) -> None:
        self._runner.run(effect)
