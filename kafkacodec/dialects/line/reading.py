"""Received bytes to lines, for one connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkacodec.dialects.line.errors import ErrorCode, LineProtocolError

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["MAX_LINE_BYTES", "LineReader", "split_lines"]

MAX_LINE_BYTES = 1 << 20
"""The longest line that is read unless told otherwise, without its line end."""

_LINE_END = 2  # bytes, where a carriage return is part of it


class LineReader:
    """Cuts received bytes into lines of UTF-8. What is wrong with a line is a fault of that line alone.

    A line ends in a line feed, or in a carriage return and a line feed; the text does not say which. An unfinished
    line is kept up to the limit and no further, so that the time is linear in the bytes and the memory is bounded.

    Args:
        max_line_bytes: the longest line, without its line end.
    """

    def __init__(self, *, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._max = max_line_bytes
        self._unfinished = bytearray()
        self._size = 0  # of the unfinished line, with what was dropped of it
        self._position = 0  # where that line starts among all bytes received

    @property
    def unfinished(self) -> bytes:
        """The bytes of the line whose end has not come; of one that is too long, its beginning."""
        return bytes(self._unfinished)

    def receive(self, data: Buffer) -> list[str | LineProtocolError]:
        """Take received bytes and return the lines that they finish, in order.

        In the place of a line that is too long or not UTF-8 there is a `LineProtocolError`, with ``position`` counted
        from the first byte received; `Broker.receive` answers it.
        """
        *ended, rest = bytes(data).split(b"\n")
        lines = []
        for piece in ended:
            self._take(piece)
            lines.append(self._finish())
        self._take(rest)
        return lines

    def _take(self, piece: bytes) -> None:
        self._size += len(piece)
        self._unfinished += piece[: max(self._max + _LINE_END - len(self._unfinished), 0)]

    def _finish(self) -> str | LineProtocolError:
        raw, start = bytes(self._unfinished).removesuffix(b"\r"), self._position
        size, kept = self._size, len(self._unfinished)
        self._position += size + 1
        self._size = 0
        self._unfinished.clear()
        if size > kept or len(raw) > self._max:
            reason = f"a line of {size} bytes, more than {self._max}"
            return LineProtocolError(reason, code=ErrorCode.BAD_REQUEST, path="line", position=start)
        try:
            return raw.decode()
        except UnicodeDecodeError as e:
            reason = f"not UTF-8: {e.reason}"
            return LineProtocolError(reason, code=ErrorCode.BAD_REQUEST, path="line", position=start + e.start)


def split_lines(data: Buffer, *, max_line_bytes: int = MAX_LINE_BYTES) -> tuple[list[str | LineProtocolError], bytes]:
    """Cut bytes into lines, as a new `LineReader` does.

    Returns:
        The lines, with a `LineProtocolError` in the place of each that is too long or not UTF-8; and the bytes of the
        unfinished one.
    """
    reader = LineReader(max_line_bytes=max_line_bytes)
    return reader.receive(data), reader.unfinished
