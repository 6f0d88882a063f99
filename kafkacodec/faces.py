"""Clients and brokers for threads and for event loops: what to write when one is used as the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

__all__ = ["names_statements"]

Type = TypeVar("Type", bound=type)

_WITH, _ASYNC_WITH = ("__enter__", "__exit__"), ("__aenter__", "__aexit__")


def names_statements(cls: Type) -> Type:
    """Make a class for threads refuse ``async with`` and ``async for``, and one for event loops ``with`` and ``for``.

    The TypeError says what to write. Only statements are refused whose counterpart the class has.
    """
    if hasattr(cls, "__aenter__"):
        said = "is for asyncio: write 'async "
        refused = {**dict.fromkeys(_WITH, f"{said}with'"), "__iter__": f"{said}for'"}
    else:
        said = "is for threads: use its namesake of the module aio, or write '"
        refused = {
            **dict.fromkeys(_ASYNC_WITH, f"{said}with'"),
            "__aiter__": f"{said}for'",
        }
    for name, text in refused.items():
        counterpart = name.replace("__a", "__") if name.startswith("__a") else name.replace("__", "__a", 1)
        if hasattr(cls, counterpart) and not hasattr(cls, name):
            setattr(cls, name, _refusing(name, text))
    return cls


def _refusing(name: str, text: str) -> Callable[..., Any]:
    def refuse(self: object, *exception: object) -> NoReturn:
        raise TypeError(f"this {type(self).__name__} {text}")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"Raises TypeError: this {text}."
    return refuse
