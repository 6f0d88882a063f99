"""Enforcing the client's rights in a request, by the table in `rights`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kafkacodec import errors
from kafkacodec.broker.kafka.refusals import refusal, refused_rows
from kafkacodec.broker.kafka.security.rights import RIGHTS
from kafkacodec.broker.kafka.security.rules import CLUSTER, Each, Hides, May, Special, Whole
from kafkacodec.net.service import CLOSE, Effect, Fate, Reply

if TYPE_CHECKING:
    from kafkacodec.broker.kafka.node import Node
    from kafkacodec.broker.kafka.request import Request

__all__ = ["enforced"]


class _Amended:
    """The address of a reply, which changes the answer."""

    __slots__ = ("_change", "_to")

    def __init__(self, to: Any, change: Callable[[Any], Any]) -> None:
        self._to, self._change = to, change

    def answer(self, response: Any) -> None:
        """Pass the answer on."""
        self._to.answer(response if isinstance(response, Fate) else self._change(response))


def enforced(node: Node, request: Request, carry_out: Callable[[Request], Effect]) -> Effect:
    """Handle the allowed part of a request, and answer the rest with errors."""
    may = request.may = May(node.catalog.access, request.peer.principal, request.session.host)
    denied: list[tuple[Each, Any]] = []
    hides: list[Hides] = []
    for rule in RIGHTS.get(request.key, ()):
        if isinstance(rule, Hides):
            hides.append(rule)
        elif isinstance(rule, Each):
            if request.version in rule.versions and _split(node, request, may, rule, denied):
                return _reply(request, _only(node, request, may, denied))
        else:
            code = rule.refuses(node, request, may) if isinstance(rule, Special) else _refuses(rule, request, may)
            if code:
                return _reply(request, refusal(node, request, code))
    if denied or hides:
        request.to = _Amended(request.to, lambda response: _joined(node, request, may, response, denied, hides))
    return carry_out(request)


def _only(node: Node, request: Request, may: May, denied: list[tuple[Each, Any]]) -> Any:
    """Return the answer if nothing of a request is allowed."""
    first = denied[-1][1]
    hides = [rule for rule in RIGHTS[request.key] if isinstance(rule, Hides)]
    return first if first is CLOSE else _joined(node, request, may, first, denied[:-1], hides)


def _reply(request: Request, response: Any) -> Effect:
    return Effect((), [Reply(request.to, response)])


def _joined(
    node: Node, request: Request, may: May, response: Any, denied: list[tuple[Each, Any]], hides: list[Hides]
) -> Any:
    for hide in hides:
        hide.change(node, request, may, response)
    for rule, other in denied:
        if other is CLOSE:
            return CLOSE
        if not (rule.goes_on and response.error_code):
            rows = getattr(response, rule.answered) or ()
            setattr(response, rule.answered, [*rows, *getattr(other, rule.answered)])
    return response


def _refuses(rule: Whole, request: Request, may: May) -> int:
    if request.version not in rule.versions:
        return errors.NONE
    name = getattr(request.message, rule.name) if rule.name else CLUSTER
    return errors.NONE if name is None or may(rule.operation, rule.kind, name) else rule.code


def _split(node: Node, request: Request, may: May, rule: Each, denied: list[tuple[Each, Any]]) -> bool:
    """Leave the rows with the right in the request; returns whether that are none, but there were others."""
    message = request.message
    rows = getattr(message, rule.asked)
    if not rows:
        return False
    by_code: dict[int, list[Any]] = {}
    for row in rows:
        by_code.setdefault(_refuses_row(node, request, may, rule, row), []).append(row)
    kept = by_code.pop(errors.NONE, [])
    if not by_code:
        return False
    if rule.rest and kept:
        by_code[rule.rest], kept = kept, []
    made: Any = None
    for code, refused in by_code.items():
        setattr(message, rule.asked, refused)
        other = _rows(node, request, rule, code)
        if made is None or made is CLOSE:
            made = other
        else:
            getattr(made, rule.answered).extend(getattr(other, rule.answered))
    setattr(message, rule.asked, kept)
    denied.append((rule, made))
    return not kept and not rule.goes_on


def _refuses_row(node: Node, request: Request, may: May, rule: Each, row: Any) -> int:
    if rule.refuses is not None:
        return rule.refuses(node, request, may, row)
    name = _name(node, rule, row)
    return errors.NONE if name is None or may(rule.operation, rule.kind, name) else rule.code


def _rows(node: Node, request: Request, rule: Each, code: int) -> Any:
    if rule.levels:
        return refused_rows(request, rule.levels, {**rule.others, "error_code": code})
    return refusal(node, request, code)


def _name(node: Node, rule: Each, row: Any) -> str | None:
    """Return the resource of a row; None for an unknown topic id, which anybody may learn."""
    name = getattr(row, rule.name, None) if rule.name else row
    if not name and hasattr(row, "topic_id"):
        return node.name_of(row.topic_id)
    return name or ""
