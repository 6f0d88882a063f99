"""The small state files of a broker: checkpoints, partition metadata and producer snapshots; their bytes."""

from __future__ import annotations

import base64
import binascii
import os
import uuid
from typing import TYPE_CHECKING, Any

from kafkacodec.datatypes import NamedTuple, dataclass
from kafkacodec.errors import CorruptRecord, CrcMismatch, Truncated, UnsupportedVersion
from kafkacodec.lazy import np
from kafkacodec.log.formats import layout
from kafkacodec.records._crc import crc32c

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

CHECKPOINT_VERSION = 0


class LeaderEpoch(NamedTuple):
    """A leader's term: the epoch and the first offset written in it."""

    epoch: int
    start_offset: int


@dataclass(frozen=True)
class ProducerSnapshot:
    """The state of a partition's producers at an offset, from a ``.snapshot`` file.

    Attributes:
        path (str): the file.
        offset (int): the offset in its name; the state covers all records before it.
        entries (numpy.ndarray): structured, native byte order: producer_id, producer_epoch, last_sequence,
            last_offset, offset_delta, timestamp (milliseconds), coordinator_epoch, current_txn_first_offset (-1 if no
            transaction is open).
    """

    path: str
    offset: int
    entries: npt.NDArray[np.void]

    def __len__(self) -> int:
        return len(self.entries)

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        """One field of all producers."""
        return self.entries[name]


def parse_producer_snapshot(data: bytes, path: str) -> ProducerSnapshot:
    """The contents of a ``.snapshot`` file, whose name is in `path`. Raises as `opening.read_producer_snapshot`."""
    offset = snapshot_offset(path)
    header_size = layout.PRODUCER_SNAPSHOT_HEADER.size
    if len(data) < header_size:
        raise Truncated(f"a producer snapshot has at least {header_size} bytes", position=len(data), path=path)
    version, stored, count = layout.PRODUCER_SNAPSHOT_HEADER.unpack_from(data)
    if version != layout.PRODUCER_SNAPSHOT_VERSION:
        raise UnsupportedVersion(f"unknown producer snapshot version {version}", position=0, path=path)
    computed = crc32c(memoryview(data)[layout.PRODUCER_SNAPSHOT_CRC_FROM :])
    if computed != stored:
        reason = f"the checksum of the snapshot is wrong: computed 0x{computed:08x}, stored 0x{stored:08x}"
        raise CrcMismatch(reason, position=2, path=path)
    whole = (len(data) - header_size) // layout.PRODUCER_SNAPSHOT_ENTRY.itemsize
    if count > whole:
        raise Truncated(f"expected {count} producers, the file has room for {whole}", position=len(data), path=path)
    end = header_size + count * layout.PRODUCER_SNAPSHOT_ENTRY.itemsize
    if count < 0 or end != len(data):
        raise CorruptRecord(f"{count} producers have {end} bytes, the file has {len(data)}", position=6, path=path)
    raw = np.frombuffer(data, layout.PRODUCER_SNAPSHOT_ENTRY.stored, count, header_size)
    return ProducerSnapshot(path, offset, raw.astype(layout.PRODUCER_SNAPSHOT_ENTRY.native))


def snapshot_offset(path: str) -> int:
    """The offset in the name of a ``.snapshot`` file. Raises CorruptRecord: it is none."""
    name = layout.parse_file_name(os.path.basename(path))
    if name is None:
        raise CorruptRecord("the name of a producer snapshot must be an offset of twenty digits", path=path)
    return name.base_offset


def parse_leader_epochs(data: bytes, path: str) -> list[LeaderEpoch]:
    """The contents of a ``leader-epoch-checkpoint``. Raises as `opening.read_leader_epochs`; `path` is for errors."""
    epochs: list[LeaderEpoch] = []
    for number, fields in _checkpoint_lines(data, path, 2):
        epoch = LeaderEpoch(_integer(path, number, fields[0]), _integer(path, number, fields[1]))
        if epochs and not (epoch.epoch > epochs[-1].epoch and epoch.start_offset >= epochs[-1].start_offset):
            raise CorruptRecord(f"line {number}: leader epochs must increase", path=path)
        epochs.append(epoch)
    return epochs


def parse_checkpoint(data: bytes, path: str) -> dict[tuple[str, int], int]:
    """The contents of an offset checkpoint. Raises as `opening.read_leader_epochs`; `path` is for errors."""
    offsets = {}
    for number, fields in _checkpoint_lines(data, path, 3):
        offsets[fields[0], _integer(path, number, fields[1])] = _integer(path, number, fields[2])
    return offsets


