"""Classes with named fields: ``dataclass`` and ``NamedTuple``, as in the standard library, but cheap to import.

The standard library compiles methods for each such class while it is imported, which took a fifth of the time in which
a client or a broker starts. Classes of this module share compiled methods (`kafkacodec/_instances.pyx`). Type checkers
see the standard library's; ``dataclasses.fields``, ``asdict``, ``is_dataclass`` and ``inspect.signature`` work. What
this package does not use is left out: ``order``, ``unsafe_hash``, ``InitVar``, ``KW_ONLY``, ``field(hash=…)``, generic
named tuples, and subclasses of frozen classes with attributes of their own.
"""

from __future__ import annotations

from _collections import _tuplegetter  # type: ignore[import-not-found]
from collections.abc import Iterable, Mapping
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

from kafkacodec._instances import MISSING as _MISSING, Factory, comparer, hasher, initializer, new_row

__all__ = ["MISSING", "NamedTuple", "dataclass", "field", "fields", "is_dataclass", "replace"]


class _Field:
    """A field of a dataclass, with the attributes of ``dataclasses.Field`` that this package asks for."""

    __slots__ = ("compare", "default", "default_factory", "init", "kw_only", "name", "repr", "type")

    def __init__(
        self,
        *,
        default: Any = _MISSING,
        default_factory: Any = _MISSING,
        init: bool = True,
        repr: bool = True,
        compare: bool = True,
    ) -> None:
        self.default, self.default_factory = default, default_factory
        self.init, self.repr, self.compare = init, repr, compare
        self.name, self.type, self.kw_only = "", "", False


def _dataclass(cls: type | None = None, *, slots: bool = False, kw_only: bool = False, **options: bool) -> Any:
    if cls is None:
        return lambda cls: _dataclass(cls, slots=slots, kw_only=kw_only, **options)
    known: dict[str, _Field] = {}
    for base in reversed(cls.__mro__[1:]):
        known |= base.__dict__.get("_fields_by_name", {})
    for name, kind in cls.__annotations__.items():
        if not kind.startswith("ClassVar"):
            known[name] = _described(cls, name, kind, kw_only)
    methods = _methods(cls, known, **options)
    if slots:
        return _with_slots(cls, known, methods)
    for name, value in methods.items():
        setattr(cls, name, value)
    return cls


def _described(cls: type, name: str, kind: str, kw_only: bool) -> _Field:
    """The field of an annotation. A default inside of `field` becomes that of the class."""
    found = cls.__dict__.get(name, _MISSING)
    if not isinstance(found, _Field):
        found = _Field(default=found)
    elif found.default is _MISSING:
        delattr(cls, name)
    else:
        setattr(cls, name, found.default)
    if found.default.__class__.__hash__ is None:
        raise ValueError(f"the default of {name} is shared by all instances and can be changed: use default_factory")
    found.name, found.type, found.kw_only = name, kind, kw_only
    return found


def _methods(
    cls: type, known: Mapping[str, _Field], *, frozen: bool = False, eq: bool = True, repr: bool = True
) -> dict[str, Any]:
    positional = [f for f in known.values() if f.init and not f.kw_only]
    parameters = positional + [f for f in known.values() if f.init and f.kw_only]
    ordered = parameters + [f for f in known.values() if not f.init]
    names = tuple([f.name for f in ordered])
    defaults = tuple([f.default if f.default_factory is _MISSING else Factory(f.default_factory) for f in ordered])
    compared = tuple([f.name for f in known.values() if f.compare])
    own = cls.__dict__
    made: dict[str, Any] = {
        "_fields_by_name": known,
        "__dataclass_fields__": _STANDARD_FIELDS,
        "__match_args__": names[: len(positional)],
        "__replace__": _replace,
    }
    if "__init__" not in own:
        post_init = hasattr(cls, "__post_init__")
        made["__init__"] = initializer(names, defaults, len(positional), len(parameters), post_init)
        made["__signature__"] = _Signature("__init__", made["__init__"])
    if repr and "__repr__" not in own:
        made["__repr__"] = _repr
    if eq and "__eq__" not in own:
        made["__eq__"] = comparer(compared)
    if eq and own.get("__hash__") is None:
        made["__hash__"] = hasher(compared) if frozen else None
    if frozen:
        made |= {"__setattr__": _refuse, "__delattr__": _refuse, "__getstate__": _state, "__setstate__": _set_state}
    return made


def _with_slots(cls: type, known: Iterable[str], methods: dict[str, Any]) -> Any:
    """The class again, with slots for the fields that its bases do not have."""
    body = {name: value for name, value in cls.__dict__.items() if name not in known}
    body.pop("__dict__", None)
    body.pop("__weakref__", None)
    inherited = {name for base in cls.__mro__[1:-1] for name in base.__dict__.get("__slots__", ())}
    body["__slots__"] = tuple([name for name in known if name not in inherited])
    made = type(cls)(cls.__name__, cls.__bases__, body | methods)
    made.__qualname__ = cls.__qualname__
    return made


