"""The kinds of rules about rights, of which `rights` has the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafkacodec import errors
from kafkacodec.broker.state.access import Access
from kafkacodec.protocol.terms import OPERATIONS

if TYPE_CHECKING:
    from kafkacodec.broker.kafka.node import Node
    from kafkacodec.broker.kafka.request import Request

__all__ = ["CLUSTER", "Each", "Hides", "May", "Rule", "Special", "Whole"]

CLUSTER: Final = "kafka-cluster"


class May:
    """What a client may do."""

    def __init__(self, access: Access, principal: str, host: str) -> None:
        self._access, self._principal, self._host = access, principal, host

    def __call__(self, operation: str, kind: str, name: str = CLUSTER) -> bool:
        """Whether it may do something with a resource."""
        return self._access.allows(self._principal, self._host, operation, kind, name)

    def any(self, operation: str, kind: str) -> bool:
        """Whether it may do something with some resource of a kind."""
        return self._access.allows_any(self._principal, self._host, operation, kind)

    def bits(self, kind: str, name: str, every: int) -> int:
        """The operations that it may perform, of all that there are, as answers have them."""
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
    """A right to each row of a request; the rows without it are answered with an error, and the others carried out.

    Attributes:
        kind, operation: the right.
        asked: the request's list.
        answered: the response's.
        name: the field of a row that names the resource; empty where rows are names.
        code: the error.
        versions: those that have the list.
        levels: of the response's rows, where `refusals` has another place for an error.
        others: further fields of these rows.
        rest: the error of rows with the right, if there are others without it.
        goes_on: the request is carried out if no row is left, too, and an error of the whole stands alone.
        refuses: gives the error of a row, or 0, where that is more than one right.
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
    """What needs a function: it returns a code with which the whole request is refused, or 0."""

    refuses: Callable[[Node, Request, May], int]


class Hides(NamedTuple):
    """What is taken out of an answer, or is otherwise changed."""

    change: Callable[[Node, Request, May, Any], None]


Rule = Whole | Each | Special | Hides
