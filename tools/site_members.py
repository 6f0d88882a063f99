"""An extension of griffe, which reads the sources for the site: what only a running Python knows of them.

Methods of blocking clients are made by `blocking` from those for asyncio, and options of ``**options: Unpack[...]``
have their defaults in the settings.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import griffe

_SIMPLE = (bool, int, float, str, bytes, type(None))
_UNKNOWN = "..."  # the default that the extension unpack_typeddict gives


class SiteMembers(griffe.Extension):
    """Replaces attributes by the methods that they are, and unknown defaults by their values."""

    def on_package(self, *, pkg: Any, **_: Any) -> None:
        """The modules of a package are read."""
        for owner in list(_classes(pkg)):
            for name, member in list(owner.members.items()):
                if member.is_alias:  # of a compiled class: a name that only other clients have
                    del owner.members[name]
                elif member.is_attribute and not name.startswith("_") and str(member.value).startswith("blocking("):
                    owner.members[name] = _method(pkg, owner, name)

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """A function is read, and its options are known."""
        if any(parameter.default == _UNKNOWN for parameter in func.parameters):
            _show_defaults(func)


def _classes(module: Any) -> Iterator[Any]:
    for member in module.members.values():
        if member.is_alias:
            continue
        if member.is_class:
            yield member
        elif member.is_module:
            yield from _classes(member)


def _method(package: griffe.Module, owner: griffe.Class, name: str) -> griffe.Function:
    """A copy of the coroutine method that a method of a blocking client wraps."""
    wrapped = inspect.unwrap(getattr(getattr(import_module(owner.module.path), owner.name), name))
    source: Any = package.modules_collection[f"{wrapped.__module__}.{wrapped.__qualname__}"]
    method: griffe.Function = copy.copy(source)
    method.labels = source.labels - {"async"}
    method.parent = owner
    return method


def _show_defaults(function: griffe.Function) -> None:
    known: Any = import_module(function.module.path)
    for name in function.path.removeprefix(f"{function.module.path}.").split("."):
        known = getattr(known, name)
    defaults = {name: p.default for name, p in inspect.signature(known).parameters.items()}
    shown = {name: repr(value) for name, value in defaults.items() if isinstance(value, _SIMPLE) or value == ()}
    for parameter in function.parameters:
        if parameter.default == _UNKNOWN:
            parameter.default = shown.get(parameter.name, _UNKNOWN)
    for section in function.docstring.parsed if function.docstring else ():
        if section.kind is griffe.DocstringSectionKind.parameters:
            for entry in section.value:
                if entry.value == _UNKNOWN:
                    entry.value = shown.get(entry.name, _UNKNOWN)
