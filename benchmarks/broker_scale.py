"""What a broker needs with many connections, partitions and groups: processor time and memory, at half and at all."""

from __future__ import annotations

from itertools import pairwise

from benchmarks import broker_load
from benchmarks.broker_load import Load
from benchmarks.broker_servers import OURS, SERVERS
from kafkacodec.messages import keys

CONNECTIONS, PARTITIONS, GROUPS = 500, 2000, 200
_TOPIC, _OF_TOPIC = "scale", 50
_MIB = 1 << 20
_NEEDS_MEMBER_ID = 79


def run() -> list[str]:
    """What is said about half and about all of them, by the broker of this package."""
    return [_measured(share) for share in (0.5, 1.0)]


def _measured(share: float) -> str:
    connections, partitions, groups = (int(share * number) for number in (CONNECTIONS, PARTITIONS, GROUPS))
    with SERVERS[OURS][0]() as server, broker_load.connected(server.address) as load:
        spent = [server.processor_seconds()]
        for work in (_make, _produce):
            work(load, partitions)
            spent.append(server.processor_seconds())
        loads = [Load(server.address) for _ in range(connections)]
        try:
            for number in range(groups):
                _join(loads[number % connections], f"group-{number}")
            spent.append(server.processor_seconds())
            memory = server.resident_bytes() / _MIB
        finally:
            for one in loads:
                one.close()
    making, producing, joining = (after - before for before, after in pairwise(spent))
    return (
        f"{connections} connections, {partitions} partitions, {groups} groups: {memory:.0f} MiB resident; making the "
        f"partitions took {making:.2f} s, a record to each {producing:.2f} s, the groups {joining:.2f} s."
    )


def _make(load: Load, partitions: int) -> None:
    for number in range(partitions // _OF_TOPIC):
        made = {"name": f"{_TOPIC}-{number}", "num_partitions": _OF_TOPIC, "replication_factor": 1}
        load.ask(keys.CREATE_TOPICS, topics=[made], timeout_ms=60_000)


def _produce(load: Load, partitions: int) -> None:
    records = broker_load.batch(1, 100)
    for number in range(partitions):
        load.produce(f"{_TOPIC}-{number // _OF_TOPIC}", number % _OF_TOPIC, records)


def _join(load: Load, group: str) -> None:
    """A member that joins, and stays."""
    asked = {
        "group_id": group,
        "session_timeout_ms": 60_000,
        "rebalance_timeout_ms": 60_000,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b""}],
    }
    load.ask(keys.FIND_COORDINATOR, key_type=0, coordinator_keys=[group])
    answer = load.ask(keys.JOIN_GROUP, **asked)
    if answer.error_code == _NEEDS_MEMBER_ID:
        answer = load.ask(keys.JOIN_GROUP, **asked, member_id=answer.member_id)
    me = {"group_id": group, "member_id": answer.member_id, "generation_id": answer.generation_id}
    given = [{"member_id": answer.member_id, "assignment": b""}]
    code = answer.error_code or load.ask(keys.SYNC_GROUP, **me, assignments=given).error_code
    if code:
        raise RuntimeError(f"{group} cannot be joined: error {code}")
