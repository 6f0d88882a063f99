"""`verify` of logs that a real broker is writing: it finds nothing, since nothing is wrong.

KAFKACODEC_LIVE_VERIFY_SECONDS makes the test longer.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafkacodec.cli.__main__ import DONE
from kafkacodec.log import LogDirectory
from tests.integration import kafka_jvm
from tests.integration.kafka_jvm import Broker

pytestmark = pytest.mark.java

SECONDS = int(os.environ.get("KAFKACODEC_LIVE_VERIFY_SECONDS", "8"))
PARTITIONS = 2

# Segments roll all the time, and the checkpoints are written often.
BUSY = {
    "log_segment_bytes": "60000",
    "log_index_interval_bytes": "100",
    "log_flush_interval_messages": "50",
    "log_flush_offset_checkpoint_interval_ms": "200",
    "log_flush_start_offset_checkpoint_interval_ms": "200",
    "log_initial_task_delay_ms": "100",
    "replica_high_watermark_checkpoint_interval_ms": "100",
}


@pytest.fixture
def busy(tmp_path: Path) -> Iterator[Broker]:
    """A broker with a producer that writes until the end of the test."""
    broker = Broker(tmp_path, **BUSY)
    broker.start()
    kafka_jvm.create_topic(broker.server, "orders", PARTITIONS)
    lines = tmp_path / "produced"
    producer = kafka_jvm.background("load", broker.server, "orders", PARTITIONS, 500, output=lines)
    try:
        deadline = time.monotonic() + 60
        while not lines.stat().st_size:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        yield broker
        assert producer.poll() is None
    finally:
        producer.kill()
        producer.communicate()
        with contextlib.suppress(Exception):
            broker.stop()


def test_nothing_is_wrong_while_a_broker_writes(busy: Broker, kafkacodec: Callable[..., tuple[int, str, str]]) -> None:
    runs, found, ends = 0, Counter[str](), set()
    begin = time.monotonic()
    while time.monotonic() - begin < SECONDS or runs < 20:
        findings = [f for f in LogDirectory(busy.logs).verify().findings if f.level != "note"]
        code, out, err = kafkacodec("verify", busy.logs, "--strict", "--json")
        findings += [f for line in out.splitlines() for f in json.loads(line)["findings"] if f["level"] != "note"]
        found.update(map(str, findings))
        ends.add(LogDirectory(busy.logs).partition("orders", 0).end_offset())
        runs += 1
        assert (code, err) == (DONE, "") or findings
    print(f"{2 * runs} runs, {sum(found.values())} findings")
    assert not found, f"{sum(found.values())} findings in {2 * runs} runs: {found.most_common(5)}"
    assert len(ends) > 10  # the log grew meanwhile
