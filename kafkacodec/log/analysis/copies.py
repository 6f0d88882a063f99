"""Partitions in several directories, such as replicas in the directories of several brokers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafkacodec.log.analysis.partition_statistics import PartitionStatistics
    from kafkacodec.log.partitions.partition import Partition

__all__ = ["copies_of", "copies_sentence"]

_LISTED = 3


def copies_of(partitions: Iterable[Partition | PartitionStatistics]) -> dict[str, list[str]]:
    """Return the paths of repeated partitions, by names such as ``orders-0``.

    Partitions of unknown topics are not compared.
    """
    found: dict[str, list[str]] = {}
    for partition in partitions:
        if partition.topic is not None and partition.partition is not None:
            found.setdefault(f"{partition.topic}-{partition.partition}", []).append(partition.path)
    return {name: paths for name, paths in sorted(found.items()) if len(paths) > 1}


def copies_sentence(copies: Mapping[str, Sequence[str]]) -> str:
    """Return a sentence about the result of `copies_of` and its meaning for sums; empty without copies."""
    if not copies:
        return ""
    verb = "partition is" if len(copies) == 1 else "partitions are"
    listed = [f"{name} in {_all(paths)}" for name, paths in list(copies.items())[:_LISTED]]
    if len(copies) > _LISTED:
        listed.append(f"and {len(copies) - _LISTED:,} more")
    return f"{len(copies):,} {verb} there more than once: {'; '.join(listed)}. Records and sizes count each copy."


def _all(paths: Sequence[str]) -> str:
    shown = ", ".join(paths[:_LISTED])
    return shown if len(paths) <= _LISTED else f"{shown} and {len(paths) - _LISTED:,} more"