def parse_topic_id(data: bytes, path: str) -> uuid.UUID:
    """The topic's id in a ``partition.metadata`` file. Raises as `opening.read_leader_epochs`; `path` is for errors."""
    properties = parse_properties(data, path)
    version = properties.get("version")
    if version != "0":
        raise UnsupportedVersion(f"unknown partition metadata version {version}", path=path)
    try:
        return uuid.UUID(bytes=base64.urlsafe_b64decode(properties.get("topic_id", "") + "=="))
    except (binascii.Error, ValueError):
        raise CorruptRecord(f"invalid topic id: {properties.get('topic_id')!r}", path=path) from None


def parse_properties(data: bytes, path: str) -> dict[str, str]:
    """The ``key=value`` and ``key: value`` lines of a file. Raises as `opening.read_leader_epochs`."""
    properties = {}
    for number, line in enumerate(_lines(data, path), 1):
        if not line or line.startswith("#"):
            continue
        cut = min((line.index(mark) for mark in "=:" if mark in line), default=-1)
        if cut < 0:
            raise CorruptRecord(f"line {number}: neither a comment nor key=value: {line[:80]!r}", path=path)
        properties[line[:cut].strip()] = line[cut + 1 :].strip()
    return properties


def encode_producer_snapshot(entries: Sequence[Iterable[int]]) -> bytes:
    """The bytes of a ``.snapshot`` file, from entries with the fields of `ProducerSnapshot`."""
    body = len(entries).to_bytes(4, "big") + layout.PRODUCER_SNAPSHOT_ENTRY.encoded(entries)
    header = layout.PRODUCER_SNAPSHOT_HEADER.pack(layout.PRODUCER_SNAPSHOT_VERSION, crc32c(body), len(entries))
    return header[: layout.PRODUCER_SNAPSHOT_CRC_FROM] + body


def encode_partition_metadata(topic_id: uuid.UUID) -> bytes:
    """The bytes of a ``partition.metadata`` file."""
    return b"version: 0\ntopic_id: " + base64.urlsafe_b64encode(topic_id.bytes).rstrip(b"=")


def encode_leader_epochs(epochs: list[LeaderEpoch]) -> bytes:
    """The bytes of a ``leader-epoch-checkpoint`` file."""
    lines = [str(CHECKPOINT_VERSION), str(len(epochs)), *(f"{e.epoch} {e.start_offset}" for e in epochs)]
    return ("\n".join(lines) + "\n").encode()


def encode_checkpoint(offsets: dict[tuple[str, int], int]) -> bytes:
    """The bytes of an offset checkpoint file."""
    lines = [str(CHECKPOINT_VERSION), str(len(offsets))]
    lines += [f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()]
    return ("\n".join(lines) + "\n").encode()


def _checkpoint_lines(data: bytes, path: str, num_fields: int) -> list[tuple[int, list[str]]]:
    """The entries of a checkpoint with their line numbers; a version line and a count line precede them."""
    lines = _lines(data, path)
    if not lines:  # brokers leave empty checkpoints
        return []
    if len(lines) < 2:
        raise Truncated("the version line or the count line is missing", path=path)
    version, count = _integer(path, 1, lines[0]), _integer(path, 2, lines[1])
    if version != CHECKPOINT_VERSION:
        raise UnsupportedVersion(f"unknown checkpoint version {version}", path=path)
    entries = [(number, line.split()) for number, line in enumerate(lines[2:], 3) if line.strip()]
    if len(entries) != count:
        raise CorruptRecord(f"expected {count} entries, found {len(entries)}", path=path)
    for number, fields in entries:
        if len(fields) != num_fields:
            raise CorruptRecord(f"line {number}: expected {num_fields} fields, found {len(fields)}", path=path)
    return entries


def _lines(data: bytes, path: str) -> list[str]:
    try:
        return data.decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise CorruptRecord("not UTF-8 text", position=error.start, path=path) from None


def _integer(path: str, number: int, text: str) -> int:
    digits = text.strip()
    if not digits.removeprefix("-").isascii() or not digits.removeprefix("-").isdigit() or len(digits) > 20:
        raise CorruptRecord(f"line {number}: invalid number: {text[:40]!r}", path=path)
    return int(digits)
