"""Writes README's tables of speed and benchmarks/README.md's of missed goals and of limits from the stored results.

README's tables and those of limits show the last run of each kind that was saved, those of goals all of them.

speed_tables.py           rewrite the tables
speed_tables.py --check   exit with 1 if the pages do not show the stored results

A table follows a marker with the name of its file of results.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import goals, report

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
BENCHMARKS = ROOT / "benchmarks" / "README.md"
RESULTS = ROOT / "benchmarks" / "results" / "0.1.0"
BUSY = 3.5
"""The average number of processes that want one of two processors, above which a run is not called idle."""
MARKED = re.compile(r"(<!-- (rates|missed goals|limits) of (\w+\.json) -->\n\n)(?:\|.*\n)*\n*")
# For each file of results: the contests, as prefix and columns, and the rows, as shown and in the file.
TABLES: dict[str, tuple[str, tuple[str, ...], dict[str, str]]] = {
    "rates.json": (
        "",
        ("none", "lz4", "zstd", "snappy", "gzip"),
        {
            "kafkacodec, `kc.iter_columns`": "iter_columns",
            "kafkacodec, `kc.iter_records`": "iter_records",
            "Kafka's Java reader": "Kafka's Java classes",
            "aiokafka": "aiokafka",
            "kafka-python": "kafka-python",
        },
    ),
    "live.json": (
        "live, ",
        ("consume, none", "consume, lz4", "produce, none", "produce, lz4"),
        {
            "kafkacodec, `columns` and `send_columns`": "kafkacodec, columns",
            "kafkacodec, record by record": "kafkacodec",
            "franz-go": "franz-go",
            "rust-rdkafka": "rust-rdkafka",
            "confluent-kafka": "confluent-kafka",
            "aiokafka": "aiokafka",
            "kafka-python": "kafka-python",
        },
    ),
}

PEER = "confluent-kafka"
# For each file of results: contests, who of kafkacodec takes part, and what a client cannot be faster than.
LIMITS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "live.json": (
        ("live, consume, none", "kafkacodec, columns", "receive and check alone"),
        ("live, consume, lz4", "kafkacodec, columns", "receive and check alone"),
        ("live, produce, none", "kafkacodec, columns", "write and check alone"),
        ("live, produce, lz4", "kafkacodec, columns", "write and check alone"),
        ("live, send, value", "kafkacodec", "a method that keeps its arguments"),
        ("live, send, key", "kafkacodec", "a method that keeps its arguments"),
        ("live, send, headers", "kafkacodec", "a method that keeps its arguments"),
        ("live, send, callback", "kafkacodec", "a method that keeps its arguments"),
        ("live, one after the other, send and wait", "kafkacodec", "one thread, no client"),
        ("live, latency, 1 in flight", "kafkacodec", "one thread, no client"),
        ("live, latency, 1 in flight", "kafkacodec.aio", "asyncio alone"),
    ),
}  # fmt: skip


def rates(name: str) -> Iterator[str]:
    """Million records per second, of the contests and competitors of one file of results."""
    prefix, contests, competitors = TABLES[name]
    measured = results(name)["units_per_second"]
    yield f"| | {' | '.join(contests)} |"
    yield "|---" * (len(contests) + 1) + "|"
    for shown, competitor in competitors.items():
        cells = (rounded(measured[prefix + contest][competitor] / 1e6) for contest in contests)
        yield f"| {shown} | {' | '.join(cells)} |"


def missed(name: str) -> Iterator[str]:
    """The goals that an idle run of one kind has missed; those without a peer in millions per second."""
    idle, loaded = runs(name.removesuffix(".json"))
    yield f"| contest | ours | against | least, idle ({len(idle)}) | median, idle | at load | goal |"
    yield "|---|---|---|---|---|---|---|"
    for goal in results(name)["goals"]:
        contest, ours, against, at_least = (goal[key] for key in ("contest", "ours", "against", "at_least"))
        named = goals.Goal(contest, ours, against, at_least).name
        of_idle, of_loaded = ([run[named] for run in some if named in run] for some in (idle, loaded))
        if of_idle and min(of_idle) < at_least:
            scale = 1e6 if against is None else 1
            least, median = figure(min(of_idle) / scale), figure(statistics.median(of_idle) / scale)
            at_load = ", ".join(figure(measured / scale) for measured in of_loaded)
            shown = [contest, ours, against or "", least, median, at_load, figure(at_least / scale)]
            yield f"| {' | '.join(shown)} |"


def runs(kind: str) -> tuple[list[dict[str, float]], list[dict[str, float]]]:
    """What the goals of one kind found in each stored run: on an idle machine, and on a busy one."""
    found = [json.loads(line) for line in (RESULTS / report.RUNS).read_text().splitlines()]
    of_kind = [run for run in found if run["kind"] == kind]
    return (
        [run["measured"] for run in of_kind if run["load"] < BUSY],
        [run["measured"] for run in of_kind if run["load"] >= BUSY],
    )


def limits(name: str) -> Iterator[str]:
    """The time for a record of contests that one file of results has with their limit and the peer."""
    measured = results(name)["units_per_second"]
    yield f"| contest | ours | limit | | {PEER} |"
    yield "|---|---|---|---|---|"
    for contest, ours, limit in LIMITS[name]:
        took, least, peer = (duration(1 / measured[contest][one]) for one in (ours, limit, PEER))
        yield f"| {contest} | {ours}: {took} | {limit} | {least} | {peer} |"


def results(name: str) -> dict[str, Any]:
    """The stored results of one kind."""
    content: dict[str, Any] = json.loads((RESULTS / name).read_text())
    return content


def rounded(millions: float) -> str:
    """Two figures of small rates, one after the point of others."""
    return f"{millions:.1f}" if millions >= 1 else f"{millions:.2f}"


def duration(seconds: float) -> str:
    """Three figures, in ns or us."""
    return f"{seconds * 1e9:.3g} ns" if seconds < 1e-6 else f"{seconds * 1e6:.3g} us"


def figure(value: float) -> str:
    """Three figures, more before the point."""
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


WRITERS = {"rates": rates, "missed goals": missed, "limits": limits}


def with_tables(text: str) -> str:
    """A page with the tables after its markers replaced."""

    def replaced(found: re.Match[str]) -> str:
        lines = WRITERS[found[2]](found[3])
        return found[1] + "\n".join(lines) + "\n\n"

    return MARKED.sub(replaced, text)


def main(argv: list[str]) -> int:
    """Rewrite, or compare with --check."""
    for page in (README, BENCHMARKS):
        text = with_tables(page.read_text())
        if "--check" not in argv:
            page.write_text(text)
        elif text != page.read_text():
            print(f"{page.relative_to(ROOT)} does not show the stored results: run tools/speed_tables.py")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
