"""A disk that may be full, for the storages of the line protocol's broker."""

from __future__ import annotations

import errno
from collections.abc import Callable
from functools import partial
from typing import Any


class Disk:
    """Makes the writes of a storage fail while `full` is set."""

    full = False

    def __init__(self, storage: object) -> None:
        for name in ("append", "save_groups", "save_offsets"):
            setattr(storage, name, partial(self._write, getattr(storage, name)))

    def _write(self, write: Callable[..., Any], *arguments: Any) -> Any:
        if self.full:
            raise OSError(errno.ENOSPC, "full")
        return write(*arguments)
