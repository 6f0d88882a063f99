"""Temporary files and directories of this process: an interrupt at any moment leaves none."""

from __future__ import annotations

import atexit
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

_kept: dict[str, int] = {}  # directories to remove at the end of the process -> the process


@contextmanager
def temporary_directory(prefix: str) -> Iterator[str]:
    """A private directory that is removed at the end of a ``with`` block.

    Args:
        prefix: how its name begins.

    Raises:
        OSError: it cannot be made.
    """
    path = _new_name(prefix)
    try:
        with removed_on_error(path):
            os.mkdir(path, 0o700)
            yield path
            _remove(path)
    finally:
        _kept.pop(path, None)


def directory_until_exit(prefix: str) -> str:
    """As `temporary_directory`, for one that is removed when the process ends."""
    path = _new_name(prefix)
    os.mkdir(path, 0o700)
    return path


@contextmanager
def removed_on_error(path: str) -> Iterator[None]:
    """Removes a file or a directory that a ``with`` block makes, if any exception ends it. It need not exist."""
    try:
        try:
            yield
        except BaseException:
            _remove(path)
            raise
    except BaseException:  # an interrupt before or within the removal
        _remove(path)
        raise


def _new_name(prefix: str) -> str:
    """The path of a directory that nobody else makes; whatever happens, it is removed at the end of the process."""
    from tempfile import gettempdir  # seldom needed: with `random`, it takes a program some ms to start

    path = os.path.join(gettempdir(), f"{prefix}{os.urandom(16).hex()}")
    _kept[path] = os.getpid()
    return path


def _remove(path: str) -> None:
    """Remove what is there; errors are ignored, so that they do not hide an earlier one."""
    try:
        os.unlink(path)
    except OSError:  # it is a directory, or nothing
        shutil.rmtree(path, ignore_errors=True)


@atexit.register
def _remove_kept() -> None:
    # Those of `temporary_directory` too: an interrupt of who uses it may keep it from its end.
    for path, process in list(_kept.items()):
        if process == os.getpid():  # not a fork of it
            _remove(path)
