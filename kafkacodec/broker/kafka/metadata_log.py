"""The records of the metadata log, also of one that Apache Kafka has left: after a snapshot, or not begun yet."""

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
    """The records that count: of the newest snapshot, and of the log from its end on.

    Raises:
        DecodeError: a batch or a record cannot be read.
        DirectoryRefused: the log begins after the snapshot.
    """
    path = partition.log.path
    snapshot = layout.newest_metadata_snapshot(os.listdir(path))
    begin = 0
    if snapshot is not None:
        name, begin = snapshot
        yield from _records([_read(os.path.join(path, name))])
    if partition.start_offset > begin:
        reason = f"the log begins at offset {partition.start_offset}, and there is no snapshot of what is before"
        raise DirectoryRefused(errno.EINVAL, reason, path)
    yield from _records(batches(partition, partition.high_watermark, begin))


def formatted_records(path: str, metadata_path: str) -> list[bytes]:
    """What a data directory was formatted with by Apache Kafka, which goes into a new metadata log; or nothing.

    Args:
        path: the data directory, in which releases before 4.4 leave it.
        metadata_path: of the metadata log.

    Raises:
        DecodeError: it cannot be read.
    """
    for found in (os.path.join(metadata_path, layout.FORMATTED_SNAPSHOT), os.path.join(path, _BOOTSTRAP)):
        if os.path.exists(found):
            return [bytes(record.value) for record in iter_records(_read(found)) if record.value is not None]
    return []


def _records(pieces: Iterable[bytes]) -> Iterator[Any]:
    """The records in runs of batches that count."""

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
