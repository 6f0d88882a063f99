"""``dump --follow`` and ``--tail`` beside a real broker that writes, rolls and deletes segments."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.integration import kafka_jvm
from tests.patience import LATE

pytestmark = [pytest.mark.java, pytest.mark.slow]
RECORDS = 6000


@pytest.mark.parametrize("preallocate", ["false", "true"])
def test_every_record_appears_once(tmp_path: Path, preallocate: str) -> None:
    broker = kafka_jvm.Broker(tmp_path, log_segment_bytes="60000", log_preallocate=preallocate)
    broker.start()
    try:
        kafka_jvm.create_topic(broker.server, "load", 1)
        sent, printed, errors = (tmp_path / name for name in ("sent", "printed", "errors"))
        loader = kafka_jvm.background("load", broker.server, "load", 1, 2000, output=sent)
        with open(printed, "wb") as out, open(errors, "wb") as err:
            command = [sys.executable, "-m", "kafkacodec.cli", "dump", broker.logs / "load-0", "--follow", "--json"]
            follower = subprocess.Popen(command, stdout=out, stderr=err)
            _wait_for_lines(sent, RECORDS, follower)
            assert loader.stdin is not None
            loader.stdin.write(b"\n")
            loader.stdin.close()
            loader.wait(LATE)
            acknowledged = [line.split(" ") for line in sent.read_text().splitlines()]
            _wait_for_lines(printed, len(acknowledged), follower)
            follower.send_signal(signal.SIGINT)
            assert follower.wait(LATE) == 130
        found = [json.loads(line) for line in printed.read_text().splitlines()]
        assert [(r["offset"], r["key"], r["value"]) for r in found] == sorted(
            (int(offset), key, value) for _, offset, key, value in acknowledged
        )
        assert errors.read_text().strip() == ""
        assert len(found) >= RECORDS
        assert len([name for name in os.listdir(broker.logs / "load-0") if name.endswith(".log")]) > 2
        tail = subprocess.run([*command[:-2], "--tail", "3", "--json"], capture_output=True, text=True, check=True)
        assert [json.loads(line) for line in tail.stdout.splitlines()] == found[-3:]
    finally:
        broker.stop()


def _wait_for_lines(path: Path, count: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        if path.read_bytes().count(b"\n") >= count or process.poll() is not None:
            return
        time.sleep(0.1)
