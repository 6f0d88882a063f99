"""Plots as SVG for the report's page. Colours are CSS variables, so that the page decides on light and dark.

Text stays text: it is measured with the font of matplotlib, which is wider than those of browsers.
"""

from __future__ import annotations

import io
import math
import re
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator
from rich.cells import cell_len, set_cell_size

from kafkacodec.cli.console import visible
from kafkacodec.cli.output import round_size, size
from kafkacodec.datatypes import dataclass

__all__ = ["Bar", "Series", "bars", "columns_by_size", "damage", "over_time", "stacked_over_time"]

# Stands for a CSS variable; no other colour is used.
_VARIABLES = {
    "#010101": "--ink",
    "#020202": "--muted",
    "#030303": "--grid",
    "#040404": "--bad",
    "#050505": "--intact",
    **{f"#0{i}0{i}f{i}": f"--series-{i}" for i in range(1, 9)},
}
_INK, _MUTED, _GRID, _BAD, _INTACT, *SERIES = _VARIABLES

_WIDTH = 6.6  # inches of 72 units
_LABEL = 38  # columns of a terminal that a name may take
_STYLE = {
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "text.color": _INK,
    "text.parse_math": False,
    "axes.edgecolor": _MUTED,
    "axes.labelcolor": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "xtick.color": _MUTED,
    "ytick.color": _MUTED,
    "xtick.labelcolor": _INK,
    "ytick.labelcolor": _INK,
    "grid.color": _GRID,
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
}
_SVG = "http://www.w3.org/2000/svg"
_XLINK = "http://www.w3.org/1999/xlink"


@dataclass(frozen=True)
class Bar:
    """A bar with its label. `margin` is half the width of an interval around the value; `is_rest` greys it."""

    label: str
    value: float
    text: str
    margin: float = 0.0
    is_rest: bool = False


@dataclass(frozen=True)
class Series:
    """A line or an area with its label. Values are those at the end of each bucket; `is_rest` greys it."""

    label: str
    values: npt.NDArray[Any]
    is_rest: bool = False


def number(count: float) -> str:
    """A short number for an axis: ``950``, ``12.5 k``, ``3 M``."""
    for limit, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(count) >= limit:
            return f"{count / (1e3 if unit == 'k' else limit):.3g} {unit}"
    return f"{count:,.0f}"


