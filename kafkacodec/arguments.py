"""Checks of arguments."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import index
from typing import Any, Literal, get_args

__all__ = [
    "ISOLATION_LEVELS",
    "MAX_THREADS",
    "IsolationLevel",
    "column_names",
    "columns_hint",
    "config_texts",
    "int64",
    "is_integer",
    "is_number",
    "limit",
    "meant",
    "nearest",
    "num_threads",
    "offset_span",
    "one_of",
    "path_text",
    "path_texts",
    "refuse_unknown",
    "require_int",
    "require_list",
    "require_text",
    "suggestion",
]

IsolationLevel = Literal["read_uncommitted", "read_committed"]
"""Whether records of aborted and open transactions are read, as in Kafka's consumer (KIP-98)."""

ISOLATION_LEVELS: tuple[str, ...] = get_args(IsolationLevel)

_MOST = (1 << 63) - 1

MAX_THREADS = 1024
"""The most threads that one call uses."""


def is_integer(value: object) -> bool:
    """Whether `value` is an integer, also one of numpy; a bool is a mistake where a number is asked for."""
    return hasattr(value, "__index__") and not isinstance(value, bool)


def is_number(value: object) -> bool:
    """Whether `value` is an integer, as `is_integer` says, or a float."""
    return isinstance(value, float) or is_integer(value)


def int64(value: int, name: str = "the number") -> int:
    """`value` clipped to 64 bits, for offsets and positions; `name` is what errors call it.

    Raises:
        TypeError: it is not an integer, or it is a bool.
    """
    if not is_integer(value):
        raise TypeError(f"{name} must be an integer, not {type(value).__name__}")
    return max(-_MOST - 1, min(index(value), _MOST))


def offset_span(start_offset: int | None, end_offset: int | None) -> tuple[int | None, int | None]:
    """The bounds of offsets, clipped to 64 bits; None: no bound.

    Raises:
        TypeError: one is not an integer.
    """
    start = None if start_offset is None else int64(start_offset, "start_offset")
    return start, None if end_offset is None else int64(end_offset, "end_offset")


def limit(name: str, value: int, least: int = 0) -> int:
    """A limit on bytes, rows or threads, clipped to 64 bits.

    Raises:
        TypeError: it is not an integer.
        ValueError: it is below `least`.
    """
    number = int64(value, name)
    if number < least:
        raise ValueError(f"{name} is {number}; it must {f'be at least {least}' if least else 'not be negative'}")
    return number


def num_threads(threads: int | None) -> int:
    """The number of threads for an argument; None is one per processor that this process may use.

    Raises:
        TypeError: it is neither an integer nor None.
        ValueError: it is below 1 or above `MAX_THREADS`.
    """
    if threads is None:
        usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        return min(usable or 1, MAX_THREADS)
    require_int("threads", threads, 1, MAX_THREADS)
    return index(threads)


def require_int(name: str, value: int, lowest: int, highest: int) -> None:
    """Check that `value` is an integer from `lowest` to `highest`.

    Raises:
        TypeError: it is not an integer, or it is a bool.
        ValueError: it is out of range.
    """
    int64(value, name)
    if not lowest <= value <= highest:
        raise ValueError(f"{name} must be from {lowest} to {highest}, not {value}")


def one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """Raise ValueError if `value` is not in `allowed`."""
    if value not in allowed:
        *words, last = map(repr, allowed)
        raise ValueError(f"{name} must be {', '.join(words)} or {last}, not {value!r}")


def column_names(columns: Iterable[str] | None, default: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """The names of columns to build, `default` where None are given.

    Raises:
        TypeError: `columns` is one text.
        ValueError: a name is not in `known`.
    """
    if isinstance(columns, (str, bytes)):
        raise TypeError(f"columns must be a list of names, not {type(columns).__name__}")
    names = tuple(default if columns is None else columns)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"unknown column {', '.join(map(repr, unknown))}; {columns_hint(unknown[0], known)}")
    return names


def refuse_unknown(options: Collection[str], known: Collection[str]) -> None:
    """Raise TypeError for a name in `options` that is not in `known`."""
    for name in options:
        if name not in known:
            raise TypeError(f"unknown option {name!r}")


def meant(wrong: str, known: Collection[str]) -> str:
    """A question for the known name that is most similar to an unknown one; empty if none is."""
    close = nearest(wrong, known)
    return f"did you mean {close!r}?" if close is not None else ""


def nearest(wrong: str, known: Collection[str]) -> str | None:
    """The known name that is most similar to an unknown one; None if none is."""
    from difflib import get_close_matches  # not needed until something is wrong

    lower = {name.lower(): name for name in known}
    close = get_close_matches(wrong, known, n=1) or [
        lower[name] for name in get_close_matches(wrong.lower(), lower, n=1)
    ]
    return close[0] if close else None


def columns_hint(wrong: str, known: Collection[str]) -> str:
    """The end of an error about a column that is not there: those that are, and the most similar one."""
    close = meant(wrong, known)
    return f"columns are {', '.join(known)}{close and f'; {close}'}"


def suggestion(wrong: str, known: Collection[str], what: str = "options", most: int | None = None) -> str:
    """The end of an error about an unknown name: the known one that is most similar, or all of them if few enough."""
    if most is not None and len(known) > most:
        return meant(wrong, known) or f"there are {len(known):,} {what}"
    return meant(wrong, known) or f"{what} are {', '.join(known)}"


def path_text(path: Any, name: str = "the path") -> str:
    """A path as text. Raises TypeError."""
    try:
        found: Any = os.fspath(path)
    except TypeError:
        raise TypeError(f"{name} must be text or a path object, not {type(path).__name__}") from None
    if isinstance(found, bytes):
        reason = "kafkacodec.decode takes the bytes of a segment"
        raise TypeError(f"{name} must be text or a path object, not bytes; {reason}")
    text: str = found
    return text


def path_texts(paths: object, name: str = "paths") -> list[str]:
    """One path or several as texts. Raises TypeError."""
    if isinstance(paths, (str, os.PathLike)):
        return [path_text(paths, name)]
    if isinstance(paths, bytes) or not isinstance(paths, Iterable):
        raise TypeError(f"{name} must be a path or several, not {type(paths).__name__}")
    return [path_text(path, f"each of {name}") for path in paths]


def require_list(name: str, value: object) -> None:
    """Check that `value`, to which a call appends, is a list or None. Raises TypeError."""
    if value is not None and not isinstance(value, list):
        raise TypeError(f"{name} must be a list or None, not {type(value).__name__}")


def require_text(name: str, value: object) -> str:
    """Return `value`, which must be text. Raises TypeError."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be text, not {type(value).__name__}")
    return value


def config_texts(what: str, configs: object) -> dict[str, str | None]:
    """The values of configurations as text, by name; text and None are kept, numbers and booleans as Kafka writes them.

    Raises:
        TypeError: it is not a dict, or a name or value has another type.
    """
    if not isinstance(configs, Mapping):
        raise TypeError(f"{what} must be a dict, not {type(configs).__name__}")
    return {require_text(f"a name in {what}", name): _config_text(name, value) for name, value in configs.items()}


def _config_text(name: str, value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return str(value)
    if is_integer(value):
        return str(index(value))  # type: ignore[arg-type]
    hint = f"; write several as {','.join(map(str, value))!r}" if isinstance(value, (list, tuple, set)) else ""
    raise TypeError(f"the value of {name} must be text, a number or a bool, not {type(value).__name__}{hint}")
