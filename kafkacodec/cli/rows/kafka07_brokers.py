"""Brokers of Kafka 0.7 as what `kafkacodec consume` reads and `kafkacodec produce` writes."""

from __future__ import annotations

import os
import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from kafkacodec.cli.console import note
from kafkacodec.cli.options.given import given_options, refuse_given
from kafkacodec.cli.output import counted
from kafkacodec.cli.rows.record_rows import Given, Origin, Page, limited
from kafkacodec.datatypes import dataclass

if TYPE_CHECKING:
    from kafkacodec.dialects.kafka07 import Consumer, SimpleConsumer

__all__ = ["Kafka07", "Reading", "kafka07_servers", "send_lines"]

_BROKER, _ZOOKEEPER = "kafka07://", "kafka07+zookeeper://"
_LOOK_SECONDS: Final = 0.25  # between two looks for messages
_QUIET_SECONDS: Final = 2.0  # after which a group counts as read to the end
_COMMIT_SECONDS: Final = 5.0
_WRONG_PARTITION: Final = 3
_MOST_PARTITIONS: Final = 1000
_CODECS: Final = ("none", "gzip", "snappy")
_READING: Final = frozenset({"topics", "more", "quiet", "bootstrap", "numbers", "offset", "group", "follow", "limit"})
_PRINTING: Final = frozenset({"columns", "as_json", "template", "raw"})
_SENDING: Final = frozenset({"topic", "words", "bootstrap", "kind", "codec", "key", "key_delimiter", "delimiter"})


@dataclass(frozen=True)
class Kafka07:
    """Where it is: a broker, or a ZooKeeper that knows the brokers."""

    address: str
    is_zookeeper: bool


def kafka07_servers(bootstrap: str | None) -> Kafka07 | None:
    """What ``--bootstrap`` names, if that is Kafka 0.7; else None."""
    for scheme in (_BROKER, _ZOOKEEPER):
        if bootstrap is not None and bootstrap.startswith(scheme):
            return Kafka07(bootstrap.removeprefix(scheme), scheme == _ZOOKEEPER)
    return None


def _refuse_others(allowed: frozenset[str]) -> None:
    refuse_given(given_options().keys() - allowed, "to Kafka 0.7")


