"""The plots of a page of results. Values on a logarithmic axis are points, as bars would need a zero."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from benchmarks import latencies
from benchmarks.contest import Rates
from benchmarks.limits import LIMITS
from benchmarks.report import Distributions

_OURS = "#0b5fa5", "#2f9bd6", "#0aa39a", "#6a7fdb", "#174a7e"
_PEERS = "#d1495b", "#e08e2b", "#7a5195", "#5b8c3a", "#8c6d4f", "#c06bb1", "#6b7280"
_LIMIT, _DASHES = "#111827", ("--", ":", "-.")
_MARKERS = "osD^vPX<>*hd"
_STYLE: dict[str, Any] = {"color": "#6b7280", "linewidth": 0.8, "alpha": 0.35}
_DPI = 144


@dataclass(frozen=True)
class Look:
    """The colour and marker of a competitor, the same in all contests of a plot."""

    color: str
    marker: str


def looks(names: Sequence[str], ours: Sequence[str]) -> dict[str, Look]:
    """Blue for those of kafkacodec, other colours for its peers."""
    left = {True: iter(_OURS * 3), False: iter(_PEERS * 3)}
    return {name: Look(next(left[name in ours]), _MARKERS[i % len(_MARKERS)]) for i, name in enumerate(names)}


def points(
    title: str,
    axis: str,
    results: Mapping[str, Rates],
    rounds: Mapping[str, Mapping[str, Sequence[float]]],
    names: Sequence[str],
    ours: Sequence[str],
    scale: float = 1e6,
    limits: Sequence[str] = (),
) -> bytes:
    """A row for each contest with a point for the best rate of each competitor, and a line from its slowest round.

    What limits kafkacodec is a line across its rows.
    """
    names = [name for name in names if any(name in rates for rates in results.values())]
    seen = looks(names, ours)
    slowest_shown = "; lines from the slowest round" if any(rounds.values()) else ""
    height = 1.7 + 0.1 * len(results) * (len(names) + 1.5)
    figure = Figure(figsize=(9, height), layout="constrained")
    axes = figure.add_subplot()
    for row, (contest, rates) in enumerate(results.items()):
        if row % 2:
            axes.axhspan(row - 0.5, row + 0.5, color="#eef1f5", zorder=0)
        for place, name in enumerate(names):
            if name not in rates:
                continue
            at = row + ((place + 0.5) / len(names) - 0.5) * 0.84
            slowest = min(rounds.get(contest, {}).get(name, [rates[name]]))
            look = seen[name]
            axes.plot([slowest / scale, rates[name] / scale], [at, at], color=look.color, linewidth=1.4)
            label = name if name not in axes.get_legend_handles_labels()[1] else None
            axes.plot(rates[name] / scale, at, look.marker, color=look.color, markersize=6, label=label)
        for name, dashes in zip(limits, _DASHES, strict=False):
            if name in rates:
                label = name if name not in axes.get_legend_handles_labels()[1] else None
                axes.plot([rates[name] / scale] * 2, [row - 0.45, row + 0.45], dashes, color=_LIMIT, label=label)
    axes.set(xscale="log", xlabel=f"{axis}, logarithmic{slowest_shown}", title=title)
    axes.set_yticks(range(len(results)), [_spoken(name) for name in results])
    axes.set_ylim(len(results) - 0.5, -0.5)
    _plain(axes.xaxis)
    axes.grid(axis="x", **_STYLE)
    _legend(figure, axes)
    return png(figure)


def value_sizes(title: str, results: Mapping[int, Rates], names: Sequence[str], ours: Sequence[str]) -> bytes:
    """Gigabytes per second by the size of values; what limits kafkacodec are lines without points, from zero on."""
    figure = Figure(figsize=(9, 5.2), layout="constrained")
    axes = figure.add_subplot()
    for name, look in looks([name for name in names if any(name in rates for rates in results.values())], ours).items():
        known = [(size, rates[name] / 1e9) for size, rates in results.items() if name in rates]
        axes.plot(*zip(*known, strict=True), f"{look.marker}-", color=look.color, label=name, markersize=5)
    for name, dashes in zip(LIMITS, _DASHES, strict=False):
        known = [(size, rates[name] / 1e9) for size, rates in results.items() if name in rates]
        axes.plot(*zip(*known, strict=True), dashes, color=_LIMIT, label=name)
    axes.set(xscale="log", xlabel="bytes of a value, logarithmic", ylabel="GB of record set per second", title=title)
    axes.set_ylim(bottom=0)
    _plain(axes.xaxis)
    axes.grid(**_STYLE)
    _legend(figure, axes)
    return png(figure)


def set_sizes(title: str, results: Mapping[int, Rates], ours: Sequence[str]) -> bytes:
    """Million records per second by the number of records of a set; both axes are logarithmic."""
    figure = Figure(figsize=(9, 4.6), layout="constrained")
    axes = figure.add_subplot()
    names = list(dict.fromkeys(name for rates in results.values() for name in rates))
    for name, look in looks(names, ours).items():
        known = [(size, rates[name] / 1e6) for size, rates in results.items() if name in rates]
        axes.plot(*zip(*known, strict=True), f"{look.marker}-", color=look.color, label=name, markersize=5)
    axes.set(xscale="log", yscale="log", xlabel="records of a set", ylabel="million records per second", title=title)
    _plain(axes.xaxis)
    _plain(axes.yaxis)
    axes.grid(**_STYLE)
    _legend(figure, axes)
    return png(figure)


def threads(title: str, ratios: Mapping[str, Mapping[str, float]], ideal: float) -> bytes:
    """Bars from zero: how much faster two threads are than one, for each case; a line where twice is."""
    figure = Figure(figsize=(9, 4), layout="constrained")
    axes = figure.add_subplot()
    names = list(dict.fromkeys(name for found in ratios.values() for name in found))
    width = 0.8 / len(names)
    for place, name in enumerate(names):
        known = {row: found[name] for row, found in enumerate(ratios.values()) if name in found}
        at = [row + (place - (len(names) - 1) / 2) * width for row in known]
        heights = list(known.values())
        bars = axes.bar(at, heights, width, color=_OURS[place], label=name)
        axes.bar_label(bars, fmt="%.2f", fontsize=8)
    axes.axhline(ideal, color="#111827", linestyle="--", label=f"limit: {ideal:g} times")
    axes.set_xticks(range(len(ratios)), [_spoken(name).replace(", ", "\n") for name in ratios])
    highest = max(ideal, *(ratio for found in ratios.values() for ratio in found.values()))
    axes.set(ylabel="rate of two threads / of one, wall clock", title=title, ylim=(0, highest * 1.1))
    axes.grid(axis="y", **_STYLE)
    _legend(figure, axes)
    return png(figure)


def calls(
    title: str, axis: str, distributions: Distributions, ours: Sequence[str], limits: Sequence[str] = ()
) -> bytes:
    """Histograms of single calls, a panel for each contest; time is logarithmic, the share of calls begins at zero.

    All classes are as wide on the logarithmic axis, so areas are shares too. What limits kafkacodec is a line only.
    """
    figure = Figure(figsize=(9, 3.4 * len(distributions) + 0.5), layout="constrained")
    panels = figure.subplots(len(distributions), 1, sharex=True, squeeze=False)[:, 0]
    everyone = list(dict.fromkeys(name for found in distributions.values() for name in found))
    seen = looks([name for name in everyone if name not in limits], ours)
    dashes = dict(zip(limits, _DASHES, strict=False))
    for axes, (contest, found) in zip(panels, distributions.items(), strict=True):
        for name, classes in found.items():
            limit = name in dashes
            color = _LIMIT if limit else seen[name].color
            first, last = min(classes), max(classes)
            edges = [latencies.begins(number) * 1e6 for number in range(first, last + 2)]
            shares = [100 * classes.get(number, 0) / sum(classes.values()) for number in range(first, last + 1)]
            median, late = (latencies.quantile(classes, share) * 1e6 for share in (0.5, 0.99))
            label = f"{name}: half within {_three_digits(median)} µs, 99 % within {_three_digits(late)} µs"
            if not limit:
                axes.stairs(shares, edges, color=color, label=label, fill=True, alpha=0.25)
            line = {"linestyle": dashes[name], "label": label} if limit else {}
            axes.stairs(shares, edges, color=color, linewidth=1.2, **line)
        axes.set(xscale="log", ylabel="% of calls", title=contest)
        axes.set_ylim(bottom=0)
        axes.grid(**_STYLE)
        axes.legend(frameon=False, fontsize=8)
        _plain(axes.xaxis)
    panels[-1].set_xlabel(f"microseconds {axis}, logarithmic")
    figure.suptitle(title)
    return png(figure)


def png(figure: Figure) -> bytes:
    """The figure's bytes, the same for the same figure."""
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=_DPI, metadata={"Software": None})
    return out.getvalue()


def _three_digits(number: float) -> str:
    """As 0.0123, 1.23 and 12,300."""
    return f"{float(f'{number:.3g}'):,.10g}"


def _spoken(case: str) -> str:
    """The name of a case for readers who do not know that of its codec."""
    return case.replace("none", "uncompressed")


def _legend(figure: Figure, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, ncols=min(4, len(labels)), loc="outside lower center", frameon=False, fontsize=9)


def _plain(axis: Any) -> None:
    """Numbers as 0.1, 1 and 1,000 on a logarithmic axis; between the powers of ten, those of 2 and 5."""
    axis.set_major_locator(LogLocator(10, subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axis.set_minor_formatter(NullFormatter())
