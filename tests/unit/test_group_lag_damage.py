"""Lag in logs that have lost records: their end is the high watermark, the loss is noted, and copies stand in."""

from __future__ import annotations

from pathlib import Path

import pytest

import kafkacodec as kc
from kafkacodec.log.state.group_lag import _in_all, _joined


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """`orders-1` lacks the segment with offsets 77 to 146, `orders-2` the batch with 152 to 154."""
    return Path(kc.sample(tmp_path / "damaged", damaged=True).path)


def billing(*paths: object) -> list[kc.log.PartitionLag]:
    return [line for line in kc.log.lag([str(path) for path in paths]) if line.group == "billing"]


def test_the_intact_log_has_lost_nothing() -> None:
    assert [line.missing_offsets for line in billing(kc.sample().path)] == [0, 0, 0]


def test_loss_is_noted_and_times_are_not_guessed(damaged: Path) -> None:
    intact = billing(kc.sample().path)
    first, gap, cut = billing(damaged)
    assert first == intact[0]
    assert (gap.offset, gap.end_offset, gap.lag) == (97, 163, 66)
    assert (gap.missing_offsets, gap.timestamp, gap.lag_ms) == (50, None, None)
    assert gap.end_timestamp == intact[1].end_timestamp
    assert gap.notes == ["50 offsets lost by the log"]
    assert (cut.log_end_offset, cut.end_offset, cut.lag) == (152, 155, intact[2].lag) == (152, 155, 62)
    assert (cut.missing_offsets, cut.end_timestamp, cut.lag_ms) == (3, None, None)
    assert cut.timestamp == intact[2].timestamp
    assert cut.notes == ["3 offsets lost by the log"]
    everything = [line for line in kc.log.lag(damaged) if (line.group, line.partition) == ("reports", 2)]
    assert [(line.lag, line.lag_ms, line.missing_offsets) for line in everything] == [(0, 0, 0)]


@pytest.mark.parametrize("order", [1, -1])
def test_copies_supply_what_a_log_has_lost(damaged: Path, order: int) -> None:
    intact = kc.sample().path
    assert billing(*(damaged, intact)[::order]) == billing(intact)


def test_two_copies_with_different_losses(damaged: Path, tmp_path: Path) -> None:
    other = Path(kc.sample(tmp_path / "other").path)
    (other / "orders-1" / f"{147:020}.log").unlink()
    (line,) = [line for line in billing(other, damaged) if line.partition == 1]
    (intact,) = [line for line in billing(kc.sample().path) if line.partition == 1]
    assert (line.lag, line.missing_offsets, line.lag_ms) == (66, 0, intact.lag_ms)


def test_a_log_without_a_checkpoint_ends_where_its_files_end(damaged: Path) -> None:
    (damaged / "replication-offset-checkpoint").unlink()
    cut = billing(damaged)[2]
    assert (cut.end_offset, cut.lag) == (152, 59)


def test_spans() -> None:
    assert _joined([(5, 7), (0, 2), (2, 3), (6, 9)]) == [(0, 3), (5, 9)]
    assert _in_all([[(0, 5), (7, 9)], [(3, 8)], [(4, 20)]]) == [(4, 5), (7, 8)]
