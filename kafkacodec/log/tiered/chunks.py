"""Chunks of an uploaded file: equal parts of the original, each transformed by itself, one after the other."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import zstandard

from kafkacodec.datatypes import NamedTuple, dataclass
from kafkacodec.errors import CorruptRecord, DecodeError, LimitExceeded
from kafkacodec.log.tiered.fields import Fields

__all__ = ["MAX_CHUNK_BYTES", "MAX_STORED_CHUNK_BYTES", "Chunk", "ChunkIndex", "chunk_index", "inflate"]

MAX_CHUNK_BYTES = 128 << 20
"""The largest chunk that is read, in bytes of the original; usual ones have 4 MiB."""

MAX_STORED_CHUNK_BYTES = MAX_CHUNK_BYTES + (1 << 20)
"""The largest in bytes of the object: zstd and encryption add less than 1 MiB."""

_MAX_INT = 2**31 - 1
_MAX_SIZES_BYTES = 10 << 20  # of the encoded sizes; the plugin has the same limit
_NONE = np.zeros(0, np.int64)


class Chunk(NamedTuple):
    """The place of a chunk: its number, and [start, end) in the original file and in the stored object, in bytes."""

    number: int
    start: int
    end: int
    stored_start: int
    stored_end: int


@dataclass(frozen=True)
class ChunkIndex:
    """The map from bytes of the original to bytes of the object.

    Attributes:
        size (int): the original file's bytes.
        chunk_size (int): the original bytes of a chunk; the last one may have fewer.
        stored_chunk_size (int): the stored bytes of each chunk but the last, if they are equal.
        stored_size (int): the object's bytes.
        starts (numpy.ndarray): where each stored chunk begins, if their sizes differ; else empty.
    """

    size: int
    chunk_size: int
    stored_chunk_size: int
    stored_size: int
    starts: npt.NDArray[np.int64]

    @property
    def count(self) -> int:
        """The number of chunks."""
        return -(-self.size // self.chunk_size)

    def chunk(self, number: int) -> Chunk:
        """One chunk."""
        start = number * self.chunk_size
        last = number == self.count - 1
        begin = int(self.starts[number]) if len(self.starts) else number * self.stored_chunk_size
        if last:
            return Chunk(number, start, self.size, begin, self.stored_size)
        finish = int(self.starts[number + 1]) if len(self.starts) else begin + self.stored_chunk_size
        return Chunk(number, start, start + self.chunk_size, begin, finish)

    def between(self, start: int, end: int) -> range:
        """The numbers of the chunks with the original bytes [start, end)."""
        start, end = max(start, 0), min(end, self.size)
        return range(start // self.chunk_size, -(-end // self.chunk_size)) if start < end else range(0)


def chunk_index(fields: Fields) -> ChunkIndex:
    """The index in a manifest.

    Raises:
        CorruptRecord: missing or contradictory fields.
        LimitExceeded: chunks of more than `MAX_CHUNK_BYTES`, or too many of them.
    """
    kind = fields.text("type")
    chunk_size = fields.number("originalChunkSize", 1, _MAX_INT)
    size = fields.number("originalFileSize", 0, _MAX_INT)
    if min(chunk_size, size) > MAX_CHUNK_BYTES:
        text = f"{fields.place}originalChunkSize in the manifest is {chunk_size}, the limit is {MAX_CHUNK_BYTES}"
        raise LimitExceeded(text, path=fields.path)
    count = -(-size // chunk_size)
    if kind == "fixed":
        each = fields.number("transformedChunkSize", 1, _MAX_INT)
        last = fields.number("finalTransformedChunkSize", 1 if count else 0, _MAX_INT)
        return ChunkIndex(size, chunk_size, each, (count - 1) * each + last if count else 0, _NONE)
    if kind != "variable":
        raise fields.fault("type", f"is {kind[:20]!r}, not 'fixed' or 'variable'")
    name = "transformedChunks"
    try:
        sizes = decode_sizes(inflate(fields.binary(name), _MAX_SIZES_BYTES))
    except DecodeError as error:
        raise type(error)(f"{fields.place}{name} in the manifest: {error.reason}", path=fields.path) from None
    if len(sizes) != count:
        raise fields.fault(name, f"has {len(sizes)} chunks, but {size} bytes in chunks of {chunk_size} are {count}")
    if count and int(sizes.min()) < 1:
        raise fields.fault(name, f"has a chunk of {int(sizes.min())} bytes")
    starts = np.concatenate([[0], np.cumsum(sizes)])
    return ChunkIndex(size, chunk_size, 0, int(starts[-1]), starts[:-1])


def decode_sizes(data: bytes) -> npt.NDArray[np.int64]:
    """The sizes of stored chunks.

    Integers are big-endian: the count (4 bytes); if there are several sizes, the smallest of all but the last (4), how
    many bytes each takes (1), and for all but the last its difference from the smallest; then the last size (4).

    Raises:
        CorruptRecord: the bytes are not that.
    """
    count = int.from_bytes(data[:4], "big")
    if count < 2:
        if len(data) != 4 + 4 * count:
            raise CorruptRecord(f"{count} sizes have {4 + 4 * count} bytes, not {len(data)}", position=0)
        return np.frombuffer(data, ">i4", count, 4).astype(np.int64)
    width = data[8] if len(data) > 8 else 0
    end = 9 + (count - 1) * width
    if not 1 <= width <= 4 or len(data) != end + 4:
        text = f"{count} sizes with {width} bytes each have {end + 4} bytes, not {len(data)}"
        raise CorruptRecord(text, position=8)
    sizes = np.zeros(count, np.int64)
    raw = np.frombuffer(data, np.uint8, (count - 1) * width, 9).reshape(count - 1, width)
    for column in range(width):
        sizes[:-1] = (sizes[:-1] << 8) + raw[:, column]
    sizes[:-1] += int.from_bytes(data[4:8], "big", signed=True)
    sizes[-1] = int.from_bytes(data[end:], "big", signed=True)
    return sizes


def inflate(data: bytes, limit: int) -> bytes:
    """The bytes of a zstd frame that states their number.

    Raises:
        CorruptRecord: not such a frame, or bytes after it.
        LimitExceeded: more bytes than `limit`.
    """
    try:
        size = zstandard.frame_content_size(data)
        if size > limit:
            raise LimitExceeded(f"{size} bytes are compressed here, the limit is {limit}", position=0)
        if size < 0:
            raise CorruptRecord("the zstd frame does not say how many bytes it has", position=0)
        if size == 0:
            return b""
        return zstandard.ZstdDecompressor().decompress(data, max_output_size=limit, allow_extra_data=False)
    except zstandard.ZstdError:
        raise CorruptRecord("not a complete zstd frame", position=0) from None