class Reading:
    """The messages of topics.

    Args:
        servers: where they are.
        topics: their names.
        numbers: only these partitions; all if there are none.
        offset: where to begin: beginning, end or a number; None: the beginning, or what the group has committed.
        group: the group that reads; needs ZooKeeper.
        follow: whether to wait for more.
        limit: stop after so many.

    Raises:
        click.UsageError: options that do not belong together.
    """

    def __init__(
        self, servers: Kafka07, topics: tuple[str, ...], numbers: tuple[int, ...], offset: str | None,
        group: str | None, *, follow: bool, limit: int | None,
    ) -> None:  # fmt: skip
        _refuse_others(_READING | _PRINTING)
        if servers.is_zookeeper != (group is not None):
            raise click.UsageError(f"--group needs {_ZOOKEEPER}HOST:PORT, which needs --group; without: {_BROKER}")
        known = ("beginning", "end") if group is None else ("stored", "beginning", "end")
        if offset is not None and offset not in known and (group is not None or not offset.isdecimal()):
            raise click.UsageError(f"--offset: {offset!r} is not {' or '.join(known)}{'' if group else ' or a number'}")
        if group is not None and numbers:
            raise click.UsageError("--group decides about partitions: --partition does not apply")
        self._servers, self._topics, self._numbers, self._offset = servers, topics, numbers, offset
        self._group, self._follow, self._limit = group, follow, limit

    def pages(self) -> Iterator[Page | None]:
        """The messages; None where there are no more for now."""
        from kafkacodec.dialects import kafka07

        if self._limit == 0:
            return
        if self._group is None:
            with kafka07.SimpleConsumer(self._servers.address) as broker:
                yield from limited(self._of_broker(broker), self._limit)
            return
        with kafka07.Consumer(
            self._servers.address,
            self._topics,
            group=self._group,
            auto_commit=False,
            auto_offset_reset="largest" if self._offset == "end" else "smallest",
        ) as consumer:
            yield from self._of_group(consumer)

    def _of_broker(self, broker: SimpleConsumer) -> Iterator[Page | None]:
        positions = {
            (topic, number): self._first(broker, topic, number)
            for topic in self._topics
            for number in self._numbers or _partitions(broker, topic)
        }
        ends = {key: broker.latest(*key) for key in positions}
        while self._follow or any(positions[key] < end for key, end in ends.items()):
            found = False
            for (topic, number), position in positions.items():
                columns = broker.fetch(topic, number, position)
                if not len(columns):
                    continue
                found = True
                page = Page(Origin(topic, number, f"{topic}-{number}"), columns, 0, len(columns))
                if not self._follow:
                    page = page.part(0, bisect_left(page.cells("offset"), ends[topic, number]))
                if len(page):
                    yield page
                positions[topic, number] = int(columns["next_offset"][-1])
            yield None
            if not found:
                if not self._follow:
                    return
                time.sleep(_LOOK_SECONDS)

    def _first(self, broker: SimpleConsumer, topic: str, number: int) -> int:
        if self._offset is not None and self._offset.isdecimal():
            return int(self._offset)
        return broker.latest(topic, number) if self._offset == "end" else broker.earliest(topic, number)

    def _of_group(self, consumer: Consumer) -> Iterator[Page | None]:
        commit_at = time.monotonic() + _COMMIT_SECONDS
        quiet_at = time.monotonic() + _QUIET_SECONDS
        left = self._limit
        is_whole = True  # all of what was handed out is written
        try:
            while True:
                messages = consumer.poll(_LOOK_SECONDS)
                for number, one in enumerate(messages, 1):
                    is_whole = False
                    place = Origin(one.topic, one.partition, f"{one.topic} {one.broker}-{one.partition}")
                    given: Given = {"offset": [b"%d" % one.offset], "timestamp_type": [b"-1"], "value": [one.value]}
                    yield Page(place, None, 0, 1, given)
                    left = None if left is None else left - 1
                    if number == len(messages) or left == 0:
                        yield None
                        is_whole = number == len(messages)
                    if left == 0:
                        return
                if messages:
                    quiet_at = time.monotonic() + _QUIET_SECONDS
                elif not self._follow and time.monotonic() >= quiet_at:
                    return
                yield None
                if time.monotonic() >= commit_at:
                    consumer.commit()
                    commit_at = time.monotonic() + _COMMIT_SECONDS
        finally:
            if is_whole:
                consumer.commit()


def _partitions(broker: SimpleConsumer, topic: str) -> list[int]:
    """The partitions that a broker has of a topic: it says which it has not."""
    from kafkacodec.dialects.kafka07 import FetchRequest

    found: list[int] = []
    while len(found) < _MOST_PARTITIONS:
        number = len(found)
        (answer,) = broker.multifetch([FetchRequest(topic, number, 0, 0)])
        if answer.error_code == _WRONG_PARTITION:
            break
        if answer.error_code < 0:
            raise click.ClickException(f"{topic!r} cannot be the name of a topic")
        found.append(number)
    return found


def send_lines(
    servers: Kafka07, topic: str, records: Iterable[tuple[bytes | None, bytes | None]], codec: str | None
) -> int:
    """Send the values of lines; keys choose partitions. Returns their number."""
    from kafkacodec.dialects import kafka07

    _refuse_others(_SENDING)
    if codec is not None and codec not in _CODECS:
        raise click.UsageError(f"--codec: Kafka 0.7 has {', '.join(_CODECS)}")
    kind: Any = codec or "none"
    made = (
        kafka07.Producer(servers.address, compression_type=kind)
        if servers.is_zookeeper
        else kafka07.Producer(brokers=f"0:{servers.address}", compression_type=kind)
    )
    count = 0
    try:
        with made as producer:
            last = None
            for key, value in records:
                last = producer.send(topic, value or b"", key=None if key is None else os.fsdecode(key))
                count += 1
            producer.flush()
            if last is not None:
                last.result()
    except BaseException:
        note(f"{topic}: {counted(count, 'message')} went out at most")
        raise
    return count
