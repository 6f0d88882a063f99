"""What share groups give up: a record about each, in the topic that the group has for it (KIP-1191)."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kafkacodec import errors
from kafkacodec.broker.kafka.config_kinds import DEAD_LETTER_TOPIC, GROUP_CONFIGS
from kafkacodec.broker.options import is_true
from kafkacodec.broker.topics.batches import Refused, accept
from kafkacodec.broker.topics.names import wrong_name
from kafkacodec.net.service import NOTHING, Append, Effect, together
from kafkacodec.protocol.terms import CONFIG_RESOURCES
from kafkacodec.records.decode import decode
from kafkacodec.records.encode import encode
from kafkacodec.records.record import Record

if TYPE_CHECKING:
    from kafkacodec.broker.kafka.node import Node
    from kafkacodec.broker.state.sharing.deliveries import Dead
    from kafkacodec.broker.topics.partition import Partition

__all__ = ["DeadLetters", "enabling"]

_FEATURE: Final = "share.version"
_ENABLED_AT: Final = 2
_COPIES: Final = "errors.deadletterqueue.copy.record.enable"
_MAY: Final = "errors.deadletterqueue.group.enable"
_MAKES: Final = "errors.deadletterqueue.auto.create.topics.enable"
_PREFIX: Final = "errors.deadletterqueue.topic.name.prefix"
_MADE_WITH: Final = {_MAY: "true", "message.timestamp.type": "CreateTime"}
_REASONS: Final = {True: b"Offset rejected by client.", False: b"Offset delivery count exceeded the threshold."}
_VERSION: Final = 12  # of Produce, whose checks apply
_BATCH_BYTES: Final = 1 << 18
_PIECE_BYTES: Final = 1 << 20
_WHOLE: Final = (1 << 31) - 1  # everything in one batch
_HEADER_BYTES: Final = 40

_log = logging.getLogger("kafkacodec.broker")


def enabling(node: Node, kind: int, changes: Mapping[str, str | None]) -> list[bytes]:
    """Return the record that turns this on, with the first group that has a topic for it.

    Apache Kafka 4.1 does not open a directory with this level of the feature.
    """
    asked = kind == CONFIG_RESOURCES["group"] and changes.get(DEAD_LETTER_TOPIC)
    return [node.catalog.feature(_FEATURE, _ENABLED_AT)] if asked and 0 < _level(node) < _ENABLED_AT else []


def _level(node: Node) -> int:
    return int(node.catalog.metadata.features.get(_FEATURE, 0))


class DeadLetters:
    """The records about what was given up.

    Args:
        node: the broker.
    """

    def __init__(self, node: Node) -> None:
        self._node = node

    def write(self, group: str, log: Partition | None, dead: Sequence[Dead], now: float) -> Effect:
        """Write a record about each record of a group that was given up; what prevents that is logged."""
        name = self._node.catalog.configs("group", group).get(DEAD_LETTER_TOPIC, "")
        if not dead or not name or log is None or _level(self._node) < _ENABLED_AT:
            return NOTHING
        rows = list(self._rows(group, log, dead, int(now)))
        wrong = self._wrong(name)
        if wrong is not None:
            _lost(group, name, len(rows), wrong)
            return NOTHING
        if self._node.catalog.topic(name) is not None:
            return self._append(group, name, log.key[1], rows, now)
        if not is_true(self._now(_MAKES)):
            _lost(group, name, len(rows), f"there is no such topic, and {_MAKES} is false")
            return NOTHING
        _, records = self._node.new_topic(name, configs=_MADE_WITH)

        def made(code: int) -> Effect:
            if code:
                _lost(group, name, len(rows), f"it cannot be created: {errors.error(code).__name__}")
                return NOTHING
            return self._append(group, name, log.key[1], rows, now)

        return self._node.change(records, made, now)

    def _now(self, name: str) -> str:
        node = self._node
        return node.config.running(node.catalog.of_broker(node.id)).text(name)

    def _wrong(self, name: str) -> str | None:
        """Why a topic is none for what groups give up; None if it is one, or may become one."""
        prefix = self._now(_PREFIX)
        if not name.startswith(prefix):
            return f"its name does not begin with {_PREFIX}={prefix}"
        invalid = wrong_name(name)
        if invalid:
            return f"its name is invalid: {invalid}"
        configs = {**self._node.config.topic_defaults, **self._node.catalog.configs("topic", name)}
        if self._node.catalog.topic(name) is not None and not is_true(configs.get(_MAY, "false")):
            return f"it does not have {_MAY}=true"
        return None

    def _rows(self, group: str, log: Partition, dead: Sequence[Dead], now: int) -> Iterator[Record]:
        """The records about what was given up, in the order of the log."""
        copies = is_true(self._node.catalog.configs("group", group).get(_COPIES, GROUP_CONFIGS[_COPIES].default))
        topic, number = log.key
        for part in dead:
            known = dict(_contents(log, part)) if copies else {}
            for offset in range(part.first, part.last + 1):
                key, value = known.get(offset, (None, None))
                said = {
                    "topic": topic.encode(), "partition": b"%d" % number, "offset": b"%d" % offset,
                    "group": group.encode(), "delivery.count": b"%d" % part.deliveries,
                    "message": _REASONS[part.is_rejected],
                }  # fmt: skip
                headers = tuple((f"__dlq.errors.{name}", text) for name, text in said.items())
                yield Record(0, now, 0, key, value, headers)

    def _append(self, group: str, name: str, number: int, rows: Sequence[Record], now: float) -> Effect:
        """Append the records to the partition that belongs to theirs."""
        topic = self._node.catalog.topic(name)
        partition = None if topic is None else self._node.topics.partition(name, number % topic.partitions)
        if partition is None:
            _lost(group, name, len(rows), "its partition is not open")
            return NOTHING
        effects = []
        for batch in _batches(rows, partition.config.max_message_bytes):
            numbered = [row._replace(offset=at) for at, row in enumerate(batch)]
            whole = encode(numbered, batch_bytes=_WHOLE)
            found = accept(memoryview(bytearray(whole)), partition.config, _VERSION, now)
            if isinstance(found, Refused):
                _lost(group, name, len(batch), f"it refuses them: {found.text or errors.error(found.code).__name__}")
            else:
                done = partial(_appended, group, name, len(batch))
                effects.append(Effect([Append(partition.key, found, done)]))
        return together(effects)


def _contents(log: Partition, part: Dead) -> Iterator[tuple[int, tuple[bytes | None, bytes | None]]]:
    """Keys and values by offset, of those that are still in the log."""
    offset = max(part.first, log.start_offset)
    while offset <= min(part.last, log.high_watermark - 1):
        piece = log.read(offset, _PIECE_BYTES, at_least_one=True, committed=False)
        records = decode(bytes(piece.records), on_error="stop") if len(piece.records) else ()
        found = [record for record in records if record.offset >= offset]
        if not found:
            return
        yield from ((record.offset, (record.key, record.value)) for record in found if record.offset <= part.last)
        offset = found[-1].offset + 1


def _batches(rows: Sequence[Record], most_bytes: int) -> Iterator[list[Record]]:
    """Parts of records that are small enough for a batch each; a record that is too large is alone."""
    batch: list[Record] = []
    size = 0
    for row in rows:
        parts = [row.key, row.value, *(text for _, text in row.headers)]
        bytes_ = sum(_HEADER_BYTES + len(part or b"") for part in parts)
        if batch and size + bytes_ > min(most_bytes // 2, _BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(row)
        size += bytes_
    if batch:
        yield batch


def _appended(group: str, name: str, count: int, result: Any, error: Exception | None, now: float) -> Effect:
    if error is not None or result.code:
        _lost(group, name, count, "they cannot be written")
    return NOTHING


def _lost(group: str, name: str, count: int, why: str) -> None:
    text = "group %r gave up %d records, about which topic %r gets nothing: %s"
    _log.warning(text, group, count, name, why)
