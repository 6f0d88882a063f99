"""Splits the bytes of one connection into lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkacodec._core._buffer import octets
from kafkacodec.dialects.line.errors import ErrorCode, LineProtocolError
from kafkacodec.shown import counted, repr_of

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["MAX_LINE_BYTES", "LineReader", "split_lines"]

MAX_LINE_BYTES = 1 << 20
"""Default limit on the size of a line in bytes, without its line end."""

_LINE_END = 2  # bytes, with a carriage return


class LineReader:
    """Splits received bytes into lines of UTF-8. An invalid line does not affect the others.

    A line ends in LF or CRLF; the protocol's text does not say which. At most `max_line_bytes` of an unfinished line
    are kept, so memory is bounded and time is linear in the bytes.

    Args:
        max_line_bytes: the longest line in bytes, without its line end.
    """

    def __init__(self, *, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._max = max_line_bytes
        self._unfinished = bytearray()
        self._size = 0  # of the unfinished line, including dropped bytes
        self._position = 0  # of that line, in all bytes received

    def __repr__(self) -> str:
        return repr_of(self, f"{counted(len(self._unfinished), 'byte')} of an unfinished line")

    @property
    def unfinished(self) -> bytes:
        """The bytes of the unfinished line; if it is too long, its beginning."""
        return bytes(self._unfinished)

    def receive(self, data: Buffer) -> list[str | LineProtocolError]:
        """Take received bytes and return the lines that they complete, in order.

        A line that is too long or not UTF-8 is returned as a `LineProtocolError`, whose ``position`` counts from the
        first byte received; `Broker.receive` answers it.
        """
        *ended, rest = bytes(octets(data)).split(b"\n")
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
            reason = f"a line of {size} bytes exceeds the limit of {self._max}"
            return LineProtocolError(reason, code=ErrorCode.BAD_REQUEST, path="line", position=start)
        try:
            return raw.decode()
        except UnicodeDecodeError as e:
            reason = f"not UTF-8: {e.reason}"
            return LineProtocolError(reason, code=ErrorCode.BAD_REQUEST, path="line", position=start + e.start)


def split_lines(data: Buffer, *, max_line_bytes: int = MAX_LINE_BYTES) -> tuple[list[str | LineProtocolError], bytes]:
    """Split bytes into lines, as a new `LineReader` does.

    Returns:
        The lines, with a `LineProtocolError` for each that is too long or not UTF-8, and the bytes of the unfinished
        one.
    """
    reader = LineReader(max_line_bytes=max_line_bytes)
    return reader.receive(data), reader.unfinished
