"""Partitions that several directories have, as replicas of brokers do: refused, read as one, or all read."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, TypeVar, get_args

from kafkacodec.arguments import one_of
from kafkacodec.errors import Truncated
from kafkacodec.log.opening import full_path, is_directory, is_url
from kafkacodec.log.partitions.inside import identity_of_log, relisted
from kafkacodec.log.partitions.merged import MergedPartition
from kafkacodec.log.partitions.partition import Partition
from kafkacodec.log.reading.relocate import MAX_TRIES, PAUSE_SECONDS

__all__ = ["REPLICAS", "THREADS", "CopiesRefused", "Replicas", "each_once", "steadily"]

Replicas = Literal["error", "merge", "all"]
"""What to do with several replicas of a partition."""

REPLICAS: tuple[str, ...] = get_args(Replicas)

THREADS = 16
"""How many files are opened at a time: file systems on a network answer in about a millisecond."""

# How often to look at a partition again if a file was shortened: damage has the same error, and stays.
_SHORTENED_TRIES = 5

T = TypeVar("T")


class CopiesRefused(ValueError):
    """Several directories have a partition, and not all of them can, or are to, be read."""


def each_once(
    partitions: Iterable[Partition],
    replicas: Replicas,
    *,
    merge: str = "replicas='merge'",
    every: str = "replicas='all'",
) -> list[Partition]:
    """One partition for each topic and number. Those whose directory has no name are not compared.

    A directory that is there more than once is no replica.

    Args:
        partitions: the partitions, in order.
        replicas: ``"error"`` refuses partitions in several directories, ``"merge"`` reads them as one log, ``"all"``
            leaves each of them.
        merge, every: how the caller asks for these, for the message.

    Raises:
        CopiesRefused: replicas that are not allowed, or different topics with one name.
        ValueError: an unknown value of `replicas`.
        DecodeError, OSError: a replica cannot be read.
    """
    one_of("replicas", replicas, REPLICAS)
    groups: dict[object, list[Partition]] = {}
    for partition in partitions:
        named = partition.topic is not None and partition.partition is not None
        groups.setdefault((partition.topic, partition.partition) if named else partition.path, []).append(partition)
    found = []
    for group in groups.values():
        distinct = group if len(group) == 1 else _distinct(group)
        if replicas == "all" or len(distinct) == 1:
            found += distinct
            continue
        _refuse_strangers(distinct)
        if replicas == "error":
            first, second, *others = distinct
            more = f" and {len(others)} more" if others else ""
            raise CopiesRefused(
                f"{first.topic}-{first.partition} is in {first.path} and {second.path}{more}; "
                f"{merge} reads replicas as one log, {every} reads each of them"
            )
        found.append(_merged(distinct))
    return found


def _distinct(group: Iterable[Partition]) -> list[Partition]:
    """One partition for each directory, whatever ways lead there: all of it, or the segments that were named."""
    ways: dict[str, list[Partition]] = {}
    for partition in group:
        ways.setdefault(_place(partition.path), []).append(partition)
    return [next((p for p in same if p.has_all), None) or _named(same) for same in ways.values()]


def _named(same: Sequence[Partition]) -> Partition:
    first = same[0]
    named = {os.path.basename(segment.path): segment.path for p in same for segment in p.segments}
    return first if len(same) == 1 else Partition(first.path, segments=named.values())


def _refuse_strangers(replicas: Sequence[Partition]) -> None:
    ids = {replica.path: identity_of_log(replica).topic_id for replica in replicas}
    known = {topic_id: path for path, topic_id in ids.items() if topic_id is not None}
    if len(known) > 1:
        what = " and ".join(f"{path} (topic id {topic_id})" for topic_id, path in list(known.items())[:2])
        name = f"{replicas[0].topic}-{replicas[0].partition}"
        raise CopiesRefused(f"{name} is of different topics in {what}; read one of them")


def _merged(replicas: Sequence[Partition]) -> Partition:
    first = replicas[0]
    return steadily(
        first,
        lambda now: MergedPartition(replicas if now is first else [relisted(p) for p in replicas], threads=THREADS),
    )


def _place(path: str) -> str:
    """The same for every path that leads to the same directory."""
    return full_path(path) if is_url(path) else os.path.realpath(path)


def steadily(partition: Partition, action: Callable[[Partition], T]) -> T:
    """The result of an action on a partition whose files a broker may replace or delete meanwhile.

    Raises:
        FileNotFoundError: the partition's directory is gone, or files of it are whenever it is listed.
    """
    tries = 0
    while True:
        try:
            return action(partition)
        except (FileNotFoundError, Truncated) as error:
            tries += 1
            most = MAX_TRIES if isinstance(error, FileNotFoundError) else _SHORTENED_TRIES
            if tries > most or not is_directory(partition.path):
                raise
            time.sleep(PAUSE_SECONDS)
            partition = relisted(partition)
