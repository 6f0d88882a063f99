"""The report's page in headless Chromium, where that is installed: what it shows, and that it asks for nothing else."""

import shutil
import subprocess
from html import unescape

import pytest

from kafkacodec.cli.__main__ import DONE
from tests.integration.cli_samples import BROKER
from tests.report_page import Page

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium"),
    pytest.mark.slow,
    pytest.mark.unsanitized,
]


@pytest.fixture
def page(kafkacodec, tmp_path):
    path = tmp_path / "report.html"
    tree = tmp_path / "broker"
    for name in ("none-0", "zstd-0", "txn-0"):
        shutil.copytree(BROKER / name, tree / name)
    shutil.copytree(BROKER / "none-0", tree / "<b>a&b-0")
    segment = min((tree / "none-0").glob("*.log"))
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)
    code, _, err = kafkacodec("report", tree, "-o", path)
    assert code == DONE, err
    return path


def chromium(page, *options):
    """Run it on the page without network; gives what it prints, and what it logs."""
    profile = f"--user-data-dir={page.parent / 'profile'}"
    switches = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", profile]
    log = ["--enable-logging=stderr", "--host-resolver-rules=MAP * ~NOTFOUND"]
    command = [CHROMIUM, *switches, *log, *options, page.as_uri()]
    done = subprocess.run(command, capture_output=True, timeout=120, check=True)
    return done.stdout, done.stderr.decode(errors="replace")


def test_the_page_as_the_browser_reads_it(page):
    out, log = chromium(page, "--dump-dom")
    assert "CONSOLE" not in log  # errors, and what the policy of the page refuses
    seen, written = Page(out.decode()), Page(page.read_text("utf-8"))
    assert seen.totals == written.totals
    assert seen.headings == written.headings
    assert seen.tables.keys() == written.tables.keys() >= {"damage", "topics", "partitions"}
    for name, table in written.tables.items():
        assert [[cell[0].strip() for cell in row] for row in seen.tables[name].rows] == [
            [cell[0].strip() for cell in row] for row in table.rows
        ]
    assert [unescape(text) for text in seen.svg_texts()] == [unescape(text) for text in written.svg_texts()]


def test_light_dark_and_narrow(page, tmp_path):
    image = pytest.importorskip("PIL.Image")
    corners, widths = [], []
    for name, options in (
        ("light", ["--window-size=1200,2000"]),
        ("dark", ["--window-size=1200,2000", "--blink-settings=preferredColorScheme=0"]),
        ("narrow", ["--window-size=500,2000"]),
    ):
        chromium(page, *options, f"--screenshot={tmp_path / name}.png")
        with image.open(tmp_path / f"{name}.png") as picture:
            corners.append(sum(picture.convert("RGB").getpixel((2, 2))))
            widths.append(picture.width)
            assert len(picture.convert("RGB").getcolors(1 << 24)) > 20
    light, dark, narrow = corners
    assert light == narrow == 3 * 255
    assert dark < 120
    assert widths[:2] == [1200, 1200]


def test_printed(page, tmp_path):
    chromium(page, "--no-pdf-header-footer", f"--print-to-pdf={tmp_path / 'report.pdf'}")
    data = (tmp_path / "report.pdf").read_bytes()
    assert data.startswith(b"%PDF")
    assert 2 <= data.count(b"/Type /Page\n") + data.count(b"/Type /Page ") + data.count(b"/Type/Page") < 40
