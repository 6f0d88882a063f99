"""The report's page: labels that do not overlap, colours, and its size with many topics and partitions."""

import fnmatch
import re
import tomllib
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.report_page import Page

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextToPath

from kafkacodec.cli.commands.report import plots
from kafkacodec.cli.commands.report.page import render
from kafkacodec.log.analysis.damage_map import damage_map
from kafkacodec.log.analysis.histograms import TimeHistogram
from kafkacodec.log.analysis.partition_statistics import PartitionStatistics
from kafkacodec.log.analysis.survey import Survey
from kafkacodec.log.checking.report import Finding, Report

REPOSITORY = Path(__file__).parents[2]

pytestmark = pytest.mark.filterwarnings("ignore:Glyph")  # letters that matplotlib's font lacks

NAMES = ["orders", "<b>&amp;", "$x^2$", "x" * 240, "тема", "__consumer_offsets", "日本語のトピック", "a.b-c_d" * 20]
HOUR = 3_600_000
MEASURE = TextToPath()


def boxes(svg):
    """(text, left, top, right, bottom) of every text, measured with matplotlib's own font; rotated ones left out."""
    view = [float(x) for x in re.search(r'viewBox="([^"]+)"', svg)[1].split()]
    for style, place, text in re.findall(r'<text style="([^"]+)" ([^>]+)>([^<]*)</text>', svg):
        size = float(re.search(r"font-size: ([\d.]+)px", style)[1])
        x, y = (float(re.search(rf'\b{axis}="([\d.-]+)"', place)[1]) for axis in "xy")
        if "rotate(-90" in place:
            continue
        width, height, _ = MEASURE.get_text_width_height_descent(
            text.replace("&lt;", "<").replace("&amp;", "&"), FontProperties(family="DejaVu Sans", size=size), False
        )
        shift = {"middle": width / 2, "end": width}.get((re.search("text-anchor: (\\w+)", style) or ["", ""])[1], 0)
        yield text, x - shift, y - height, x - shift + width, y, view


@cache
def examples():
    return dict(drawn())


def drawn():
    starts = 1_700_000_000_000 + np.arange(120) * HOUR
    rng = np.random.default_rng(2)
    values = 10 ** np.arange(len(NAMES), dtype=float)
    bars = [plots.Bar(name, v, f"{v:,.0f} B, +100 %", v / 10) for name, v in zip(NAMES, values, strict=True)]
    yield "bars", plots.bars(bars, title="bars", unit="bytes", of_bytes=True)
    yield "one", plots.bars([plots.Bar("t", 0, "0 B")], title="one", unit="bytes", of_bytes=True)
    for unit in (1, 10_000, HOUR, 24 * HOUR, 30 * 24 * HOUR):
        times = 1_700_000_000_000 // unit * unit + np.arange(120) * unit
        yield f"times {unit}", plots.over_time(times, unit, rng.integers(0, 10**9, 120), title="t", unit="records")
    yield "moment", plots.over_time(starts[:1], 1, np.array([7]), title="m", unit="records")
    sums = [plots.Series(name, np.cumsum(rng.integers(0, 10**10, 120)), name == NAMES[-1]) for name in NAMES]
    yield "stacked", plots.stacked_over_time(starts, HOUR, sums, title="s", unit="bytes")
    for last in (1, 5, 31):
        buckets = [(1 << i, 2 << i, 10**i % 977) for i in range(last)]
        yield f"sizes {last}", plots.columns_by_size(buckets, title="c", unit="batches")
    yield "damage", plots.damage([(name, 10**6, [(0, 1), (5 * 10**5, 10**5)]) for name in NAMES], title="d")


@pytest.mark.slow
def test_labels_do_not_overlap_and_are_inside():
    for name, svg in examples().items():
        found = list(boxes(svg))
        assert len(found) >= 3, name
        for text, left, top, right, bottom, (_, _, width, height) in found:
            assert -1 <= left <= right <= width + 1, f"{name}: {text}"
            assert -1 <= top <= bottom <= height + 1, f"{name}: {text}"
        for i, (text, left, top, right, bottom, _) in enumerate(found):
            for other, left2, top2, right2, bottom2, _ in found[:i]:
                apart = right <= left2 or right2 <= left or bottom <= top2 or bottom2 <= top
                assert apart, f"{name}: {text!r} and {other!r} overlap"


def test_all_colours_are_variables():
    for name, svg in examples().items():
        assert re.findall(r"#[0-9a-fA-F]{6}\b", svg) == [], name
        assert re.findall(r"(?:fill|stroke): (?!none|var\()[^;\"]+", svg) == [], name
        ids = re.findall(r'\bid="([^"]+)"', svg)
        assert len(set(ids)) == len(ids), name
        assert set(re.findall(r"#([\w-]+)", svg)) == set(ids), name
        assert "<style" not in svg, name


def test_ids_of_two_plots_differ():
    one, two = (plots.columns_by_size([(1, 2, 3)], title=title, unit="batches") for title in ("one", "two"))
    assert not set(re.findall(r'\bid="([^"]+)"', one)) & set(re.findall(r'\bid="([^"]+)"', two))


