"""The broker's coordinators load what Apache Kafka of several releases left in its internal topics."""

from __future__ import annotations

from typing import Any

import pytest

import kafkacodec as kc
from kafkacodec.broker.state.coordinator import GroupCoordinator
from kafkacodec.broker.state.machine import Machine, NoTopics
from kafkacodec.broker.state.transactions import TransactionCoordinator
from kafkacodec.internal_records import CONSUMER_OFFSETS, TRANSACTION_STATE, ControlType
from kafkacodec.log.reading.markers import marker_type
from tests.corpus import ROOT

LOGS = ROOT / "logs"
WITH_GROUPS = sorted({path.parent.name for path in LOGS.glob(f"*/{CONSUMER_OFFSETS}-*")})
WITH_TRANSACTIONS = sorted({path.parent.name for path in LOGS.glob(f"*/{TRANSACTION_STATE}-*")})


def load(machine: Machine, directory: str) -> None:
    """Load all partitions of the machine's topic, with the markers of transactions."""
    paths = sorted((LOGS / directory).glob(f"{machine.topic}-*"))
    machine.partitions = len(paths)
    for path in paths:
        number = int(path.name.rpartition("-")[2])
        for chunk in kc.log.Partition(path).read(batch_columns=True, include_control=True):
            producers, transactional = chunk["producer_id"].tolist(), chunk["is_transactional"].tolist()
            rows = zip(chunk.records(), producers, transactional, chunk["is_control"].tolist(), strict=True)
            for record, producer, in_one, control in rows:
                if control and isinstance(machine, GroupCoordinator):
                    machine.end_transaction(number, producer, marker_type(record.key) == ControlType.COMMIT)
                elif not control:
                    machine.load(record.key, record.value, producer if in_one else -1)
    machine.loaded(0)


@pytest.mark.parametrize("directory", WITH_GROUPS)
def test_groups_are_those_that_the_log_has(directory: str) -> None:
    coordinator = GroupCoordinator(NoTopics())
    load(coordinator, directory)
    commits = kc.log.read_committed_offsets(LOGS / directory)
    for commit in commits:
        ((_, _, rows),) = coordinator.offsets.fetch(
            commit.group,
            [_asked(commit.topic, commit.partition)],
            by_id=False,
            stable=True,
        )
        assert (rows[0].committed_offset, rows[0].metadata) == (commit.offset, commit.metadata)
    groups = kc.log.read_consumer_groups(LOGS / directory)
    assert sorted(coordinator.groups) == [group.group for group in groups]
    for group in groups:
        found: Any = coordinator.groups[group.group]
        assert found.kind == group.kind
        assert sorted(found.members) == sorted(member.member_id for member in group.members)
        assert (found.generation if group.kind == "classic" else found.epoch) == group.generation


def _asked(topic: str, partition: int) -> Any:
    return kc.messages.OffsetFetchRequest.OffsetFetchRequestTopic(name=topic, partition_indexes=[partition])


@pytest.mark.parametrize("directory", WITH_TRANSACTIONS)
def test_transactions_are_those_that_the_log_has(directory: str) -> None:
    coordinator = TransactionCoordinator(NoTopics(), lambda: None, lambda group: (CONSUMER_OFFSETS, 0))
    load(coordinator, directory)
    assert coordinator.transactions
    assert all(found.producer_id >= 0 and found.timeout_ms > 0 for found in coordinator.transactions.values())
