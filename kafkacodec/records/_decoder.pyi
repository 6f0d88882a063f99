from collections.abc import Callable
from typing import TypeVar

from typing_extensions import Buffer

from kafkacodec.arrow._columns import Allowance, Budget, Table
from kafkacodec.arrow._reader import ImportedArray
from kafkacodec.records._chunk_decoder import ChunkDecoder

_T = TypeVar("_T", bound=Table)

def record_columns() -> list[str]: ...
def header_columns() -> list[str]: ...

class Decoder(ChunkDecoder):
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
        views: bool = False,
        owned: bool = False,
        order: tuple[int, int, bool] | None = None,
        only_control: bool = False,
    ) -> None: ...
    def open(
        self,
        data: Buffer,
        start: int = 0,
        end: int | None = None,
        aborted: Buffer = b"",
        start_offset: int | None = None,
        end_offset: int | None = None,
    ) -> None: ...
    def read_from(
        self, cls: type[_T], data: Buffer, allowance: Allowance | None, max_rows: int, max_bytes: int
    ) -> _T: ...
    def restart(self, start: int) -> None: ...
    def stop_at(self, position: int) -> None: ...
    def reach(self, position: int, target: int) -> int: ...
    def continues(self, before: Decoder, start: int) -> bool: ...
    @property
    def searched(self) -> bool: ...
    @property
    def decompressed_bytes(self) -> int: ...
    def read_many(
        self, cls: type[_T], most: int, max_rows: int, max_bytes: int, enough: int
    ) -> list[tuple[_T, int]]: ...
    def expect(self, chunk: Table, size: int) -> None: ...
    def read_blobs(
        self, table: Table, blobs: ImportedArray, first_row: int, max_rows: int, on_stop: Callable[[int], bool]
    ) -> int: ...

def first_blob(blobs: ImportedArray) -> bytes: ...
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
