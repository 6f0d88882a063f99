"""A KRaft cluster's metadata at the end of its metadata log: the last snapshot and the records after it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Unpack

from kafkacodec.arguments import require_list
from kafkacodec.errors import DecodeError
from kafkacodec.internal_records import CLUSTER_METADATA
from kafkacodec.log.formats import layout
from kafkacodec.log.opening import entries
from kafkacodec.log.partitions.directory import discover
from kafkacodec.log.partitions.partition import Partition
from kafkacodec.log.partitions.segment import Segment
from kafkacodec.log.state.metadata_image import ClusterMetadata, complete_records
from kafkacodec.log.state.stored import note_record, sound_chunks
from kafkacodec.messages.stored import decode_metadata_record
from kafkacodec.records.plan import DecodeOptions
from kafkacodec.signatures import suggests_options

__all__ = ["read_cluster_metadata"]


@suggests_options
def read_cluster_metadata(
    path: str | os.PathLike[str], *, problems: list[DecodeError] | None = None
) -> ClusterMetadata:
    """Read the cluster metadata from a controller's or a broker's data directory.

    Records of a metadata transaction count when it ends; those of an aborted or open one do not (KIP-868).

    Args:
        path: the data directory, or the directory of the metadata log.
        problems: a list that the errors of unreadable batches and records are appended to; these are skipped. Without
            it the first such error is raised.

    Raises:
        FileNotFoundError: there is no metadata log, or its start and a snapshot of it are both missing.
        DecodeError: a batch or a record cannot be read; the error's path names the file, or the log and the offset.
    """
    require_list("problems", problems)
    partitions = [found for found in discover(path) if found.topic == CLUSTER_METADATA and found.state == "current"]
    if not partitions:
        raise FileNotFoundError(2, "no metadata log", os.path.join(os.fspath(path), f"{CLUSTER_METADATA}-0"))
    log = partitions[0]
    state = ClusterMetadata()

    def counted() -> Iterator[tuple[int, Any]]:
        for offset, record in _records(log, problems):
            state.offset = offset + 1
            yield offset, record

    for offset, record in complete_records(counted()):
        try:
            state.apply(record)
        except DecodeError as error:
            note_record(error, log.path, offset, problems)
    return state


def _records(partition: Partition, problems: list[DecodeError] | None) -> Iterator[tuple[int, Any]]:
    """The last snapshot's records, then those of the log from where it ends."""
    start = 0
    snapshot = layout.newest_metadata_snapshot(e.name for e in entries(partition.path))
    if snapshot is not None:
        name, start = snapshot
        for _, record in _decoded(Segment(os.path.join(partition.path, name)), problems):
            yield start - 1, record
    first = partition.start_offset()
    if first > start:
        missing = f"the metadata log begins at offset {first}, and there is no snapshot of the records before it"
        raise FileNotFoundError(2, missing, partition.path)
    yield from _decoded(partition, problems, start_offset=start)


def _decoded(
    log: Partition | Segment, problems: list[DecodeError] | None, **options: Unpack[DecodeOptions]
) -> Iterator[tuple[int, Any]]:
    for chunk in sound_chunks(log, problems, **options):
        for record in chunk.records():
            if record.value is None:
                continue
            try:
                found = decode_metadata_record(record.value)
            except DecodeError as error:
                note_record(error, log.path, record.offset, problems)
                continue
            yield record.offset, found
