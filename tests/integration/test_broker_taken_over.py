"""Apache Kafka serves the data directory of this broker whole, after a crash and a stop, and the other way round."""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import kafkacodec as kc
from kafkacodec import client, messages
from kafkacodec.errors import BrokerError, ItemErrors
from tests.differential.streams_members import ROLES, part, topic, topology
from tests.integration.kafka_jvm import SOON_BACK, Broker
from tests.patience import LATE, SOON, eventually
from tests.processes import ROOT, run_python

pytestmark = [pytest.mark.java, pytest.mark.slow]
SETTINGS = {
    **SOON_BACK,
    "metadata_log_max_record_bytes_between_snapshots": "2500",
    "transaction_max_timeout_ms": "3600000",
    "group_coordinator_rebalance_protocols": "classic,consumer",
}
OPEN = """
import os, sys
from kafkacodec import client
producer = client.Producer(sys.argv[1], transactional_id=sys.argv[2], transaction_timeout_ms=3_000_000)
producer.init_transactions()
producer.begin_transaction()
for partition in range(3):
    producer.send("orders", b"open-" + sys.argv[2].encode(), partition=partition)
producer.flush()
os._exit(0)
"""


def use(server: str, turn: str) -> None:
    """Do what a directory has to keep: topics, records, transactions of every end, groups, users, quotas."""
    with client.Admin(server) as admin:
        topics = [client.NewTopic("orders", 3)] if turn == "1" else []
        settings = {"retention.ms": "987654321", "cleanup.policy": "compact,delete"}
        admin.create_topics([*topics, client.NewTopic(f"made-{turn}", 2, configs=settings), f"gone-{turn}"])
        admin.delete_topics([f"gone-{turn}"])
        admin.incremental_alter_configs({("topic", "orders"): {"max.message.bytes": f"{turn}000000"}})
        admin.alter_user_scram_credentials({f"user-{turn}": client.ScramCredential("SCRAM-SHA-256", "secret")})
        admin.alter_client_quotas({(("user", f"user-{turn}"),): {"producer_byte_rate": 1e9}})
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        with client.Producer(server, compression_type=codec) as producer:
            for n in range(60):
                producer.send("orders", b"%s-%d" % (codec.encode(), n), key=b"%d" % n, partition=n % 3)
    for protocol in ("classic", "consumer"):
        read_some(server, protocol, f"{protocol}-{turn}")
        read_some(server, protocol, protocol)
    transactions(server, turn)


def read_some(server: str, protocol: Any, group: str) -> None:
    options: dict[str, Any] = {"group_id": group, "group_protocol": protocol, "auto_offset_reset": "earliest"}
    with client.Consumer("orders", bootstrap_servers=server, enable_auto_commit=False, **options) as consumer:
        for _, _ in zip(consumer, range(50), strict=False):
            pass
        consumer.commit()


def transactions(server: str, turn: str) -> None:
    with client.Producer(server, transactional_id="payments") as producer:
        for number, ending in enumerate((None, ZeroDivisionError, None)):
            try:
                with producer.transaction():
                    producer.send("orders", b"payment-%d" % number, partition=number).result(SOON)
                    group = f"by-payments-{turn}"
                    producer.send_offsets_to_transaction({("orders", 0): number + 1}, group)
                    if ending:
                        raise ending
            except ZeroDivisionError:
                pass
    run_python(OPEN, server, f"left-{turn}").check_returncode()


def end_open(server: str, name: str) -> None:
    """Another producer with its name ends a transaction that was left open."""
    with client.Producer(server, transactional_id=name) as producer, producer.transaction():
        producer.send("orders", b"after-" + name.encode(), partition=0)


