"""A session with ZooKeeper for an event loop, on kazoo (the extra ``zookeeper``).

kazoo calls back in its own threads; here everything happens in the loop. After a lost session, kazoo starts another,
and this calls `ZooKeeper.renewed`: ephemeral nodes and watches are gone. With a connection alone, kazoo forgets the
watches; once it has another, `ZooKeeper.changed` is called for each of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, MutableMapping
from typing import Any

from kafkacodec.errors import ConnectionFailed, DeadlineExceeded
from kafkacodec.lazy import missing_package

__all__ = ["NodeExists", "ZooKeeper"]

_log = logging.getLogger("kafkacodec.zookeeper")
_MOST_PAUSE = 1.0  # seconds between two attempts to connect


class _Aside(logging.LoggerAdapter[logging.Logger]):
    """kazoo's log, at DEBUG: it has a warning for each attempt to connect, beside the one error that tells of them."""

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        super().log(min(level, logging.DEBUG), msg, *args, **kwargs)

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        return msg, kwargs


class NodeExists(Exception):
    """A node already exists; `content` is its content, None if it has none or has gone meanwhile."""

    def __init__(self, path: str, content: str | None) -> None:
        super().__init__(path, content)
        self.path, self.content = path, content

    def __str__(self) -> str:
        return f"{self.path} is taken by {self.content!r}"


