"""Signatures that show the keyword options of functions, and errors that suggest the right one."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, wraps
from inspect import Parameter, cleandoc, iscoroutinefunction, isgeneratorfunction, signature
from typing import Any, NoReturn, TypeVar, cast

from kafkacodec.arguments import suggestion
from kafkacodec.tracebacks import is_for_user

__all__ = ["describes_also", "misuse", "shows_options", "suggests_arguments", "suggests_options"]

Type = TypeVar("Type", bound=type)
Function = TypeVar("Function", bound=Callable[..., Any])


def shows_options(
    options: type,
    defaults: Callable[..., Any],
    hint: Callable[[str, Collection[str]], str] = suggestion,
    plain: Callable[..., Any] | None = None,
) -> Callable[[Function], Function]:
    """Replace ``**options`` in the signature of a function, so that `help` shows each option with type and default.

    The function also suggests options, as by `suggests_options`. Options that its docstring does not describe are
    described at its end, in the words of the TypedDict's docstring.

    Args:
        options: the TypedDict of the function's ``**options: Unpack[...]``, which type checkers use.
        defaults: a function or class that has the options as parameters with the same defaults.
        hint: the end of an error about an unknown option, of its name and the known ones.
        plain: does the same without options, in less time.
    """
    shown = _shown_of(options, defaults)

    def decorate(function: Function) -> Function:
        own = signature(function)
        parameters = [p for p in own.parameters.values() if p.kind is not Parameter.VAR_KEYWORD]
        named = {p.name for p in parameters}
        added = [p for p in shown if p.name not in named]
        parameters += added
        checked = suggests_options(function, hint, plain)
        checked.__doc__ = _with_meanings(function.__doc__, [p.name for p in added], options)
        checked.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        return checked

    return decorate


@cache
def _shown_of(options: Any, defaults: Callable[..., Any]) -> list[Parameter]:
    """The parameters that are options: for the producers of threads and of asyncio, for instance."""
    known = signature(defaults).parameters
    return [p.replace(kind=Parameter.KEYWORD_ONLY) for p in known.values() if p.name in options.__annotations__]


def _with_meanings(doc: str | None, names: Iterable[str], options: Any) -> str | None:
    """A docstring with a section on those of the options that it does not describe."""
    known = _meanings(options)
    if not doc or not known:
        return doc
    text = cleandoc(doc)
    described = {name.strip() for entry in _ENTRY.findall(text) for name in entry.split(",")}
    added = [f"    {name}: {known[name]}" for name in names if name in known and name not in described]
    return "\n".join([text, "", "Options:", *added]) if added else doc


def describes_also(extended: Any) -> Callable[[Type], Type]:
    """Add to a TypedDict's docstring what it says about its keys in the one that it extends, which it does not know."""

    def decorate(options: Type) -> Type:
        known = "\n".join(f"    {name}: {meaning}" for name, meaning in _meanings(extended).items())
        options.__doc__ = f"{cleandoc(options.__doc__ or '')}\n{known}"
        return options

    return decorate


def _meanings(options: Any) -> dict[str, str]:
    """What the keys of a TypedDict mean, by its docstring."""
    lines = cleandoc(options.__doc__ or "").partition("\nKeys:\n")[2]
    return {name: re.sub(r"\n +", "\n        ", text) for name, text in _KEY.findall(lines)}


_ENTRY = re.compile(r"^    (\w+(?:, \w+)*)(?: \([^)]*\))?: ", re.M)
_KEY = re.compile(r"^    (\w+): (.+(?:\n {5,}.+)*)", re.M)


def suggests_options(
    function: Function,
    hint: Callable[[str, Collection[str]], str] = suggestion,
    plain: Callable[..., Any] | None = None,
) -> Function:
    """Make a function's error for an unknown option name the one that was probably meant.

    A generator function raises it when it is called, not when the first value is requested; a coroutine function when
    it is awaited. Errors for the user come without the frames inside the library, but not from a coroutine.

    Of a plain function, `plain` is called if there are no keyword arguments, unless it is None.
    """
    short = plain or function

    @cache
    def known() -> tuple[str, ...]:
        parameters = signature(checked).parameters.values()
        return tuple(p.name for p in parameters if p.name != "self" and p.kind is not Parameter.VAR_POSITIONAL)

    if isgeneratorfunction(function):

        @wraps(function)
        def checked(*args: Any, **options: Any) -> Any:
            if not options.keys() <= set(known()):
                _refuse(options, known(), hint)
            try:
                return function(*args, **options)
            except TypeError:
                _refuse_misuse(checked, args, options)
                raise
    elif iscoroutinefunction(function):

        @wraps(function)
        async def checked(*args: Any, **options: Any) -> Any:
            try:
                begun = function(*args, **options)
            except TypeError:
                _refuse_misuse(checked, args, options)
                raise
            return await begun
    else:

        @wraps(function)
        def checked(*args: Any, **options: Any) -> Any:
            try:
                return function(*args, **options) if options else short(*args)
            except Exception as error:
                if not isinstance(error, TypeError) or options.keys() <= set(known()):
                    if isinstance(error, TypeError):
                        _refuse_misuse(checked, args, options)
                    if is_for_user(error):
                        raise error.with_traceback(None) from error.__cause__
                    raise
            _refuse(options, known(), hint)

    return cast(Function, checked)


