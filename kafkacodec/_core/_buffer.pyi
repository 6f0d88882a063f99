from typing import final

from typing_extensions import Buffer

@final
class HeldBuffer:
    """The bytes of a buffer, exported once and held as long as this object lives."""

    def __init__(self, data: Buffer, end: int | None = None) -> None: ...
