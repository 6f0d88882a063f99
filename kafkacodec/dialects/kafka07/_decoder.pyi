from typing import Self, TypeVar

from typing_extensions import Buffer

from kafkacodec.arrow._columns import Budget, Table

_T = TypeVar("_T", bound=Table)

def columns() -> list[str]: ...

class Decoder:
    fault: Exception | None
    exhausted: bool
    done: bool
    position: int
    size: int
    base_offset: int | None
    def __init__(
        self,
        data: Buffer,
        *,
        wanted: int,
        verify_crc: bool,
        deep: bool,
        initial_offset: int,
        limit: int,
        budget: Budget | None = None,
    ) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exception: object) -> None: ...
    def read(self, cls: type[_T], max_rows: int, max_bytes: int, whole: bool = False) -> _T: ...
    def read_on(self, chunk: Table, max_rows: int, max_bytes: int) -> None: ...
    def skip(self) -> int: ...
    def take_fault(self) -> Exception | None: ...

def encode_message(payload: Buffer, magic: int, codec: int) -> bytes: ...
