"""The parts of the benchmarks: cases, goals, ratios, instruction counts."""

from __future__ import annotations

import base64
import contextlib
import gc
import json
import math
import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import kafkacodec as kc
from benchmarks import (
    brokers,
    compared,
    compiled,
    contest,
    goals,
    instructions,
    latencies,
    libraries,
    limits,
    live,
    live_clients,
    live_latency,
    live_limits,
    live_sends,
    live_standing,
    live_waits,
    messages,
    objects,
    page,
    plots,
    programs,
    reading,
    report,
    spark_time,
)
from benchmarks.cases import CASES, Case, record_set, records
from tests.integration.kafka_jars import RELEASES


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


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_what_threads_cannot_be_without_is_done_by_each(codec: str) -> None:
    data = record_set(Case("limits", codec=codec, total_bytes=200_000))
    for count in (1, 2):
        work = limits.in_threads(codec, data, count)
        assert work is not None
        work()
    assert limits.in_threads("gzip", data, 2) is None


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
    names |= {live.waits_name(work) + end for work in live_waits.WORKS for end in ("", live.WALL)}
    names |= {live.latency_name(load) + end for load in live_latency.LOADS for end in ("", live.SLOW)}
    names |= {live.standing_name(work) for work in live_standing.PARTITIONS}
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
            goals.IDLE,
            goals.SMALL,
            "verify",
            "resynchronisation",
            "values in Avro",
            "decode sets of one record",
            "encode sets of ten records",
            "CRC-32C of 16 KiB blocks",
        )
        assert case in names or case in others


def test_every_live_client_produces_and_consumes() -> None:
    assert (
        set(live_clients.WORK)
        == set(live_clients.AMOUNTS)
        >= {goal.ours for goal in goals.GOALS if "live" in goal.contest}
    )
    assert set(live_sends.CLIENTS) == set(live_sends.COUNTS) < {*live_clients.WORK, live_limits.KEEPING}
    for works in (*live_clients.WORK.values(), *live_clients.AMOUNTS.values()):
        assert set(works) == {"produce", "consume"}
    assert len(live_clients.key(999_999_999)) == live_clients.KEY_BYTES
    assert len(live_clients.some_value()) == live_clients.VALUE_BYTES


@pytest.mark.filterwarnings("ignore:.*_text is deprecated:DeprecationWarning")  # inside kafka-python
def test_readers_are_compared_before_they_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case("compared", total_bytes=60_000)
    data = record_set(case)
    reading.compare(case, data)
    other = [*records(case)]
    other[7] = (*other[7][:2], other[7][2][:-1] + b"!")
    changed = record_set(case, other)
    monkeypatch.setattr(reading, "_kafka_python", lambda _: [[*kc.iter_records(changed)]])
    with pytest.raises(SystemExit, match="kafka-python reads something else than the others in compared"):
        reading.compare(case, data)


@pytest.mark.parametrize("field", ["offset", "timestamp", "key", "value"])
def test_digests_tell_records_apart(field: str) -> None:
    found = [*kc.iter_records(record_set(Case("two", total_bytes=240)))]
    values = {"offset": 9, "timestamp": 9, "key": b"", "value": b"1\x00"}
    changed = [found[0]._replace(**{field: values[field]}), found[1]]
    assert compared.Digest.of(changed) != compared.Digest.of(found)
    assert compared.Digest.of(found).records == 2


def test_classes_of_time_hold_every_call() -> None:
    found = latencies.classes([5e-8, 1e-6, 1.01e-6, 1e-3])
    assert sum(found.values()) == 4
    assert latencies.begins(20) == pytest.approx(1e-6)
    assert latencies.quantile(found, 0.75) == pytest.approx(latencies.begins(21))
    assert latencies.quantile(found, 1) == pytest.approx(1e-3, rel=0.13)


def stored(directory: Path) -> None:
    """Results with a contest for each plot of codecs, sizes and messages."""
    results: dict[str, contest.Measured] = {}
    for name, unit, rates in (
        ("none", "records", {"iter_columns": 8e7, "aiokafka": 5e6}),
        ("encode, none", "records", {"encode": 4e7, "aiokafka": 3e6}),
        ("threads, none", "records", {f"{call}, threads={n}": n * 1e7 for call in CALLS for n in (1, 2)}),
        *((f"values of {n:,} bytes", "bytes", {"iter_columns": n * 1e7, **LIMITS}) for n in (10, 1000)),
        *((f"sets of {n:,} records", "records", {"Decoder.decode": n * 1e6}) for n in (1, 1000)),
        *((f"{work}, {goals.MESSAGES[0]}", "bytes", {"kafkacodec": 5e9, "kio": 1e7}) for work in ("decode", "encode")),
    ):
        results[name] = contest.Measured(unit)
        for competitor, rate in rates.items():
            results[name].add(competitor, rate * 0.9)
            results[name].add(competitor, rate)
    distributions = {"one call, decode": {"Decoder.decode": {20: 90, 25: 10}}}
    report.save(directory, results, goals.outcomes(results), "rates", {})
    report.save(directory, results, [], "sizes", distributions)


