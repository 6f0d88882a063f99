"""Kinds of rules about rights, for the table in `rights`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kafkacodec import errors
from kafkacodec.broker.state.access import Access
from kafkacodec.datatypes import NamedTuple
from kafkacodec.protocol.terms import OPERATIONS

if TYPE_CHECKING:
    from kafkacodec.broker.kafka.node import Node
    from kafkacodec.broker.kafka.request import Request

__all__ = ["CLUSTER", "Each", "Hides", "May", "Rule", "Special", "Whole"]

CLUSTER: Final = "kafka-cluster"


class May:
    """The rights of a client."""

    def __init__(self, access: Access, principal: str, host: str) -> None:
        self._access, self._principal, self._host = access, principal, host

    def __call__(self, operation: str, kind: str, name: str = CLUSTER) -> bool:
        """Whether it may perform an operation on a resource."""
        return self._access.allows(self._principal, self._host, operation, kind, name)

    def any(self, operation: str, kind: str) -> bool:
        """Whether it may perform an operation on any resource of a kind."""
        return self._access.allows_any(self._principal, self._host, operation, kind)

    def bits(self, kind: str, name: str, every: int) -> int:
        """Return the allowed operations as bits, as in answers."""
        return sum(1 << code for word, code in OPERATIONS.items() if every >> code & 1 and self(word, kind, name))


class Whole(NamedTuple):
    """A right to the whole of a request.

    Attributes:
        kind, operation: the right.
        name: the field with the name of the resource; empty for the cluster. None in that field needs no right.
        code: the answer without it.
        versions: those that need it.
    """

    kind: str
    operation: str
    name: str = ""
    code: int = errors.CLUSTER_AUTHORIZATION_FAILED
    versions: range = range(1 << 15)


class Each(NamedTuple):
    """A right to each row of a request; rows without it get an error, and the others are handled.

    Attributes:
        kind, operation: the right.
        asked: the request's list.
        answered: the response's.
        name: the field of a row that names the resource; empty if rows are names.
        code: the error.
        versions: with this list.
        levels: of the response's rows, if `refusals` has another place for an error.
        others: further fields of these rows.
        rest: the error of rows with the right, if others lack it.
        goes_on: whether the request is handled even without rows, and an error of the whole stays alone.
        refuses: returns the error of a row, or 0, if it needs more than one right.
    """

    kind: str
    operation: str
    asked: str
    answered: str
    name: str = "name"
    code: int = errors.TOPIC_AUTHORIZATION_FAILED
    versions: range = range(1 << 15)
    levels: Sequence[Any] = ()
    others: Mapping[str, Any] = {}
    rest: int = 0
    goes_on: bool = False
    refuses: Callable[[Node, Request, May, Any], int] | None = None


class Special(NamedTuple):
    """A rule in a function, which returns an error code for the whole request, or 0."""

    refuses: Callable[[Node, Request, May], int]


class Hides(NamedTuple):
    """A rule that changes an answer."""

    change: Callable[[Node, Request, May, Any], None]


Rule = Whole | Each | Special | Hides
