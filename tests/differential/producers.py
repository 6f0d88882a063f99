"""Transactional producers, as scripts need them."""

from __future__ import annotations

from typing import Any

from tests.differential.scenario import Scenario


class Producer:
    """Its requests are steps unless they are `quiet`. It keeps its id, epoch and sequences."""

    def __init__(self, s: Scenario, text: str = "x", timeout: int = 60_000) -> None:
        self.s, self.name, self.timeout = s, s.name(text), timeout
        self.id = self.epoch = -1
        self.sequences: dict[tuple[str, int], int] = {}

    def init(self, *, version: int = 4, **options: Any) -> Any:
        fields = {"transactional_id": self.name, "transaction_timeout_ms": self.timeout, **options}
        return self.took(self.s.ask("InitProducerId", version, **fields))

    def took(self, answer: Any) -> Any:
        """Keeps the id and epoch of an answer to InitProducerId or EndTxn v5."""
        if answer is not None and not answer.error_code and answer.producer_id >= 0:
            if (answer.producer_id, answer.producer_epoch) != (self.id, self.epoch):
                self.sequences.clear()
            self.id, self.epoch = answer.producer_id, answer.producer_epoch
        return answer

    def who(self, **changes: Any) -> dict[str, Any]:
        return {"transactional_id": self.name, "producer_id": self.id, "producer_epoch": self.epoch, **changes}

    def add(self, topic: str, *partitions: int, version: int = 3, **options: Any) -> Any:
        names = ("transactional_id", "producer_id", "producer_epoch")
        who = self.who(**{name: options.pop(name) for name in names if name in options})
        topics = [{"name": topic, "partitions": list(partitions or (0,))}]
        if version > 3:
            fields: dict[str, Any] = {
                "transactions": [{**who, "verify_only": options.pop("verify_only", False), "topics": topics}]
            }
        else:
            fields = {"v3_and_below_topics": topics, **{f"v3_and_below_{name}": value for name, value in who.items()}}
        return self.s.ask("AddPartitionsToTxn", version, **fields, **options)

    def produce(self, topic: str, *values: Any, version: int = 11, partition: int = 0, **options: Any) -> Any:
        first = options.pop("sequence", self.sequences.get((topic, partition), 0))
        epoch, number = options.pop("producer_epoch", self.epoch), options.pop("producer_id", self.id)
        answer = self.s.produce(
            topic,
            *values,
            version=version,
            partition=partition,
            producer=(number, epoch, first),
            is_transactional=True,
            **{"transactional_id": self.name, **options},
        )
        if answer is not None and not answer.responses[0].partition_responses[0].error_code:
            self.sequences[topic, partition] = first + len(values)
        return answer

    def end(self, commit: bool = True, *, version: int = 4, **options: Any) -> Any:
        return self.took(self.s.ask("EndTxn", version, **self.who(committed=commit, **options)))

    def offsets_to(self, group: str, *, version: int = 3, **options: Any) -> Any:
        return self.s.ask("AddOffsetsToTxn", version, **self.who(group_id=group, **options))

    def offsets(
        self, group: str, topic: str, offset: int, *, version: int = 3, partition: int = 0, **options: Any
    ) -> Any:
        row = {
            "partition_index": partition,
            "committed_offset": offset,
            "committed_metadata": options.pop("metadata", ""),
        }
        topics = [{**self.s.key(topic, version > 5), "partitions": [row]}]
        return self.s.ask("TxnOffsetCommit", version, **self.who(group_id=group, topics=topics, **options))


def finished(s: Scenario, topic: str, offset: int, partition: int = 0) -> None:
    """Waits until the last stable offset is `offset`. No step."""
    s.offset(
        topic,
        -1,
        isolation_level=1,
        partition=partition,
        quiet=True,
        until=lambda a: a.topics[0].partitions[0].offset == offset,
    )
