"""Inspection of snapshots, checkpoints and metadata files: whether they can be read, and match the log.

A contradiction to the log is a warning: no record is lost by it, and a broker corrects the value or refuses to start.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final

from kafkacodec.errors import KafkaCodecError, Truncated
from kafkacodec.log.checking.report import Finding, Report
from kafkacodec.log.files.access import reason_of
from kafkacodec.log.formats import layout
from kafkacodec.log.formats.checkpoints import LeaderEpoch, ProducerSnapshot
from kafkacodec.log.opening import entries
from kafkacodec.log.opening.checkpoints import read_checkpoint, read_producer_snapshot, read_topic_id

_NEW_SECONDS: Final = 2.0
_TRIES: Final = 5
_PAUSE_SECONDS: Final = 0.02

# Offset checkpoints of a log directory -> the meaning of their offsets, none of which can be after the end of the log.
_MEANINGS = {
    layout.HIGH_WATERMARK_CHECKPOINT: "the high watermark",
    layout.LOG_START_CHECKPOINT: "the log start offset",
    layout.CLEANER_CHECKPOINT: "the cleaner's offset",
}


@contextmanager
def reporting(report: Report, kind: str, path: str) -> Iterator[None]:
    """Turns an error in a file into a finding. A missing file is not one: brokers omit empty files."""
    try:
        yield
    except FileNotFoundError:
        pass
    except (OSError, KafkaCodecError) as error:
        position = getattr(error, "position", None)
        report.add(Finding("warning", kind, path, f"cannot be read: {reason_of(error)}", position))


def check_partition_files(
    directory: str, epochs: list[LeaderEpoch], end_offset: Callable[[], int] | None, report: Report
) -> None:
    """Read the producer snapshots and the topic id; compare them and the leader epochs with the log's end.

    `end_offset`, if known, is called last: a log that is being written runs ahead of these files.
    """
    snapshots: list[ProducerSnapshot] = []
    for name in sorted(entry.name for entry in entries(directory)):
        if layout.is_named_beyond_offsets(name):
            text = "the file is not read: the number in its name is too large for an offset"
            report.add(Finding("error", "unread", os.path.join(directory, name), text))
        if name.endswith(layout.PRODUCER_SNAPSHOT_SUFFIX):
            path = os.path.join(directory, name)
            with reporting(report, "producer-snapshot", path):
                snapshots.append(_snapshot(path))
    end = math.inf if end_offset is None else end_offset()
    for snapshot in snapshots:
        _check_snapshot(snapshot, end, report)
    path = os.path.join(directory, layout.LEADER_EPOCH_CHECKPOINT)
    for epoch in epochs:
        if epoch.start_offset > end:
            text = f"leader epoch {epoch.epoch} begins at {epoch.start_offset}, but the log ends at {end}"
            report.add(Finding("warning", "leader-epoch", path, text, first_offset=epoch.start_offset))
    path = os.path.join(directory, layout.PARTITION_METADATA)
    with reporting(report, "partition-metadata", path):
        read_topic_id(path)


def _snapshot(path: str) -> ProducerSnapshot:
    """Read a snapshot. A broker writes it under its final name: a short one, if it is new, may be whole soon."""
    for _ in range(_TRIES):
        with suppress(Truncated):
            return read_producer_snapshot(path)
        if not _is_new(path):
            break
        time.sleep(_PAUSE_SECONDS)
    return read_producer_snapshot(path)


def _is_new(path: str) -> bool:
    try:
        return time.time() - os.stat(path).st_mtime < _NEW_SECONDS
    except OSError:  # in an object store, for example, where files appear whole
        return False


def _check_snapshot(snapshot: ProducerSnapshot, end: float, report: Report) -> None:
    path = snapshot.path
    if snapshot.offset > end:
        text = f"the snapshot was taken at offset {snapshot.offset}, but the log ends at {end}"
        report.add(Finding("warning", "producer-snapshot", path, text, first_offset=snapshot.offset))
    last = int(snapshot["last_offset"].max(initial=-1))
    if last >= snapshot.offset:
        text = f"a producer's last offset is {last}, after the snapshot's offset"
        report.add(Finding("warning", "producer-snapshot", path, text, first_offset=last))


def check_offset_checkpoints(
    directory: str, end_offsets: Callable[[], Mapping[tuple[str, int], int]], report: Report
) -> None:
    """Compare the offset checkpoints of a log directory with the logs' ends; entries of other partitions are ignored.

    The recovery point is compared when a partition is inspected: a log that ends before it has lost records.
    `end_offsets` is called last: logs that are being written run ahead of their checkpoints.
    """
    known: dict[str, dict[tuple[str, int], int]] = {}
    for name in layout.OFFSET_CHECKPOINTS:
        path = os.path.join(directory, name)
        with reporting(report, "checkpoint", path):
            known[name] = read_checkpoint(path)
    ends = end_offsets()
    for name, meaning in _MEANINGS.items():
        for (topic, partition), offset in known.get(name, {}).items():
            end = ends.get((topic, partition))
            if end is not None and offset > end:
                text = f"{meaning} of {topic}-{partition} is {offset}, but the log ends at {end}"
                path = os.path.join(directory, name)
                report.add(Finding("warning", "checkpoint", path, text, first_offset=end, end_offset=offset))
