"""The broker that coordinates a group or a transaction; the others answer NOT_COORDINATOR.

One machine has all groups, and one all transactions; a broker coordinates those whose partition of the internal topic
it leads. As in Apache Kafka, each broker answers its part of a request for several groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kafkacodec.broker.kafka.refusals import refusal
from kafkacodec.datatypes import NamedTuple
from kafkacodec.errors import NOT_COORDINATOR
from kafkacodec.messages import keys

if TYPE_CHECKING:
    from kafkacodec.broker.kafka.node import Node
    from kafkacodec.broker.kafka.request import Request

__all__ = ["elsewhere"]


class _Many(NamedTuple):
    """The lists of a request with the names of several groups or transactions, and of its answer with a row for each.

    Attributes:
        asked: the list of the request.
        answered: the list of the response.
        name: the field with the name, in its rows and in the request's rows, unless those are names.
        rows: whether the request has rows.
    """

    asked: str
    answered: str
    name: str
    rows: bool = False


_ONE: Final[Mapping[int, str]] = {
    **dict.fromkeys(
        (keys.JOIN_GROUP, keys.SYNC_GROUP, keys.HEARTBEAT, keys.LEAVE_GROUP, keys.OFFSET_COMMIT, keys.OFFSET_DELETE,
         keys.TXN_OFFSET_COMMIT, keys.CONSUMER_GROUP_HEARTBEAT, keys.SHARE_GROUP_HEARTBEAT,
         keys.ALTER_SHARE_GROUP_OFFSETS, keys.DELETE_SHARE_GROUP_OFFSETS, keys.STREAMS_GROUP_HEARTBEAT),
        "group_id",
    ),
    **dict.fromkeys((keys.INIT_PRODUCER_ID, keys.ADD_OFFSETS_TO_TXN, keys.END_TXN), "transactional_id"),
    keys.ADD_PARTITIONS_TO_TXN: "v3_and_below_transactional_id",
}  # fmt: skip
"""By API key, the field with the only name."""

_MANY: Final[Mapping[int, _Many]] = {
    keys.OFFSET_FETCH: _Many("groups", "groups", "group_id", rows=True),
    keys.DESCRIBE_GROUPS: _Many("groups", "groups", "group_id"),
    keys.DELETE_GROUPS: _Many("groups_names", "results", "group_id"),
    keys.CONSUMER_GROUP_DESCRIBE: _Many("group_ids", "groups", "group_id"),
    keys.STREAMS_GROUP_DESCRIBE: _Many("group_ids", "groups", "group_id"),
    keys.SHARE_GROUP_DESCRIBE: _Many("group_ids", "groups", "group_id"),
    keys.DESCRIBE_SHARE_GROUP_OFFSETS: _Many("groups", "groups", "group_id", rows=True),
    keys.DESCRIBE_TRANSACTIONS: _Many("transactional_ids", "transaction_states", "transactional_id"),
}

_ALL: Final[Mapping[int, tuple[str, str]]] = {
    keys.LIST_GROUPS: ("groups", "group_id"),
    keys.LIST_TRANSACTIONS: ("transaction_states", "transactional_id"),
}
"""By API key, the list of the response and the field with the name: each broker lists its own."""

_SEVERAL_GROUPS: Final = 8  # OffsetFetch


def elsewhere(node: Node, request: Request) -> Any:
    """Return the refusal of a request for another coordinator; None if this broker coordinates some of it."""
    key = request.key
    if key == keys.OFFSET_FETCH and request.version < _SEVERAL_GROUPS:
        return _one(node, request, request.message.group_id)
    if key in _ONE:
        return _one(node, request, getattr(request.message, _ONE[key]))
    if key in _MANY:
        return _many(node, request, _MANY[key])
    if key in _ALL:
        request.to = _Own(request.to, node, request, *_ALL[key])
    return None


def _is_here(node: Node, request: Request, name: str) -> bool:
    topic, number = node.machines.get(request.key, node.groups).log_of(name)
    return node.catalog.topic(topic) is None or node.brokers.leads(request.broker, topic, number)


def _one(node: Node, request: Request, name: str | None) -> Any:
    """A null name needs no coordinator; an empty one is refused by any."""
    return None if not name or _is_here(node, request, name) else refusal(node, request, NOT_COORDINATOR)


def _many(node: Node, request: Request, many: _Many) -> Any:
    message = request.message
    rows = list(getattr(message, many.asked))
    own: list[Any] = []
    others: list[Any] = []
    for row in rows:
        name = getattr(row, many.name) if many.rows else row
        (own if _is_here(node, request, name) else others).append(row)
    if not others:
        return None
    setattr(message, many.asked, others)
    refused = refusal(node, request, NOT_COORDINATOR)
    setattr(message, many.asked, own)
    if not own:
        return refused
    request.to = _And(request.to, many.answered, getattr(refused, many.answered))
    return None


class _And:
    """Replaces the address of a request's reply, and adds rows to the answer."""

    __slots__ = ("_field", "_rows", "_to")

    def __init__(self, to: Any, field: str, rows: Sequence[Any]) -> None:
        self._to, self._field, self._rows = to, field, rows

    def answer(self, response: Any) -> None:
        """Take the answer for the local rows."""
        rows = getattr(response, self._field, None)
        if rows is not None:
            setattr(response, self._field, [*rows, *self._rows])
        self._to.answer(response)


class _Own:
    """Replaces the address of a request's reply, and keeps only the rows that its broker coordinates."""

    __slots__ = ("_field", "_name", "_node", "_request", "_to")

    def __init__(self, to: Any, node: Node, request: Request, field: str, name: str) -> None:
        self._to, self._node, self._request, self._field, self._name = to, node, request, field, name

    def answer(self, response: Any) -> None:
        """Take the answer about all."""
        rows = getattr(response, self._field, None)
        if rows is not None:
            own = [row for row in rows if _is_here(self._node, self._request, getattr(row, self._name))]
            setattr(response, self._field, own)
        self._to.answer(response)
