"""The topology of a streams group: its subtopologies with the topics that they read and write."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kafkacodec import messages
from kafkacodec.datatypes import dataclass
from kafkacodec.errors import UNKNOWN_SERVER_ERROR
from kafkacodec.messages.stored import StoredRecord

__all__ = ["Refusal", "Topology", "read_by", "topology_topics"]


class Refusal(Exception):
    """Why a heartbeat is refused.

    Attributes:
        code: the error code.
        text: what is wrong.
    """

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code, self.text = code, text


@dataclass(frozen=True, slots=True)
class Topology:
    """A topology.

    Attributes:
        epoch: its epoch.
        parts: subtopologies by id, as records have them.
        readers: the subtopology that reads a topic, by the topic's name.
    """

    epoch: int
    parts: Mapping[str, Any]
    readers: Mapping[str, str]

    @classmethod
    def of(cls, value: Any) -> Topology:
        """Return the topology of a record."""
        found = {part.subtopology_id: part for part in value.subtopologies}
        parts = {name: found[name] for name in sorted(found)}
        readers = {topic: name for name, part in parts.items() for topic in read_by(part)}
        return cls(value.epoch, parts, readers)

    @classmethod
    def asked(cls, topology: Any) -> Topology:
        """Return the topology of a heartbeat. Raises Refusal."""
        if topology.epoch < 0:
            raise Refusal(UNKNOWN_SERVER_ERROR, "the epoch of the topology is negative")
        return cls.of(messages.StreamsGroupTopologyValue.from_dict(topology.to_dict()))

    def record(self, group: str) -> StoredRecord:
        """Return its record."""
        value = messages.StreamsGroupTopologyValue(epoch=self.epoch, subtopologies=list(self.parts.values()))
        return StoredRecord(messages.StreamsGroupTopologyKey(group_id=group), value, 0)

    def topics(self) -> set[str]:
        """The names of all topics that must exist."""
        parts = self.parts.values()
        changelogs = (info.name for part in parts for info in part.state_changelog_topics)
        return {*changelogs, *(name for part in parts for name in read_by(part))}

    def described(self, partitions: Mapping[str, int]) -> Any:
        """The topology as StreamsGroupDescribe answers it.

        Args:
            partitions: of internal topics, if they are known.
        """
        response = messages.StreamsGroupDescribeResponse

        def topic(info: Any) -> Any:
            configs = [response.KeyValue(key=config.key, value=config.value) for config in info.topic_configs]
            return response.TopicInfo(
                name=info.name, partitions=partitions.get(info.name, info.partitions),
                replication_factor=info.replication_factor, topic_configs=configs,
            )  # fmt: skip

        def by_name(infos: Iterable[Any]) -> list[Any]:
            return [topic(info) for info in sorted(infos, key=lambda info: info.name)]

        parts = [
            response.Subtopology(
                subtopology_id=name, source_topics=sorted(part.source_topics),
                repartition_sink_topics=sorted(part.repartition_sink_topics),
                repartition_source_topics=by_name(part.repartition_source_topics),
                state_changelog_topics=by_name(part.state_changelog_topics),
            )
            for name, part in self.parts.items()
        ]  # fmt: skip
        return response.Topology(epoch=self.epoch, subtopologies=parts)


def topology_topics(topology: Any) -> set[str]:
    """The names of all topics in a message's topology, which may be null: read, written, and of states."""
    parts = () if topology is None else topology.subtopologies
    names = (
        (*read_by(part), *part.repartition_sink_topics, *(info.name for info in part.state_changelog_topics))
        for part in parts
    )
    return {name for each in names for name in each}


def read_by(part: Any) -> Iterator[str]:
    """The topics that a subtopology reads: those of others, and those that the application repartitions."""
    yield from part.source_topics
    yield from (info.name for info in part.repartition_source_topics)