def short(name: str) -> str:
    """A name that fits beside a plot: visible characters, the middle left out if it is long."""
    name = visible(name)
    if cell_len(name) <= _LABEL:
        return name
    tail = name[-(_LABEL // 3) :]
    return set_cell_size(name, _LABEL - 1 - cell_len(tail)).rstrip() + "…" + tail


def bars(rows: Sequence[Bar], *, title: str, unit: str, of_bytes: bool = False) -> str:
    """Horizontal bars, the first on top."""
    with _figure(0.75 + 0.27 * len(rows)) as plot:
        axes = plot.axes
        places = np.arange(len(rows))
        colours = [SERIES[-1] if row.is_rest else SERIES[0] for row in rows]
        axes.barh(places, [row.value for row in rows], height=0.72, color=colours)
        spread = [row.margin if row.margin == row.margin else 0 for row in rows]
        if any(spread):
            values = [row.value for row in rows]
            axes.errorbar(values, places, xerr=spread, fmt="none", color=_INK, elinewidth=1, capsize=2)
        for place, row in zip(places, rows, strict=True):
            edge = row.value + spread[place]
            axes.annotate(row.text, (edge, place), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8)
        axes.set_yticks(places, [short(row.label) for row in rows])
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.tick_params(axis="y", length=0)
        most = max((row.value + spread[i] for i, row in enumerate(rows)), default=0)
        axes.set_xlim(0, (most or 1) / (1 - _share_of_texts(rows)))
        axes.set_xlabel(unit)
        axes.grid(axis="x")
        _scale(axes.xaxis, most, of_bytes)
        return plot.svg(title)


def _share_of_texts(rows: Sequence[Bar]) -> float:
    """The share of the axis that the text after the longest bar takes."""
    letter = 6.2  # units of a letter of the labels; those after the bars are smaller
    axis = 72 * _WIDTH - letter * max(cell_len(short(row.label)) for row in rows)
    return min(0.6, (5.4 * max(len(row.text) for row in rows) + 10) / axis)


def columns_by_size(buckets: Sequence[tuple[int, int, int]], *, title: str, unit: str) -> str:
    """Columns for counts by size: (first size, size after the last, count)."""
    with _figure(2.6) as plot:
        axes = plot.axes
        places = np.arange(len(buckets))
        axes.bar(places, [count for _, _, count in buckets], width=0.86, color=SERIES[0])
        axes.set_xlim(-0.6, max(len(buckets), 4) - 0.4)
        step = max(1, math.ceil(len(buckets) / 9))
        edges = [(i - 0.5, start) for i, (start, _, _) in enumerate(buckets)]
        edges.append((len(buckets) - 0.5, buckets[-1][1]))
        axes.set_xticks([x for x, _ in edges[::step]], [round_size(edge) for _, edge in edges[::step]])
        axes.set_xlabel("size of a batch")
        axes.set_ylabel(unit)
        axes.grid(axis="y")
        _scale(axes.yaxis, max(count for _, _, count in buckets), False)
        return plot.svg(title)


def over_time(starts: npt.NDArray[Any], width: int, values: npt.NDArray[Any], *, title: str, unit: str) -> str:
    """Columns for values by time."""
    with _figure(2.6) as plot:
        axes = plot.axes
        axes.bar(_days(starts), values, width=width / 86_400_000, align="edge", color=SERIES[0])
        _time_axis(axes, starts, width)
        axes.set_ylabel(unit)
        _scale(axes.yaxis, int(values.max()), False)
        return plot.svg(title)


def stacked_over_time(starts: npt.NDArray[Any], width: int, series: Sequence[Series], *, title: str, unit: str) -> str:
    """Areas of bytes on top of each other, the first at the bottom.

    Labels begin with a space, since matplotlib leaves out those that begin with an underscore, as internal topics do.
    """
    with _figure(3.4) as plot:
        axes = plot.axes
        edges = np.append(starts, starts[-1] + width)
        heights = [np.insert(part.values, 0, 0) for part in series]
        colours = [SERIES[-1] if part.is_rest else SERIES[i] for i, part in enumerate(series)]
        axes.stackplot(_days(edges), heights, colors=colours, labels=[f" {short(part.label)}" for part in series])
        _time_axis(axes, starts, width)
        axes.set_ylabel(unit)
        _scale(axes.yaxis, int(sum(part.values[-1] for part in series)), True)
        if len(series) > 1:
            handles, labels = axes.get_legend_handles_labels()
            plot.figure.legend(handles, labels, loc="outside upper left", ncols=2, fontsize=8)
        return plot.svg(title)


def damage(rows: Sequence[tuple[str, int, Sequence[tuple[int, int]]]], *, title: str) -> str:
    """A bar for each segment: (name, size in bytes, start and size of the damaged ranges). At least a line is drawn."""
    with _figure(0.75 + 0.27 * len(rows)) as plot:
        axes = plot.axes
        for place, (_, total, ranges) in enumerate(rows):
            axes.barh(place, 100 if total else 0, height=0.6, color=_INTACT)
            scale = 100 / (total or 1)
            found = merged([(start * scale, max(length * scale, 0.35)) for start, length in ranges])
            axes.broken_barh(found, (place - 0.3, 0.6), color=_BAD, linewidth=0)
            text = size(total) if total else "no file"
            axes.annotate(text, (100, place), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8)
        axes.set_yticks(range(len(rows)), [short(name) for name, _, _ in rows])
        axes.tick_params(axis="y", length=0)
        axes.set_xlim(0, 112)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_xticks(range(0, 101, 20), [f"{share} %" for share in range(0, 101, 20)])
        axes.set_xlabel("position in the segment, and the segment's size")
        return plot.svg(title)


def merged(ranges: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Ranges (start, length) with those joined that touch or overlap, so that their number is bounded by the width."""
    found: list[tuple[float, float]] = []
    for start, length in sorted(ranges):
        if found and start <= found[-1][0] + found[-1][1]:
            first, before = found[-1]
            found[-1] = first, max(before, start + length - first)
        else:
            found.append((start, length))
    return found


class _Plot:
    """A figure with one set of axes."""

    def __init__(self, height: float) -> None:
        self.figure = Figure(figsize=(_WIDTH, height))
        self.axes = self.figure.add_subplot()

    def svg(self, title: str) -> str:
        """The plot as SVG that can be part of a page. `title` is what a screen reader says."""
        target = io.BytesIO()
        with mpl.rc_context({"svg.hashsalt": title}):
            self.figure.savefig(target, format="svg", transparent=True, metadata={"Date": None})
        return _inline(target.getvalue(), title)


class _figure:
    """A plot in the style of the page, without matplotlib's warnings about letters that its font lacks."""

    def __init__(self, height: float) -> None:
        self.height = height
        self.style = mpl.rc_context(_STYLE)
        self.silence = warnings.catch_warnings()

    def __enter__(self) -> _Plot:
        self.style.__enter__()
        self.silence.__enter__()
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        return _Plot(self.height)

    def __exit__(self, *error: Any) -> None:
        self.silence.__exit__(*error)
        self.style.__exit__(*error)


def _inline(svg: bytes, title: str) -> str:
    """The SVG without what a page must not have twice: ids that nothing refers to, global styles, metadata."""
    root = ET.fromstring(svg)
    used = set(re.findall(r"#([\w.-]+)", svg.decode()))
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{{{_SVG}}}metadata", f"{{{_SVG}}}style"):
                parent.remove(child)
    for element in root.iter():
        if element.get("id") not in used:
            element.attrib.pop("id", None)
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.set("role", "img")
    root.set("aria-label", title)
    ET.register_namespace("", _SVG)
    ET.register_namespace("xlink", _XLINK)
    text = ET.tostring(root, encoding="unicode")
    for colour, variable in _VARIABLES.items():
        text = text.replace(colour, f"var({variable})")
    return text


def _days(milliseconds: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    days: npt.NDArray[np.float64] = milliseconds / 86_400_000  # as matplotlib counts: since 1970
    return days


def _time_axis(axes: Any, starts: npt.NDArray[Any], width: int) -> None:
    first, end = _days(np.array([starts[0], starts[-1] + width]))
    axes.set_xlim(first, end)
    locator = AutoDateLocator(tz=UTC, minticks=3, maxticks=7)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=UTC, show_offset=False))
    began = datetime.fromtimestamp(int(starts[0]) / 1000, UTC)
    ended = datetime.fromtimestamp(int(starts[-1] + width) / 1000, UTC)
    axes.set_xlabel(f"{began:%Y-%m-%d %H:%M:%S} to {ended:%Y-%m-%d %H:%M:%S} UTC")
    axes.grid(axis="y")


def _scale(axis: Any, most: float, of_bytes: bool) -> None:
    """Few round ticks with units."""
    unit = 1024 ** min(int(math.log(most, 1024)), 4) if of_bytes and most >= 1 else 1
    ticks = np.asarray(MaxNLocator(5, steps=[1, 2, 5, 10], integer=unit == 1).tick_values(0, (most or 1) / unit))
    ticks = ticks[(ticks >= 0) & (ticks <= (most or 1) / unit * 1.05)] * unit
    axis.set_major_locator(FixedLocator(ticks.tolist()))
    label: Callable[[Any], str] = round_size if of_bytes else number
    axis.set_major_formatter(FuncFormatter(lambda value, _: label(value)))
