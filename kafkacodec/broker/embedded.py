"""A broker in this process: `serve` and its handle."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from kafkacodec.broker.arguments import new_topic, written_batches
from kafkacodec.broker.injecting import Injection, new_rule
from kafkacodec.broker.opening import ClockKind, Data, FlushKind, Opening, Release
from kafkacodec.faces import names_statements
from kafkacodec.net.loop import LoopThread
from kafkacodec.records.columns import RecordColumns
from kafkacodec.shown import repr_of
from kafkacodec.signatures import suggests_options

if TYPE_CHECKING:
    import ssl

    from kafkacodec.broker.kafka.request import Request
    from kafkacodec.broker.security import Tokens
    from kafkacodec.broker.statistics import Statistics

__all__ = ["Broker", "serve"]

_READY_SECONDS = 60


@suggests_options
def serve(
    data: Data = None,
    *,
    listen: str | Iterable[str] = ("kafka://127.0.0.1:0",),
    topics: Mapping[str, int] | Iterable[str] = (),
    config: Mapping[str, Any] | None = None,
    flush: FlushKind = "system",
    node_id: int | None = None,
    tls: ssl.SSLContext | None = None,
    users: Mapping[str, str] | None = None,
    tokens: Tokens = None,
    authorizer: bool = False,
    clock: ClockKind = "running",
    brokers: int = 1,
    release: Release = "4",
    read_only: bool = False,
    replicas: Iterable[str] = (),
) -> Broker:
    """Start a Kafka broker in this process, on its own thread. Use it in a ``with`` block, or call `Broker.stop`.

    It is for tests, and for pipelines on one machine. A production cluster is Apache Kafka's job.

    Args:
        data: the data directory, which keeps the records; the broker creates it if it is missing. None: a temporary
            one, which the broker removes when it stops. Several directories need `read_only`.
        listen: URLs of listeners; port 0 takes a free port. ``kafka+tls://`` needs `tls`; at ``kafka+sasl://`` and
            ``kafka+sasl+tls://`` clients log in. ``line://`` is the line protocol V1, over the same topics;
            ``kafka07://`` is Kafka 0.6 and 0.7, whose topics are apart; ``rewrite://`` has the client rewrite's groups.
        topics: topics to create if they are missing: names, or the number of partitions by name. If all listeners are
            ``kafka07://``, they are topics of Kafka 0.7, which their first message creates.
        config: configurations of the broker, by Kafka's names, such as ``{"num.partitions": 4}``. Names of topics'
            configurations, such as ``retention.ms``, are defaults for all topics. ``kafka07://`` takes the properties
            of Kafka 0.7, ``rewrite://`` those in docs/dialects/rewrite.md.
        flush: "always": records are on the disk before the broker acknowledges them, and survive a crash of the
            machine; the broker flushes records that arrive while the disk works together. "system": the operating
            system decides when to write, as in Apache Kafka, unless `config` or a topic has ``flush.messages`` or
            ``flush.ms``.
        node_id: the id of the broker; None: the id in the directory, 1 for a new one.
        tls: the server's context for ``kafka+tls://`` and ``kafka+sasl+tls://``. If it requires certificates of clients
            (``verify_mode``), the subject of the certificate is the user at ``kafka+tls://``.
        users: passwords by name, for PLAIN and SCRAM. Users created with AlterUserScramCredentials also log in with
            SCRAM.
        tokens: checks tokens for OAUTHBEARER: a function that takes the token and returns the user's name, or a pair of
            the name and the time when the token expires, in seconds since 1970. If it raises, the broker refuses the
            token. The broker calls it in its own thread, so it must not wait. "unsecured": accept unsigned tokens, as
            Apache Kafka does for tests.
        authorizer: clients may do only what access control entries allow, as with Apache Kafka's StandardAuthorizer;
            ``super.users`` in `config` may do everything.
        clock: ``"running"``, or ``"manual"`` for a clock that only `Broker.advance` moves.
        brokers: the number of brokers it appears as, with the ids from `node_id` on. Each has its own ports; a port
            that is not 0 is for the first, and the others have the next ones. They share one data directory.
        release: ``"3.9"`` also serves clients of 0.8 to 0.11, as Apache Kafka did until 3.9: their versions of all
            APIs, and message sets of magic 0 and 1.
        read_only: serve `data`, a directory of a dead broker or several of one cluster, without changing a byte:
            clients read topics, and consumers commit in memory. Requests that would write get an authorization error.
        replicas: the ``line://`` URLs of all brokers of the line protocol with the same partitions, including this one,
            in the same order for each; `node_id` is this broker's place in the list, from 0. All listeners are
            ``line://``.

    Raises:
        ValueError: a wrong URL, configuration, clock, release or number of brokers.
        OSError: an address is in use, the directory is unusable, or another broker uses it; ``zk.connect`` cannot be
            reached, or has a broker with this id.
        ImportError: ``zk.connect`` needs kazoo.
    """
    return Broker(
        Opening(
            data,
            listen=listen,
            topics=topics,
            config=config,
            flush=flush,
            node_id=node_id,
            tls=tls,
            clock=clock,
            brokers=brokers,
            release=release,
            users=users,
            tokens=tokens,
            read_only=read_only,
            authorizer=authorizer,
            replicas=replicas,
        )
    )


@names_statements
class Broker:
    """A running broker.

    Attributes:
        bootstrap_servers (str): host and port of the first ``kafka`` listener; of each broker if there are several.
        listeners (list[str]): the bound URLs, in the order of `listen`, broker after broker.
        data (str): the data directory.
    """

    def __init__(self, opening: Opening) -> None:
        self._stack = ExitStack()
        try:
            self._serving = opening.serving(self._stack)
            self._thread = LoopThread("kafkacodec-broker")
            self._stack.callback(self._thread.close)
            self._thread.run(lambda: opening.start(self._serving), _READY_SECONDS)
        except BaseException:
            self._stack.close()
            raise
        self.data: str = os.path.abspath(self._serving.path)
        self.listeners: list[str] = opening.listeners(self._serving)
        self.bootstrap_servers: str = opening.bootstrap_servers(self.listeners)

    def __repr__(self) -> str:
        return repr_of(self, *self.listeners, self.data)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop: answer received requests, close the connections and the files. Stopping twice does nothing."""
        if not self._thread.ends:
            try:
                self._thread.end(self._serving.stop)
            finally:
                self._stack.close()

    def create_topic(self, name: str, partitions: int = 1, config: Mapping[str, Any] | None = None) -> None:
        """Create a topic.

        Args:
            name: its name.
            partitions: their number.
            config: its configurations: text, or a number or bool.

        Raises:
            TypeError: an argument has a wrong type.
            BrokerError: it exists, or the name, the number or a configuration is invalid.
        """
        arguments = new_topic(name, partitions, config)
        self._thread.run(lambda: self._serving.create_topic(*arguments))

    def records(self, topic: str) -> RecordColumns:
        """Return all records of a topic, partition after partition, with the columns of `kafkacodec.decode`.

        Records of aborted transactions and control records are left out.

        Raises:
            KeyError: there is no such topic.
            DecodeError: a batch is damaged; the path names its partition.
        """
        return self._thread.run(lambda: self._serving.read(topic))()

    def write(self, topic: str, table: Any, *, partition: int = 0) -> int:
        """Append records to a partition of a topic.

        Args:
            topic: the topic; created if it is missing.
            table: input for `kafkacodec.encode`: a table with ``key`` and ``value``, or records. Records without a
                timestamp get the time of the broker's clock.
            partition: the partition.

        Returns:
            The offset of the first record.

        Raises:
            KeyError: there is no such partition.
            EncodeError, ValueError, TypeError: as for `kafkacodec.encode`; there is no record; or a topic of Kafka 0.7
                cannot have a record: its messages have no keys and headers, and no null values.
            OSError: the records cannot be written.
        """
        data = written_batches(topic, table, partition, self._serving.clock.now())
        return self._thread.run(lambda: self._serving.append(topic, partition, data))

    def statistics(self) -> Statistics:
        """Return the numbers of connections, topics and partitions, and of requests and bytes since the start."""
        return self._thread.run(self._serving.statistics)

    def leader(self, topic: str, partition: int = 0) -> int:
        """Return the id of the broker that leads a partition; -1 if there is none.

        Raises:
            KeyError: there is no such partition.
        """
        return self._thread.run(lambda: self._serving.leader(topic, partition))

    def move_leader(self, topic: str, partition: int, to: int) -> None:
        """Make another broker the leader of a partition; a broker without a replica replaces the previous leader.

        Coordinators of groups and of transactions move with the partitions of ``__consumer_offsets`` and
        ``__transaction_state``.

        Args:
            topic, partition: the partition.
            to: the id of the broker.

        Raises:
            KeyError: there is no such partition.
            ValueError: there is no such broker, or it is stopped.
            BrokerError: the change cannot be written.
        """
        self._thread.run(lambda: self._serving.move_leader(topic, partition, to))

    def stop_broker(self, broker: int) -> None:
        """Stop one of several brokers: close its connections and its address.

        Another replica leads each of its partitions; partitions without another replica have no leader until it starts
        again.

        Raises:
            ValueError: no such broker runs, or there is only one.
            BrokerError: the change cannot be written.
        """
        self._thread.run(lambda: self._serving.stop_broker(broker))

    def start_broker(self, broker: int) -> None:
        """Start a stopped broker at its address. It leads the partitions that only it can lead; other leaders stay.

        Raises:
            ValueError: no such broker is stopped.
            OSError: something else listens at its address.
            BrokerError: the change cannot be written.
        """
        self._thread.run(lambda: self._serving.start_broker(broker))

    def inject(
        self, api: str, error: str | int | None = None, *, times: int | None = 1, delay: float = 0.0,
        drop: bool = False, close: bool = False, after: bool = False, when: Callable[[Request], bool] | None = None,
    ) -> Injection:  # fmt: skip
        """Make requests of an API fail.

        Rules apply in their order, before the broker handles a request; the first that matches counts. A request that
        waits holds up the requests behind it on its connection, which brokers handle one after another.

        Args:
            api: the API's name, such as ``"Produce"``.
            error: the error in the answer: the name of a code of `kafkacodec.errors`, such as
                ``"NOT_LEADER_OR_FOLLOWER"``, or its number. The response has it once for all, or for every topic or
                partition of the request.
            times: the number of requests that match; None: all, until you remove the rule.
            delay: seconds that a request waits before anything else.
            drop: never answer the request, nor later ones on the connection.
            close: close the connection instead of answering.
            after: handle the request, and replace only the answer, as when an answer is lost on the way.
            when: whether a request matches, by its ``version``, ``client_id``, ``broker`` (the id of the broker that
                got it) and ``message`` (a class of `kafkacodec.messages`). The broker calls it in its thread, so it
                must not wait. If it raises, the broker closes the connection.

        Returns:
            A handle that removes the rule; it is also a context manager.

        Raises:
            ValueError: an unknown API or error, or arguments that contradict one another.
        """
        rule = new_rule(api, error, times, delay, drop, close, after, when)
        injection = Injection(rule, lambda: self._thread.run(lambda: self._serving.remove(rule)))
        self._thread.run(lambda: self._serving.inject(rule))
        return injection

    def pause(self) -> None:
        """Accept connections and read requests, but answer nothing until `resume`, like a hanging broker."""
        self._thread.run(self._serving.pause)

    def resume(self) -> None:
        """Answer the requests that came meanwhile, and continue."""
        self._thread.run(self._serving.resume)

    def advance(self, seconds: float) -> None:
        """Move the broker's clock forward, and do what is due then: sessions, retention, transactions that time out.

        Fetches that wait for records, and delays of `inject`, use the machine's clock.

        Raises:
            ValueError: the clock would go back.
        """
        self._thread.run(lambda: self._serving.advance(seconds))