def state(server: str) -> dict[str, Any]:
    """All that clients see, without what changes with each start: leader epochs, when producers were seen."""
    with client.Admin(server) as admin:
        names = [*admin.list_topics(), "__consumer_offsets", "__transaction_state"]
        described = admin.describe_topics(names)
        places = [(name, p.partition) for name in names for p in described[name].partitions]
        configs = admin.describe_configs([("topic", name) for name in names])
        groups = sorted(admin.list_groups())
        found = admin.describe_groups(groups)
        transactional = sorted(admin.list_transactions())
        ours = [place for place in places if not place[0].startswith("__")]
        producers = admin.describe_producers(ours)
        return {
            "topics": {name: (d.topic_id, d.internal, len(d.partitions)) for name, d in described.items()},
            "leaders": {(p.leader, *p.isr) for d in described.values() for p in d.partitions},
            "configs": {
                resource.name: {name: e.value for name, e in entries.items() if "topic" in str(e.source)}
                for resource, entries in configs.items()
            },
            "groups": {name: (found[name].state, found[name].type) for name in groups},
            "offsets": {name: {p: o.offset for p, o in admin.list_group_offsets(name).items()} for name in groups},
            "transactions": {name: as_kept(d) for name, d in admin.describe_transactions(transactional).items()},
            "producers": {
                place: sorted((s.producer_id, s.producer_epoch, s.last_sequence, s.transaction_start_offset)
                              for s in states)
                for place, states in producers.items()
            },
            "users": admin.describe_user_scram_credentials(),
            "quotas": admin.describe_client_quotas(),
            "ends": {
                (what, level): {p: o.offset for p, o in admin.list_offsets(
                    dict.fromkeys(ours, what), isolation_level=level).items()}
                for what in ("earliest", "latest") for level in ("read_committed", "read_uncommitted")
            },
            "records": {level: records(server, level) for level in ("read_committed", "read_uncommitted")},
        }  # fmt: skip


def as_kept(description: Any) -> tuple[Any, ...]:
    d = description
    return d.state, d.producer_id, d.producer_epoch, d.timeout_ms, sorted(d.partitions)


def records(server: str, level: Any) -> dict[int, list[Any]]:
    """All records of the topic, by partition."""
    with client.Consumer(bootstrap_servers=server, isolation_level=level, auto_offset_reset="earliest") as consumer:
        places = [("orders", n) for n in range(3)]
        consumer.assign(places)
        ends = consumer.end_offsets(places)
        found: dict[int, list[Any]] = {n: [] for n in range(3)}
        while any(consumer.position(*place) < ends[place] for place in places):
            for place, batch in consumer.getmany(0.2).items():
                found[place[1]] += [(r.offset, r.timestamp, r.key, r.value) for r in batch]
        return found


class Ours:
    """This broker over a directory, in a process of its own."""

    def __init__(self, logs: Path) -> None:
        command = [
            sys.executable,
            "-m",
            "kafkacodec.cli",
            "serve",
            "--data",
            str(logs),
            "--listen",
            "kafka://127.0.0.1:0",
        ]
        command += ["--config", "transaction.max.timeout.ms=3600000"]
        command += ["--config", "metadata.log.max.record.bytes.between.snapshots=2500"]
        command += ["--config", "log.retention.check.interval.ms=200"]
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        self.server = line.partition("listening on kafka://")[2].strip()
        assert self.server, line

    def end(self, number: int) -> None:
        self.process.send_signal(number)
        self.process.communicate(timeout=60)


def until_snapshot(logs: Path) -> None:
    """Wait until the log of the metadata begins where a snapshot ends."""

    def is_cut() -> bool:
        files = [path.name for path in (logs / "__cluster_metadata-0").iterdir()]
        ends = {int(name.partition("-")[0]) for name in files if name.endswith(".checkpoint")}
        return min(int(name[:20]) for name in files if name.endswith(".log")) in ends - {0}

    eventually(is_cut)


def same_state(server: str, expected: dict[str, Any]) -> None:
    """A broker that has just started may still be loading its coordinators, and electing leaders."""
    end = time.monotonic() + LATE
    while (wrong := differences(server, expected)) and time.monotonic() < end:
        time.sleep(0.2)
    assert not wrong


def differences(server: str, expected: dict[str, Any]) -> dict[str, Any]:
    try:
        found = state(server)
    except (ItemErrors, BrokerError) as error:
        return {"error": repr(error)}
    return {name: (found[name], expected[name]) for name in expected if found[name] != expected[name]}


