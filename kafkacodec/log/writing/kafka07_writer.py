"""Writes a log of Kafka 0.7: segments (``.kafka``) whose messages have values only."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterable, Iterator
from secrets import token_hex
from typing import Any, BinaryIO

from kafkacodec.arguments import one_of, require_int
from kafkacodec.dialects.kafka07.message_set import Codec, encode_messages
from kafkacodec.errors import EncodeError
from kafkacodec.log.files.locks import PartitionLock
from kafkacodec.log.formats import layout
from kafkacodec.records.compression import CODECS

__all__ = ["CODECS07", "Kafka07Writer"]

CODECS07 = CODECS[:3]
"""The compression that Kafka 0.7 knows: none, gzip and snappy."""

_DEFAULT_SEGMENT_BYTES = 1 << 30
_DEFAULT_BATCH_BYTES = 1 << 16


class Kafka07Writer:
    """Writes a new partition, which exists only after `commit`, and then completely.

    Args:
        log_dir: the log directory; created if missing.
        topic, partition: the partition; its directory is ``topic-partition``.
        segment_bytes: a segment ends before a set once it is as large, in bytes.
        batch_bytes: messages of so many bytes are in one set, and, if compressed, in one message.
        codec: ``none``, ``gzip`` or ``snappy``.

    Attributes:
        path (str): the partition's directory.
        next_offset (int): the offset of the next message: its position.

    Raises:
        ValueError: a topic cannot have this name, or a number or codec is wrong.
        FileExistsError: the partition exists.
        BlockingIOError: a broker or another writer has it.
        OSError: the destination cannot be written.
    """

    def __init__(
        self, log_dir: str, topic: str, partition: int, *, segment_bytes: int = _DEFAULT_SEGMENT_BYTES,
        batch_bytes: int = _DEFAULT_BATCH_BYTES, codec: Codec = "none",
    ) -> None:  # fmt: skip
        layout.check_topic(topic)
        require_int("partition", partition, 0, 2**31 - 1)
        require_int("segment_bytes", segment_bytes, 1, 2**31 - 1)
        require_int("batch_bytes", batch_bytes, 1, 2**31 - 1)
        one_of("codec", codec, CODECS07)
        self._segment_bytes, self._batch_bytes, self._codec = segment_bytes, batch_bytes, codec
        self.path = os.path.join(log_dir, f"{topic}-{partition}")
        self.next_offset = self._start = 0
        self._file: BinaryIO | None = None
        self._is_there = False
        os.makedirs(log_dir, exist_ok=True)
        self._lock = PartitionLock(log_dir, os.path.basename(self.path))
        self._lock.acquire(0.0)
        try:
            if os.path.lexists(self.path):
                raise FileExistsError(errno.EEXIST, "the partition exists", self.path)
            self._unfinished = os.path.join(log_dir, f".{topic}-{partition}.{token_hex(8)}.unfinished")
            os.mkdir(self._unfinished)
        except BaseException:
            self._lock.release()
            raise

    def write(self, records: Any) -> int:
        """Write the values of an Arrow record batch, whose column ``value`` is binary or text; returns their number.

        Raises:
            EncodeError: a value is null, which no message of Kafka 0.7 is.
            OSError: a segment cannot be written.
        """
        values = records.column("value").to_pylist()
        for some in self._sets(value.encode() if isinstance(value, str) else value for value in values):
            data = encode_messages(some, codec=self._codec)
            if self._file is None or self.next_offset - self._start >= self._segment_bytes:
                self._begin()
            assert self._file is not None
            self._file.write(data)
            self.next_offset += len(data)
        return len(values)

    def commit(self) -> None:
        """Publish the partition, synced to disk, and release the lock. Raises OSError: it is not published."""
        if self._file is None:
            self._begin()
        self._end()
        os.rename(self._unfinished, self.path)
        self._is_there = True
        descriptor = os.open(os.path.dirname(self.path) or ".", os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        self._lock.release()

    def withdraw(self) -> None:
        """Remove everything that was written, and release the lock."""
        if self._file is not None:
            self._file.close()
        shutil.rmtree(self.path if self._is_there else self._unfinished, ignore_errors=True)
        self._lock.release()

    def _sets(self, values: Iterable[bytes | None]) -> Iterator[list[bytes]]:
        found: list[bytes] = []
        size = 0
        for row, value in enumerate(values):
            if value is None:
                raise EncodeError("a null value: a message of Kafka 0.7 always has one", path=f"records[{row}]")
            if found and size + len(value) > self._batch_bytes:
                yield found
                found, size = [], 0
            found.append(value)
            size += len(value)
        if found:
            yield found

    def _begin(self) -> None:
        self._end()
        self._start = self.next_offset
        name = layout.file_name(self._start, layout.KAFKA07_SUFFIX)
        self._file = open(os.path.join(self._unfinished, name), "xb")  # noqa: SIM115

    def _end(self) -> None:
        if self._file is not None:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
