"""Renumbering of a segment in place, for jobs that do not know the number of records that others write."""

from __future__ import annotations

import os

from kafkacodec.errors import DecodeError
from kafkacodec.log.files.access import naming
from kafkacodec.log.opening import open_file
from kafkacodec.log.writing._renumber import renumber

__all__ = ["renumber_segment"]


def renumber_segment(path: str, *, by: int, leader_epoch: int) -> int:
    """Add to the base offsets of all batches and set their leader epoch, in place.

    Checksums cover neither, and everything else in a segment and its indexes is relative to the base offset. After an
    error some batches may have been changed.

    Args:
        path: a segment of complete record batches of magic 2.
        by: the number to add to each offset.
        leader_epoch: the new leader epoch.

    Returns:
        The offset after the last one; `by` if there is no batch.

    Raises:
        DecodeError: the file has other bytes than complete record batches; the batches before them are changed.
        EncodeError: an offset would be negative, or 2^63 - 1.
        OSError: the file cannot be read or written.
    """
    position, end = 0, by
    with open_file(path) as source, naming(path), open(path, "r+b", buffering=0) as file:
        while position < source.size:
            try:
                heads, position, end = renumber(source.view(), position, by, leader_epoch)
                source.check_size()
            except DecodeError as error:
                raise error.within(path) from None
            for at, head in heads:
                _write(file.fileno(), head, at)
    return end


def _write(descriptor: int, data: bytes, position: int) -> None:
    while data:
        written = os.pwrite(descriptor, data, position)
        data, position = data[written:], position + written