@pytest.mark.parametrize("release", ["4.1", "newest"])
def test_apache_kafka_takes_over_after_a_crash_and_after_a_stop(tmp_path: Path, release: str) -> None:
    kafka = Broker(tmp_path, release, **SETTINGS)
    shutil.rmtree(kafka.logs)
    ours = Ours(kafka.logs)
    use(ours.server, "1")
    expected = state(ours.server)
    until_snapshot(kafka.logs)
    ours.end(signal.SIGKILL)
    kafka.start()
    try:
        same_state(kafka.server, expected)
        end_open(kafka.server, "left-1")
        use(kafka.server, "2")
        expected = state(kafka.server)
    finally:
        kafka.kill()
    ours = Ours(kafka.logs)
    same_state(ours.server, expected)
    end_open(ours.server, "left-2")
    use(ours.server, "3")
    expected = state(ours.server)
    ours.end(signal.SIGTERM)
    assert (kafka.logs / ".kafka_cleanshutdown").exists()
    kafka.start()
    try:
        same_state(kafka.server, expected)
        end_open(kafka.server, "left-3")
        expected = state(kafka.server)
    finally:
        kafka.stop()
    ours = Ours(kafka.logs)
    same_state(ours.server, expected)
    ours.end(signal.SIGKILL)
    assert kc.log.LogDirectory(kafka.logs).verify().ok


def test_an_older_kafka_gets_its_directory_back(tmp_path: Path) -> None:
    kafka = Broker(tmp_path, "jars", **SETTINGS)
    kafka.start()
    try:
        use(kafka.server, "1")
        expected = state(kafka.server)
    finally:
        kafka.kill()
    ours = Ours(kafka.logs)
    same_state(ours.server, expected)
    end_open(ours.server, "left-1")
    use(ours.server, "2")
    expected = state(ours.server)
    ours.end(signal.SIGKILL)
    kafka.start()
    try:
        same_state(kafka.server, expected)
        end_open(kafka.server, "left-2")
    finally:
        kafka.stop()


def beat(server: str, epoch: int, **fields: Any) -> Any:
    """The answer to a heartbeat of the only member of a streams group, that counts words."""
    changelog = topic("words-changelog", cleanup_policy="compact")
    made = topology(part("0", "lines", state_changelog_topics=[changelog]))
    first = {"rebalance_timeout_ms": 60_000, "process_id": "one", "topology": made, **{role: [] for role in ROLES}}
    every = {"group_id": "words", "member_id": "a", "member_epoch": epoch, **({} if epoch else first), **fields}
    with client.KafkaConnection(server) as connection:
        request = messages.StreamsGroupHeartbeatRequest.from_dict(every)
        (reply,) = connection.poll(20, (client.Coordinator("group", "words"), request))
        return reply.message


def streams_group(server: str) -> Any:
    """A description, as one broker and the next give it."""
    with client.Admin(server) as admin, contextlib.suppress(ItemErrors, BrokerError):
        return admin.describe_streams_groups("words")["words"]._replace(coordinator=0)
    return None


def test_a_streams_group_is_taken_over(tmp_path: Path) -> None:
    kafka = Broker(tmp_path, "newest", **SOON_BACK)
    shutil.rmtree(kafka.logs)
    at_once = {"group.streams.assignment.interval.ms": 0}
    with kc.broker.serve(kafka.logs, topics={"lines": 2}, config=at_once) as ours:
        with client.Admin(ours.bootstrap_servers) as admin:
            admin.incremental_alter_configs({("group", "words"): {"streams.session.timeout.ms": "60000"}})
        joined = beat(ours.bootstrap_servers, 0)
        ready = beat(ours.bootstrap_servers, joined.member_epoch)
        expected = streams_group(ours.bootstrap_servers)
    assert (expected.state, len(expected.members[0].assignment.active)) == ("Stable", 2)
    kafka.start()
    try:
        eventually(lambda: streams_group(kafka.server) is not None)
        found = streams_group(kafka.server)
        assert (found.state, found.epoch, found.members) == (expected.state, expected.epoch, expected.members)
        assert beat(kafka.server, ready.member_epoch).error_code == 0
        expected = streams_group(kafka.server)
    finally:
        kafka.stop()
    with kc.broker.serve(kafka.logs) as ours:
        found = streams_group(ours.bootstrap_servers)
        assert (found.state, found.epoch, found.members) == (expected.state, expected.epoch, expected.members)
        assert beat(ours.bootstrap_servers, found.members[0].epoch).error_code == 0
