from typing import final

from typing_extensions import Buffer

@final
class Head:
    @property
    def magic(self) -> int: ...
    @property
    def codec(self) -> int: ...
    @property
    def has_append_time(self) -> bool: ...
    @property
    def is_transactional(self) -> bool: ...
    @property
    def is_sound(self) -> bool: ...
    @property
    def is_plain(self) -> bool: ...
    @property
    def max_timestamp(self) -> int: ...
    @property
    def producer_id(self) -> int: ...
    @property
    def producer_epoch(self) -> int: ...
    @property
    def base_sequence(self) -> int: ...
    @property
    def num_records(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def crc_ok(self) -> bool: ...
    @property
    def records_ok(self) -> bool: ...
    @property
    def largest_timestamp(self) -> int: ...
    def produced(self, data: memoryview, max_timestamp: int, append_time: int) -> Produced: ...

@final
class Produced:
    """A batch that can be appended.

    Attributes:
        data: one record batch of magic 2, in memory that may be written to.
        count: its records.
        max_timestamp: the largest, in milliseconds; -1 for none.
        producer_id, producer_epoch, base_sequence: of its producer; -1 for none.
        is_transactional: whether it is part of a transaction.
        append_time: the time that was written in it; -1 for none.
    """

    data: memoryview
    count: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    is_transactional: bool
    append_time: int

@final
class Appended:
    """What became of a batch.

    Attributes:
        code: 0, or why its sequence was refused.
        base_offset: its first offset; -1 for none.
        append_time: the time that the answer has; -1 for none.
    """

    code: int
    base_offset: int
    append_time: int
    def __init__(self, code: int, base_offset: int = -1, append_time: int = -1) -> None: ...

NO_BATCH: int
CORRUPT: int
BATCH: int
TRANSACTIONAL: int

def glance(data: Buffer) -> int: ...
def read_head(data: Buffer) -> tuple[Head | None, int]: ...
