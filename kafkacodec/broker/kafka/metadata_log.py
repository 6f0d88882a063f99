"""The records of the metadata log, also of Apache Kafka's: after a snapshot, or before its start."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from kafkacodec.broker.topics.committed import batches
from kafkacodec.log.formats import layout
from kafkacodec.log.growing.refused import DirectoryRefused
from kafkacodec.log.state.metadata_image import complete_records
from kafkacodec.messages.stored import decode_metadata_record
from kafkacodec.records.decode import iter_records

if TYPE_CHECKING:
    from kafkacodec.broker.topics.partition import Partition

__all__ = ["formatted_records", "metadata_records"]

_BOOTSTRAP: Final = "bootstrap.checkpoint"


def metadata_records(partition: Partition) -> Iterator[Any]:
    """Return the valid records: of the newest snapshot, and of the log from its end on.

    Raises:
        DecodeError: a batch or a record is invalid.
        DirectoryRefused: the log starts after the snapshot.
    """
    path = partition.log.path
    snapshot = layout.newest_metadata_snapshot(os.listdir(path))
    begin = 0
    if snapshot is not None:
        name, begin = snapshot
        yield from _records([_read(os.path.join(path, name))])
    if partition.start_offset > begin:
        reason = f"the log begins at offset {partition.start_offset}, and there is no snapshot of earlier records"
        raise DirectoryRefused(errno.EINVAL, reason, path)
    yield from _records(batches(partition, partition.high_watermark, begin))


def formatted_records(path: str, metadata_path: str) -> list[bytes]:
    """Return the records of Apache Kafka's format command for a new metadata log; or nothing.

    Args:
        path: the data directory, where releases before 4.4 leave them.
        metadata_path: of the metadata log.

    Raises:
        DecodeError: it cannot be read.
    """
    for found in (os.path.join(metadata_path, layout.FORMATTED_SNAPSHOT), os.path.join(path, _BOOTSTRAP)):
        if os.path.exists(found):
            return [bytes(record.value) for record in iter_records(_read(found)) if record.value is not None]
    return []


def _records(pieces: Iterable[bytes]) -> Iterator[Any]:
    """Return the records in runs of valid batches."""

    def decoded() -> Iterator[tuple[int, Any]]:
        for data in pieces:
            for record in iter_records(data):
                if record.value is not None:
                    yield record.offset, decode_metadata_record(bytes(record.value))

    for _, record in complete_records(decoded()):
        if record is not None:
            yield record


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
