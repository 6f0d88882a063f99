"""Where the rows of `kafkacodec encode` come from: files and standard input, plain or compressed with gzip or zstd."""

from __future__ import annotations

import errno
import io
import os
import shutil
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import click

from kafkacodec.cli.console import is_terminal
from kafkacodec.cli.files.destination import FORMATS, TEXT_FORMATS, format_of
from kafkacodec.cli.files.standard_input import STANDARD
from kafkacodec.temporary import temporary_directory

if TYPE_CHECKING:
    from kafkacodec.cli.output import Advance

READ_FORMATS = (*FORMATS, "lines")
"""The formats of input: those of output, and a value per line."""

SUFFIXES = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd"}
_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
# Bytes that are decompressed at once, which bounds their size: deflate expands 1,032 times, zstd 32,768 times.
_STEP = {"gzip": 16 << 10, "zstd": 1 << 10}
_WINDOW = 128 << 20  # the largest window of a zstd frame, as of the zstd command


def is_typed(sources: Iterable[Source]) -> bool:
    """Whether the user types one of the inputs."""
    return any(source.path == STANDARD for source in sources) and is_terminal(sys.stdin)


class Source:
    """One input.

    Args:
        path: a file, or ``-`` for standard input.
        kind: its format; by default that of its suffix, before ``.gz`` or ``.zst``.
        advance: called with the numbers of bytes read.

    Attributes:
        kind (str): the format.
        name (str): the input in messages.
        size_in_bytes (int): the size of the file; 0 if unknown.

    Raises:
        click.UsageError: the suffix names no known format, or the format cannot be compressed.
    """

    def __init__(self, path: str, kind: str | None) -> None:
        self.path = path
        self.name = "standard input" if path == STANDARD else path
        stem, suffix = os.path.splitext(path)
        self._compression = SUFFIXES.get(suffix.lower())
        found = kind or format_of(stem if self._compression else path)
        if found is None:
            raise click.UsageError(f"{self.name}: {_UNKNOWN if path == STANDARD else _NO_SUFFIX}; add --format")
        self.kind = found
        if self._compression and not self.is_text:
            raise click.UsageError(f"{path}: {self.kind} has compression of its own; decompress the file first")
        self.size_in_bytes = 0 if path == STANDARD else os.path.getsize(path)
        self.advance: Advance = lambda count: None

    @property
    def is_text(self) -> bool:
        """Whether the format is read from front to back and may be compressed as a whole."""
        return self.kind in TEXT_FORMATS or self.kind == "lines"

    @contextmanager
    def opened(self) -> Iterator[BinaryIO]:
        """The bytes from front to back, decompressed.

        Raises:
            ValueError: the compressed bytes are damaged or incomplete; raised when they are read.
        """
        with self._raw() as raw:
            counted: Any = io.BufferedReader(_Counted(raw, self))
            compression = self._compression or (_compression_of(counted) if self.is_text else None)
            yield _decompressed(counted, compression) if compression else counted

    @contextmanager
    def on_disk(self) -> Iterator[str]:
        """The path of the file; of standard input a temporary copy, for formats that are not read front to back."""
        if self.path != STANDARD:
            yield self.path
            return
        with temporary_directory("kafkacodec.") as directory:
            path = os.path.join(directory, "stdin")
            with open(path, "xb") as copy, self._raw() as raw:
                shutil.copyfileobj(raw, copy, 1 << 20)
            yield path

    @contextmanager
    def _raw(self) -> Iterator[BinaryIO]:
        if self.path != STANDARD:
            with open(self.path, "rb", buffering=0) as file:
                yield cast(BinaryIO, file)
        elif sys.stdin is None:
            raise OSError(errno.EBADF, "standard input is closed")
        else:
            yield sys.stdin.buffer


_UNKNOWN = "the format is unknown"
_NO_SUFFIX = "the suffix names no known format"


class _Counted(io.RawIOBase):
    """A stream whose reading shows as progress."""

    def __init__(self, raw: BinaryIO, source: Source) -> None:
        self._raw, self._source = raw, source

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        # What is there, of a pipe or a terminal; an unbuffered file has no other way.
        read = getattr(self._raw, "readinto1", None) or self._raw.readinto  # type: ignore[attr-defined]
        count: int = read(buffer) or 0
        self._source.advance(count)
        return count


def _compression_of(file: Any) -> str | None:
    """By the first bytes, with which no text begins."""
    start = file.peek(4)
    return next((name for magic, name in _MAGIC.items() if start.startswith(magic)), None)


def _decompressed(file: BinaryIO, compression: str) -> BinaryIO:
    return cast(BinaryIO, io.BufferedReader(_Decompressed(file, compression), 256 << 10))


class _Decompressed(io.RawIOBase):
    """The content of gzip members or zstd frames that follow one another."""

    def __init__(self, file: BinaryIO, compression: str) -> None:
        self._file, self._compression = file, compression
        self._start, self._error = _DECOMPRESSORS[compression]()
        self._decompressor: Any = None
        self._left = b""  # compressed bytes after the last member
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            data = self._left or self._file.read(_STEP[self._compression])
            self._left = b""
            if not data:
                if self._decompressor is not None:
                    raise ValueError(f"the {self._compression} data end too early")
                return 0
            self._ready = memoryview(self._step(data))
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def _step(self, data: bytes) -> bytes:
        if self._decompressor is None:
            self._decompressor = self._start()
        try:
            made: bytes = self._decompressor.decompress(data)
        except self._error as error:
            raise ValueError(f"damaged {self._compression} data: {error}") from None
        if self._decompressor.eof:
            self._left, self._decompressor = self._decompressor.unused_data, None
        return made


def _gzip() -> tuple[Callable[[], Any], type[Exception]]:
    return lambda: zlib.decompressobj(31), zlib.error


def _zstd() -> tuple[Callable[[], Any], type[Exception]]:
    import zstandard

    return lambda: zstandard.ZstdDecompressor(max_window_size=_WINDOW).decompressobj(), zstandard.ZstdError


_DECOMPRESSORS = {"gzip": _gzip, "zstd": _zstd}
