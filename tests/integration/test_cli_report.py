"""``kafkacodec report``: its numbers compared with other commands and with the sidecars, and hostile input."""

import json
import shutil
import subprocess
import sys
import unicodedata
from collections import Counter

import pytest

from kafkacodec.cli.__main__ import BAD_INPUT, DONE, WRONG_USAGE
from tests import hostile_trees
from tests.corpus import ROOT, sample, segments
from tests.dialect_vectors import ROOT as DIALECTS
from tests.integration.cli_samples import BROKER, SEGMENT, command, expected
from tests.report_page import Page

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")


MADE: dict[tuple, Page] = {}


@pytest.fixture
def report(kafkacodec, tmp_path):
    """Make a report; gives the parsed page. One of golden logs is made once."""

    def call(*arguments):
        if arguments in MADE:
            return MADE[arguments]
        path = tmp_path / "report.html"
        code, _, err = kafkacodec("report", *arguments, "-o", path, "--force")
        assert code == DONE, err
        page = Page(path.read_text("utf-8"))
        if arguments[0].is_relative_to(ROOT):
            MADE[arguments] = page
        return page

    return call


def logs(place):
    """The segments of a data directory."""
    return [s for s in segments() if s.path.parent.parent == ROOT / "logs" / place and s.path.suffix == ".log"]


def num_records(segment):
    """Those that its sidecar has, without markers."""
    return sum(not record.is_control for record in segment.expected.records)


def scanned(kafkacodec, path):
    """The rows of scan; their records are without markers, each of which is a batch, as report counts them."""
    code, out, err = kafkacodec("scan", path, "--segments", "--json")
    assert code == DONE, err
    rows = [json.loads(line) for line in out.splitlines()]
    return [row | {"num_records": row["num_records"] - row["control_batches"]} for row in rows]


@pytest.mark.parametrize("place", ["kraft-4.1.0", "v2-2.8.2"])
def test_numbers_are_those_of_scan(kafkacodec, report, place):
    page, rows = report(ROOT / "logs" / place), scanned(kafkacodec, ROOT / "logs" / place)
    assert page.totals["topics"] == len({row["topic"] for row in rows})
    assert page.totals["partitions"] == len({(row["topic"], row["partition"]) for row in rows})
    assert page.totals["segments"] == len(rows)
    assert page.totals["size"] == sum(row["size_in_bytes"] for row in rows)
    assert page.totals["batches"] == sum(row["num_batches"] for row in rows)
    assert page.totals["records"] == sum(row["num_records"] for row in rows)
    assert page.totals["last-record"] == max(row["max_timestamp"] for row in rows if row["max_timestamp"] is not None)
    for name, by in (("topics", lambda row: row["topic"]), ("partitions", lambda r: f"{r['topic']}-{r['partition']}")):
        table = page.tables[name]
        for title, key in (("size", "size_in_bytes"), ("records", "num_records"), ("batches", "num_batches")):
            expected = Counter()
            for row in rows:
                expected[by(row)] += row[key]
            assert table.column(title) == expected
        assert set(table.column("damaged").values()) == {0}
    assert "All records were read and are intact." in page.texts


@pytest.mark.parametrize("place", ["kraft-4.1.0", "v1-0.10.2.2", "v0-0.8.2.2"])
def test_numbers_are_those_of_the_sidecars(report, place):
    page = report(ROOT / "logs" / place)
    files = logs(place)
    records = Counter()
    for s in files:
        records[s.path.parent.name] += num_records(s)
    found = page.tables["partitions"].column("records")
    assert found == {name: records[name] for name in found}
    assert page.totals["records"] == sum(records.values())
    assert page.totals["batches"] == sum(len(s.expected.batches) for s in files)


def test_plots_have_titles_and_units(report):
    page = report(BROKER)
    titles = ["Size by topic", "Size over time", "Records over time", "Batch sizes"]
    titles += ["Compression: bytes by codec", "Compression: size with other codecs", "Lag of consumer groups"]
    assert page.headings[: len(titles)] == titles
    assert [svg.get("aria-label") for svg in page.svgs] == titles
    units = {"bytes of segments", "bytes of batches", "batches", "size of a batch"}
    assert units <= {text.strip() for text in page.svg_texts()}
    assert any(text.endswith(" UTC") for text in page.svg_texts())


def test_lag_is_that_of_the_command_lag(kafkacodec, report):
    page = report(BROKER)
    code, out, err = kafkacodec("lag", BROKER, "--json")
    assert (code, err) == (DONE, "")
    lines = [json.loads(line) for line in out.splitlines()]
    table = page.tables["lag"]
    shown = {tuple(row[i][0] if i < 2 else row[i][1] for i in (0, 1, 2, 3, 4)) for row in table.rows}
    wanted = ("offset", "end_offset", "lag")
    assert shown == {(x["group"], f"{x['topic']}-{x['partition']}", *(x[name] for name in wanted)) for x in lines}
    sums = Counter()
    for line in lines:
        sums[line["group"]] += line["lag"] or 0
    (plot,) = [svg for svg in page.svgs if svg.get("aria-label") == "Lag of consumer groups"]
    texts = {text.text for text in plot.iter("{http://www.w3.org/2000/svg}text")}
    assert {f"{count:,}" for count in sums.values() if count} <= texts
    assert {group for group in sums if sums[group]} <= texts
    only = report(BROKER, "--topic", "gzip")
    assert {row[1][0] for row in only.tables["lag"].rows} == {"gzip-0"}


