"""The state of a partition's producers as a broker keeps it, and the files that it keeps it in.

A broker that starts after a clean shutdown trusts these files, and rebuilds a transaction index only if it recovers a
segment: without them even read_committed consumers get the records of aborted transactions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from kafkacodec.errors import DecodeError
from kafkacodec.log.formats import layout
from kafkacodec.log.formats.checkpoints import ProducerSnapshot
from kafkacodec.log.formats.indexes import encode_transaction_index
from kafkacodec.log.partitions.segment import Segment
from kafkacodec.log.reading.markers import by_offset, markers_in
from kafkacodec.log.reading.transactions import TransactionIndex, TransactionTracker
from kafkacodec.log.writing.producers import Producers
from kafkacodec.records.columns import BatchHeaders

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["ProducerState"]


class ProducerState(TransactionTracker):
    """Follows producers through the batches of a log, oldest first.

    Args:
        directory: the partition's directory; reading begins at its newest producer snapshot.
        segments: the existing segments.
        end_offset: the offset after their last record.
    """

    columns = (
        *TransactionTracker.columns,
        "magic",
        "producer_id",
        "producer_epoch",
        "base_sequence",
        "max_timestamp",
        "is_control",
    )

    def __init__(self, directory: str, segments: Sequence[Segment], end_offset: int) -> None:
        super().__init__()
        self._producers = Producers()
        self.read_log(directory, segments, end_offset, None)

    def resume(self, snapshot: ProducerSnapshot) -> None:
        """Start from a producer snapshot."""
        super().resume(snapshot)
        self._producers = Producers(snapshot)

    def _fault_of(self, path: str, error: Exception) -> DecodeError | None:
        """None: a file that cannot be read now may be whole, and files written without it would be wrong."""
        return None

    def feed(
        self, headers: BatchHeaders, data: Buffer, index: TransactionIndex | None = None, *, path: str | None = None
    ) -> None:
        """Take the next batches; arguments as in `TransactionTracker.feed`."""
        super().feed(headers, data, index, path=path)
        ended = {}
        if headers["is_control"].any():
            ended = by_offset(markers_in(data, int(headers["position"][0]), headers.consumed))
        rows = np.flatnonzero((headers["magic"] == 2) & (headers["producer_id"] >= 0))
        names = ("producer_id", "producer_epoch", "base_sequence", "base_offset", "last_offset", "is_control")
        columns = [headers[name][rows].tolist() for name in names]
        times = np.maximum(headers["max_timestamp"][rows].astype(np.int64), -1).tolist()  # null is the smallest number
        for producer, epoch, sequence, first, last, control, time in zip(*columns, times, strict=True):
            if control:
                self._producers.marker(producer, epoch, ended.get(first), time)
            else:
                self._producers.batch(producer, epoch, sequence, first, last, time)

    def files_at(self, base_offset: int, end_offset: int) -> dict[str, bytes]:
        """A segment's files, by name: the producer snapshot at its end, and a transaction index if any was aborted.

        Empty if there are no producers.
        """
        if not self._producers.known:
            return {}
        files = {layout.file_name(end_offset, layout.PRODUCER_SNAPSHOT_SUFFIX): self._producers.snapshot(self.open)}
        entries = self.result(since=base_offset).index_entries(base_offset, end_offset)
        if len(entries):
            files[layout.file_name(base_offset, layout.TRANSACTION_INDEX_SUFFIX)] = encode_transaction_index(
                entries.tolist()
            )
        return files