CALLS = ("iter_columns", "decode")
LIMITS = dict.fromkeys(limits.LIMITS, 2e10)


def test_a_page_has_everything_in_one_file(tmp_path: Path) -> None:
    stored(tmp_path)
    text = page.write(tmp_path).read_text("utf-8")
    expected = [plot for plot in page.PLOTS if plot.kind in ("rates", "sizes")]
    assert sorted(path.name for path in tmp_path.glob("*.png")) == sorted(plot.file for plot in expected)
    for plot in expected:
        drawn = (tmp_path / plot.file).read_bytes()
        assert drawn.startswith(b"\x89PNG")
        assert f'src="data:image/png;base64,{base64.b64encode(drawn).decode()}"' in text
    without_images = re.sub(r"base64,[A-Za-z0-9+/=]+", "", text)
    assert not re.findall(r"https?:|<script|<link|@import|url\(", without_images)
    assert text.count(report.cpu()) >= 3  # above the plots, the goals and the rates
    assert "16 ×" in text  # iter_columns to aiokafka
    assert ">72 M<" in text  # the slowest round of iter_columns


def test_bars_begin_at_zero_and_rates_of_sizes_too(monkeypatch: pytest.MonkeyPatch) -> None:
    figures: list[Any] = []
    monkeypatch.setattr(plots, "png", lambda figure: figures.append(figure) or b"")
    plots.threads("cpu", {"none": {"decode": 1.9}}, 2)
    plots.value_sizes("cpu", {10: {"decode": 8e9, **LIMITS}, 100: {"decode": 9e9, **LIMITS}}, ["decode"], ["decode"])
    plots.points("cpu", "records", {"none": {"decode": 8e7}}, {"none": {"decode": [7e7]}}, ["decode"], ["decode"])
    bars, lines, points = (figure.axes[0] for figure in figures)
    assert bars.get_ylim()[0] == lines.get_ylim()[0] == 0
    assert (bars.get_yscale(), lines.get_yscale(), points.get_xscale()) == ("linear", "linear", "log")
    assert not points.patches  # no bars, which would need a zero
    assert "logarithmic" in points.get_xlabel()
    assert all(axes.get_title() == "cpu" for axes in (bars, lines, points))


def test_the_versions_of_programs_are_those_that_are_built() -> None:
    found = programs.versions()
    assert set(found) == {"kafka-clients", "franz-go", "rust-rdkafka", "librdkafka of rust-rdkafka"}
    assert found["kafka-clients"] == RELEASES["newest"].kafka
    assert all(re.fullmatch(r"v?\d+\.\d+\.\d+", version) for version in found.values())


def test_programs_without_their_tools_are_skipped_with_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {program.name for program in programs.LIVE} < set(live_clients.WORK)
    monkeypatch.setenv("PATH", "")
    assert [program.absent for program in programs.LIVE] == [
        "franz-go was skipped: no go on PATH.",
        "rust-rdkafka was skipped: no cargo, make, cc on PATH.",
    ]


