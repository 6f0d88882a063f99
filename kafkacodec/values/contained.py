"""Conversion of panics in Rust libraries to ordinary exceptions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["LibraryPanic", "contained"]


class LibraryPanic(RuntimeError):
    """A library reached a state that its authors considered impossible."""


@contextmanager
def contained(library: str) -> Iterator[None]:
    """Convert a panic of a library to a `LibraryPanic`.

    A panic is a BaseException, which no ``except Exception`` of a caller catches. Each library that is made with pyo3
    has its own class of that name; KeyboardInterrupt and what a signal handler raises pass.
    """
    try:
        yield
    except Exception:
        raise
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise LibraryPanic(f"{library} panicked: {error}") from None
