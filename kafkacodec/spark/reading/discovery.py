"""The partitions that a job reads: those that paths contain and options select, with replicas as one partition."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Set as AbstractSet

from kafkacodec.arguments import meant
from kafkacodec.log import Partition, discover
from kafkacodec.log.opening import full_path
from kafkacodec.log.opening.patterns import matches_of
from kafkacodec.log.partitions.each_once import CopiesRefused, each_once
from kafkacodec.log.partitions.listings import Listings
from kafkacodec.log.storage.stores import use
from kafkacodec.spark.errors import OptionError
from kafkacodec.spark.reading.options import ReadOptions, TopicPartition, readable_path

__all__ = ["partitions_of", "refuse_absent", "selected"]

LEVELS = 2
"""How deep log directories may be below a path: ``brokers/1/data``."""

logger = logging.getLogger("kafkacodec.spark")


def partitions_of(options: ReadOptions, listings: Listings | None = None) -> list[Partition]:
    """The selected partitions; `listings` as for `selected`.

    Raises:
        OptionError: `path` does not exist, or an option names a topic or partition without segments.
    """
    selection = options.selection
    found = selected(options, listings)
    named = {(p.topic, p.partition) for p in found if p.topic is not None and p.partition is not None}
    refuse_absent(options, named)
    if selection.pattern is not None and not found:
        logger.warning("subscribePattern: %r matches the complete name of no topic here", selection.pattern)
    for bound in (options.start, options.end):
        if bound.values:
            # As in Spark's Kafka source, exactly the selected partitions must be named.
            _refuse(f"{bound.option}: no value for the selected partitions", _names(named - set(bound.values)))
            _refuse(f"{bound.option}: names partitions that are not selected:", _names(set(bound.values) - named))
    return found


def refuse_absent(options: ReadOptions, known: AbstractSet[TopicPartition]) -> None:
    """Raise OptionError if `subscribe` or `assign` name something else than these partitions and their topics."""
    selection = options.selection
    if selection.topics is not None:
        _refuse_topics(selection.topics - {topic for topic, _ in known}, options.paths)
    if selection.partitions is not None:
        _refuse("assign: no segments of", _names(selection.partitions - known))


def selected(options: ReadOptions, listings: Listings | None = None) -> list[Partition]:
    """As `partitions_of`, whether or not the options name others too.

    With the `listings` of an earlier call, only directories that have changed are listed.
    """
    use(options.access)
    found = [p for p in _discover(options.paths, listings) if options.selection.wants(p.topic, p.partition)]
    if listings is not None:
        found = _restored(found, listings)
    try:
        return each_once(found, options.replicas, merge="replicas=merge", every="replicas=all")
    except CopiesRefused as error:
        raise OptionError(f"replicas: {error}") from None


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
