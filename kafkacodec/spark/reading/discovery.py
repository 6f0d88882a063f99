"""The partitions that a job reads: those that paths contain and options select, with replicas as one partition."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence, Set as AbstractSet
from typing import TypeVar

from kafkacodec.arguments import meant
from kafkacodec.errors import Truncated
from kafkacodec.log import Partition, discover
from kafkacodec.log.opening import full_path, is_directory, is_url
from kafkacodec.log.opening.patterns import matches_of
from kafkacodec.log.partitions.inside import identity_of_log, relisted
from kafkacodec.log.partitions.listings import Listings
from kafkacodec.log.partitions.merged import MergedPartition
from kafkacodec.log.reading.relocate import MAX_TRIES, PAUSE_SECONDS
from kafkacodec.log.storage.stores import use
from kafkacodec.spark.errors import OptionError
from kafkacodec.spark.reading.options import ReadOptions, Replicas, TopicPartition, readable_path

__all__ = ["THREADS", "partitions_of", "selected", "steadily"]

LEVELS = 2
"""How deep log directories may be below a path: ``brokers/1/data``."""

THREADS = 16
"""How many files are opened at a time: file systems on a network answer in about a millisecond."""

# How often to look at a partition again if a file was shortened: damage has the same error, and stays.
_SHORTENED_TRIES = 5

T = TypeVar("T")


def partitions_of(options: ReadOptions) -> list[Partition]:
    """The selected partitions.

    Raises:
        OptionError: `path` does not exist, or an option names a topic or partition without segments.
    """
    selection = options.selection
    found = selected(options)
    named = {(p.topic, p.partition) for p in found if p.topic is not None and p.partition is not None}
    if selection.topics is not None:
        _refuse_topics(selection.topics - {topic for topic, _ in named}, options.paths)
    if selection.partitions is not None:
        _refuse("assign: no segments of", _names(selection.partitions - named))
    for bound in (options.start, options.end):
        if bound.values:
            # As in Spark's Kafka source, exactly the selected partitions must be named.
            _refuse(f"{bound.option}: no value for the selected partitions", _names(named - set(bound.values)))
            _refuse(f"{bound.option}: names partitions that are not selected:", _names(set(bound.values) - named))
    return found


def selected(options: ReadOptions, listings: Listings | None = None) -> list[Partition]:
    """As `partitions_of`, whether or not the options name others too.

    With the `listings` of an earlier call, only directories that have changed are listed.
    """
    use(options.access)
    found = [p for p in _discover(options.paths, listings) if options.selection.wants(p.topic, p.partition)]
    if listings is not None:
        found = _restored(found, listings)
    return found if options.replicas == "all" else _each_once(found, options.replicas)


def _restored(partitions: list[Partition], listings: Listings) -> list[Partition]:
    """The partitions with their segments; without those that a broker is deleting."""
    found = []
    for partition in partitions:
        try:
            found.append(listings.restore(partition) if partition.has_all else partition)
        except FileNotFoundError:
            continue
    listings.keep(found)
    return found


def _discover(paths: Iterable[str], listings: Listings | None = None) -> list[Partition]:
    """The partitions under directories, globs and segment files."""
    local: dict[str, None] = {}
    for path in paths:
        matches = matches_of(readable_path(path))
        if not matches:
            raise OptionError(f"path: no file or directory matches {path}")
        local.update(dict.fromkeys(map(full_path, matches)))
    try:
        return discover(local, levels=LEVELS, listings=listings)
    except FileNotFoundError as error:
        raise OptionError(f"path: {error.filename}: {error.strerror}") from None


def _each_once(partitions: Iterable[Partition], replicas: Replicas) -> list[Partition]:
    """One partition for each topic and number. Those whose directory has no name are not compared."""
    groups: dict[object, list[Partition]] = {}
    for partition in partitions:
        named = partition.topic is not None and partition.partition is not None
        groups.setdefault((partition.topic, partition.partition) if named else partition.path, []).append(partition)
    return [group[0] if len(group) == 1 else _one_of(group, replicas) for group in groups.values()]


def _one_of(group: Sequence[Partition], replicas: Replicas) -> Partition:
    """The partition that several directories have.

    Raises:
        OptionError: they are replicas, which the option does not allow, or of different topics with one name.
    """
    # The same directory by two ways is no replica; it is read whole if one of them names all of it.
    distinct = {_place(p.path): p for p in sorted(group, key=lambda p: p.has_all)}
    first, *others = distinct.values()
    if not others:
        return first
    name = f"{first.topic}-{first.partition}"
    ids = {path: identity_of_log(p).topic_id for path, p in distinct.items()}
    known = {topic_id: path for path, topic_id in ids.items() if topic_id is not None}
    if len(known) > 1:
        what = " and ".join(f"{path} (topic id {topic_id})" for topic_id, path in list(known.items())[:2])
        raise OptionError(f"replicas: {name} is of different topics in {what}; read one of them")
    if replicas == "error":
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        raise OptionError(
            f"replicas: {name} is in {first.path} and {others[0].path}{more}; "
            "replicas=merge reads replicas as one log, replicas=all reads each of them"
        )
    found = list(distinct.values())
    return steadily(
        first, lambda now: MergedPartition(found if now is first else [relisted(p) for p in found], threads=THREADS)
    )


def _place(path: str) -> str:
    """The same for every path that leads to the same directory."""
    return full_path(path) if is_url(path) else os.path.realpath(path)


def _refuse(what: str, names: Iterable[str]) -> None:
    listed = ", ".join(sorted(names))
    if listed:
        raise OptionError(f"{what} {listed}")


def _refuse_topics(names: AbstractSet[str], paths: Iterable[str]) -> None:
    if names:
        listed = sorted(names)
        hint = meant(listed[0], {p.topic for p in _discover(paths) if p.topic is not None})
        raise OptionError(f"subscribe: no segments of {', '.join(listed)}{hint and '; '}{hint}")


def _names(partitions: Iterable[TopicPartition]) -> list[str]:
    return [f"{topic}-{partition}" for topic, partition in partitions]


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
