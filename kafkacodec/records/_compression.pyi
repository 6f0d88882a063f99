from typing_extensions import Buffer

class Decompressor:
    """Decompresses payloads, reusing contexts and memory. Not thread-safe."""

    def __init__(self, *, direct: bool = True) -> None: ...
    def decompress(self, codec: int, data: Buffer, *, magic: int = 2, limit: int) -> bytes: ...

def direct_codecs() -> set[int]:
    """The codecs that are decompressed by C functions of their libraries, without the interpreter's lock."""

def compress_snappy(data: Buffer) -> bytes:
    """Blocks of 32 KiB in xerial framing."""

def with_old_lz4_checksum(frame: bytes) -> bytes:
    """The LZ4 frame with the header checksum of clients of magic 0, which includes the frame's magic bytes."""

class Lz4Frames:
    """Compresses records into LZ4 frames by the functions that the package lz4 exports, without new memory for each.

    The frames are those of ``lz4.frame.compress`` with independent blocks and no optional fields.
    """

    def __init__(self, level: int) -> None: ...
    @property
    def is_there(self) -> bool:
        """Whether the package exports them."""

    def __call__(self, data: Buffer) -> memoryview: ...