@recursive_repr()
def _repr(self: Any) -> str:
    shown = [f"{f.name}={getattr(self, f.name)!r}" for f in _fields(self) if f.repr]
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _refuse(self: Any, name: str, *value: object) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot {'assign to' if value else 'delete'} field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, f.name) for f in _fields(self)]


def _set_state(self: Any, state: Iterable[Any]) -> None:
    for f, value in zip(_fields(self), state, strict=True):
        object.__setattr__(self, f.name, value)


def _replace(self: Any, /, **changes: Any) -> Any:
    for f in _fields(self):
        if f.init:
            changes.setdefault(f.name, getattr(self, f.name))
    return type(self)(**changes)


def _fields(cls: Any) -> tuple[_Field, ...]:
    return tuple(cls._fields_by_name.values())


def _is_dataclass(found: Any) -> bool:
    return hasattr(found, "_fields_by_name")


class _StandardFields:
    """Makes ``__dataclass_fields__`` when the standard library asks for it."""

    def __get__(self, instance: Any, owner: Any) -> Any:
        import dataclasses

        rows = []
        for f in _fields(owner):
            given = {name: getattr(f, name) for name in ("init", "repr", "compare", "kw_only")}
            for name in ("default", "default_factory"):
                if getattr(f, name) is not _MISSING:
                    given[name] = getattr(f, name)
            rows.append((f.name, f.type, dataclasses.field(**given)))
        twin: Any = dataclasses.make_dataclass(owner.__name__, rows, init=False, repr=False, eq=False)
        return twin.__dataclass_fields__


_STANDARD_FIELDS = _StandardFields()


class _Signature:
    """Makes ``__signature__`` of a class when `inspect` asks for it, unless a subclass has another method."""

    def __init__(self, name: str, method: Any) -> None:
        self._name, self._method = name, method

    def __get__(self, instance: Any, owner: Any) -> Any:
        from inspect import Parameter, Signature

        if instance is not None or getattr(owner, self._name) is not self._method:
            raise AttributeError("__signature__")
        found = []
        for f in sorted((f for f in _described_fields(owner) if f.init), key=lambda f: f.kw_only):
            default = f.default if f.default_factory is _MISSING else Factory(f.default_factory)
            default = Parameter.empty if default is _MISSING else default
            kind = Parameter.KEYWORD_ONLY if f.kw_only else Parameter.POSITIONAL_OR_KEYWORD
            found.append(Parameter(f.name, kind, default=default, annotation=f.type))
        return Signature(found, return_annotation=None)


def _described_fields(cls: Any) -> Iterable[_Field]:
    """The fields of a dataclass or a named tuple."""
    if _is_dataclass(cls):
        yield from _fields(cls)
        return
    for name in cls._fields:
        f = _Field(default=cls._field_defaults.get(name, _MISSING))
        f.name, f.type = name, cls.__annotations__[name]
        yield f


class _Row(tuple[Any, ...]):
    """What named tuples have in common."""

    __slots__ = ()
    if TYPE_CHECKING:  # of each class
        _fields: tuple[str, ...]
        _field_defaults: Mapping[str, Any]

    __new__ = staticmethod(new_row)  # type: ignore[assignment]
    __signature__ = _Signature("__new__", new_row)

    @classmethod
    def _make(cls, values: Iterable[Any]) -> Any:
        return cls(*values)

    def _replace(self, /, **changes: Any) -> Any:
        row = [changes.pop(name, value) for name, value in zip(self._fields, self, strict=True)]
        if changes:
            raise ValueError(f"{type(self).__name__} has no fields {list(changes)}")
        return type(self)(*row)

    __replace__ = _replace

    def _asdict(self) -> dict[str, Any]:
        return dict(zip(self._fields, self, strict=True))

    def __repr__(self) -> str:
        shown = [f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True)]
        return f"{type(self).__name__}({', '.join(shown)})"

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self)


class _NamedTuples(type):
    """Makes the class of a named tuple from the body of its class statement."""

    def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> Any:
        names = tuple(body.get("__annotations__", ()))
        defaults = {name: body[name] for name in names if name in body}
        body |= {"__slots__": (), "__match_args__": names, "_fields": names, "_field_defaults": defaults}
        for number, part in enumerate(names):
            body[part] = _tuplegetter(number, None)
        return type(name, (_Row,), body)


if TYPE_CHECKING:
    from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
    from typing import NamedTuple
else:
    MISSING, dataclass, field, fields = _MISSING, _dataclass, _Field, _fields
    is_dataclass, replace = _is_dataclass, _replace
    NamedTuple = type.__new__(_NamedTuples, "NamedTuple", (), {})
