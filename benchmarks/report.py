"""Results as tables in Markdown, and as JSON."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import kafkacodec as kc
from benchmarks import programs
from benchmarks.contest import Measured, Rates
from benchmarks.goals import Outcome
from benchmarks.latencies import Classes

Kind = Literal["rates", "sizes", "live", "brokers", "spark"]
Distributions = dict[str, dict[str, Classes]]
"""For each contest and competitor, how many calls took how long."""
RUNS = "runs.jsonl"
"""What goals ask for, of all runs that were saved in a directory: a line for each run."""
PEERS = (
    "aiokafka",
    "kafka-python",
    "confluent-kafka",
    "kio",
    "lz4",
    "zstandard",
    "cramjam",
    "isal",
    "crc32c",
    "numpy",
    "pyarrow",
    "pyspark",
)


def about() -> dict[str, Any]:
    """The machine and the versions that the rates belong to."""
    return {
        "kafkacodec": kc.__version__,
        "cpu": cpu(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "peers": {**{name: version(name) for name in PEERS}, **programs.versions()},
    }


def cpu() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def rates_table(results: Mapping[str, Rates]) -> str:
    """Million units per second: a row for every competitor of every contest."""
    lines = ["| contest | competitor | millions per second | of the fastest |", "|---|---|---|---|"]
    for contest, rates in results.items():
        best = max(rates.values())
        for name, rate in rates.items():
            lines.append(f"| {contest} | {name} | {rate / 1e6:.4g} | {rate / best:.2f} |")
    return "\n".join(lines)


def goals_table(outcomes: list[Outcome]) -> str:
    """Measured ratios and goals; rates in millions per second."""
    lines = ["| contest | ours | against | measured | goal | |", "|---|---|---|---|---|---|"]
    for outcome in outcomes:
        goal = outcome.goal
        scale, suffix = (1e6, "M/s") if goal.against is None else (1, "×")
        measured = "" if outcome.measured is None else f"{outcome.measured / scale:.3g}{suffix}"
        verdict = {None: "not measured", True: "met", False: "MISSED"}[outcome.met]
        least = f"{goal.at_least / scale:g}{suffix}"
        lines.append(f"| {goal.contest} | {goal.ours} | {goal.against or ''} | {measured} | {least} | {verdict} |")
    return "\n".join(lines)


def save(
    directory: Path,
    results: Mapping[str, Rates],
    outcomes: list[Outcome],
    kind: Kind,
    distributions: Distributions,
) -> None:
    """Write the file of results of this kind, such as rates.json, and add what goals ask for to those of all runs."""
    directory.mkdir(parents=True, exist_ok=True)
    goals = [{**vars(outcome.goal), "measured": outcome.measured, "met": outcome.met} for outcome in outcomes]
    content = {
        **about(),
        "units_per_second": results,
        "units": {name: rates.unit for name, rates in results.items() if isinstance(rates, Measured)},
        "rounds": {name: rates.rounds for name, rates in results.items() if isinstance(rates, Measured)},
        "classes_of_seconds": distributions,
        "goals": goals,
    }
    (directory / f"{kind}.json").write_text(json.dumps(content, indent=1) + "\n")
    measured = {outcome.goal.name: outcome.measured for outcome in outcomes if outcome.measured is not None}
    found = {"kind": kind, "cpu": content["cpu"], "load": content["load"], "measured": measured}
    with (directory / RUNS).open("a") as lines:
        lines.write(json.dumps(found) + "\n")
