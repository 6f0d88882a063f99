"""Where a stream goes on: positions in checkpoints, and logs that were truncated, deleted or created again."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path

import pytest

import kafkacodec as kc
from kafkacodec.errors import KafkaCodecError
from kafkacodec.log import LeaderEpoch
from kafkacodec.log.opening.identity import BatchMark
from kafkacodec.log.partitions.inside import relisted
from kafkacodec.spark.errors import OptionError
from kafkacodec.spark.reading import planning, streaming
from kafkacodec.spark.reading.checkpoint import Observed, Position, advance, check, dump, parse, resume
from tests.changed_logs import (
    ALL,
    COMPACTED,
    END,
    create_again,
    delete_first,
    delete_partition,
    delete_records,
    make_log,
    offsets_of,
    truncate,
    truncate_and_write,
)
from tests.stream_query import Query

EPOCHS = (LeaderEpoch(0, 0), LeaderEpoch(3, 50), LeaderEpoch(5, 80))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return make_log(tmp_path)


@pytest.mark.parametrize(
    ("position", "observed", "goes_on", "reason"),
    [
        (None, Observed(7, 90, 90), 7, None),
        (Position(60, "a", 3, 8), Observed(0, 90, 90, "a", EPOCHS), 60, None),
        (Position(60), Observed(0, 90, 90, "a", EPOCHS), 60, None),
        (Position(60, "a", 3), Observed(0, 90, 90, "a", EPOCHS), 60, None),
        (Position(60, "a", 3), Observed(60, 90, 90, "a", EPOCHS), 60, None),
        (Position(60, "a", 3), Observed(0, 90, 90, None, ()), 60, None),  # nothing is known
        (Position(90, "a", 5), Observed(0, 90, 40, "a", EPOCHS), 90, None),  # an old high watermark
        (Position(60, "a", 3), Observed(70, 90, 90, "a", EPOCHS), 70, "offsets 60 to 69 of t-0 were deleted before"),
        (Position(60, "a", 3), Observed(0, 90, 90, "b", EPOCHS), 0, "the topic of t-0, which was read up to offset 60"),
        (Position(60, "a", 3), Observed(9, 90, 90, "b", EPOCHS), 9, "was deleted and created again"),
        (Position(100), Observed(0, 90, 90), 90, "t-0, which was read up to offset 100, was truncated at offset 90"),
        (Position(100, "a", 5), Observed(0, 90, 90, "a", EPOCHS), 90, "was truncated at offset 90"),
        (Position(85, "a", 3), Observed(0, 90, 90, "a", EPOCHS), 80, "was truncated at offset 80"),
        (Position(70, "a", 0), Observed(0, 90, 90, "a", EPOCHS), 50, "was truncated at offset 50"),
        (Position(100, "a", 3), Observed(0, 90, 90, "a", EPOCHS), 80, "was truncated at offset 80"),
        (Position(70, "a", 0), Observed(60, 90, 90, "a", EPOCHS), 60, "was truncated at offset 60"),
        (Position(60, "a", 4), Observed(0, 90, 90, "a", EPOCHS), 60, None),  # entries of empty epochs may be dropped
    ],
)
def test_where_reading_goes_on(position, observed, goes_on, reason):
    offset, loss = resume(position, observed)
    assert offset == goes_on
    assert (loss is None) == (reason is None)
    if loss is not None:
        sentence = str(loss.error(("t", 0)))
        assert reason in sentence
        assert "failOnDataLoss=false reading continues" in sentence
        assert f"offset {goes_on}" in sentence
        assert "\n" not in sentence


@pytest.mark.parametrize(
    ("crc", "batch", "goes_on"),
    [
        (8, BatchMark(55, 59, 8, True), 60),
        (8, BatchMark(55, 59, 9, False), 60),  # the cleaner may have changed it
        (None, BatchMark(55, 59, 9, True), 60),
        (8, None, 60),
        (8, BatchMark(55, 59, 9, True), 55),
        (8, BatchMark(55, 70, 9, True), 55),
    ],
)
def test_another_batch_in_the_same_leader_epoch(crc, batch, goes_on):
    observed, position = Observed(0, 90, 90, "a", EPOCHS), Position(60, "a", 3, crc)
    offset, loss = resume(position, observed, batch)
    assert offset == goes_on
    assert (loss is None) == (goes_on == 60)
    assert check(40, position, observed, batch)[:2] == (40, goes_on)
    assert loss is None or "written again in the same leader epoch" in str(loss.error(("t", 0)))


@pytest.mark.parametrize(
    ("end", "observed", "span"),
    [
        (Position(60, "a", 3), Observed(0, 90, 90, "a", EPOCHS), (40, 60)),
        (Position(60, "a", 3), None, (40, 40)),
        (Position(60, "a", 3), Observed(0, 90, 90, "b", EPOCHS), (40, 40)),
        (Position(60, "a", 0), Observed(0, 90, 90, "a", EPOCHS), (40, 50)),
        (Position(60, "a", 3), Observed(0, 55, 55, "a", EPOCHS[:2]), (40, 55)),
        (Position(60, "a", 3), Observed(0, 30, 30, "a", EPOCHS[:1]), (40, 40)),
        (Position(60, "a", 3), Observed(45, 90, 90, "a", EPOCHS), (45, 60)),
        (Position(60, "a", 3), Observed(70, 90, 90, "a", EPOCHS), (60, 60)),
    ],
)
def test_what_a_planned_micro_batch_still_finds(end, observed, span):
    first, stop, loss = check(40, end, observed)
    assert (first, stop) == span
    assert (loss is None) == (span == (40, 60))


def test_positions_survive_the_checkpoint():
    positions = {
        ("t", 0): Position(5, "id", 3),
        ("t", 1): Position(0),
        ("t", 2): Position(9, "id"),
        ("t", 3): Position(9, "new", 3),
        ("s", 10): Position(7, None, 0, 99, 2),
    }
    stored = json.loads(json.dumps(dump(positions)))
    assert stored == {
        "s": {"10": {"offset": 7, "leaderEpoch": 0, "crc": 99, "from": 2}},
        "t": {
            "topicId": "id",
            "0": {"offset": 5, "leaderEpoch": 3},
            "1": {"offset": 0, "topicId": None},
            "2": 9,
            "3": {"offset": 9, "leaderEpoch": 3, "topicId": "new"},
        },
    }
    assert parse(stored) == positions
    assert parse({"t": {"0": 12}}) == {("t", 0): Position(12)}  # of earlier versions
    assert parse({"t": {"0": {"offset": 5, "topicId": "id"}}}) == {("t", 0): Position(5, "id")}


def test_positions_of_many_partitions_leave_sparks_buffer_in_one_piece():
    topic_id, crc = "3a9890c1-5612-4165-88d1-16d4585bdb19", 2**32 - 1
    positions = {("orders", number): Position(10**9, topic_id, 12, crc) for number in range(800)}
    assert len(json.dumps(dump(positions))) < 2**16 - 100


@pytest.mark.parametrize(
    "offsets", [{"t": 1}, {"t": {"x": 1}}, {"t": {"0": "1"}}, {"t": {"0": {}}}, {"t": {"0": None}}]
)
def test_checkpoints_of_another_form(offsets):
    with pytest.raises(KafkaCodecError, match="checkpoint"):
        parse(offsets)


def test_nothing_new_keeps_the_position():
    observed = Observed(0, 90, 90, "b", EPOCHS)
    for position in (Position(60), Position(60, "a", 3, 8, 12)):
        assert advance(position, 60, 60, observed) is position
    assert advance(Position(60), 60, 70, observed) == Position(70, "b", 3)
    assert advance(Position(60, "a", 3), 50, 70, Observed(0, 90, 90, None, EPOCHS)) == Position(70, "a", 3, None, 50)
    assert advance(None, 0, 0, Observed(0, 0, 0)) == Position(0, None, None, None, 0)


def add(log: Path, first: int, count: int, epoch: int) -> None:
    with open(log / f"{133:020}.log", "ab") as file:
        file.write(kc.encode([(None, b"later")] * count, base_offset=first, partition_leader_epoch=epoch))


def test_a_log_that_grows(log):
    query = Query(log.parent)
    assert query.step() == list(range(END))
    assert query.plan() == query.at
    add(log, END, 9, 0)
    assert query.step() == list(range(END, END + 9))


@pytest.mark.parametrize("change", COMPACTED, ids=lambda change: change.__name__)
def test_the_cleaner_beside_a_stream(log, change):
    query = Query(log.parent)
    end = query.plan()
    assert query.run(end) == list(range(END))
    again = Query(log.parent)
    left = change(log)
    assert again.run(end) == left  # as after a restart of the query


REREAD = [
    (truncate, "none-0, which was read up to offset 174, was truncated at offset", "cut"),
    (truncate_and_write, "none-0, which was read up to offset 174, was truncated at offset", "cut"),
    (create_again, "the topic of none-0, which was read up to offset 174, was deleted and created again", "new"),
]


@pytest.mark.parametrize(
    ("change", "reason", "way", "old"),
    [(*row, False) for row in REREAD] + [(*REREAD[0], True)],  # plain offsets only show where the log ends
    ids=[*(change.__name__ for change, *_ in REREAD), "truncate, plain offsets"],
)
def test_what_was_read_is_no_longer_in_the_log(log, change, reason, way, old, caplog):
    query = Query(log.parent)
    query.step()
    if old:
        query.at = {"none": {"0": END}}
    kept = change(log)
    with pytest.raises(OptionError, match=f"^failOnDataLoss: .*{reason}") as raised:
        query.step()
    assert "\n" not in str(raised.value)
    lenient = Query(log.parent, query.at, failOnDataLoss="false")
    cut = kept[-1] + 1 if kept else 0
    end = {"truncate": cut, "truncate_and_write": cut + 100, "create_again": END}[change.__name__]
    with caplog.at_level(logging.WARNING, logger="kafkacodec.spark"):
        assert lenient.step() == list(range(cut if way == "cut" else 0, end))
    assert caplog.text.count("reading continues") == 1
    assert lenient.plan() == lenient.at
    assert Query(log.parent, lenient.at).plan() == lenient.at


CHANGES = pytest.mark.parametrize(
    "change",
    [delete_first, delete_records, truncate, truncate_and_write, create_again, delete_partition],
    ids=lambda change: change.__name__,
)


@CHANGES
def test_a_log_that_changes_between_planning_and_reading_a_micro_batch(log, change, caplog):
    query, lenient = Query(log.parent), Query(log.parent, failOnDataLoss="false")
    end = query.plan()
    kept = change(log)
    with pytest.raises(OptionError, match=r"^failOnDataLoss: .*none-0"):
        query.run(end)
    with caplog.at_level(logging.WARNING, logger="kafkacodec.spark"):
        assert lenient.run(end) == kept
    assert "none-0" in caplog.text
    if change is truncate_and_write:
        assert lenient.step() == list(range(kept[-1] + 1, kept[-1] + 101))
    if change is create_again:
        assert lenient.step() == list(range(END))
    assert lenient.plan() == lenient.at or change is truncate


@CHANGES
@pytest.mark.parametrize("lenient", [False, True], ids=["strict", "lenient"])
def test_a_log_that_changes_while_a_micro_batch_is_planned(log, change, lenient, caplog, monkeypatch):
    """After its start and end were compared with the offsets to read, before its segments are listed again."""
    query = Query(log.parent, **({"failOnDataLoss": "false"} if lenient else {}))
    end, ordinary, kept = query.plan(), planning.divide, None

    def late(spans, *arguments):
        nonlocal kept
        if kept is None:
            kept = change(log)
            spans = [(relisted(partition), first, stop) for partition, first, stop in spans]
        return ordinary(spans, *arguments)

    monkeypatch.setattr(streaming, "divide", late)
    if lenient:
        with caplog.at_level(logging.WARNING, logger="kafkacodec.spark"):
            assert query.run(end) == kept
        assert "none-0" in caplog.text
    else:
        with pytest.raises(OptionError, match=r"^failOnDataLoss: .*none-0"):
            query.run(end)


def test_a_log_that_changes_whenever_it_is_planned(log, caplog, monkeypatch):
    """What is lost is reported all the same."""
    query = Query(log.parent, failOnDataLoss="false")
    end, ordinary = query.plan(), planning.divide

    def without_the_first_segment(spans, *arguments):
        return [pieces for task in ordinary(spans, *arguments) if (pieces := task[1:])]

    monkeypatch.setattr(streaming, "divide", without_the_first_segment)
    with caplog.at_level(logging.WARNING, logger="kafkacodec.spark"):
        assert query.run(end) == list(range(65, END))
    assert "offsets 0 to 64 of none-0 were deleted before they were read; reading continues at offset 65" in caplog.text


def test_deleted_offsets_are_skipped_at_once(log):
    query = Query(log.parent, failOnDataLoss="false")
    assert query.step(10) == list(range(10))
    delete_first(log)
    assert query.step(10) == list(range(65, 75))
    strict = Query(log.parent, {"none": {"0": 10}})
    with pytest.raises(OptionError, match=r"^failOnDataLoss: offsets 10 to 64 of none-0 were deleted"):
        strict.plan(10)


def test_a_micro_batch_is_read_again_as_it_was(log):
    """After a crash Spark asks for the same offsets, which include where reading went on."""
    query = Query(log.parent, failOnDataLoss="false")
    query.step()
    truncate_and_write(log)
    start, end = query.at, query.plan()
    first = query.run(end)
    again = Query(log.parent, start, failOnDataLoss="false")
    assert again.run(end) == first


def high_watermark(log: Path, offset: int, age: int = 0) -> None:
    path = log.parent / "replication-offset-checkpoint"
    path.write_text(f"0\n1\nnone 0 {offset}\n")
    now = path.stat().st_mtime
    os.utime(path, (now - age, now - age))


def test_streams_end_at_the_high_watermark(log, caplog):
    high_watermark(log, 50)
    assert Query(log.parent, endAt="logEnd").step() == list(range(END))
    query = Query(log.parent)
    with caplog.at_level(logging.WARNING, logger="kafkacodec.spark"):
        assert query.step() == list(range(50))
        high_watermark(log, 60)
        assert query.step() == list(range(50, 60))
        assert caplog.text == ""
        high_watermark(log, 40, age=1000)  # one that is older than what was read
        assert query.plan() == query.at
        assert "134 offsets after the high watermark, 40, are not read" in caplog.text
    high_watermark(log, 9999)
    assert query.step() == list(range(60, END))
    assert Query(log.parent, startingOffsets="latest").at["none"]["0"]["offset"] == END


def test_a_high_watermark_that_falls_does_not_shorten_a_planned_micro_batch(log):
    high_watermark(log, 100)
    query = Query(log.parent)
    end = query.plan()
    high_watermark(log, 20)
    assert query.run(end) == list(range(100))


def test_starting_offsets_after_the_end(log):
    with pytest.raises(OptionError, match=r"^startingOffsets: 175 for none-0 is after the end of the log, 174"):
        Query(log.parent, startingOffsets='{"none": {"0": 175}}')
    assert Query(log.parent, startingOffsets='{"none": {"0": 174}}').step() == []


def test_a_log_that_was_cut_and_written_again_in_the_same_epoch(log, caplog):
    """As a broker does that loses the end of its log in a crash and starts again at once."""
    query = Query(log.parent)
    query.step()
    kept = truncate(log)
    add(log, kept[-1] + 1, 100, 0)
    with pytest.raises(OptionError, match=r"none-0, which was read up to offset 174, was truncated and written again"):
        query.plan()
    lenient = Query(log.parent, query.at, failOnDataLoss="false")
    assert lenient.step() == list(range(kept[-1] + 1, kept[-1] + 101))


def test_offsets_without_records_at_the_cut(log):
    """The position's offset was removed by the cleaner: its epoch is still known."""
    query = Query(log.parent)
    query.step()
    (log / "leader-epoch-checkpoint").write_text(f"0\n2\n0 0\n4 {END}\n")
    add(log, END, 3, 4)
    assert query.step() == [END, END + 1, END + 2]
    assert offsets_of(ALL) == list(range(END))
