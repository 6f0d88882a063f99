"""The commands between replicas, which the protocol's text allows as additive ones."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Final

from kafkacodec.datatypes import NamedTuple
from kafkacodec.dialects.line._tokens import read_integer
from kafkacodec.dialects.line.commands import COMMANDS, Command, Slot, command
from kafkacodec.dialects.line.values import BOOLEAN, INTEGER, INTEGERS, WORD, Kind, choice, option, shortened

__all__ = ["REPLICA_COMMANDS", "Led"]


class Led(NamedTuple):
    """A partition that a broker leads: its topic, the number of the topic's partitions, its own, and the epoch."""

    topic: str
    partitions: int
    partition: int
    epoch: int


_LED: Final = re.compile(r"([^ |\n,/]{1,255})/(\d{1,9})/(\d{1,9})/(\d{1,18})")


def _read_bytes(word: str) -> bytes:
    try:
        return base64.b64decode(word, validate=True)
    except binascii.Error:
        raise ValueError(f"{shortened(word)} is not base64") from None


def _write_bytes(data: bytes | memoryview) -> str:
    return base64.b64encode(data).decode()


def _read_all_led(word: str) -> list[Led]:
    found = []
    for text in word.split(",") if word else ():
        match = _LED.fullmatch(text)
        if match is None:
            raise ValueError(f"{shortened(text)} is not topic/partitions/partition/epoch")
        found.append(Led(match[1], int(match[2]), int(match[3]), int(match[4])))
    return found


def _write_all_led(found: list[Led]) -> str:
    words = [f"{one.topic}/{one.partitions}/{one.partition}/{one.epoch}" for one in found]
    wrong = next((word for word in words if _LED.fullmatch(word) is None), None)
    if wrong is not None:
        raise ValueError(f"{shortened(wrong)} cannot be written as topic/partitions/partition/epoch")
    return ",".join(words)


def _number(name: str) -> Slot:
    """An optional word with a number."""

    def read(word: str) -> int:
        found, equals, number = word.partition("=")
        if found != name or not equals:
            raise ValueError(f"{shortened(word)} is not {name}=<number>")
        return read_integer(number)

    return Slot(name, Kind(read, f"{name}={{}}".format))


def _read_places(word: str) -> list[tuple[str, int]]:
    found = []
    for text in word.split(",") if word else ():
        topic, slash, number = text.rpartition("/")
        if not topic or not slash:
            raise ValueError(f"{shortened(text)} is not topic/partition")
        found.append((topic, read_integer(number)))
    return found


def _write_places(places: list[tuple[str, int]]) -> str:
    return ",".join(f"{topic}/{partition}" for topic, partition in places)


_TOPIC, _PARTITION, _EPOCH = Slot("topic", WORD), Slot("partition", INTEGER), Slot("epoch", INTEGER)
_ROLE = choice("leader", "follower")
_BYTES = Kind(_read_bytes, _write_bytes)
_ALL_LED = Kind(_read_all_led, _write_all_led)

PROMISE: Final = ("granted", "promised", "accepted", "end", "group_epoch", "group_ticket")
"""Payload of REPLICA_PROMISE: whether it is granted, and the promised epoch; then the versions of log and groups."""

REPLICA_COMMANDS: Final[Mapping[str, Command]] = {
    **COMMANDS,
    # The epoch names the leader whose log the follower has.
    "REPLICA_FETCH": command(
        [_TOPIC, _PARTITION, Slot("replica_id", INTEGER), Slot("offset", INTEGER)],
        COMMANDS["REPLICA_FETCH"].payload,
        optional=_number("epoch"),
    ),
    # With unclean=true the broker leads although committed records may be missing.
    "SET_PARTITION_ROLE": command(
        [_TOPIC, _PARTITION, Slot("role", _ROLE)],
        COMMANDS["SET_PARTITION_ROLE"].payload,
        optional=Slot("unclean", option("unclean", "true", "false")),
    ),
    "REPLICA_STATE": command(
        [],
        {"version": INTEGER, "whole": BOOLEAN, "leads": _ALL_LED, "gone": Kind(_read_places, _write_places)},
        optional=_number("since"),
    ),
    "REPLICA_RENEW": command([_TOPIC, _PARTITION, _EPOCH], {}),
    "REPLICA_LEADERS": command([_TOPIC], {"partitions": INTEGER, "leads": INTEGERS, "epochs": INTEGERS}),
    "REPLICA_PROMISE": command(
        [_TOPIC, Slot("count", INTEGER), _PARTITION, _EPOCH],
        {name: BOOLEAN if name == "granted" else INTEGER for name in PROMISE},
    ),
    "REPLICA_GROUPS": command(
        [_TOPIC, _PARTITION, _EPOCH, Slot("replica_id", INTEGER), Slot("ticket", INTEGER)],
        {"ticket": INTEGER, "groups": _BYTES},
    ),
    "REPLICA_EPOCH": command([_TOPIC, _PARTITION, _EPOCH], {"epoch": INTEGER, "end": INTEGER}),
    "REPLICA_RECORDS": command(
        [_TOPIC, _PARTITION, Slot("offset", INTEGER), _EPOCH],
        {"start": INTEGER, "begin": INTEGER, "end": INTEGER, "hw": INTEGER, "of": INTEGER, "records": _BYTES},
        optional=_number("hw"),
    ),
}
"""All commands of a broker with replicas.

REPLICA_STATE lists the partitions that a broker leads, or the additions and removals since a version that it has sent
on the same connection. REPLICA_LEADERS is for clients: the number of a topic's partitions, which of them the broker
leads or is about to lead, and their epochs. REPLICA_RENEW asks a leader to be elected with a newer epoch than the given
one, which the replica has promised to a candidate that was not elected: it can follow no older leader. REPLICA_GROUPS
says that the replica has stored the state of a ticket, and asks for later ones; ``groups`` is JSON, or empty if nothing
has changed. The payload of REPLICA_RECORDS: the start of the log, the start of the leader's epoch, the log's end, the
high watermark, and Kafka's record batches from the one with the offset on, all of the leader epoch ``of``. It leaves
once there are records, or a high watermark beyond ``hw``, or after a while.
"""
