"""File names and binary layouts of a Kafka log directory.

A broker keeps one directory per partition, named ``topic-partition``. A segment is a ``.log`` file named after the
offset of its first record in twenty digits; its index files have the same stem. All integers are big-endian.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import lru_cache
from struct import Struct

from kafkacodec.arguments import require_text
from kafkacodec.datatypes import NamedTuple
from kafkacodec.log.formats.entries import EntryType

LOG_SUFFIX = ".log"
KAFKA07_SUFFIX = ".kafka"
OFFSET_INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TRANSACTION_INDEX_SUFFIX = ".txnindex"
PRODUCER_SNAPSHOT_SUFFIX = ".snapshot"

DELETED_SUFFIX = ".deleted"

SEGMENT_SUFFIXES = (LOG_SUFFIX, KAFKA07_SUFFIX)
SWAP_SUFFIXES = (f"{LOG_SUFFIX}.swap",)

LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
HIGH_WATERMARK_CHECKPOINT = "replication-offset-checkpoint"
RECOVERY_POINT_CHECKPOINT = "recovery-point-offset-checkpoint"
LOG_START_CHECKPOINT = "log-start-offset-checkpoint"
CLEANER_CHECKPOINT = "cleaner-offset-checkpoint"
OFFSET_CHECKPOINTS = (
    HIGH_WATERMARK_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    LOG_START_CHECKPOINT,
    CLEANER_CHECKPOINT,
)

# .index: the last offset of a batch (in old logs its first) minus the segment's base offset, and the batch's position.
OFFSET_INDEX_ENTRY = EntryType(relative_offset="i", position="i")

# .timeindex (KIP-33): the largest timestamp so far, and the offset of its record minus the segment's base offset.
TIME_INDEX_ENTRY = EntryType(timestamp="q", relative_offset="i")

# .txnindex (KIP-98): an aborted transaction; its last offset is that of the abort marker.
TRANSACTION_INDEX_VERSION = 0
TRANSACTION_INDEX_ENTRY = EntryType(
    version="h", producer_id="q", first_offset="q", last_offset="q", last_stable_offset="q"
)

# .snapshot (KIP-98): the producers known at the offset in the file's name. The CRC-32C covers all bytes after it.
PRODUCER_SNAPSHOT_VERSION = 1
PRODUCER_SNAPSHOT_HEADER = Struct(">hIi")  # version, CRC, number of producers
PRODUCER_SNAPSHOT_CRC_FROM = 6
PRODUCER_SNAPSHOT_ENTRY = EntryType(
    producer_id="q",
    producer_epoch="h",
    last_sequence="i",
    last_offset="q",
    offset_delta="i",
    timestamp="q",
    coordinator_epoch="i",
    current_txn_first_offset="q",
)

WRITE_STATE = ".kafkalog.state"
"""The file in a log directory in which jobs record finished and running writes. Brokers ignore it: in a log directory
they read only directories and files with known names.
"""

METADATA_SNAPSHOT = re.compile(r"[0-9]{20}-[0-9]{10}\.checkpoint")
"""The name of a snapshot of a KRaft metadata log: its end offset and leader epoch."""

FORMATTED_SNAPSHOT = "00000000000000000000-0000000000.checkpoint"
"""The format records of a directory (since 4.4), in the form of a snapshot that ends at offset 0. It is not a snapshot:
the first controller copies its records into the log.
"""

BOOTSTRAP_CHECKPOINT = "bootstrap.checkpoint"
"""The format records of a directory before 4.4: records of the metadata log."""

_BESIDE_PARTITIONS = {"meta.properties", ".lock", CLEAN_SHUTDOWN, WRITE_STATE, *OFFSET_CHECKPOINTS}

_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_FILE_NAME = re.compile(r"(?P<offset>[0-9]{20})(?:-(?P<id>[A-Za-z0-9_-]{22}))?(?P<suffix>\.[a-z0-9_.]+)")
NOT_UPLOADED = "truncated-not-uploaded"
NO_SEGMENTS = "all-segments-not-found"
"""The segment ids of `is_stand_in`. No upload has them: the last of 22 base64 digits of 16 bytes is A, Q, g or w."""

# A partition's directory, as a broker parses its name (UnifiedLog.parseTopicPartitionName): the number follows the last
# dash.
_CURRENT = re.compile(r"(?P<topic>.+)-(?P<partition>[0-9]{1,10})")
# A replica set aside: to be deleted, being moved to another directory, or not in the cluster's metadata.
_SET_ASIDE = re.compile(r"(?P<topic>.+)-(?P<partition>[0-9]{1,10})\.[^\s.]+-(?P<state>delete|future|stray)")
# An id: 16 bytes in 22 base64 digits, of which the last one has only two bits.
_ID = "[A-Za-z0-9_-]{21}[AQgw]"
# A topic's directory in file-system tiered storage (KIP-405): topic id, partition, topic.
_TIERED = re.compile(rf"(?P<topic_id>{_ID})-(?P<partition>[0-9]{{1,10}})-(?P<topic>.+)")
# A topic's directory in tiered storage of objects: topic, topic id; in it a directory per partition, its number.
_TIERED_TOPIC = re.compile(rf"(?P<topic>.+)-(?P<topic_id>{_ID})")
# Unpublished output of a job. A broker does not start if a directory's name is not a partition's; one named like a
# partition to be deleted it removes.
_STAGING = re.compile(r"kafkalog\.staging-0\.[0-9a-f]{32}-delete")
_LARGEST_OFFSET, _LARGEST_PARTITION = 2**63 - 1, 2**31 - 1
_LARGEST_POSITION = 2**62
"""The largest name of a segment of Kafka 0.6 and 0.7, whose offsets are positions: those of its bytes follow."""


class FileName(NamedTuple):
    """The parts of the name of a segment or of one of its indexes.

    Attributes:
        base_offset (int): the offset of the segment's first record (for a snapshot: of the first record it leaves out).
        segment_id (str | None): the segment's id in tiered storage, base64.
        suffix (str): with its dot, such as ``.log``, ``.timeindex``, ``.log.deleted``.
    """

    base_offset: int
    segment_id: str | None
    suffix: str


class DirectoryName(NamedTuple):
    """The parts of the name of a partition's directory.

    Attributes:
        topic (str): the topic; for a replica set aside with a very long name, its first part. Bytes that are not UTF-8
            are escaped, as in ``\\udcff``; a valid topic name has none.
        partition (int): the partition's number.
        state (str): ``current``, ``delete``, ``future``, ``stray`` or ``remote`` (tiered storage).
    """

    topic: str
    partition: int
    state: str


def newest_metadata_snapshot(names: Iterable[str]) -> tuple[str, int] | None:
    """The newest of the snapshots among the files of a metadata log, and its end offset; None if there is none."""
    found = max((name for name in names if METADATA_SNAPSHOT.fullmatch(name)), default=FORMATTED_SNAPSHOT)
    return None if found == FORMATTED_SNAPSHOT else (found, int(found.partition("-")[0]))


def is_metadata_snapshot(name: str) -> bool:
    """Whether a file has records of the metadata log, but is not one of its segments."""
    return name == BOOTSTRAP_CHECKPOINT or METADATA_SNAPSHOT.fullmatch(name) is not None


def is_of_broker(name: str) -> bool:
    """Whether brokers, or writers of logs, have a file or directory of this name beside the partitions' directories."""
    return name in _BESIDE_PARTITIONS or is_metadata_snapshot(name) or is_staging(name)