def test_several_log_directories_below_a_path(report, tmp_path):
    for disk, names in (("disk1", ["none-0", "__consumer_offsets-0"]), ("disk2", ["gzip-0", "__consumer_offsets-1"])):
        for name in names:
            shutil.copytree(BROKER / name, tmp_path / "broker" / disk / name)
    page = report(tmp_path / "broker")
    assert set(page.tables["topics"].column("size")) == {"none", "gzip", "__consumer_offsets"}
    assert "gzip-0" in {row[1][0] for row in page.tables["lag"].rows}
    (plot,) = [svg for svg in page.svgs if svg.get("aria-label") == "Size over time"]
    texts = [(text.text or "").strip() for text in plot.iter("{http://www.w3.org/2000/svg}text")]
    assert {"none", "gzip", "__consumer_offsets"} <= set(texts)


def test_a_damaged_batch_is_in_the_map(report, damaged, tmp_path):
    (tmp_path / "broker" / "none-0").mkdir(parents=True)
    path = damaged.rename(tmp_path / "broker" / "none-0" / damaged.name)
    page = report(path.parent.parent)
    bad = next(b for b in sample(SEGMENT).expected.batches if b["position"] > 2000)
    table = page.tables["damage"]
    name = f"none-0/{path.name}"
    assert table.column("damaged") == {name: bad["sizeInBytes"]}
    assert table.column("places") == {name: 1}
    lost = bad["lastOffset"] - bad["baseOffset"] + 1
    assert table.column("offsets missing") == {name: lost}
    assert page.tables["topics"].column("damaged") == {"none": bad["sizeInBytes"]}
    assert page.headings[0] == "Damage map"
    assert any(text.startswith("Damaged: ") for text in page.texts)
    assert any("CRC-32C" in row[-1][0] for row in table.rows)


def test_a_missing_segment_is_missing_offsets(report, tmp_path):
    shutil.copytree(BROKER / "none-0", tmp_path / "broker" / "none-0")
    found = sorted((tmp_path / "broker" / "none-0").glob("*.log"))
    assert len(found) > 2
    for path in (tmp_path / "broker" / "none-0").glob(f"{found[1].stem}.*"):
        path.unlink()
    lost = int(found[2].stem) - int(found[1].stem)
    page = report(tmp_path / "broker")
    assert list(page.tables["damage"].column("offsets missing").values()) == [lost]
    assert any(f"{lost} offsets missing" in text for text in page.texts)


def test_a_partition_that_cannot_be_read_is_named(report, tmp_path):
    shutil.copytree(BROKER / "none-0", tmp_path / "broker" / "none-0")
    (tmp_path / "broker" / "other-0").mkdir()
    (tmp_path / "broker" / "other-0" / "00000000000000000000.log").symlink_to("00000000000000000000.log")
    page = report(tmp_path / "broker")
    assert "Could not be read" in page.headings
    assert any("could not be read." in text for text in page.texts)
    assert list(page.tables["topics"].column("size")) == ["none", "other"]


def test_without_reading_records(report):
    page = report(BROKER, "--no-verify")
    assert any(text.startswith("Only headers of batches were read") for text in page.texts)
    assert "Compression: size with other codecs" not in page.headings
    assert page.totals["records"] == sum(map(num_records, logs("kraft-4.1.0")))


def test_damage_that_headers_show(report, tmp_path):
    shutil.copytree(BROKER / "none-0", tmp_path / "broker" / "none-0")
    path = min((tmp_path / "broker" / "none-0").glob("*.log"))
    data = bytearray(path.read_bytes())
    data[1000:1400] = bytes(400)
    path.write_bytes(data)
    page = report(tmp_path / "broker", "--no-verify")
    assert any(text.startswith("Damaged: ") for text in page.texts)
    assert {row[1][0] for row in page.tables["findings"].rows} == {f"none-0/{path.name}"}


def test_logs_without_timestamps(report):
    page = report(DIALECTS / "kafka07/segments/broker-0")
    assert page.totals["last-record"] is None
    assert "Records over time" not in [svg.get("aria-label") for svg in page.svgs]
    assert any("without a timestamp" in text for text in page.texts)


def test_an_empty_directory_makes_no_page(kafkacodec, tmp_path):
    (tmp_path / "empty").mkdir()
    for paths in ([tmp_path / "empty"], [BROKER, tmp_path / "empty"]):
        code, out, err = kafkacodec("report", *paths, "-o", tmp_path / "x.html")
        assert (code, out, f"{tmp_path / 'empty'}: no Kafka log segments in this directory" in err) == (1, "", True)
        assert not (tmp_path / "x.html").exists()
    code, _, err = kafkacodec("report", tmp_path / "missing", "-o", tmp_path / "x.html")
    assert code != DONE
    assert "missing" in err
    assert not (tmp_path / "x.html").exists()


