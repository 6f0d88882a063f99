"""The lag of consumer groups by the files of a real broker, and what that broker itself says."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

import kafkacodec as kc
from tests.integration import kafka_jvm
from tests.integration.kafka_jvm import Broker

pytestmark = pytest.mark.java


def described(broker: Broker) -> dict[tuple[str, str, int], tuple[Any, ...]]:
    """Committed offset, end, lag, and the member of each group and partition, as the broker says."""
    found: dict[tuple[str, str, int], tuple[Any, ...]] = {}
    for line in kafka_jvm.tool("describe", broker.server, program="GroupTool"):
        group, topic, partition, offset, end, *member = line.split(" ")
        committed = None if offset == "-" else int(offset)
        lag = None if committed is None else int(end) - committed
        owner = tuple(None if part == "-" else part for part in member)
        found[group, topic, int(partition)] = committed, int(end), lag, *owner
    return found


def read(broker: Broker, tmp_path: Path, protocol: str, group: str, topic: str, count: int) -> Any:
    """A member of a group that has read so many records, or a few more, and committed."""
    output = tmp_path / f"{group}.out"
    arguments = broker.server, group, f"client-{group}", topic, count, protocol
    process = kafka_jvm.background("read", *arguments, output=output, program="GroupTool")
    for _ in range(600):
        if output.read_text().strip():
            return process
        assert process.poll() is None
        time.sleep(0.1)
    raise AssertionError("the group does not read")


@pytest.mark.parametrize(("protocol", "release"), [("classic", "jars"), ("consumer", "newest")])
def test_lag_is_what_the_broker_says(tmp_path: Path, kafkacodec: Any, protocol: str, release: str) -> None:
    """For the protocol of groups that clients lead, and that of KIP-848, which stores topic ids."""
    broker = Broker(tmp_path, release)
    broker.start()
    try:
        compare(broker, tmp_path, kafkacodec, protocol)
    finally:
        broker.kill()


def compare(broker: Broker, tmp_path: Path, kafkacodec: Any, protocol: str) -> None:
    for topic in ("orders", "returns"):
        kafka_jvm.create_topic(broker.server, topic, 3)
        kafka_jvm.tool("produce", broker.server, topic, 3, text="\n".join(["ab" * 20] * 300))
    members = [
        read(broker, tmp_path, protocol, "billing", "orders", 40),
        read(broker, tmp_path, protocol, "search", "returns", 300),
    ]
    try:
        expected = described(broker)
        assert {place[0] for place in expected} == {"billing", "search"}
        # The files have what was acknowledged, at once; the checkpoint of high watermarks may be older.
        live = {(line.group, line.topic, line.partition): line for line in kc.log.lag(broker.logs)}
        assert {place: (line.offset, line.log_end_offset) for place, line in live.items()} == {
            place: values[:2] for place, values in expected.items()
        }
    finally:
        for process in members:
            process.kill()  # without leaving the group
            process.communicate()
    broker.stop()
    found = {
        (line.group, line.topic, line.partition): (
            line.offset,
            line.end_offset,
            line.lag,
            line.member_id,
            line.client_id,
            line.client_host,
        )
        for line in kc.log.lag(broker.logs)
    }
    assert found == expected
    assert {values[2] for place, values in expected.items() if place[0] == "search"} == {0}
    assert sum(values[2] for place, values in expected.items() if place[0] == "billing") >= 250
    assert {values[4] for values in expected.values()} == {"client-billing", "client-search"}
    code, out, _ = kafkacodec("lag", broker.logs, "--group", "billing", "--json")
    assert code == 0
    assert [json.loads(line)["lag"] for line in out.splitlines()] == [
        values[2] for place, values in sorted(expected.items()) if place[0] == "billing"
    ]