def metadata_snapshot_name(end_offset: int, epoch: int) -> str:
    """The name of a snapshot of a metadata log: the offset at which it ends, the epoch of the last record in it."""
    return f"{end_offset:020d}-{epoch:010d}.checkpoint"


@lru_cache(1024)  # called often for the same segment
def parse_file_name(name: str) -> FileName | None:
    """The parts of a name such as ``00000000000000000042.log``, or None for another file."""
    match = _FILE_NAME.fullmatch(name)
    if match is None:
        return None
    if int(match["offset"]) > (_LARGEST_POSITION if match["suffix"] == KAFKA07_SUFFIX else _LARGEST_OFFSET):
        return None
    return FileName(int(match["offset"]), match["id"], match["suffix"])


def is_named_beyond_offsets(name: str) -> bool:
    """Whether a file has the name of a segment with a number beyond all offsets; it is not read."""
    match = _FILE_NAME.fullmatch(name)
    return match is not None and match["suffix"] in SEGMENT_SUFFIXES and parse_file_name(name) is None


def parse_directory_name(name: str, *, tiered: bool | None = None) -> DirectoryName | None:
    """The parts of a name such as ``orders-eu-3``, or None for another directory.

    Args:
        name: the directory's name, without a path.
        tiered: whether the segments in it have tiered storage's names (`FileName.segment_id`). Only this distinguishes
            ``<topic id>-5-foo-0``, topic ``foo-0`` in tiered storage, from partition 0 of a topic ``<topic id>-5-foo``.
            None: unknown; a broker's reading of the name is preferred.
    """
    local = (("current", _CURRENT), ("", _SET_ASIDE))
    remote = (("remote", _TIERED),)
    for state, pattern in {None: local + remote, False: local, True: remote + local}[tiered]:
        match = pattern.fullmatch(name)
        if match is not None and int(match["partition"]) <= _LARGEST_PARTITION:
            return DirectoryName(topic_text(match["topic"]), int(match["partition"]), state or match["state"])
    return None


