"""The parts of the benchmarks: cases, goals, ratios, instruction counts."""

from __future__ import annotations

import json
import math
import sys

import pytest

import kafkacodec as kc
from benchmarks import (
    brokers,
    contest,
    goals,
    instructions,
    libraries,
    live,
    live_clients,
    live_sends,
    live_waits,
    messages,
    reading,
    report,
)
from benchmarks.cases import CASES, Case, record_set, records


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_record_sets_have_the_records_of_their_case(case: Case) -> None:
    small = Case(**{**vars(case), "total_bytes": 60_000})
    data = record_set(small)
    headers = kc.scan(data)
    assert set(headers["magic"]) == {case.magic}
    decoded = list(kc.iter_records(data))
    assert [(r.timestamp, r.key, r.value) for r in decoded] == list(records(small))
    assert all(len(r.headers) == case.headers for r in decoded)


@pytest.mark.parametrize("codec", libraries.CANDIDATES)
def test_libraries_give_the_same_content(codec: str) -> None:
    data = record_set(Case("libraries", codec=codec, total_bytes=200_000, batch_bytes=100_000))
    plain = record_set(Case("libraries", total_bytes=200_000, batch_bytes=100_000))
    expected = list(libraries.payloads(plain))
    assert len(expected) > 1
    for name, decompress in libraries.CANDIDATES[codec].items():
        for payload, content in zip(libraries.payloads(data), expected, strict=True):
            found = decompress(payload)
            size = found[1] if isinstance(found, tuple) and isinstance(found[1], int) else found
            assert size == len(content) or bytes(found[0] if isinstance(found, tuple) else found) == content, name


def test_all_bytes_are_summed() -> None:
    data = record_set(Case("sums", total_bytes=60_000))
    whole = 0
    for chunk in kc.iter_columns(data, max_rows=8192):
        for name in ("key", "value"):
            content = bytes(chunk.buffers(name)["data"])
            end = len(content) // 8 * 8
            words = (int.from_bytes(content[at : at + 8], sys.byteorder) for at in range(0, end, 8))
            whole += sum(words) % 2**64 + sum(content[end:])
    assert reading.all_bytes(data) == whole


def test_goals_are_held_against_the_fastest_library() -> None:
    rates = {"iter_columns": 90.0, "lz4.frame.decompress": 60.0, "cramjam.lz4.decompress_into": 100.0}
    found = goals.outcomes({"lz4": rates})
    held = [outcome for outcome in found if outcome.goal.against == goals.DECOMPRESSING]
    assert [(outcome.measured, outcome.met) for outcome in held] == [(0.9, True)]


def test_a_missing_competitor_leaves_its_goal_open() -> None:
    found = goals.outcomes({"none": {"iter_columns": 30.0, "aiokafka": 2.0}})
    by_competitor = {(outcome.goal.ours, outcome.goal.against): outcome.met for outcome in found}
    assert by_competitor["iter_columns", "aiokafka"] is True
    assert by_competitor["iter_columns", goals.JAVA] is None
    assert "not measured" in report.goals_table(found)


def test_goals_name_cases_that_exist() -> None:
    names = {case.name for case in CASES} | {str(body) for body in messages.bodies()}
    names |= {live.contest_name(work, codec) for work in ("produce", "consume") for codec in live.CODECS}
    names |= {live.sends_name(shape) + end for shape in live_sends.SHAPES for end in ("", live.WALL)}
    names |= {live.waits_name(work) for work in live_waits.WORKS}
    names |= {brokers.contest_name(work) for work in brokers.WORKS}
    for goal in goals.GOALS:
        case = (
            goal.contest.removeprefix("encode, ")
            .removeprefix("decode, ")
            .removeprefix("all ")
            .removeprefix("bytes of ")
            .removeprefix("search, ")
            .removeprefix("threads, ")
        )
        others = (
            "partition of 10 B keys",
            "Spark, sum of value lengths",
            "Spark, write",
            "Spark, segments to Parquet",
            "Spark, stream",
            goals.BROKER,
            f"{goals.BROKER}, processor time",
            f"{goals.BROKER}, to Parquet",
            "verify",
            "resynchronisation",
            "values in Avro",
            "decode sets of one record",
            "encode sets of ten records",
        )
        assert case in names or case in others


def test_every_live_client_produces_and_consumes() -> None:
    assert (
        set(live_clients.WORK)
        == set(live_clients.AMOUNTS)
        >= {goal.ours for goal in goals.GOALS if "live" in goal.contest}
    )
    assert set(live_sends.CLIENTS) == set(live_sends.COUNTS) < set(live_clients.WORK)
    for works in (*live_clients.WORK.values(), *live_clients.AMOUNTS.values()):
        assert set(works) == {"produce", "consume"}
    assert len(live_clients.key(999_999_999)) == live_clients.KEY_BYTES
    assert len(live_clients.some_value()) == live_clients.VALUE_BYTES


def test_the_best_round_counts() -> None:
    ticks = iter([0.0, 5.0, 10.0, 10.25, 20.0, 21.0])
    measured = contest.run(
        contest.Contest("c", "records", 10.0, {"a": lambda: None}), rounds=3, clock=lambda: next(ticks)
    )
    assert math.isclose(measured["a"], 2.0)  # the first round was too slow to be repeated


def test_all_messages_have_goals() -> None:
    assert [str(body) for body in messages.bodies()] == list(goals.MESSAGES)


@pytest.mark.filterwarnings("ignore:.*_text is deprecated:DeprecationWarning")  # inside kafka-python
@pytest.mark.parametrize("body", messages.bodies()[4:], ids=str)
def test_every_competitor_encodes_to_the_same_bytes(body: messages.Body) -> None:
    for prepare in messages.COMPETITORS.values():
        decode, encode = prepare(body)
        assert bytes(encode()) == body.data
        assert decode() is not None


@pytest.mark.parametrize(
    ("kept", "counted", "grown"),
    [
        ({"a": 1000}, {"a": 1030}, []),
        ({"a": 1000}, {"a": 500}, []),
        ({"a": 1000, "b": 1000}, {"a": 1031, "b": 1000}, ["a"]),
        ({"a": 1000}, {"a": 1000, "new": 1}, ["new"]),
        ({"a": 1000, "gone": 1}, {"a": 1000}, ["gone"]),
    ],
)
def test_more_instructions_than_are_kept_fail(kept: dict[str, int], counted: dict[str, int], grown: list[str]) -> None:
    found = instructions.Comparison(kept, counted, {"python": "3.11"}, {"python": "3.11"})
    assert found.grown == grown
    assert found.failed is bool(grown)
    assert ("FAILED" in str(found)) is bool(grown)


def test_instructions_of_other_tools_are_only_reported() -> None:
    found = instructions.Comparison({"a": 1000}, {"a": 2000}, {"python": "3.11"}, {"python": "3.14"})
    assert found.grown == ["a"]
    assert not found.failed
    assert "python: 3.11 then, 3.14 now" in str(found)


def test_instructions_are_kept_of_at_least_ten_calls() -> None:
    kept = json.loads(instructions.KEPT.read_text())
    assert len(kept["instructions"]) >= 10
    assert {"compiler", "python", "machine"} <= set(kept["tools"])
