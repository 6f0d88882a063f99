"""The newest clients of Apache Kafka use this broker: producer, consumer, admin, Streams, tools of the console."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import kafkacodec as kc
from kafkacodec.errors import ItemErrors
from tests.integration import other_clients
from tests.integration.kafka_jars import HERE, java, tools
from tests.patience import eventually

pytestmark = [pytest.mark.java, pytest.mark.slow]

PARTS = [
    "admin", "codecs", "seek by timestamp", "large messages", "group", "group of KIP-848", "static members",
    "transactions", "exactly once", "deletion",
]  # fmt: skip


def program(name: str) -> list[str]:
    return [*java("newest", tools("newest")), str(HERE / "newest" / f"{name}.java")]


def test_the_clients_do_all_that_they_can() -> None:
    with other_clients.serving() as broker:
        other_clients.assert_parts([*program("ClientTool"), broker.bootstrap_servers], PARTS)
        other_clients.stored(broker, "java-codecs")


def test_streams_count_words_exactly_once(tmp_path: Path) -> None:
    """Twice: what was counted before comes back from the broker, since the stores are in memory."""
    lines = ["all streams lead to kafka", "hello kafka streams", "join kafka summit"]
    words = Counter[str]()
    expected: list[tuple[str, str]] = []
    with kc.broker.serve(topics={"lines": 2, "counts": 1}) as broker:
        for _ in range(2):
            with kc.client.Producer(broker.bootstrap_servers) as producer:
                for number, line in enumerate(lines):
                    producer.send("lines", line.encode(), partition=number % 2)
            for word in " ".join(lines).split():
                words[word] += 1
                expected.append((word, str(words[word])))
            command = [*program("StreamsTool"), broker.bootstrap_servers, str(tmp_path), str(len(expected)), "classic"]
            ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
            assert ended.returncode == 0, ended.stderr[-4000:]
            found = [
                ((record.key or b"").decode(), (record.value or b"").decode()) for record in broker.records("counts")
            ]
            assert sorted(found) == sorted(expected)
            broker.advance(46)  # members of Streams do not leave: that is how long their sessions are
        with kc.client.Admin(broker.bootstrap_servers) as admin:
            assert {each.state for each in admin.list_transactions().values()} == {"CompleteCommit"}


def test_instances_of_a_streams_group_count_words(tmp_path: Path) -> None:
    """Two instances with the protocol of streams groups (KIP-1071), and a restart of the broker between two rounds."""
    lines = ["all streams lead to kafka", "hello kafka streams", "join kafka summit"] * 2
    words = Counter(" ".join(lines).split())
    expected = sorted((word, str(number + 1)) for word, count in words.items() for number in range(count))
    data, half = tmp_path / "data", len(lines) // 2
    broker = kc.broker.serve(data, topics={"lines": 4, "counts": 1})
    listen = broker.listeners[0]
    running = [
        subprocess.Popen([*program("StreamsTool"), broker.bootstrap_servers, str(tmp_path / name), str(len(expected)),
                          "streams"], stderr=subprocess.PIPE, text=True)
        for name in ("one", "two")
    ]  # fmt: skip
    try:
        with kc.client.Admin(broker.bootstrap_servers) as admin:
            eventually(lambda: len(tasks_of(admin)) == 2)
            assert sorted(len(tasks) for tasks in tasks_of(admin)) == [4, 4]
        send(broker, lines[:half])
        eventually(lambda: len(counted(broker)) == len(expected) // 2)
        broker.stop()
        assert [(group.group, group.kind) for group in kc.log.read_consumer_groups(data)] == [("words", "streams")]
        broker = kc.broker.serve(data, listen=listen)
        send(broker, lines[half:])
        for process in running:
            _, problems = process.communicate(timeout=120)
            assert process.returncode == 0, problems[-4000:]
        assert sorted(counted(broker)) == expected
    finally:
        for process in running:
            process.kill()
            process.communicate()
        broker.stop()


def tasks_of(admin: kc.client.Admin) -> list[list[Any]]:
    """The active tasks of each member that has some."""
    with contextlib.suppress(ItemErrors):
        members = admin.describe_streams_groups("words")["words"].members
        return [member.assignment.active for member in members if member.assignment.active]
    return []


def send(broker: kc.broker.Broker, lines: list[str]) -> None:
    with kc.client.Producer(broker.bootstrap_servers) as producer:
        for number, line in enumerate(lines):
            producer.send("lines", line.encode(), partition=number % 4)


def counted(broker: kc.broker.Broker) -> list[tuple[str, str]]:
    found = broker.records("counts")
    return [((record.key or b"").decode(), (record.value or b"").decode()) for record in found]


def console(commands: list[list[str]]) -> list[str]:
    """What the tools write, each of which has to end well."""
    text = "".join("\t".join([f"org.apache.kafka.tools.{name}", *rest]) + "\n" for name, *rest in commands)
    ended = subprocess.run(program("ConsoleTool"), input=text, capture_output=True, text=True, timeout=120, check=False)
    outputs = ended.stdout.split("status ")
    failed = [c for c, after in zip(commands, outputs[1:], strict=False) if not after.startswith("0\n")]
    assert (ended.returncode, len(outputs), failed) == (0, len(commands) + 1, []), ended.stderr[-4000:]
    return [outputs[0], *(output.removeprefix("0\n") for output in outputs[1:-1])]


def test_the_tools_of_the_console(tmp_path: Path) -> None:
    deleted = tmp_path / "deleted.json"
    deleted.write_text(json.dumps({"version": 1, "partitions": [{"topic": "t", "partition": 0, "offset": 1}]}))
    group = "consumer.group.ConsumerGroupCommand"
    acl = ["--allow-principal", "User:alice", "--operation", "Read", "--topic", "secret"]
    user = ["--entity-type", "users", "--entity-name", "alice"]
    with kc.broker.serve(authorizer=True, config={"allow.everyone.if.no.acl.found": True}) as broker:
        at = ["--bootstrap-server", broker.bootstrap_servers]
        keys = ["parse.key=true", "key.separator=:", "parse.headers=true", "headers.delimiter=;"]
        shown = ["print.key=true", "print.headers=true", "print.offset=true"]

        def repeated(option: str, values: list[str]) -> list[str]:
            return [word for value in values for word in (option, value)]

        expected = {
            ("TopicCommand", *at, "--create", "--topic", "t", "--partitions", "1"): "Created topic t.",
            ("TopicCommand", *at, "--alter", "--topic", "t", "--partitions", "2"): "",
            ("TopicCommand", *at, "--describe", "--topic", "t"): "PartitionCount: 2\tReplicationFactor: 1",
            (
                "ConsoleProducer", *at, "--topic", "t", "--compression-codec", "zstd",
                *repeated("--reader-property", keys), "<h:1;k:one|h:2;k:two|h:3;k:three",
            ): "",
            (
                "consumer.ConsoleConsumer", *at, "--topic", "t", "--from-beginning", "--max-messages", "3",
                "--group", "g", *repeated("--formatter-property", shown),
            ): "Offset:0\th:1\tk\tone\nOffset:1\th:2\tk\ttwo\nOffset:2\th:3\tk\tthree\n",
            (group, *at, "--describe", "--group", "g"): "g t 0 3 3 0 - - -",
            (group, *at, "--list", "--state"): "g Empty",
            (group, *at, "--reset-offsets", "--to-offset", "2", "--execute", "--group", "g", "--topic", "t:0"): (
                "g t 0 2"
            ),
            (group, *at, "--delete", "--group", "g"): "('g') was successful",
            ("GroupsCommand", *at, "--list"): "GROUP TYPE PROTOCOL",
            (
                "ConfigCommand", *at, "--alter", "--entity-type", "topics", "--entity-name", "t",
                "--add-config", "retention.ms=60000",
            ): "Completed updating config for topic t.",
            ("ConfigCommand", *at, "--describe", "--entity-type", "topics", "--entity-name", "t"): (
                "retention.ms=60000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=60000}"
            ),
            ("ConfigCommand", *at, "--alter", *user, "--add-config", "SCRAM-SHA-256=[iterations=4096,password=a]"): "",
            ("ConfigCommand", *at, "--alter", *user, "--add-config", "producer_byte_rate=1000000"): "",
            ("ConfigCommand", *at, "--describe", *user): "iterations=4096",
            ("ConfigCommand", *at, "--describe", "--entity-type", "brokers", "--entity-name", "1", "--all"): (
                "DEFAULT_CONFIG:num.partitions=1"
            ),
            ("AclCommand", *at, "--add", *acl, "--resource-pattern-type", "prefixed"): "User:alice",
            ("AclCommand", *at, "--list"): "patternType=PREFIXED",
            ("AclCommand", *at, "--remove", "--force", *acl, "--resource-pattern-type", "prefixed"): "",
            ("GetOffsetShell", *at, "--topic", "t"): "t:0:3\nt:1:0\n",
            ("DeleteRecordsCommand", *at, "--offset-json-file", str(deleted)): "partition: t-0\tlow_watermark: 1",
            ("GetOffsetShell", *at, "--topic", "t", "--time", "earliest"): "t:0:1\nt:1:0\n",
            ("LogDirsCommand", *at, "--describe", "--topic-list", "t"): '"partition":"t-1","size":0,"offsetLag":0',
            ("MetadataQuorumCommand", *at, "describe", "--status"): "LeaderId: 1",
            ("FeatureCommand", *at, "describe"): "Feature: transaction.version",
            ("TransactionsCommand", *at, "list"): "TransactionalId\tCoordinator",
            ("BrokerApiVersionsCommand", *at): "Produce(0): 0 to 13 [usable: 13]",
            ("ClusterTool", "cluster-id", *at): "Cluster ID: ",
            ("LeaderElectionCommand", *at, "--election-type", "preferred", "--all-topic-partitions"): "",
            ("reassign.ReassignPartitionsCommand", *at, "--list"): "No partition reassignments found.",
            (
                "ProducerPerformance", *at, "--topic", "t", "--num-records", "1000", "--record-size", "100",
                "--throughput", "-1",
            ): "1000 records sent",
            ("ConsumerPerformance", *at, "--topic", "t", "--num-records", "1000"): "data.consumed.in.nMsg",
            ("TopicCommand", *at, "--delete", "--topic", "t"): "",
            ("TopicCommand", *at, "--list"): "__consumer_offsets",
        }  # fmt: skip
        outputs = console([list(command) for command in expected])
        for command, output, part in zip(expected, outputs, expected.values(), strict=True):
            assert part in output or part in " ".join(output.split()), command
        assert "\nt\n" not in f"\n{outputs[-1]}"