class ZooKeeper:
    """A session. Contents of nodes are text.

    Args:
        servers: ``host:port,...``, optionally with a path at the end, under which all nodes are.
        session_timeout_ms: after this time without a sign of life, the servers end the session.
        connection_timeout_ms: how long `start` waits for a server.

    Attributes:
        renewed: called when a new session has started after a lost one.
        changed: called with the path of a watched node whose children have changed, or may have.

    All methods raise ConnectionFailed if the session is lost or closed meanwhile.
    """

    def __init__(self, servers: str, *, session_timeout_ms: int = 6000, connection_timeout_ms: int = 6000) -> None:
        try:
            from kazoo import client, exceptions
            from kazoo.protocol.states import KazooState
        except ImportError:
            raise missing_package("ZooKeeper needs", "kazoo", "zookeeper") from None
        self._servers, self._timeout = servers, connection_timeout_ms / 1000
        self._errors, self._states = exceptions, KazooState
        self._loop = asyncio.get_running_loop()
        self._lost = self._dropped = self._closed = False
        self._watched: set[str] = set()
        self._session_timeout = session_timeout_ms / 1000
        self.renewed: Callable[[], None] = lambda: None
        self.changed: Callable[[str], None] = lambda path: None
        retry = {"max_tries": -1, "delay": 0.05, "max_delay": _MOST_PAUSE}
        self._client = client.KazooClient(
            servers, timeout=session_timeout_ms / 1000, connection_retry=retry, logger=_Aside(_log)
        )
        self._client.add_listener(lambda state: self._call(self._state_changed, state))

    @property
    def session(self) -> tuple[int, bytes] | None:
        """The id of the session and its password; None before its start."""
        found: tuple[int, bytes] | None = self._client.client_id
        return found

    async def start(self) -> None:
        """Start the session. Raises DeadlineExceeded: no server has answered in time."""
        from kazoo.handlers.threading import KazooTimeoutError

        try:
            await self._loop.run_in_executor(None, lambda: self._client.start(self._timeout))
        except KazooTimeoutError:
            raise DeadlineExceeded(f"ZooKeeper at {self._servers} does not answer", sent=False) from None

    async def close(self) -> None:
        """End the session: its ephemeral nodes go at once."""
        self._closed = True
        await self._loop.run_in_executor(None, self._end)

    async def get(self, path: str) -> str | None:
        """The content of a node; None if there is no node, or nothing in it."""
        with contextlib.suppress(self._errors.NoNodeError):
            content, _ = await self._ask(self._client.get_async, path)
            return None if content is None else content.decode("utf-8", "replace")
        return None

    async def children(self, path: str, *, watch: bool = False) -> list[str]:
        """Return the names below a node, none if there is no node; with `watch`, report their next change once."""
        watcher = self._watcher if watch else None
        if watch:
            self._watched.add(path)
        while True:
            with contextlib.suppress(self._errors.NoNodeError):
                found: list[str] = await self._ask(self._client.get_children_async, path, watcher)
                return sorted(found)
            if not watch or await self._ask(self._client.exists_async, path, watcher) is None:
                return []

    async def create(self, path: str, content: str, *, ephemeral: bool = True) -> None:
        """Create a node, and its parents without content. Raises NodeExists for a node with other content.

        An existing node with this content is fine: it may have been created before a connection was lost. One of an
        earlier session is awaited to go with that, for twice the time after which sessions end; then it is NodeExists.
        """
        while True:
            try:
                await self._ask(self._client.create_async, path, content.encode(), None, ephemeral)
                return
            except self._errors.NoNodeError:
                await self._make_parents(path)
            except self._errors.NodeExistsError:
                if await self._is_own(path, content, ephemeral):
                    return

    async def write(self, path: str, content: str) -> None:
        """Set the content of a permanent node; create it if it is missing."""
        while True:
            try:
                await self._ask(self._client.set_async, path, content.encode())
                return
            except self._errors.NoNodeError:
                with contextlib.suppress(NodeExists):
                    await self.create(path, content, ephemeral=False)
                    return

    async def delete(self, path: str) -> None:
        """Delete a node, if it is there."""
        with contextlib.suppress(self._errors.NoNodeError):
            await self._ask(self._client.delete_async, path)

    async def _is_own(self, path: str, content: str, ephemeral: bool) -> bool:
        """Whether an existing node is what was to be created; False once it has gone. Raises NodeExists."""
        changed = asyncio.Event()
        try:
            async with asyncio.timeout(2 * self._session_timeout):
                while True:
                    data, stat = await self._ask(self._client.get_async, path, lambda event: self._call(changed.set))
                    found = None if data is None else data.decode("utf-8", "replace")
                    if found != content:
                        raise NodeExists(path, found)
                    session = self.session  # None without a connection, which is a change
                    if not ephemeral or (session is not None and session[0] == stat.owner_session_id):
                        return True
                    await changed.wait()
                    changed.clear()
        except self._errors.NoNodeError:
            return False
        except TimeoutError:
            raise NodeExists(path, content) from None

    async def _make_parents(self, path: str) -> None:
        parts = path.split("/")[1:-1]
        for count in range(1, len(parts) + 1):
            with contextlib.suppress(self._errors.NodeExistsError):
                await self._ask(self._client.create_async, "/" + "/".join(parts[:count]), None)

    async def _ask(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Wait for the result of a kazoo call, which arrives in another thread."""
        future: asyncio.Future[Any] = self._loop.create_future()

        def settle(result: Any) -> None:
            if future.cancelled():
                return
            if result.exception is None:
                future.set_result(result.value)
            else:
                future.set_exception(result.exception)

        try:
            call(*arguments).rawlink(lambda result: self._call(settle, result))
            return await future
        except (self._errors.NoNodeError, self._errors.NodeExistsError):
            raise
        except self._errors.KazooException as error:
            reason = str(error) or type(error).__name__
            raise ConnectionFailed(f"ZooKeeper at {self._servers}: {reason}", sent=True) from error

    def _watcher(self, event: Any) -> None:
        if event.path and event.type != "NONE":
            self._call(self._noticed, event.path)

    def _noticed(self, path: str) -> None:
        self._watched.discard(path)
        if not self._closed:
            self.changed(path)

    def _state_changed(self, state: Any) -> None:
        if state != self._states.CONNECTED:
            if not self._dropped and not self._closed:
                _log.warning("the connection to ZooKeeper at %s is lost; connecting again", self._servers)
            self._dropped = True
            self._lost = self._lost or state == self._states.LOST
            return
        watched, lost = self._watched if self._dropped else set(), self._lost
        self._dropped = self._lost = False
        if self._closed:
            return
        if lost:
            self.renewed()
        for path in sorted(watched):
            self._noticed(path)

    def _call(self, function: Callable[..., None], *arguments: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(function, *arguments)

    def _end(self) -> None:
        self._client.stop()
        self._client.close()