def suggests_arguments(cls: Type) -> Type:
    """Make the constructor of a class suggest its arguments, as `suggests_options` does those of a function."""
    own = signature(cls)
    parameters = [Parameter("self", Parameter.POSITIONAL_OR_KEYWORD), *own.parameters.values()]
    checked: Any = suggests_options(cls.__init__)  # type: ignore[misc]
    checked.__signature__ = own.replace(parameters=parameters)
    cls.__init__ = checked  # type: ignore[misc]
    return cls


def misuse(function: Callable[..., Any], arguments: Iterable[Any], options: Mapping[str, Any]) -> str | None:
    """What is wrong with the number and the names of a call's arguments, and what to write; None if they fit."""
    known = signature(function)
    try:
        known.bind(*arguments, **options)
    except TypeError as error:
        reason = str(error)
    else:
        return None
    strangers = [name for name in options if name not in known.parameters]
    if strangers:
        return _unknown(strangers, [name for name in known.parameters if name != "self"], suggestion)
    parameters = [p for p in known.parameters.values() if p.name not in ("self", "cls")]
    by_position = [p.name for p in parameters if p.kind in _POSITIONAL]
    by_name = [f"{p.name}=" for p in parameters if p.kind is Parameter.KEYWORD_ONLY]
    needed = [f"{p.name}=" for p in parameters if p.kind is Parameter.KEYWORD_ONLY and p.default is Parameter.empty]
    several = [f"*{p.name}" for p in parameters if p.kind is Parameter.VAR_POSITIONAL]
    of, _, name = function.__qualname__.rpartition(".")
    name = of.rpartition(".")[2] if name == "__init__" else name
    call = f"{name}({', '.join([*by_position, *several, *needed])})"
    if any(isinstance(argument, dict) and any("." in str(key) for key in argument) for argument in arguments):
        return f"{call}: options with dotted names go to {name}.from_config({{...}})"
    if several and needed and (address := _address_in(arguments)) is not None:
        return f"{call}: {reason}; did you mean {needed[0]}{address!r}?"
    if {"topic", "partition"} <= set(by_position) and (pair := _pair_in([*arguments, *options.values()])) is not None:
        return f"{call}: topic and partition are two arguments, {pair[0]!r}, {pair[1]!r}, not a pair of them"
    if reason != "too many positional arguments":
        return f"{call}: {reason}"
    others = f", and the others by name: {', '.join(by_name)}" if by_name else ""
    return f"{call} takes {', '.join(by_position) or 'nothing'} by position{others}"


def _address_in(arguments: Iterable[Any]) -> str | None:
    """A host and port among arguments that are names of topics, which have no colon."""
    return next((found for found in arguments if isinstance(found, str) and _ADDRESS.fullmatch(found)), None)


def _pair_in(arguments: Iterable[Any]) -> tuple[Any, ...] | None:
    """A pair of topic and partition among arguments, which may be in a list."""
    for found in arguments:
        pair = found[0] if isinstance(found, list) and found else found
        if isinstance(pair, (tuple, list)) and len(pair) == 2 and isinstance(pair[0], str):
            return tuple(pair)
    return None


_ADDRESS = re.compile(r"\S+:\d+")

_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


def _refuse_misuse(function: Callable[..., Any], arguments: Iterable[Any], options: Mapping[str, Any]) -> None:
    wrong = misuse(function, arguments, options)
    if wrong is not None:
        raise TypeError(wrong) from None


def _refuse(options: Collection[str], known: tuple[str, ...], hint: Callable[[str, Collection[str]], str]) -> NoReturn:
    raise TypeError(_unknown([name for name in options if name not in known], known, hint))


def _unknown(wrong: Sequence[str], known: Collection[str], hint: Callable[[str, Collection[str]], str]) -> str:
    """What to say of options that are unknown."""
    hints = {name: _IN_SECONDS if name == "timeout_ms" and "timeout" in known else hint(name, known) for name in wrong}
    if len(wrong) == 1:
        return f"unknown option {wrong[0]!r}; {hints[wrong[0]]}"
    return f"{len(wrong)} unknown options: {'; '.join(f'{name!r}: {said}' for name, said in hints.items())}"


_IN_SECONDS = "did you mean 'timeout', in seconds?"