def test_units_of_axes():
    numbers = {0: "0", 950: "950", 9_999: "9,999", 12_500: "12.5 k", 3e6: "3 M", 2.5e9: "2.5 G"}
    assert {n: plots.number(n) for n in numbers} == numbers
    svg = plots.bars([plots.Bar("t", 3 << 30, "longest")], title="t", unit="bytes", of_bytes=True)
    assert [text for text, *_ in boxes(svg)] == ["0 B", "1 GiB", "2 GiB", "3 GiB", "bytes", "t", "longest"]
    svg = plots.columns_by_size([(512, 1024, 25_000)], title="t", unit="batches")
    assert {"512 B", "1 KiB", "0", "20 k", "size of a batch"} <= {text for text, *_ in boxes(svg)}


def many(count):
    """A survey of `count` partitions of 3 each topic; partition i has i MiB, and every second one is damaged."""
    found = Survey()
    for i in range(count):
        topic, path = f"topic-{i // 3:05}", f"/data/topic-{i // 3:05}-{i % 3}"
        sizes = {"size_in_bytes": i << 20, "batch_bytes": i << 20, "num_batches": i, "num_segments": 1}
        found.partitions.append(PartitionStatistics(path=path, topic=topic, partition=i % 3, **sizes))
        report = Report(path, damaged_bytes=i % 2 * 100)
        if i % 2:
            finding = Finding("error", "damaged", f"{path}/0.log", "wrong", 0, 100, 5, 7)
            for _ in range(20):
                report.add(finding)
        found.reports.append(report)
    found.times[None] = TimeHistogram()
    return found


@pytest.mark.slow
def test_ten_thousand_partitions_are_summed_up():
    html = render(many(10_000), ["/data"])
    assert len(html.encode()) < 5 << 20
    page = Page(html)
    total = sum(range(10_000)) << 20
    assert page.totals["partitions"] == 10_000
    assert page.totals["size"] == total
    partitions = page.tables["partitions"]
    assert len(partitions.rows) == 500
    shown = sum(partitions.column("size").values())
    assert shown == sum(range(9_500, 10_000)) << 20
    assert any(text.startswith("9,499 smaller partitions not listed") for text in page.texts)
    assert any(text.startswith("3,134 smaller topics not listed") for text in page.texts)
    assert any("4,975 more damaged segments not shown" in text for text in page.texts)
    assert any(text.startswith("3,322 other topics: ") for text in page.texts)
    labels = [text for text in Page(render(many(60), ["/data"])).svg_texts() if "other topics" in text]
    assert labels == ["8 other topics"]


def test_wheel_and_sdist_have_the_template():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    in_wheel = project["tool"]["setuptools"]["package-data"]["*"]
    (line,) = re.findall("recursive-include kafkacodec (.*)", (REPOSITORY / "MANIFEST.in").read_text())
    folder = REPOSITORY / "kafkacodec/cli/commands/report"
    files = [path.name for path in folder.iterdir() if path.is_file() and path.suffix != ".py"]
    assert sorted(files) == ["page.css", "page.jinja"]
    for name in files:
        assert any(fnmatch.fnmatch(name, pattern) for pattern in in_wheel)
        assert any(fnmatch.fnmatch(name, pattern) for pattern in line.split())


def test_many_ranges_of_damage_stay_small():
    ranges = [(i * 1000, 10) for i in range(100_000)]
    svg = plots.damage([("t-0/0.log", 100_000_000, ranges)], title="d")
    assert len(svg) < 100_000
    assert plots.merged([(0, 5), (3, 4), (7, 1), (9, 1)]) == [(0, 8), (9, 1)]


def test_the_damage_map_is_that_of_the_findings(tmp_path):
    (tmp_path / "0.log").write_bytes(bytes(5000))
    path = str(tmp_path / "0.log")
    report = Report(str(tmp_path))
    report.add(Finding("error", "damaged", path, "wrong checksum", 100, 50, 5, 9))
    report.add(Finding("error", "gap", path, "a segment is missing", 4000, 1000, 20, 30))
    report.add(Finding("warning", "offset-index", path, "not an error", 0, 8))
    (found,) = damage_map([report])
    assert (found.size_in_bytes, found.ranges, found.missing) == (5000, [(100, 50)], [(5, 9), (20, 30)])
    assert (found.damaged_bytes, found.missing_offsets) == (50, 14)


@pytest.mark.parametrize("times", [[-(1 << 63) + 1], [(1 << 63) - 1], [0, 1 << 62], [253_402_300_799_999], [-5]])
def test_times_that_no_calendar_has(times):
    survey = many(1)
    histogram = TimeHistogram()
    histogram.add(np.array(times), np.ones(len(times), np.int64), np.ones(len(times), np.int64))
    survey.times = {"topic-00000": histogram, None: TimeHistogram()}
    html = render(survey, ["x"])
    assert re.search("records? before or after these times", html)
