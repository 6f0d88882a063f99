"""The contents of control batches: which transactions they end, and how."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from kafkacodec.records.columns import BatchHeaders
from kafkacodec.records.decode import iter_records

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["Marker", "marker_of", "marker_type", "markers_of"]


class Marker(NamedTuple):
    """The contents of a transaction's control batch."""

    kind: int
    coordinator_epoch: int
    timestamp: int


def marker_type(key: bytes | None) -> int | None:
    """The type of a control record: the second int16 of its key. None if the key is too short."""
    return None if key is None or len(key) < 4 else int.from_bytes(key[2:4], "big")


def markers_of(
    headers: BatchHeaders, rows: npt.NDArray[np.intp], read: Callable[[int, int], bytes]
) -> dict[int, Marker]:
    """The contents of control batches, by offset, without those that cannot be read.

    Args:
        headers: of batches.
        rows: which are control batches.
        read: the bytes at a position of the headers, of a size.
    """
    if not len(rows):
        return {}
    starts, sizes = headers["position"][rows].tolist(), headers["size_in_bytes"][rows].tolist()
    return _markers_in(b"".join(map(read, starts, sizes)))


def marker_of(batch: bytes) -> Marker | None:
    """The contents of one control batch; None if they cannot be read."""
    return next(iter(_markers_in(batch).values()), None)


def _markers_in(data: bytes) -> dict[int, Marker]:
    found = {}
    for record in iter_records(data, include_control=True, on_error="skip"):
        kind = marker_type(record.key)
        if kind is not None:
            # An EndTxnMarker: version, epoch of the coordinator.
            epoch = int.from_bytes((record.value or b"")[2:6], "big", signed=True)
            time = -1 if record.timestamp is None else record.timestamp
            found[record.offset] = Marker(kind, epoch, time)
    return found
