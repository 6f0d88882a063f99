"""The client's side of a connection without I/O: requests with their ids, and responses to them in any order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kafkacodec.dialects.line.commands import COMMANDS, Command
from kafkacodec.dialects.line.errors import LineProtocolError
from kafkacodec.dialects.line.parsing import Request, Response, parse_response
from kafkacodec.dialects.line.reading import MAX_LINE_BYTES, LineReader
from kafkacodec.errors import RemoteProtocolError

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["Exchange"]


class Exchange:
    """The pending requests of a connection.

    Args:
        max_line_bytes: the longest response, in bytes.
        commands: the known commands.
    """

    def __init__(self, *, max_line_bytes: int = MAX_LINE_BYTES, commands: Mapping[str, Command] = COMMANDS) -> None:
        self._commands = commands
        self._reader = LineReader(max_line_bytes=max_line_bytes)
        self._waiting: dict[str, tuple[str, Any]] = {}
        self._last_id = 0

    @property
    def pending(self) -> int:
        """The number of pending requests."""
        return len(self._waiting)

    def request(self, command: str, args: dict[str, Any], *, waiter: Any) -> bytes:
        """The line of a request, with its end; `waiter` comes back with the response. Raises EncodeError."""
        self._last_id += 1
        correlation_id = str(self._last_id)
        line = Request(correlation_id, command, args).encode(commands=self._commands).encode() + b"\n"
        self._waiting[correlation_id] = command, waiter
        return line

    def received(self, data: Buffer) -> list[tuple[Any, Response]]:
        """Return the responses that are now complete, each with the waiter of its request.

        Raises:
            RemoteProtocolError: a line is not a response to a pending request, so the connection is unusable. Its
                `events` are the earlier responses.
        """
        found: list[tuple[Any, Response]] = []
        for line in self._reader.receive(data):
            try:
                found.append(self._response(line))
            except LineProtocolError as error:
                raise RemoteProtocolError(f"not a response: {error}", events=found) from error
        return found

    def give_up(self) -> list[Any]:
        """Return the waiters of all requests without a response."""
        waiters = [waiter for _, waiter in self._waiting.values()]
        self._waiting.clear()
        return waiters

    def _response(self, line: str | LineProtocolError) -> tuple[Any, Response]:
        if isinstance(line, LineProtocolError):
            raise line
        correlation_id = line.split("|", 2)[1] if line.count("|") >= 2 else ""
        if correlation_id not in self._waiting:
            shown = parse_response(line)  # the error has the reason
            reason = f"{shown.correlation_id[:40]!r} is not the id of a request: {shown.message or shown.payload or ''}"
            raise LineProtocolError(reason[:200], code=None, correlation_id=shown.correlation_id)
        command, waiter = self._waiting[correlation_id]
        response = parse_response(line, command, commands=self._commands)
        del self._waiting[correlation_id]
        return waiter, response
