from typing import final

from typing_extensions import Buffer

@final
class HeldBuffer:
    """The bytes of a buffer, exported for the lifetime of this object."""

    def __init__(self, data: Buffer, end: int | None = None) -> None: ...

@final
class Block:
    """Bytes that can be changed, in memory of the library's pool. It has the buffer protocol."""

def fresh(size: int) -> memoryview: ...
def octets(data: Buffer) -> memoryview: ...
