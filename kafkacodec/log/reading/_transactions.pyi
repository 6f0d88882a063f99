from collections.abc import Mapping
from typing import Final, final

from typing_extensions import Buffer

COMPRESSED: Final[int]
UNREADABLE: Final[int]

@final
class OpenTransactions:
    def __init__(self, first_offsets: Mapping[int, int], committed: bool) -> None: ...
    def first_offsets(self) -> dict[int, int]: ...
    def follow(self, data: Buffer, positions: Buffer) -> tuple[bytes, bytes]: ...
