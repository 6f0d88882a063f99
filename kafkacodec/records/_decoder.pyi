from collections.abc import Callable, Iterable, Iterator
from typing import Self, TypeVar

from typing_extensions import Buffer

from kafkacodec.arrow._columns import Budget, Table
from kafkacodec.arrow._reader import ImportedArray

_T = TypeVar("_T", bound=Table)
_R = TypeVar("_R")

def record_columns() -> list[str]: ...
def header_columns() -> list[str]: ...

class Decoder:
    fault: Exception | None
    exhausted: bool
    done: bool
    position: int
    size: int
    base_offset: int | None
    def __init__(
        self,
        data: Buffer = b"",
        *,
        wanted: int,
        verify_crc: bool,
        include_control: bool,
        start_offset: int,
        end_offset: int,
        limit: int,
        search_partial: bool = False,
        start: int = 0,
        end: int | None = None,
        aborted: Buffer = b"",
        budget: Budget | None = None,
    ) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exception: object) -> None: ...
    def open(self, data: Buffer, start: int = 0, end: int | None = None, aborted: Buffer = b"") -> None: ...
    def stop_at(self, position: int) -> None: ...
    @property
    def searched(self) -> bool: ...
    def read(self, cls: type[_T], max_rows: int, max_bytes: int, whole: bool = False) -> _T: ...
    def read_on(self, chunk: Table, max_rows: int, max_bytes: int) -> None: ...
    def skip(self) -> int: ...
    def expect(self, chunk: Table, size: int) -> None: ...
    def empty_table(self, cls: type[_T]) -> _T: ...
    def place(self, chunk: Table, topic: str, partition: int) -> None: ...
    def read_blobs(
        self, table: Table, blobs: ImportedArray, first_row: int, max_rows: int, settle: Callable[[int], bool]
    ) -> int: ...
    def take_fault(self) -> Exception | None: ...

def scan(
    cls: type[_T],
    data: Buffer,
    wanted: int,
    verify_crc: bool,
    start: int = 0,
    end: int | None = None,
    max_batches: int = ...,
    budget: Budget | None = None,
) -> tuple[_T, int, int, Exception | None, bool]: ...
def scan_stretches(cls: type[_T], data: Buffer, wanted: int, stretches: Buffer) -> _T: ...

class RecordIterator(Iterator[_R]):
    def __init__(self, chunks: Iterable[Table], cls: type[_R], recycle: bool = ...) -> None: ...
    def __next__(self) -> _R: ...
