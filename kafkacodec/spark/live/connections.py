"""Clients that a process keeps from one task to the next, with their connections and metadata.

Spark uses a Python process for many tasks and micro-batches. Connecting, logging in and asking for metadata would cost
more than a small micro-batch.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Protocol, TypeVar

from kafkacodec.datatypes import dataclass

__all__ = ["borrowed", "close_all"]

MOST_KEPT: Final = 4
"""Clients that are kept while nobody uses them."""

IDLE_SECONDS: Final = 300.0
"""Clients unused for longer are closed when one is borrowed. Their connections end by `connections_max_idle_ms`."""


class _Client(Protocol):
    def close(self) -> None: ...


C = TypeVar("C", bound=_Client)
_Key = tuple[Callable[..., Any], tuple[tuple[str, Any], ...]]


@dataclass(frozen=True)
class _Kept:
    key: _Key
    client: Any
    since: float


_kept: list[_Kept] = []
_lock = threading.Lock()


@contextmanager
def borrowed(make: Callable[..., C], options: Mapping[str, Any]) -> Iterator[C]:
    """A client for one user at a time: one that was used before with the same options, else a new one.

    It is kept afterwards. If the block ends with an exception it is closed, since its state is unknown. The caller must
    leave a client without work in progress: nothing assigned, nothing to send.

    Args:
        make: the class of the client, such as `kafkacodec.client.Consumer`.
        options: its keyword options, with values that can be compared.
    """
    key = make, tuple(sorted(options.items()))
    client: C = _taken(key) or make(**options)
    try:
        yield client
    except BaseException:
        with contextlib.suppress(Exception):
            client.close()
        raise
    _keep(key, client)


def close_all() -> None:
    """Close all unused clients."""
    with _lock:
        idle, _kept[:] = list(_kept), []
    _close(idle)


def _taken(key: _Key) -> Any:
    """The client with this key that was used last, if there is one; those idle for long are closed."""
    oldest = time.monotonic() - IDLE_SECONDS
    with _lock:
        idle = [kept for kept in _kept if kept.since < oldest]
        _kept[:] = [kept for kept in _kept if kept.since >= oldest]
        found = next((kept for kept in reversed(_kept) if kept.key == key), None)
        if found is not None:
            _kept.remove(found)
    _close(idle)
    return None if found is None else found.client


def _keep(key: _Key, client: Any) -> None:
    with _lock:
        _kept.append(_Kept(key, client, time.monotonic()))
        surplus = _kept[:-MOST_KEPT]
        del _kept[:-MOST_KEPT]
    _close(surplus)


def _close(clients: list[_Kept]) -> None:
    for kept in clients:
        with contextlib.suppress(Exception):
            kept.client.close()


def _forget() -> None:
    """In a forked process: the clients belong to the parent, which has their threads."""
    global _lock
    _lock = threading.Lock()
    _kept.clear()


os.register_at_fork(after_in_child=_forget)
atexit.register(close_all)
