"""The contents of control batches: the transactions that they commit or abort."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkacodec.datatypes import NamedTuple
from kafkacodec.lazy import np
from kafkacodec.records.decode import iter_records
from kafkacodec.records.plan import DEFAULT_MAX_BYTES, DEFAULT_MAX_ROWS, plan_of
from kafkacodec.records.reading import read_chunks

if TYPE_CHECKING:
    import numpy.typing as npt
    from typing_extensions import Buffer

    from kafkacodec.records.columns import RecordColumns

__all__ = ["MARKERS", "Marker", "by_offset", "marker_of", "marker_type", "markers_in"]

MARKERS = [("offset", "i8"), ("kind", "i4"), ("coordinator_epoch", "i4"), ("timestamp", "i8")]
"""Markers as rows: each with its offset, and the attributes of `Marker`."""

_KEY_BYTES, _VALUE_BYTES = 4, 6
"""The sizes of the key and the value of an EndTxnMarker of version 0."""

_PLAN = plan_of(columns=("offset", "timestamp", "key", "value"), include_control=True, on_error="skip")._replace(
    only_control=True
)


class Marker(NamedTuple):
    """The contents of a transaction's control batch."""

    kind: int
    coordinator_epoch: int
    timestamp: int


def marker_type(key: bytes | None) -> int | None:
    """The type of a control record: the second int16 of its key. None if the key is too short."""
    return None if key is None or len(key) < 4 else int.from_bytes(key[2:4], "big")


def _coordinator_epoch(value: bytes | None) -> int:
    """The coordinator epoch of an EndTxnMarker, which follows its version."""
    return int.from_bytes((value or b"")[2:6], "big", signed=True)


def marker_of(batch: bytes) -> Marker | None:
    """The contents of one control batch; None if they cannot be read."""
    for record in iter_records(batch, include_control=True, on_error="skip"):
        kind = marker_type(record.key)
        if kind is not None:
            time = -1 if record.timestamp is None else record.timestamp
            return Marker(kind, _coordinator_epoch(record.value), time)
    return None


def markers_in(data: Buffer, start: int = 0, end: int | None = None) -> npt.NDArray[np.void]:
    """The control records in data[start, end), as `MARKERS`, without those that cannot be read.

    A batch begins at `start`. Batches of other records are not verified.
    """
    chunks = read_chunks(_PLAN.decoder(data, start, end), _PLAN.on_error, DEFAULT_MAX_ROWS, DEFAULT_MAX_BYTES)
    return np.concatenate([np.empty(0, MARKERS), *map(_markers, chunks)])


def by_offset(markers: npt.NDArray[np.void]) -> dict[int, Marker]:
    """The same as objects."""
    return {offset: Marker(*rest) for offset, *rest in markers.tolist()}


def _markers(chunk: RecordColumns) -> npt.NDArray[np.void]:
    rows = len(chunk)
    found = np.empty(rows, MARKERS)
    times = chunk["timestamp"]
    found["offset"], found["timestamp"] = chunk["offset"], np.where(np.isnat(times), -1, times.astype(np.int64))
    keys, values = _of_one_size(chunk, "key", _KEY_BYTES), _of_one_size(chunk, "value", _VALUE_BYTES)
    if keys is not None and values is not None:
        found["kind"] = keys.view(">u2")[:, 1]
        found["coordinator_epoch"] = np.ascontiguousarray(values[:, 2:]).view(">i4")[:, 0]
        return found
    kinds = list(map(marker_type, chunk["key"]))
    found["kind"] = [kind or 0 for kind in kinds]
    found["coordinator_epoch"] = list(map(_coordinator_epoch, chunk["value"]))
    return found[[kind is not None for kind in kinds]]


def _of_one_size(chunk: RecordColumns, name: str, size: int) -> npt.NDArray[np.uint8] | None:
    """The bytes of a column, a row for each value; None if one is null or has another size."""
    buffers = chunk.buffers(name)
    if buffers["validity"] is not None or (np.diff(buffers["offsets"]) != size).any():
        return None
    data: npt.NDArray[np.uint8] = buffers["data"]
    return data.reshape(len(chunk), size)
