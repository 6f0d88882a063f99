"""Questions of the driver to brokers: partitions, their first and last offsets, and offsets by time."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Literal, TypeVar

from kafkacodec.arguments import meant
from kafkacodec.client.blocking.admin import Admin
from kafkacodec.errors import (
    UNKNOWN_TOPIC_OR_PARTITION,
    BrokerError,
    ConnectionFailed,
    DeadlineExceeded,
    ItemErrors,
    KafkaCodecError,
)
from kafkacodec.patterns import whole_matcher
from kafkacodec.spark.errors import OptionError
from kafkacodec.spark.live.client_options import shared_options
from kafkacodec.spark.live.connections import borrowed
from kafkacodec.spark.live.reaching import BrokerUnavailable, check_reachable
from kafkacodec.spark.live.read_options import BrokerReadOptions
from kafkacodec.spark.reading.bounds import EARLIEST, LATEST, NONE_LATER, Bound, TopicPartition

__all__ = ["Ids", "Offsets", "TopicOffsets"]

Offsets = dict[TopicPartition, int]
Ids = dict[TopicPartition, uuid.UUID | None]
OffsetSpec = Literal["earliest", "latest"] | int

T = TypeVar("T")

logger = logging.getLogger("kafkacodec.spark")


class TopicOffsets:
    """The selected partitions of a cluster and their offsets; each call asks the brokers again.

    Every method raises BrokerUnavailable, and OptionError if a topic does not exist or may not be read.
    """

    def __init__(self, options: BrokerReadOptions) -> None:
        self._options = options
        # Nobody may create topics by reading them.
        self._client = {**shared_options(options.client), "allow_auto_create_topics": False}
        self._reached = False
        self._warned = False

    def partitions(self) -> Ids:
        """The selected partitions as they are now, sorted, with the ids of their topics (None before Kafka 2.8).

        A topic that is deleted and created again has another id.

        Raises:
            OptionError: a topic of `subscribe`, or a partition of `assign`, does not exist.
        """
        selection = self._options.selection
        if selection.pattern is not None:
            return self._matching(selection.pattern)
        names = selection.topics or {topic for topic, _ in selection.partitions or ()}
        found = self._ask(lambda admin: admin.describe_topics(sorted(names)))
        there = {(name, p.partition): topic.topic_id for name, topic in found.items() for p in topic.partitions}
        if selection.partitions is None:
            return dict(sorted(there.items()))
        missing = sorted(selection.partitions - there.keys())
        if missing:
            raise OptionError(f"assign: the cluster has no partition {_shown(missing)}")
        return {key: there[key] for key in sorted(selection.partitions)}

    def _matching(self, pattern: str) -> Ids:
        """The partitions of the topics in whose names a pattern is found. Logs once that there is none."""
        listed, wanted = self._ask(lambda admin: admin.list_topics()), _finder(pattern)
        topics = [topic for topic in sorted(listed.values()) if wanted(topic.name)]
        if not topics and not self._warned:
            logger.warning("subscribePattern: %r is found in no topic's name", pattern)
            self._warned = True
        return {(topic.name, n): topic.topic_id for topic in topics for n in range(topic.num_partitions)}

    def earliest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """The first offset of each partition."""
        return self._offsets(dict.fromkeys(partitions, "earliest"))

    def latest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """The end of each partition; with ``read_committed``, its last stable offset."""
        return self._offsets(dict.fromkeys(partitions, "latest"))

    def at(self, timestamps: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """The first offset at or after a time (ms since 1970) in each partition; None if no record is that recent."""
        found = self._offsets(dict(timestamps))
        return {key: None if offset < 0 else offset for key, offset in found.items()}

    def resolved(self, bound: Bound, partitions: Iterable[TopicPartition]) -> Offsets:
        """The offsets that an option stands for, in the selected partitions.

        Raises:
            OptionError: the option names other partitions than the selected ones, or no record is as recent as a
                timestamp.
        """
        keys = list(partitions)
        wanted = dict.fromkeys(keys, bound.default) if bound.default is not None else _named(bound, keys)
        if bound.by_timestamp:
            return self._by_timestamp(bound, {key: value for key, value in wanted.items() if value is not None})
        offsets = {key: LATEST if value is None else value for key, value in wanted.items()}
        for edge, spec in ((EARLIEST, self.earliest), (LATEST, self.latest)):
            offsets |= spec([key for key, value in offsets.items() if value == edge])
        return offsets

    def _by_timestamp(self, bound: Bound, timestamps: Mapping[TopicPartition, int]) -> Offsets:
        found = self.at(timestamps)
        none = sorted(key for key, offset in found.items() if offset is None)
        start = bound.option.startswith("starting")
        if none and start and not self._options.latest_when_no_later_record:
            raise OptionError(
                f"{bound.option}: no record of {_shown(none)} is at or after {bound.shown(timestamps[none[0]])}; "
                f"{NONE_LATER}"
            )
        return {**{key: offset for key, offset in found.items() if offset is not None}, **self.latest(none)}

    def _offsets(self, specs: Mapping[TopicPartition, OffsetSpec]) -> Offsets:
        if not specs:
            return {}
        level: Literal["read_committed", "read_uncommitted"] = (
            "read_committed" if self._options.read_committed else "read_uncommitted"
        )
        found = self._ask(lambda admin: admin.list_offsets(specs, isolation_level=level))
        return {(key[0], key[1]): value.offset for key, value in found.items()}

    def _ask(self, question: Callable[[Admin], T]) -> T:
        """The answer to a question, asked again after an error that may pass."""
        self._reach()
        for tries_left in range(self._options.retries - 1, -1, -1):
            try:
                with borrowed(Admin, self._client) as admin:
                    return question(admin)
            except ItemErrors as error:
                problem = next(iter(error.errors.values()))
                if isinstance(problem, (ConnectionFailed, DeadlineExceeded)):
                    raise self._unavailable(problem) from None
                if (
                    isinstance(problem, BrokerError)
                    and problem.retriable
                    and problem.code != UNKNOWN_TOPIC_OR_PARTITION
                ):
                    if not tries_left:
                        raise self._unavailable(problem) from None
                    time.sleep(self._options.retry_ms / 1000)
                    continue
                item = next(iter(error.errors))
                name = item if isinstance(item, str) else "-".join(map(str, item))
                hint = self._similar(problem, name)
                raise OptionError(f"{self._options.selection.option}: {name}: {_plain(problem)}{hint}") from None
            except (ConnectionFailed, DeadlineExceeded, BrokerError) as error:
                raise self._unavailable(error) from None
        raise AssertionError("not reached")

    def _similar(self, problem: BaseException, name: str) -> str:
        """The end of an error about a topic that is not there: the similar one that is, if the brokers tell."""
        if not isinstance(problem, BrokerError) or problem.code != UNKNOWN_TOPIC_OR_PARTITION:
            return ""
        try:
            with borrowed(Admin, self._client) as admin:
                hint = meant(name, admin.list_topics())
        except KafkaCodecError:
            return ""
        return hint and f"; {hint}"

    def _reach(self) -> None:
        """Before the first question, raise if no broker can be connected to: a client would try for a minute."""
        if self._reached:
            return
        check_reachable(self._client, tries=self._options.retries, wait=self._options.retry_ms / 1000)
        self._reached = True

    def _unavailable(self, error: BaseException | str) -> BrokerUnavailable:
        return BrokerUnavailable(f"kafka.bootstrap.servers: {self._client['bootstrap_servers']}: {error}")


def _finder(pattern: str) -> Callable[[str], bool]:
    """Whether a name has a match anywhere, as Spark's own source looks for it.

    RE2 has lookaheads at the start of an expression only: such an expression must match the whole name.
    """
    if pattern.removeprefix("^").startswith(("(?=", "(?!")):
        return whole_matcher(pattern)
    return whole_matcher(f"(?s:.*)(?:{pattern})(?s:.*)")


def _named(bound: Bound, keys: list[TopicPartition]) -> dict[TopicPartition, int | None]:
    missing, surplus = sorted(set(keys) - bound.values.keys()), sorted(bound.values.keys() - set(keys))
    if missing:
        raise OptionError(f"{bound.option}: no value for the selected partitions {_shown(missing)}")
    if surplus:
        raise OptionError(f"{bound.option}: names partitions that are not selected: {_shown(surplus)}")
    return dict(bound.values)


def _shown(partitions: Iterable[TopicPartition], most: int = 5) -> str:
    names = [f"{topic}-{number}" for topic, number in partitions]
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def _plain(error: BaseException) -> str:
    if isinstance(error, BrokerError) and error.code == UNKNOWN_TOPIC_OR_PARTITION:
        return "the cluster does not have this topic or partition, or hides it from this user"
    return str(error)