@pytest.fixture
def live_without_a_broker(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """What live contests start, in place of which every number of a program is its client's place in a list."""
    started: list[tuple[str, ...]] = []

    def printed(*command: str, environment: dict[str, str] | None = None) -> list[float]:
        started.append((*command[:3], *(environment or {})))
        return [1e-4] * 98 + [2e-3] * 2 if command[0] == "live_latency" else [10, 1, 2]

    monkeypatch.setattr(live, "broker", lambda: contextlib.nullcontext("localhost:9092"))
    monkeypatch.setattr(live, "printed", printed)
    monkeypatch.setattr(live_latency, "UVLOOP", Path(__file__).parent)
    return started


def test_latencies_have_a_distribution_of_all_rounds(
    live_without_a_broker: list[tuple[str, ...]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    results, distributions, _ = live.run(2, said.append, lambda name: "in flight" in name)
    assert said == list(distributions) == [live.latency_name(load) for load in live_latency.IN_FLIGHT]
    on_loops, alone = {*page.LATENCY_OURS, "aiokafka"}, {live_limits.ONE_THREAD, live_limits.ON_A_LOOP}
    clients = {"confluent-kafka", *on_loops, *(f"{client}, uvloop" for client in on_loops)}
    assert {client for _, client, *_ in live_without_a_broker} == clients | alone
    assert all(("uvloop" in client) == ("PYTHONPATH" in more) for _, client, _, *more in live_without_a_broker)
    for name, found in distributions.items():
        assert {sum(classes.values()) for classes in found.values()} == {200}
        expected = clients | alone if name == live.latency_name("1 in flight") else clients
        for rates, rate in ((results[name], 1e4), (results[name + live.SLOW], 500)):
            assert rates == pytest.approx(dict.fromkeys(expected, rate))
    figures: list[Any] = []
    monkeypatch.setattr(plots, "png", lambda figure: figures.append(figure) or b"drawn")
    report.save(tmp_path, results, [], "live", distributions)
    assert 'id="latency"' in page.write(tmp_path).read_text("utf-8")
    assert (tmp_path / "latency.png").read_bytes() == b"drawn"
    panels = figures[-1].axes
    assert [axes.get_title() for axes in panels] == [
        load + loop for load in live_latency.IN_FLIGHT for loop in ("", ", uvloop")
    ]
    assert {axes.get_xscale() for axes in panels} == {"log"}
    assert {axes.get_ylim()[0] for axes in panels} == {0}
    labels = [text.get_text() for text in panels[0].get_legend().get_texts()]
    assert labels[0] == "kafkacodec: half within 112 µs, 99 % within 2,240 µs"  # the ends of classes


def test_the_best_round_counts() -> None:
    ticks = iter([0.0, 5.0, 10.0, 10.25, 20.0, 21.0])
    measured = contest.run(
        contest.Contest("c", "records", 10.0, {"a": lambda: None}), rounds=3, clock=lambda: next(ticks)
    )
    assert math.isclose(measured["a"], 2.0)  # the first round was too slow to be repeated


def test_a_turn_repeats_short_calls_and_its_fastest_counts() -> None:
    # two turns: calls of 10, 2 and 9 ms, and one of 30 ms
    ticks = iter([0.0, 0.010, 0.012, 0.021, 1.0, 1.030])
    measured = contest.run(
        contest.Contest("c", "records", 1.0, {"a": lambda: None}), rounds=2, clock=lambda: next(ticks)
    )
    assert measured.rounds["a"] == pytest.approx([500, 33.3], rel=0.01)
    assert measured["a"] == pytest.approx(500)


def test_the_processor_time_of_spark_has_each_process_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The JVM 7 waits for its children, and the daemon 8 does not; 1 and 2 are none of theirs."""
    turns = (
        {1: (0, 900, 0), 2: (1, 900, 900), 7: (1, 100, 10), 8: (7, 5, 0), 9: (8, 30, 0), 20: (7, 40, 0)},
        {1: (0, 990, 9), 7: (1, 150, 10), 8: (7, 6, 0), 9: (8, 50, 0), 20: (7, 45, 0)},
        {1: (0, 999, 9), 7: (1, 160, 60), 8: (7, 6, 0), 10: (8, 3, 0)},  # 9 and 20, after 50 ticks, have ended
    )
    seen = iter([{number: spark_time._Process(*it) for number, it in turn.items()} for turn in turns])
    monkeypatch.setattr(spark_time, "_processes", lambda: next(seen))
    monkeypatch.setattr("time.process_time", lambda: 0.0)
    gateway = SimpleNamespace(proc=SimpleNamespace(pid=7))
    clock = spark_time.Clock(SimpleNamespace(sparkContext=SimpleNamespace(_gateway=gateway)))  # type: ignore[arg-type]
    times = [round(clock().processor * os.sysconf("SC_CLK_TCK")) for _ in turns]
    assert times == [185, 261, 279]


def test_a_contest_of_spark_counts_what_its_competitor_says() -> None:
    ticks = iter([spark_time.Seconds(0, 0), spark_time.Seconds(4, 2), spark_time.Seconds(9, 9)])
    part = {"whole": lambda: None, "part": lambda: spark_time.Seconds(1, 5)}
    found = spark_time.measure(contest.Contest("c", "records", 10.0, part), 1, lambda: next(ticks))  # type: ignore[arg-type]
    assert found == {"c": {"whole": 2.5, "part": 10}, f"c{spark_time.PROCESSOR}": {"whole": 5, "part": 2}}


def test_all_messages_have_goals() -> None:
    assert [str(body) for body in messages.bodies()] == list(goals.MESSAGES)


@pytest.mark.filterwarnings("ignore:.*_text is deprecated:DeprecationWarning")  # inside kafka-python
@pytest.mark.parametrize("body", messages.bodies()[4:], ids=str)
def test_every_competitor_encodes_to_the_same_bytes(body: messages.Body) -> None:
    for prepare in messages.COMPETITORS.values():
        decode, encode = prepare(body)
        assert bytes(encode()) == body.data
        assert decode() is not None


@pytest.mark.skipif(compiled.absent() is not None, reason="needs a C compiler and Python's headers")
def test_objects_made_again_are_as_many(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(compiled, "KEPT", tmp_path)
    (body,) = (body for body in messages.bodies() if str(body) == "OffsetCommit request v7")

    def held(top: Any) -> dict[str, int]:
        """How many values of each type are reached; structs are named by their slots."""
        found: dict[str, int] = {}
        left = [top]
        while left:
            item = left.pop()
            if isinstance(item, type):
                continue
            kind = type(item).__name__ if isinstance(item, (int, str, list)) else f"of {sys.getsizeof(item)} bytes"
            found[kind] = found.get(kind, 0) + 1
            left.extend(gc.get_referents(item))
        return found

    again = objects.again.__wrapped__()
    message = messages.making_objects(body)()
    expected = held(message)
    assert expected["list"] > 10
    assert held(again(message)) == expected


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