def test_the_page_loads_nothing_and_runs_nothing(report):
    page = report(BROKER)
    policy = [a["content"] for tag, a in page.tags if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy == ["default-src 'none'; style-src 'unsafe-inline'"]
    for tag, attributes in page.tags:
        assert tag not in ("script", "iframe", "object", "embed", "link", "img", "base", "form")
        for name, value in attributes.items():
            assert not name.startswith("on")
            if name in ("src", "href", "xlink:href"):
                assert value.startswith("#")
            assert "url(" not in (value or "").replace("url(#", "")


@pytest.mark.parametrize(
    "text", ["<script>alert(1)</script>", "<\x2fstyle><b>", '"onload="x', "$x^2$ {{ 7*7 }} {% x %}"]
)
def test_markup_in_names_is_text(report, tmp_path, text):
    name = text.replace("/", "")
    shutil.copytree(BROKER / "none-0", tmp_path / "broker" / f"{name}-0")
    page = report(tmp_path / "broker")
    assert list(page.tables["topics"].column("size")) == [name]
    assert name in page.svg_texts()
    assert not {"script", "b"} & {tag for tag, _ in page.tags}


def test_no_control_characters_for_any_name(kafkacodec, tmp_path):
    """All names on a page; a directory and a file that have them all in their own names."""
    list(hostile_trees.strange_names(tmp_path / "trees"))
    together = "".join(text for text in hostile_trees.STRANGE if len(text) < 100)
    joined = dict(hostile_trees.strange_names(tmp_path / "joined", [together]))
    for tree in (tmp_path / "trees", *joined.values()):
        path = tmp_path / "page.html"
        code, _, err = kafkacodec("report", tree, "-o", path, "--force")
        assert not {c for c in err.replace("\n", "") if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")}
        if tree == joined["names 0"]:  # no partition has a line break in its name
            assert (code, "no Kafka log segments in this directory" in err) == (1, True)
            continue
        assert code == DONE, err
        html = path.read_bytes().decode("utf-8")
        assert {c for c in html if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")} <= {"\n"}
        page = Page(html)
        if tree == tmp_path / "trees":  # no partition has a line break in its name
            stored = {"__consumer_offsets-0", "__cluster_metadata-0"}
            assert len(page.tables["partitions"].column("size")) == len(hostile_trees.STRANGE) - 1 + len(stored)


def test_the_file_appears_when_it_is_complete(kafkacodec, tmp_path, monkeypatch):
    from kafkacodec.cli.commands.report import page

    path = tmp_path / "report.html"

    def fail(*_, **__):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(page, "render", fail)
        assert kafkacodec("report", BROKER / "none-0", "-o", path)[0] == BAD_INPUT
    assert list(tmp_path.iterdir()) == []
    assert kafkacodec("report", BROKER / "none-0", "-o", path)[0] == DONE
    before = path.read_bytes()
    code, _, err = kafkacodec("report", BROKER / "none-0", "-o", path)
    assert code == WRONG_USAGE
    assert "--force replaces it" in err
    assert path.read_bytes() == before
    copied = tmp_path / "copy"
    shutil.copytree(BROKER / "none-0", copied / "none-0")
    segment = next((copied / "none-0").glob("*.log"))
    code, _, err = kafkacodec("report", copied, "-o", segment, "--force")
    assert code == WRONG_USAGE
    assert "part of the input" in err


@pytest.mark.parametrize("package", ["jinja2", "matplotlib"])
def test_a_missing_package_is_named_before_anything_is_read(tmp_path, package):
    script = f"import sys; sys.modules['{package}'] = None; from kafkacodec.cli.__main__ import main; main()"
    page = tmp_path / "report.html"
    arguments = [sys.executable, "-c", script, "report", str(BROKER / "none-0"), "-o", str(page)]
    done = subprocess.run(arguments, capture_output=True, text=True)
    assert done.returncode == WRONG_USAGE
    assert done.stderr == f"kafkacodec: error: missing package {package}; run: pip install 'kafkacodec[report]'\n"
    assert not page.exists()


def test_standard_output(monkeypatch):
    monkeypatch.setenv("MPLCONFIGDIR", "/proc/no-directory")  # as in a container whose home is read-only
    done = command("report", BROKER / "none-0", "-o", "-", capture_output=True)
    assert (done.returncode, done.stderr) == (DONE, "")
    assert Page(done.stdout).totals["records"] == len(expected("none"))


def test_empty_partitions_are_folded(report, tmp_path):
    shutil.copytree(ROOT / "logs" / "kraft-4.1.0" / "gzip-0", tmp_path / "logs" / "gzip-0")
    for number in range(3):
        partition = tmp_path / "logs" / f"quiet-{number}"
        partition.mkdir()
        (partition / f"{0:020}.log").touch()
    page = report(tmp_path / "logs")
    assert list(page.tables["partitions"].column("partition")) == ["gzip-0"]
    assert page.totals["partitions"] == 4
    assert any("3 empty partitions not listed." in text for text in page.texts)
    assert any("1 empty topic not listed." in text for text in page.texts)
