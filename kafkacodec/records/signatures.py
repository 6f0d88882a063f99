"""Signatures that show the keyword options of functions."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any, TypeVar

__all__ = ["shows_options"]

Function = TypeVar("Function", bound=Callable[..., Any])


def shows_options(options: type, defaults: Callable[..., Any]) -> Callable[[Function], Function]:
    """Replace ``**options`` in the signature of a function, so that `help` shows each option with type and default.

    Args:
        options: the TypedDict of the function's ``**options: Unpack[...]``, which type checkers use.
        defaults: a function or class that has the options as parameters with the same defaults.
    """
    known = signature(defaults).parameters
    shown = [p.replace(kind=Parameter.KEYWORD_ONLY) for p in known.values() if p.name in options.__annotations__]

    def decorate(function: Function) -> Function:
        own = signature(function)
        parameters = [p for p in own.parameters.values() if p.kind is not Parameter.VAR_KEYWORD]
        named = {p.name for p in parameters}
        parameters += [p for p in shown if p.name not in named]
        function.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        return function

    return decorate
