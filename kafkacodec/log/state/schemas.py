"""The schemas of a registry, read from the ``_schemas`` partition of a data directory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kafkacodec.log.partitions.directory import LogDirectory
from kafkacodec.log.state.stored import sound_chunks
from kafkacodec.signatures import suggests_options

if TYPE_CHECKING:
    from kafkacodec.values.topic import SchemaTopic

__all__ = ["read_schemas"]

TOPIC = "_schemas"


@suggests_options
def read_schemas(path: str | os.PathLike[str], *, topic: str = TOPIC) -> SchemaTopic:
    """The schemas that a registry (Confluent's, Karapace) keeps in a topic, as a source for `kafkacodec.values.decode`.

    Args:
        path: a broker's data directory, or the partition's directory.
        topic: the registry's topic (``kafkastore.topic``).

    Raises:
        FileNotFoundError, NotADirectoryError: there is no such directory, or it has no partition of the topic.
        DecodeError: the partition is damaged.
        ImportError: a package of the extra ``values`` is missing.
    """
    from kafkacodec.values.topic import SchemaTopic

    return SchemaTopic(_records(LogDirectory(path), topic))


def _records(directory: LogDirectory, topic: str) -> Iterator[tuple[bytes | None, bytes | None]]:
    partitions = directory.partitions(topic) or [directory.partition(topic, 0)]
    for partition in partitions:
        for chunk in sound_chunks(partition, None, columns=("key", "value")):
            columns = chunk.to_pyarrow()
            yield from zip(columns.column("key").to_pylist(), columns.column("value").to_pylist(), strict=True)
