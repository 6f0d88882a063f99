"""The table of commands of the line protocol V1: their arguments and the keys of their payloads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kafkacodec.datatypes import NamedTuple
from kafkacodec.dialects.line.messages import LENGTHS, MESSAGES, prepare_messages, refine_messages
from kafkacodec.dialects.line.values import BOOLEAN, INTEGER, INTEGERS, KEY_VALUE, WORD, Kind, choice, option
from kafkacodec.signatures import suggests_options

__all__ = ["COMMANDS", "RECORD", "Args", "Command", "Slot", "command"]

Args = dict[str, Any]

# The one word that is two arguments, "key" and "value".
RECORD = "key:value"


class Slot(NamedTuple):
    """One word of the arguments: its name and the kind of its value."""

    name: str
    kind: Kind


class Command(NamedTuple):
    """The syntax of a command; made by `command`.

    Attributes:
        slots: the words, in order.
        required: the number of required words; a further one is an option, None if missing.
        payload: the keys of a successful response and their kinds, in the order in which they are written.
        every_key: the keys of `payload`, then those that are written only if needed.
        prepare: adds the keys that are needed to the fields, after those of `payload` were written.
        refine: corrects fields whose meaning depends on another key; also takes the payload.
        names, readers: of the slots, for the parser.
    """

    slots: tuple[Slot, ...]
    required: int
    payload: Mapping[str, Kind]
    every_key: Mapping[str, Kind]
    prepare: Callable[[Args], Args] | None
    refine: Callable[[Args, str], None] | None
    names: tuple[str, ...]
    readers: tuple[Any, ...]


@suggests_options
def command(
    slots: list[Slot],
    payload: Mapping[str, Kind],
    *,
    optional: Slot | None = None,
    extra: Mapping[str, Kind] | None = None,
    prepare: Callable[[Args], Args] | None = None,
    refine: Callable[[Args, str], None] | None = None,
) -> Command:
    """A command with these words as arguments and these keys in its payload, `extra` ones only if needed."""
    every = (*slots, optional) if optional is not None else tuple(slots)
    names, readers = tuple(s.name for s in every), tuple(s.kind.read for s in every)
    return Command(every, len(slots), payload, {**payload, **(extra or {})}, prepare, refine, names, readers)


_TOPIC, _GROUP, _CONSUMER = Slot("topic", WORD), Slot("group", WORD), Slot("consumer_id", WORD)
_PARTITION, _OFFSET = Slot("partition", INTEGER), Slot("offset", INTEGER)
_GENERATION, _REPLICA = Slot("generation", INTEGER), Slot("replica_id", INTEGER)
_ACKS = Slot("acks", option("acks", "0", "1", "all"))
_ASSIGNOR = Slot("assignor", option("assignor", "round_robin", "range"))
_ROLE = choice("leader", "follower")
_MEMBER = [_GROUP, _TOPIC, _CONSUMER, _GENERATION]
_ASSIGNMENT = {"generation": INTEGER, "assigned": INTEGERS}

COMMANDS: Mapping[str, Command] = {
    "PRODUCE": command(
        [_TOPIC, Slot(RECORD, KEY_VALUE)], {"partition": INTEGER, "offset": INTEGER, "hw": INTEGER}, optional=_ACKS
    ),
    "CONSUME": command(
        [_TOPIC, _PARTITION, _OFFSET],
        {"messages": MESSAGES, "hw": INTEGER},
        extra={LENGTHS: INTEGERS},
        prepare=prepare_messages,
        refine=refine_messages,
    ),
    "JOIN": command([_GROUP, _TOPIC, _CONSUMER], _ASSIGNMENT, optional=_ASSIGNOR),
    "SYNC": command(_MEMBER, _ASSIGNMENT),
    "HEARTBEAT": command(_MEMBER, {"heartbeat": WORD}),
    "LEAVE": command(_MEMBER, {"left": BOOLEAN}),
    "COMMIT": command([*_MEMBER, _PARTITION, _OFFSET], {"committed": BOOLEAN}),
    "OFFSET": command([_GROUP, _TOPIC, _PARTITION], {"offset": INTEGER}),
    "REPLICA_FETCH": command(
        [_TOPIC, _PARTITION, _REPLICA, _OFFSET],
        {"replica": INTEGER, "acked_offset": INTEGER, "hw": INTEGER, "isr": INTEGERS, "under_replicated": BOOLEAN},
    ),
    "SET_PARTITION_ROLE": command(
        [_TOPIC, _PARTITION, Slot("role", _ROLE)],
        {"topic": WORD, "partition": INTEGER, "role": _ROLE, "hw": INTEGER},
    ),
    "PING": command([], {}),
}
