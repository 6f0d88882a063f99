"""Results as tables in Markdown, a plot, and JSON."""

from __future__ import annotations

import json
import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import kafkacodec as kc
from benchmarks import live_clients
from benchmarks.contest import Rates
from benchmarks.goals import JAVA, Outcome

Kind = Literal["rates", "live", "brokers"]
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
)
OURS = ("iter_columns", "iter_columns, views", "decode", "iter_records")


def about() -> dict[str, Any]:
    """The machine and the versions that the rates belong to."""
    return {
        "kafkacodec": kc.__version__,
        "cpu": cpu(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "peers": {name: version(name) for name in PEERS},
    }


def cpu() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def rates_table(results: dict[str, Rates]) -> str:
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


def save(directory: Path, results: dict[str, Rates], outcomes: list[Outcome], kind: Kind) -> None:
    """Write rates.json and reading.svg, live.json and live.svg, or brokers.json."""
    directory.mkdir(parents=True, exist_ok=True)
    goals = [{**vars(outcome.goal), "measured": outcome.measured, "met": outcome.met} for outcome in outcomes]
    content = {**about(), "units_per_second": results, "goals": goals}
    (directory / f"{kind}.json").write_text(json.dumps(content, indent=1) + "\n")
    if kind == "live":
        plot(directory / "live.svg", results, tuple(live_clients.WORK), "Clients with a broker")
        return
    if kind == "brokers":
        return
    read = {name: rates for name, rates in results.items() if "iter_records" in rates}
    readers = (*OURS, JAVA, "aiokafka", "kafka-python")
    plot(directory / "reading.svg", read, readers, "Reading record sets, one thread")


def plot(path: Path, results: dict[str, Rates], competitors: tuple[str, ...], title: str) -> None:
    """Bars by contest for kafkacodec and its peers, in million records per second on a logarithmic axis."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "kafkacodec"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(11, 5), layout="constrained")
    for place, name in enumerate(competitors):
        found = [(i, rates[name] / 1e6) for i, rates in enumerate(results.values()) if name in rates]
        at = [i + (place - len(competitors) / 2 + 0.5) * 0.8 / len(competitors) for i, _ in found]
        axes.bar(at, [rate for _, rate in found], 0.8 / len(competitors), label=name)
    axes.set(yscale="log", ylabel="million records per second", title=f"{title}, {cpu()}")
    axes.set_xticks(range(len(results)), list(results), rotation=20, ha="right")
    figure.legend(ncols=len(competitors), loc="outside lower center")
    axes.grid(axis="y", alpha=0.3)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
