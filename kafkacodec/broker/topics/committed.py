"""Committed records of a partition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from kafkacodec.errors import DecodeError
from kafkacodec.records.decode import decode
from kafkacodec.records.headers import scan

if TYPE_CHECKING:
    from kafkacodec.broker.topics.partition import Partition
    from kafkacodec.records.columns import RecordColumns

__all__ = ["aborted_batches", "batches", "committed_batches", "committed_records"]

_READ_BYTES: Final = 1 << 20
_COLUMNS: Final = (
    "position", "size_in_bytes", "base_offset", "last_offset", "producer_id", "is_transactional", "is_control",
)  # fmt: skip


def batches(partition: Partition, end: int, begin: int = 0) -> Iterator[bytes]:
    """Yield the batches of a partition in runs, from the one with an offset up to another offset."""
    for data, _ in _runs(partition, end, begin):
        yield data


def committed_batches(partition: Partition) -> Iterator[bytes]:
    """The batches up to the last stable offset, without markers and aborted transactions."""
    for data, aborted in _runs(partition, partition.last_stable_offset):
        yield b"".join(_kept(data, aborted))


def committed_records(partitions: Iterable[Partition]) -> Callable[[], RecordColumns]:
    """A function that decodes the committed records of partitions, one after another.

    It raises DecodeError, whose path names the partition.
    """
    pieces = {"{}-{}".format(*one.key): b"".join(committed_batches(one)) for one in partitions}

    def read() -> RecordColumns:
        try:
            return decode(b"".join(pieces.values()), columns=None)
        except DecodeError:
            for name, data in pieces.items():
                _refuse_damaged(name, data)
            raise

    return read


def _refuse_damaged(name: str, data: bytes) -> None:
    try:
        decode(data)
    except DecodeError as error:
        raise error.within(name) from None


def _runs(partition: Partition, end: int, begin: int = 0) -> Iterator[tuple[bytes, list[tuple[int, int]]]]:
    """Whole batches, and the aborted transactions in them."""
    offset = max(partition.start_offset, begin)
    while offset < end:
        found = partition.log.read(offset, _READ_BYTES, upto=end)
        data = found.read()
        heads = scan(data, columns=("last_offset",), verify_crc=False, on_error="stop")
        if not len(heads):
            return
        yield data[: heads.consumed], partition.log.aborted_in(found, offset)
        offset = heads[-1].last_offset + 1


def aborted_batches(data: bytes, aborted: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """First and last offset of the batches of aborted transactions, without their markers; a piece at the end is none.

    Args:
        data: batches.
        aborted: the aborted transactions in them: producer id and first offset.
    """
    for _, _, base, last, is_control, is_aborted in _judged(data, aborted):
        if is_aborted and not is_control:
            yield base, last


def _kept(data: bytes, aborted: Iterable[tuple[int, int]]) -> Iterator[bytes]:
    for position, size, _, _, is_control, is_aborted in _judged(data, aborted):
        if not (is_control or is_aborted):
            yield data[position : position + size]


def _judged(data: bytes, aborted: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int, int, int, bool, bool]]:
    """Position, size, first and last offset of each batch, whether it is a marker, and whether it is aborted."""
    heads = scan(data, columns=_COLUMNS, verify_crc=False, on_error="stop")
    waiting = sorted((first, producer) for producer, first in aborted)
    open_now: set[int] = set()
    rows = zip(*(heads[name].tolist() for name in _COLUMNS), strict=True)
    for position, size, base, last, producer, transactional, control in rows:
        while waiting and waiting[0][0] <= base:
            open_now.add(waiting.pop(0)[1])
        yield position, size, base, last, bool(control), bool(transactional and producer in open_now)
        if control:
            open_now.discard(producer)
