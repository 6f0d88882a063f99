"""Lists of problems if almost everything is damaged: the first ones, and one entry for all others."""

import contextlib
import gc

import pyarrow as pa
import pytest

import kafkacodec as kc
from kafkacodec.errors import CorruptRecord
from kafkacodec.log.files import access as files
from kafkacodec.messages import FetchResponse
from kafkacodec.protocol import fetch_to_columns
from kafkacodec.records import _decoder, columns
from kafkacodec.records.columns import Problem, Problems

GOOD = kc.encode([(b"k", b"v")])
BAD = GOOD[:-1] + bytes([GOOD[-1] ^ 1])


def alternating(pairs: int) -> bytes:
    return (GOOD + BAD) * pairs


def fetched(data: bytes) -> FetchResponse:
    partition = FetchResponse.PartitionData(records=data)
    return FetchResponse(responses=[FetchResponse.FetchableTopicResponse(topic="t", partitions=[partition])])


CALLS = {
    "decode": lambda data: kc.decode(data, on_error="skip"),
    "decode in threads": lambda data: kc.decode(data, on_error="skip", threads=3),
    "decode_batches": lambda data: kc.decode_batches(pa.array([data]), on_error="skip"),
    "fetch_to_columns": lambda data: fetch_to_columns(fetched(data), on_error="skip"),
}


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(columns, "MAX_PROBLEMS", 10)
    monkeypatch.setattr(files, "MAX_PROBLEMS", 10)


@pytest.mark.parametrize("name", CALLS)
def test_the_last_problem_stands_for_all_others(name, few):
    result = CALLS[name](alternating(25))
    assert len(result) == 25
    assert len(result.problems) == 11
    assert [p.position for p in result.problems] == [len(GOOD) * (2 * i + 1) for i in range(11)]
    assert sum(p.size_in_bytes for p in result.problems) == 25 * len(BAD)
    assert result.problems[-1].base_offset is None
    assert f"15 more damaged places, the last at byte {49 * len(GOOD)}: " in str(result.problems[-1].exception)


def test_as_many_as_there_is_room_for_stand_alone(few):
    assert [p.size_in_bytes for p in CALLS["decode"](alternating(10)).problems] == [len(BAD)] * 10


@pytest.mark.parametrize("cut", range(0, 31, 3))
def test_parts_add_up_to_the_whole(cut, few):
    problems = [Problem(i, i, 1, CorruptRecord(f"no. {i}", position=i)) for i in range(30)]
    whole, first, second = Problems(), Problems(), Problems()
    for i, problem in enumerate(problems):
        whole.note(problem)
        (first if i < cut else second).note(problem)
    first.include(second)
    assert [(*p[:3], str(p.exception)) for p in first] == [(*p[:3], str(p.exception)) for p in whole]
    assert first.merged == 20


def test_ten_thousand_are_listed():
    result = CALLS["decode"](alternating(10_002))
    assert len(result.problems) == 10_001
    assert result.problems[-1].size_in_bytes == 2 * len(BAD)


def test_lists_that_logs_fill_end(few):
    problems: list[CorruptRecord] = []
    for i in range(30):
        files.note(problems, CorruptRecord("broken", position=i))
    assert len(problems) == 11
    assert "further problems" in str(problems[-1])


@pytest.mark.parametrize(
    ("first", "end", "text"),
    [
        (None, None, "error: a.log: torn"),
        (8, None, "error: a.log: torn (offset 8)"),
        (8, 9, "error: a.log: torn (offset 8)"),
        (8, 10, "error: a.log: torn (offsets 8 to 9)"),
        (8, 8, "error: a.log: torn"),
    ],
)
def test_the_offsets_in_the_text_of_a_finding(first, end, text):
    assert str(kc.log.Finding("error", "damaged", "a.log", "torn", first_offset=first, end_offset=end)) == text


@pytest.mark.parametrize("on_error", ["raise", "stop", "skip"])
@pytest.mark.parametrize("call", [kc.decode, lambda data, **options: list(kc.iter_columns(data, **options))])
def test_memory_that_runs_out_is_raised_whatever_on_error_says(call, on_error, monkeypatch):
    """The data is not at fault, and the error is not skipped."""
    taken = []

    class OutOfMemory(_decoder.Decoder):
        def take_fault(self):
            taken.append(super().take_fault())
            return MemoryError("no memory")

    monkeypatch.setattr(_decoder, "Decoder", OutOfMemory)
    damaged = bytearray(kc.encode([(b"key", b"value")]))
    damaged[-1] ^= 1
    with pytest.raises(MemoryError):
        call(damaged, on_error=on_error)
    assert isinstance(taken[0], kc.CrcMismatch)


@pytest.mark.parametrize("call", [kc.decode, lambda data: list(kc.iter_columns(data))])
def test_what_is_raised_is_in_no_cycle(call):
    damaged = bytearray(kc.encode([(b"key", b"value")]))
    damaged[-1] ^= 1
    view = memoryview(damaged)
    gc.collect()
    gc.disable()
    try:
        with contextlib.suppress(kc.CrcMismatch):
            call(view)
        view.release()  # BufferError while anything holds it
        damaged.append(0)
    finally:
        gc.enable()
