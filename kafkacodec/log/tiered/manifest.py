"""Manifests: the objects that describe how a segment was uploaded, and where its parts are.

Source: the plugin's own manifests, version 1; `Fields` checks what they must have.
"""

from __future__ import annotations

import uuid

from kafkacodec.datatypes import NamedTuple, dataclass
from kafkacodec.errors import UnsupportedVersion
from kafkacodec.log.formats import layout
from kafkacodec.log.formats.checkpoints import LeaderEpoch
from kafkacodec.log.tiered.chunks import ChunkIndex, chunk_index
from kafkacodec.log.tiered.fields import Fields

__all__ = ["LEADER_EPOCHS", "MANIFEST_SUFFIX", "MAX_MANIFEST_BYTES", "Encryption", "Manifest", "Part", "parse_manifest"]

MANIFEST_SUFFIX = ".rsm-manifest"
MAX_MANIFEST_BYTES = 16 << 20

LEADER_EPOCHS = ".leader_epoch_checkpoint"
"""The suffix under which the leader epochs at the end of a segment are read, as in Kafka's own remote storage."""

_INDEXES = {
    "offset": layout.OFFSET_INDEX_SUFFIX,
    "timestamp": layout.TIME_INDEX_SUFFIX,
    "producerSnapshot": layout.PRODUCER_SNAPSHOT_SUFFIX,
    "leaderEpoch": LEADER_EPOCHS,
    "transaction": layout.TRANSACTION_INDEX_SUFFIX,
}
_MAX_INT, _MAX_LONG = 2**31 - 1, 2**63 - 1


class Part(NamedTuple):
    """The place of an index in the object of the indexes, in bytes."""

    position: int
    size: int


@dataclass(frozen=True)
class Encryption:
    """How the chunks and indexes are encrypted (AES-256-GCM).

    Attributes:
        key_id (str): the name of the RSA key pair that the data key is encrypted with.
        data_key (bytes): the data key, encrypted.
        aad (bytes): the data authenticated with each chunk.
    """

    key_id: str
    data_key: bytes
    aad: bytes


@dataclass(frozen=True)
class Manifest:
    """The contents of a manifest.

    Attributes:
        path (str): its path or URL.
        topic (str), topic_id (uuid.UUID), partition (int): the partition.
        segment_id (str): the upload's id, base64.
        start_offset, end_offset (int): the offsets of the first and the last record.
        leader_epochs (tuple[LeaderEpoch, ...]): those of the segment; the first begins with the segment.
        uploaded_ms (int): when the upload began, in ms since 1970.
        chunks (ChunkIndex): of the segment.
        indexes (dict[str, Part]): by suffix; the leader epochs by `LEADER_EPOCHS`.
        compressed (bool): whether the chunks of the segment are compressed (zstd).
        encryption (Encryption | None): None: chunks and indexes are not encrypted.
    """

    path: str
    topic: str
    topic_id: uuid.UUID
    partition: int
    segment_id: str
    start_offset: int
    end_offset: int
    leader_epochs: tuple[LeaderEpoch, ...]
    uploaded_ms: int
    chunks: ChunkIndex
    indexes: dict[str, Part]
    compressed: bool
    encryption: Encryption | None


def parse_manifest(data: bytes, path: str) -> Manifest:
    """Read a manifest.

    Raises:
        CorruptRecord: not JSON, or fields that are missing or contradict one another; the message names the field.
        LimitExceeded: chunks too large to be read.
        UnsupportedVersion: another version than 1.
    """
    fields = Fields.parse(data, path)
    version = fields.text("version")
    if version != "1":
        raise UnsupportedVersion(f"the manifest has version {version[:20]!r}; only version 1 is read", path=path)
    segment = fields.inner("remoteLogSegmentMetadata")
    identity = segment.inner("remoteLogSegmentId")
    partition = identity.inner("topicIdPartition")
    named = partition.inner("topicPartition")
    start = segment.number("startOffset", 0, _MAX_LONG - 1)
    end = segment.number("endOffset", start, _MAX_LONG - 1)
    return Manifest(
        path=path,
        topic=named.text("topic"),
        topic_id=_topic_id(partition),
        partition=named.number("partition", 0, _MAX_INT),
        segment_id=identity.text("id"),
        start_offset=start,
        end_offset=end,
        leader_epochs=_leader_epochs(segment.inner("segmentLeaderEpochs"), start, end),
        uploaded_ms=segment.number("eventTimestampMs", -_MAX_LONG, _MAX_LONG),
        chunks=chunk_index(fields.inner("chunkIndex")),
        indexes=_indexes(fields.inner("segmentIndexes")),
        compressed=fields.flag("compression"),
        encryption=_encryption(fields.inner("encryption")) if fields.has("encryption") else None,
    )


def _topic_id(fields: Fields) -> uuid.UUID:
    text = fields.text("topicId")
    data = fields.decoded("topicId", text.replace("-", "+").replace("_", "/") + "==")
    if len(data) != 16:
        raise fields.fault("topicId", f"has {len(data)} bytes, not 16")
    return uuid.UUID(bytes=data)


def _leader_epochs(fields: Fields, start: int, end: int) -> tuple[LeaderEpoch, ...]:
    names = {name: int(name) for name in fields.values if name.isascii() and name.isdecimal() and len(name) <= 10}
    if not fields.values or len(names) < len(fields.values):
        raise fields.fault("", "has a name that is not a leader epoch" if fields.values else "is empty")
    if len(set(names.values())) < len(names) or max(names.values()) > _MAX_INT:
        raise fields.fault("", "has a leader epoch twice, or one of more than 31 bits")
    found: list[LeaderEpoch] = []
    for name in sorted(names, key=lambda name: names[name]):
        lowest = found[-1].start_offset if found else 0
        found.append(LeaderEpoch(names[name], fields.number(name, lowest, end + 1)))
    if found[0].start_offset > start:
        raise fields.fault(str(found[0].epoch), f"is {found[0].start_offset}, after the segment's first offset {start}")
    return tuple(found)


def _indexes(fields: Fields) -> dict[str, Part]:
    found = {}
    for name, suffix in _INDEXES.items():
        if name == "transaction" and not fields.has(name):  # no transaction was aborted
            continue
        part = fields.inner(name)
        found[suffix] = Part(part.number("position", 0, _MAX_INT), part.number("size", 0, _MAX_INT))
    return found


def _encryption(fields: Fields) -> Encryption:
    key_id, colon, data_key = fields.text("dataKey").partition(":")
    if not colon or not key_id:
        raise fields.fault("dataKey", "is not the name of a key pair, a colon and an encrypted key")
    return Encryption(key_id, fields.decoded("dataKey", data_key), fields.binary("aad"))
