"""Which offsets are missing after a segment, and whether they are lost: decisions without files."""

from __future__ import annotations

import pytest

import kafkacodec as kc
from kafkacodec.log.order.continuity import Evidence, Gap, cause_of, gap_after, missing


@pytest.mark.parametrize(
    ("end", "following", "flushed", "span", "gap"),
    [
        (100, 100, None, {}, None),
        (90, 100, None, {}, Gap(90, 100)),
        (101, 100, None, {}, None),  # an overlap is not a gap
        (100, None, None, {}, None),
        (100, None, 100, {}, None),
        (100, None, 90, {}, None),  # records that were not on disk yet
        (90, None, 100, {}, Gap(90, 100, at_end=True)),
        (90, 100, 200, {}, Gap(90, 100)),
        (90, 100, None, {"start_offset": 95}, Gap(95, 100)),
        (90, 100, None, {"end_offset": 95}, Gap(90, 95)),
        (90, 100, None, {"end_offset": 90}, None),
        (90, 100, None, {"start_offset": 100}, None),
        (0, 1 << 62, None, {"end_offset": 1 << 61}, Gap(0, 1 << 61)),
    ],
)
def test_gaps(end, following, flushed, span, gap):
    assert gap_after(end, following, flushed, **span) == gap


GAP = Gap(90, 100)


@pytest.mark.parametrize(
    ("evidence", "cause"),
    [
        (Evidence(), "unknown"),
        (Evidence(bytes_left=1), "loss"),
        (Evidence(indexed_to=90), "loss"),
        (Evidence(indexed_to=89), "unknown"),
        (Evidence(orphans=("00000000000000000090.index",)), "loss"),
        (Evidence(cleaned_to=100), "compaction"),
        (Evidence(cleaned_to=99), "unknown"),  # the cleaner has not reached the gap
        (Evidence(removed=True), "compaction"),
        (Evidence(topic="__consumer_offsets"), "compaction"),
        (Evidence(topic="__consumer_offsets", cleaned_to=50), "unknown"),
        (Evidence(topic="__share_group_state"), "unknown"),
        (Evidence(topic="__cluster_metadata", removed=True), "loss"),
        (Evidence(topic="orders"), "unknown"),
        (Evidence(old=True), "loss"),
        # Evidence of a loss outweighs compaction.
        (Evidence(bytes_left=5, cleaned_to=1000, removed=True), "loss"),
        (Evidence(indexed_to=95, cleaned_to=1000), "loss"),
    ],
)
def test_causes(evidence, cause):
    assert cause_of(GAP, evidence)[0] == cause
    error = missing(GAP, evidence, path="t-0/0.log", position=7)
    if cause == "compaction":
        assert error is None
        return
    assert (error.first_offset, error.end_offset, error.missing_offsets) == (90, 100, 10)
    assert (error.certain, error.path, error.position) == (cause == "loss", "t-0/0.log", 7)
    assert f"gap of 10 {'byte' if evidence.old else 'offset'}s from 90 on: " in str(error)
    assert ("compaction or loss" in str(error)) == (cause == "unknown")


def test_the_recovery_point_proves_a_loss():
    assert cause_of(Gap(90, 100, at_end=True), Evidence(cleaned_to=1000, removed=True))[0] == "loss"


def test_segments_of_tiered_storage_may_overlap(tmp_path):
    """Two leaders may have uploaded the same offsets; a gap is still a gap."""
    directory = tmp_path / f"{'A' * 21}Q-0-t"
    directory.mkdir()

    def put(base, count, letter):
        name = f"{base:020d}-{letter * 22}.log"
        (directory / name).write_bytes(kc.encode([(None, b"x")] * count, base_offset=base))

    put(0, 12, "B")
    put(10, 10, "C")
    partition = kc.log.Partition(directory)
    assert partition.state == "remote"
    assert sum(len(chunk) for chunk in partition.read()) == 22
    assert partition.breaks() == []
    put(25, 5, "D")
    with pytest.raises(kc.MissingOffsets, match="gap of 5 offsets from 20 on"):
        list(kc.log.Partition(directory).read())