def is_remote_topic(name: str) -> bool:
    """Whether a directory's name is that of a topic in tiered storage of objects."""
    return _TIERED_TOPIC.fullmatch(name) is not None


def parse_remote_directory(path: str) -> DirectoryName | None:
    """The parts of a path that ends like ``orders-<topic id>/3``, as objects of tiered storage are named; else None."""
    parent, _, number = path.replace(os.sep, "/").rpartition("/")
    match = _TIERED_TOPIC.fullmatch(parent.rpartition("/")[2])
    if match is None or not (number.isascii() and number.isdecimal()) or len(number) > 10:
        return None
    if int(number) > _LARGEST_PARTITION:
        return None
    return DirectoryName(topic_text(match["topic"]), int(number), "remote")


def staging_name(token: str) -> str:
    """The name of a directory for unpublished output; `token` is 32 hexadecimal digits."""
    return f"kafkalog.staging-0.{token}-delete"


def is_staging(name: str) -> bool:
    """Whether a directory's name is from `staging_name`."""
    return _STAGING.fullmatch(name) is not None


def may_be_either(name: str) -> bool:
    """Whether a directory with this name may be a broker's or one of tiered storage."""
    local = _CURRENT.fullmatch(name) or _SET_ASIDE.fullmatch(name)
    return local is not None and _TIERED.fullmatch(name) is not None


def topic_text(name: str) -> str:
    """A topic's name as text: bytes that are not UTF-8, which Python reads as lone surrogates, are escaped."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


def is_upload(path: str) -> bool:
    """Whether the name of a file is that of a segment in tiered storage: an offset and an id."""
    name = parse_file_name(os.path.basename(path))
    return name is not None and name.segment_id is not None


def any_ends_with(names: Iterable[str], suffixes: Iterable[str]) -> bool:
    """Whether a file name ends with one of the suffixes. Faster than to look at each of many names."""
    text = "/".join((*names, ""))
    return any(f"{suffix}/" in text for suffix in suffixes)


def is_stand_in(path: str) -> bool:
    """Whether a segment stands for offsets that were written after a truncation and that no upload has, or for a log
    without segments, as `stands_for_log`.
    """
    name = parse_file_name(os.path.basename(path))
    return name is not None and name.segment_id in (NOT_UPLOADED, NO_SEGMENTS) and name.suffix == LOG_SUFFIX


def stands_for_log(path: str) -> bool:
    """Whether a segment stands for all those of a partition's directory, of which there is none."""
    name = parse_file_name(os.path.basename(path))
    return name is not None and name.segment_id == NO_SEGMENTS


def log_stand_in(base_offset: int) -> str:
    """The name of `stands_for_log`."""
    return file_name(base_offset, f"-{NO_SEGMENTS}{LOG_SUFFIX}")


def file_name(base_offset: int, suffix: str) -> str:
    """The name that a broker gives the file of a segment."""
    return f"{base_offset:020d}{suffix}"


def sibling(path: str, suffix: str) -> str:
    """The file of the same segment with another suffix."""
    if path.endswith(SWAP_SUFFIXES):
        return os.path.splitext(os.path.splitext(path)[0])[0] + suffix + ".swap"
    return os.path.splitext(path)[0] + suffix


def check_topic(name: str) -> None:
    """Raise ValueError for an invalid topic name, TypeError for what is no text."""
    require_text("topic", name)
    if not _TOPIC.fullmatch(name) or name in (".", ".."):
        raise ValueError(f"invalid topic name {name!r}: use at most 249 of a-z, A-Z, 0-9, '.', '_' and '-'")
