"""A topic of a log directory: its partitions as one."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence

from kafkacodec.arguments import int64
from kafkacodec.log.partitions.partition import Partition
from kafkacodec.log.partitions.selection import Selection
from kafkacodec.shown import counted, html_table, repr_of


class Topic(Selection):
    """The partitions of a topic in one log directory, in the order of their numbers; `LogDirectory.topic` makes it.

    Iterating over it gives the records of one partition after the other, each a `kafkacodec.Record`.

    Args:
        name: the topic's name.
        partitions: its partitions.
        path: the log directory.

    Attributes:
        name (str): the topic's name.
        partitions (list[Partition]): its partitions in this directory, by number.
        path (str): the log directory.
    """

    def __init__(self, name: str, partitions: Sequence[Partition], path: str | os.PathLike[str]) -> None:
        super().__init__(partitions, path)
        self.name = name

    def __repr__(self) -> str:
        return repr_of(self, self.name, f"{counted(len(self.partitions), 'partition')} in {self.path}")

    def _repr_html_(self) -> str:
        rows = ([str(p.partition), str(len(p.segments)), f"{p.size_in_bytes:,}"] for p in self.partitions)
        names = ["partition", "segments", "bytes"]
        return html_table(f"Topic {self.name} in {self.path}", names, rows, numbers=names)

    def partition(self, number: int) -> Partition:
        """One partition.

        Raises:
            FileNotFoundError: the directory does not have this partition.
            TypeError: the number is no integer.
        """
        int64(number, "partition")
        for candidate in self.partitions:
            if candidate.partition == number:
                return candidate
        known = ", ".join(str(p.partition) for p in self.partitions)
        text = f"no partition {number} of topic {self.name!r} in this directory; it has {known}"
        raise FileNotFoundError(errno.ENOENT, text, os.path.join(self.path, f"{self.name}-{number}"))
