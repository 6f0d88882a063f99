"""Partitions without a leader: reads that end say which one they did not reach, and the command's exit status tells."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

import kafkacodec as kc
from kafkacodec.cli.__main__ import run
from kafkacodec.cli.rows import consume_range, consumed
from kafkacodec.client.core import held_up
from kafkacodec.errors import DeadlineExceeded, LeaderNotAvailableError

RANGES = {("orders", number): (0, 50) for number in range(3)}
SEGMENT = f"{78:020d}.log"


@pytest.fixture
def broker(tmp_path: Path):
    path = Path(kc.sample(tmp_path / "logs").path)
    segment = path / "orders-2" / SEGMENT
    os.rename(segment, tmp_path / "kept")
    segment.symlink_to(tmp_path / "no such disk")
    with kc.broker.serve(path, read_only=True) as broker:
        yield broker


@pytest.fixture
def consumer(broker):
    with kc.client.Consumer(bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        yield consumer


@pytest.fixture
def command(broker, capsys, monkeypatch):
    monkeypatch.setattr(consume_range, "_ELECTION_MS", 300)
    monkeypatch.setattr(consumed, "_ELECTION_SECONDS", 0.3)

    def call(*arguments: str) -> tuple[int, str, str]:
        return run([*arguments, "-b", broker.bootstrap_servers]), *capsys.readouterr()

    return call


def test_ranges_that_do_not_end_raise(consumer):
    consumer.assign_ranges(RANGES)
    tables = []
    with pytest.raises(LeaderNotAvailableError, match="orders-2 is not read to its end: it has no leader"):
        tables.extend(consumer.columns(timeout=1))
    assert sum(map(len, tables)) == 100


async def test_in_an_event_loop_too(broker):
    async with kc.client.aio.Consumer(bootstrap_servers=broker.bootstrap_servers) as consumer:
        await consumer.assign_ranges(RANGES)
        tables = consumer.columns(timeout=1)
        with pytest.raises(LeaderNotAvailableError):
            _ = [table async for table in tables]


def test_a_short_read_says_what_it_did_not_read(consumer, caplog, monkeypatch):
    monkeypatch.setattr(held_up, "_BRIEF_MS", 100.0)
    consumer.subscribe(["orders"])
    assert sum(len(table) for table in consumer.columns(timeout=1)) == 445
    consumer.close()
    (text,) = [record.message for record in caplog.records if record.name == "kafkacodec.client"]
    assert "the position in orders-2 is not found: LEADER_NOT_AVAILABLE" in text


def test_calls_have_limits(consumer):
    key = ("orders", 2)
    consumer.assign([key])
    for call in (consumer.end_offsets, consumer.beginning_offsets):
        with pytest.raises(DeadlineExceeded, match="orders-2 has no known leader"):
            call([key], timeout=0.3)
    with pytest.raises(DeadlineExceeded, match="orders-2 has no known leader"):
        consumer.offsets_for_times({key: 0}, timeout=0.3)
    with pytest.raises(DeadlineExceeded, match="not in time"):
        consumer.position(*key, timeout=0.3)


@pytest.mark.parametrize(
    ("options", "reason"),
    [((), "it has no leader (LEADER_NOT_AVAILABLE)"), (("-G", "readers"), "orders-2 has no known leader")],
)
def test_consume_reads_the_others(command, options, reason):
    code, out, err = command("consume", "orders", "-e", "--json", *options)
    assert (code, len(out.splitlines())) == (1, 445)
    assert f"orders-2 is not read: {reason}\n" in err
    assert err.endswith("error: 1 partition could not be read: orders-2\n")


def test_a_file_needs_all_partitions(command, tmp_path):
    path = tmp_path / "orders.parquet"
    code, _, err = command("consume", "orders", "-e", "-o", "beginning", "--output", str(path))
    assert (code, path.exists()) == (1, False)
    assert "orders-2 is not read: it has no leader (LEADER_NOT_AVAILABLE); --partition selects others\n" in err
    assert command("consume", "orders", "-e", "-p", "0", "--output", str(path))[0] == 0


def test_nothing_to_read_is_an_error(command):
    code, out, err = command("consume", "orders", "-e", "-p", "2")
    assert (code, out) == (1, "")
    assert "error: orders-2 is not read: it has no leader (LEADER_NOT_AVAILABLE)\n" in err


@pytest.mark.parametrize("start", ["beginning", "s@0", "0"])
def test_without_an_end_the_others_are_read_meanwhile(command, start, caplog):
    caplog.set_level(logging.ERROR)
    code, out, _ = command("consume", "orders", "-n", "445", "--json", "-o", start)
    assert (code, len(out.splitlines())) == (0, 445)
