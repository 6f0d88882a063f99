"""A log whose batches or segments are out of place: every way to read and to count it finds the same records.

KAFKACODEC_LOG_FUZZ multiplies how many are tried.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

import kafkacodec as kc
from kafkacodec.log import Partition
from kafkacodec.log.formats.checkpoints import encode_checkpoint
from kafkacodec.spark.reading.options import parse_read_options
from kafkacodec.spark.reading.planning import plan
from kafkacodec.spark.reading.tasks import read_ranges
from tests import misplaced_logs
from tests.examples import some
from tests.misplaced_logs import KINDS, batch, make

pytestmark = pytest.mark.filterwarnings("ignore::kafkacodec.errors.CheckpointWarning", "ignore::RuntimeWarning")

TIMES = int(os.environ.get("KAFKACODEC_LOG_FUZZ", "1"))
SEEDS = [str(number) for number in range(5 * TIMES)]
HARMS = [*([kind] for kind in KINDS), [*KINDS[:2], KINDS[4]], [KINDS[3], KINDS[7]], [KINDS[5], KINDS[11]]]


def offsets(chunks: Iterable[kc.RecordColumns]) -> list[int]:
    return [offset for chunk in chunks for offset in chunk["offset"].tolist()]


def told(chunks: Iterable[kc.RecordColumns]) -> tuple[list[int], list[str], kc.DecodeError | None]:
    """The offsets of a read, its problems, and its error."""
    found: list[int] = []
    problems: list[str] = []
    try:
        for chunk in chunks:
            found += chunk["offset"].tolist()
            problems += map(str, chunk.problems)
    except kc.DecodeError as error:
        return found, problems, error
    return found, problems, None


def pieces(log: Partition, **limits: int) -> Iterator[kc.RecordColumns]:
    for piece in log.ranges(**limits):
        yield from piece.read(on_error="skip")


def by_spark(log: Partition) -> list[int]:
    options = parse_read_options({"path": os.path.dirname(log.path), "mode": "PERMISSIVE"})
    rows = (rows for task in plan(options) for rows in read_ranges(task, ("offset",), permissive=True))
    return [offset for batch in rows for offset in batch.column(0).to_pylist()]


def cases() -> list[object]:
    named = [(harm, seed) for harm in HARMS for seed in SEEDS]
    return [
        pytest.param(harm, seed, id=f"{' and '.join(kind.__name__ for kind in harm)}, {seed}")
        for harm, seed in some(named)
    ]


READS: dict[str, Callable[[Partition], list[int]]] = {
    "threads": lambda log: offsets(log.read(on_error="skip", threads=3)),
    "small chunks": lambda log: offsets(log.read(on_error="skip", max_rows=1)),
    "mapped views": lambda log: offsets(log.read(on_error="skip", mapped=True, layout="view")),
    "committed": lambda log: offsets(log.read(on_error="skip", isolation_level="read_committed")),
    "table": lambda log: log.to_arrow(on_error="skip", problems=[]).column("offset").to_pylist(),
    "head": lambda log: log.head(1000, on_error="skip", problems=[])["offset"].tolist(),
    "topic": lambda log: offsets(kc.log.LogDirectory(os.path.dirname(log.path)).topic("t").read(on_error="skip")),
    "pieces of a batch": lambda log: offsets(pieces(log, max_bytes=1)),
    "small pieces": lambda log: offsets(pieces(log, max_bytes=300)),
    "pieces of offsets": lambda log: offsets(pieces(log, max_offsets=5)),
    "pieces of records": lambda log: offsets(pieces(log, max_records=4)),
    "Spark": by_spark,
}
COUNTS: dict[str, Callable[[Partition], int | None]] = {
    "count": lambda log: log.count(on_error="skip", problems=[]),
    "verify": lambda log: log.verify().num_records,
    "verify in threads": lambda log: log.verify(threads=2).num_records,
    "statistics of records": lambda log: kc.log.statistics(log, records=True)[0].num_records,
}


@pytest.mark.parametrize(("harm", "seed"), cases())
def test_every_way_agrees(harm: list[misplaced_logs.Harm], seed: str, tmp_path: Path) -> None:
    directory = make(tmp_path, seed, harm)
    expected, problems, error = told(Partition(directory).read(on_error="skip"))
    assert error is None
    assert problems or expected == sorted(set(expected))
    for name, read in READS.items():
        assert read(Partition(directory)) == expected, name
    for name, count in COUNTS.items():
        assert count(Partition(directory)) == len(expected), name
    until, _, error = told(Partition(directory).read())
    stopped, few, none = told(Partition(directory).read(on_error="stop"))
    assert (error is not None, len(few), none) == (bool(problems), min(len(problems), 1), None)
    assert until == stopped == expected[: len(until)]
    assert Partition(directory).verify().ok is not bool(problems)
    for records in (False, True):
        (found,) = kc.log.statistics(Partition(directory), records=records, verify_crc=True)
        assert found.damaged is bool(problems), records
    for size in (1, 300):
        whole = [*map(str, (p for chunk in pieces(Partition(directory), max_bytes=size) for p in chunk.problems))]
        assert bool(whole) is bool(problems), size


@pytest.mark.parametrize(("harm", "seed"), cases())
def test_recover_keeps_what_a_read_gives_or_names_it(
    harm: list[misplaced_logs.Harm], seed: str, tmp_path: Path
) -> None:
    directory = make(tmp_path / "logs", seed, harm)
    log = Partition(directory)
    given = set(offsets(log.read(on_error="skip")))
    report = kc.log.recover(directory, tmp_path / "saved")
    saved = Partition(tmp_path / "saved" / "t-0")
    found, problems, error = told(saved.read(gaps="accept"))
    assert (problems, error) == ([], None)
    assert found == sorted(set(found))
    assert saved.verify().with_gaps_accepted().ok
    assert report.num_records == len(found)
    named = {
        offset
        for finding in report.findings
        if finding.level == "error" and finding.first_offset is not None
        for offset in range(finding.first_offset, finding.end_offset or finding.first_offset + 1)
    }
    assert given <= set(found) | named


@pytest.mark.parametrize("order", [(0, 2, 1), (2, 1, 0), (1, 2, 0)])
def test_exchanged_segments_are_saved_under_their_names(order: tuple[int, ...], tmp_path: Path) -> None:
    """All but one was left out: each name was doubted alone."""
    directory = tmp_path / "logs" / "t-0"
    directory.mkdir(parents=True)
    for place, number in enumerate(order):
        parts = [batch(first, 3, 2) for first in range(30 * number, 30 * number + 30, 3)]
        (directory / f"{30 * place:020}.log").write_bytes(b"".join(parts))
    assert Partition(directory).end_offset() == 90
    report = kc.log.recover(directory, tmp_path / "saved")
    assert offsets(Partition(tmp_path / "saved" / "t-0").read()) == list(range(90))
    assert report.counts["error", "left-out"] == 0
    assert report.counts["warning", "segment-name"] == sum(place != number for place, number in enumerate(order))


def test_what_is_glued_to_a_segment_does_not_displace_the_ones_between(tmp_path: Path) -> None:
    directory = tmp_path / "logs" / "t-0"
    directory.mkdir(parents=True)
    files = [b"".join(batch(first, 1, 2) for first in range(10 * n, 10 * n + 10)) for n in range(4)]
    for number, data in enumerate([files[0] + files[3], *files[1:]]):
        (directory / f"{10 * number:020}.log").write_bytes(data)
    report = kc.log.recover(directory, tmp_path / "saved")
    saved = Partition(tmp_path / "saved" / "t-0")
    assert offsets(saved.read()) == list(range(40))
    assert saved.verify().clean
    assert report.counts["error", "left-out"] == 10


def test_a_segment_that_only_repeats_others_is_not_saved(tmp_path: Path) -> None:
    """It was saved as an empty one, inside of that before it."""
    directory = tmp_path / "logs" / "t-0"
    directory.mkdir(parents=True)
    parts = [batch(first, 3, 2) for first in range(0, 30, 3)]
    (directory / f"{0:020}.log").write_bytes(b"".join(parts))
    (directory / f"{6:020}.log").write_bytes(parts[2])
    kc.log.recover(directory, tmp_path / "saved")
    saved = Partition(tmp_path / "saved" / "t-0")
    assert offsets(saved.read()) == list(range(30))
    assert saved.verify().clean
    assert len(saved.segments) == 1


def test_the_end_of_a_log_may_be_in_a_segment_before_the_last_one(tmp_path: Path) -> None:
    """Where the recovery point is after the end of the last one: the log was said to end there."""
    directory = tmp_path / "t-0"
    directory.mkdir()
    parts = [batch(first, 1, 2) for first in range(40)]
    for name, content in ((0, parts[:10] + parts[30:]), (10, parts[10:20]), (20, parts[20:30])):
        (directory / f"{name:020}.log").write_bytes(b"".join(content))
    (tmp_path / "recovery-point-offset-checkpoint").write_bytes(encode_checkpoint({("t", 0): 40}))
    assert Partition(directory).end_offset() == max(offsets(Partition(directory).read(on_error="skip"))) + 1 == 40


def test_a_copy_of_a_segment_is_read_once(tmp_path: Path) -> None:
    """Its records were given again, in the place of its name; also where it is glued to another one."""
    parts = [batch(first, 3, 2) for first in range(0, 60, 3)]
    files = {0: parts[:10], 30: parts[10:], 90: parts[3:6]}
    log = one_segment(tmp_path / "beside", files[0])
    for base in (30, 90):
        (tmp_path / "beside" / "t-0" / f"{base:020}.log").write_bytes(b"".join(files[base]))
    for glued in ([*parts[10:], *parts[:10]], [*parts[:10], parts[10]]):
        place = one_segment(tmp_path / f"glued {len(glued)}", parts[:10])
        (tmp_path / f"glued {len(glued)}" / "t-0" / f"{30:020}.log").write_bytes(b"".join(glued))
        expected = list(range(60 if len(glued) == 20 else 33))
        found, problems, _ = told(Partition(place.path).read(on_error="skip"))
        assert found == expected
        assert problems
    found, problems, _ = told(Partition(log.path).read(on_error="skip"))
    assert found == list(range(60))
    assert any("out of place: the segment where it belongs has its offsets" in text for text in problems)
    assert Partition(log.path).verify().num_records == Partition(log.path).count(on_error="skip", problems=[]) == 60
    report = kc.log.recover(log.path, tmp_path / "saved")
    assert offsets(Partition(tmp_path / "saved" / "t-0").read()) == found
    assert not report.ok


def test_a_look_up_by_time_passes_over_a_batch_out_of_place(tmp_path: Path) -> None:
    parts = [batch(first, 3, 2) for first in range(0, 30, 3)]
    log = one_segment(tmp_path, [parts[0], parts[8], *parts[1:]])
    for offset in (3, 10, 24, 29):
        assert log.offset_of_timestamp(misplaced_logs.FIRST_TIME + offset * misplaced_logs.STEP_MS) == offset


def test_a_look_up_by_time_knows_where_the_next_segment_begins(tmp_path: Path) -> None:
    """A batch before it had a wrong offset after that: a read from its time on had nothing, in silence."""
    parts = [batch(first, 3, 2) for first in range(0, 30, 3)]
    parts[5] = (50).to_bytes(8, "big") + parts[5][8:]
    log = one_segment(tmp_path, parts[:6])
    (tmp_path / "t-0" / f"{18:020}.log").write_bytes(b"".join(parts[6:]))
    log = Partition(log.path)
    time = misplaced_logs.FIRST_TIME + 15 * misplaced_logs.STEP_MS
    assert log.offset_of_timestamp(time) == 18
    assert offsets(log.read(start_timestamp=time, on_error="skip")) == list(range(18, 30))


def log_of(place: Path, files: dict[int, list[bytes]], recovery_point: int | None = None) -> Partition:
    directory = place / "t-0"
    directory.mkdir(parents=True)
    for base, content in files.items():
        (directory / f"{base:020}.log").write_bytes(b"".join(content))
    if recovery_point is not None:
        (place / "recovery-point-offset-checkpoint").write_bytes(encode_checkpoint({("t", 0): recovery_point}))
    return Partition(directory)


TENS = [[batch(first, 1, 2) for first in range(ten, ten + 10)] for ten in range(0, 70, 10)]

FAR: dict[str, tuple[dict[int, list[bytes]], int | None]] = {
    "the last one is empty": ({0: TENS[0], 10: TENS[6], 20: TENS[2], 30: TENS[3], 40: TENS[4], 60: []}, 70),
    "a far one begins before all": ({30: TENS[3], 40: TENS[4], 50: TENS[5], 60: TENS[0] + TENS[6]}, None),
    "after a far one's end": ({0: TENS[0], 10: TENS[1], 30: TENS[3], 40: TENS[4], 60: TENS[6] + TENS[2]}, None),
    "in a far one that seems later": ({0: TENS[0], 20: TENS[2], 30: TENS[3], 40: TENS[4], 90: TENS[1]}, None),
}


@pytest.mark.parametrize("name", FAR)
def test_offsets_that_are_missing_by_name_are_looked_for_in_all_segments(name: str, tmp_path: Path) -> None:
    """They were told as missing, or not at all, though a read of the whole log had them."""
    log = log_of(tmp_path, *FAR[name])
    whole, _, _ = told(log.read(on_error="skip"))
    for first in range(69):
        wanted = [offset for offset in whole if first <= offset < first + 2]
        found, _, error = told(Partition(log.path).read(start_offset=first, end_offset=first + 2, on_error="skip"))
        assert (found, error) == (wanted, None)


@pytest.mark.parametrize("names", [(10, 0, 20, 30), (30, 20, 10, 0), (0, 10, 30, 20), (0, 30, 20, 10)])
def test_the_last_records_are_those_of_the_whole_read_where_names_are_wrong(
    names: tuple[int, ...], tmp_path: Path
) -> None:
    """Those of the greatest offsets came first, then those of the last segment: no order at all."""
    log = log_of(tmp_path, dict(zip(names, TENS, strict=False)))
    whole, _, _ = told(log.read(on_error="skip"))
    for count in (1, 5, 15, 25, 40):
        assert offsets(kc.log.read_last(log, count, on_error="skip")) == whole[-count:]


def test_a_last_segment_whose_batches_are_all_misplaced_does_not_end_the_log(tmp_path: Path) -> None:
    log = log_of(tmp_path, {0: TENS[1], 1: [batch(0, 1, 0)]})
    (tmp_path / "t-0" / f"{1:020}.index").touch()  # as a broker has it: without one, its batch counts
    assert log.end_offset() == 20


@pytest.mark.parametrize("names", [(15, 0), (0, 3), (40, 15), (0, 14), (0, 40)])
def test_a_span_is_that_of_the_whole_read_where_names_are_wrong(names: tuple[int, int], tmp_path: Path) -> None:
    """The segments of the names that include the span had other offsets: nothing was read, in silence."""
    parts = [batch(first, 3, 2) for first in range(0, 30, 3)]
    directory = tmp_path / "t-0"
    directory.mkdir()
    for name, content in zip(names, (parts[:5], parts[5:]), strict=True):
        (directory / f"{name:020}.log").write_bytes(b"".join(content))
    whole, problems, _ = told(Partition(directory).read(on_error="skip"))
    assert sorted(whole) == list(range(30))
    assert problems
    for first in range(28):
        wanted = [offset for offset in whole if first <= offset < first + 2]
        found, problems, _ = told(Partition(directory).read(start_offset=first, end_offset=first + 2, on_error="skip"))
        assert found == wanted
        count = Partition(directory).count(start_offset=first, end_offset=first + 2, on_error="skip", problems=[])
        assert count == len(wanted)


def test_an_index_of_other_bytes_moves_no_batch(tmp_path: Path) -> None:
    """A batch was cut out: the one after it, where its index entry points, was saved with its offset."""
    directory = tmp_path / "logs" / "t-0"
    directory.mkdir(parents=True)
    parts = {first: batch(first, 1, 2) for first in (*range(7), *range(40, 50))}
    misplaced_logs.write_indexes({0: [*parts.values()]}, directory, 1)
    del parts[5]
    (directory / f"{0:020}.log").write_bytes(b"".join(parts.values()))
    assert offsets(Partition(directory).read()) == [*parts]
    assert Partition(directory).verify().ok
    kc.log.recover(directory, tmp_path / "saved")
    assert offsets(Partition(tmp_path / "saved" / "t-0").read()) == [*parts]


def test_pieces_and_spans_question_no_more_than_a_read(tmp_path: Path) -> None:
    """The last batch of a segment, between gaps, was left out by them alone."""
    directory = tmp_path / "t-0"
    directory.mkdir()
    parts = [batch(first, 1, 2) for first in (*range(8), 24)]
    misplaced_logs.write_indexes({0: parts}, directory, 1)
    parts[-1] = (16).to_bytes(8, "big") + parts[-1][8:]
    (directory / f"{0:020}.log").write_bytes(b"".join(parts))
    (directory / f"{40:020}.log").write_bytes(batch(40, 1, 2))
    log = Partition(directory)
    found = offsets(log.read(gaps="accept"))
    assert offsets(chunk for piece in log.ranges(max_bytes=1) for chunk in piece.read(gaps="accept")) == found
    assert offsets(log.read(start_offset=5, end_offset=45, gaps="accept")) == found[5:]


def test_a_message_with_a_negative_offset_does_not_count(tmp_path: Path) -> None:
    parts = [batch(first, 1, 1) for first in range(5)]
    parts[0] = b"\x80" + parts[0][1:]
    log = one_segment(tmp_path, parts)
    assert log.verify().num_records == len(offsets(log.read(on_error="skip"))) == 4
    assert kc.log.recover(log.path, tmp_path / "saved").num_records == Partition(tmp_path / "saved/t-0").count() == 5


def one_segment(place: Path, parts: list[bytes]) -> Partition:
    directory = place / "t-0"
    directory.mkdir(parents=True)
    (directory / f"{0:020}.log").write_bytes(b"".join(parts))
    return Partition(directory)


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_batches_before_the_one_that_shows_their_place_are_not_given(magic: int, tmp_path: Path) -> None:
    """Only the third of three from elsewhere is not before the next: the first two were read, and told as left out."""
    parts = [batch(first, 3, magic) for first in range(0, 60, 3)]
    log = one_segment(tmp_path, [*parts[:5], *parts[16:19], *parts[5:]])
    found, problems, _ = told(log.read(on_error="skip"))
    assert found == list(range(60))
    assert problems
    assert offsets(log.read(on_error="skip", max_rows=2)) == found


def test_a_content_that_is_there_twice_is_read_once_in_pieces(tmp_path: Path) -> None:
    parts = [batch(first, 3, 2) for first in range(0, 30, 3)]
    log = one_segment(tmp_path, parts + parts)
    for size in (1, 300, 1000):
        assert offsets(pieces(log, max_bytes=size)) == list(range(30))
        with pytest.raises(kc.CorruptRecord):
            offsets(chunk for piece in log.ranges(max_bytes=size) for chunk in piece.read())
    piece = log.ranges(max_bytes=300)[-1]
    assert piece.misplaced
    assert not one_piece_of_intact(tmp_path / "intact", parts).misplaced


def one_piece_of_intact(place: Path, parts: list[bytes]) -> kc.log.SegmentRange:
    place.mkdir()
    return one_segment(place, parts).ranges(max_bytes=300)[-1]


def test_a_first_batch_far_after_the_name_is_told(tmp_path: Path) -> None:
    """Its offset is as likely to be wrong as the name: it was read in silence, and counted as intact."""
    log = one_segment(tmp_path, [batch(1 << 40, 3, 2)])
    with pytest.raises(kc.CorruptRecord, match=r"2\^31 or more after the segment's base offset 0"):
        offsets(log.read())
    assert not log.verify().ok
    assert kc.log.statistics(log)[0].damaged


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_a_wrong_last_offset_is_damage(magic: int, tmp_path: Path) -> None:
    """That of a message without compression was read, in silence."""
    parts = [batch(first, 1, magic) for first in range(5)]
    parts[4] = (1004).to_bytes(8, "big") + parts[4][8:]
    (tmp_path / "recovery-point-offset-checkpoint").write_bytes(encode_checkpoint({("t", 0): 5}))
    found, problems, _ = told(one_segment(tmp_path, parts).read(on_error="skip"))
    assert (found, len(problems)) == ([0, 1, 2, 3], 1)


def test_an_overlap_is_no_gap_to_accept(tmp_path: Path) -> None:
    parts = [batch(first, 3, 2) for first in range(0, 30, 3)]
    log = one_segment(tmp_path, parts)
    (tmp_path / "t-0" / f"{24:020}.log").write_bytes(b"".join(parts[8:]))
    with pytest.raises(kc.CorruptRecord):
        offsets(Partition(log.path).read(gaps="accept"))


@pytest.mark.parametrize("row", range(5))
@pytest.mark.parametrize("shift", [1, -1, 50, 1 << 20])
def test_counts_leave_out_a_batch_whose_offset_can_be_restored(row: int, shift: int, tmp_path: Path) -> None:
    """`recover` saves it; who reads or counts does not get it."""
    parts = [batch(first, 3, 2) for first in range(0, 15, 3)]
    if 3 * row + shift < 0:
        return
    parts[row] = (3 * row + shift).to_bytes(8, "big") + parts[row][8:]
    log = one_segment(tmp_path, parts)
    (tmp_path / "recovery-point-offset-checkpoint").write_bytes(encode_checkpoint({("t", 0): 15}))
    report = log.verify()
    assert (report.num_records, report.num_batches, report.damaged_bytes) == (12, 4, len(parts[row]))
    assert report.missing_offsets == 3
    assert [(f.kind, f.first_offset) for f in report.findings if f.level == "error"] == [("offset-order", 3 * row)]
    assert log.count(on_error="skip", problems=[]) == len(offsets(log.read(on_error="skip"))) == 12
    for records in (False, True):
        (found,) = kc.log.statistics(log, records=records)
        assert (found.num_records, found.damaged, found.damaged_bytes) == (12, True, len(parts[row]))
    saved = kc.log.recover(log.path, tmp_path / "saved")
    assert saved.num_records == 15
    assert offsets(Partition(tmp_path / "saved" / "t-0").read()) == list(range(15))
