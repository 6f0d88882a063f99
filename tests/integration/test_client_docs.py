"""Every Python example of docs/client, of the README and of the cookbook runs as it is written, with a broker.

The blocks of a page run in one process, in their order. Those of the README and recipes of the cookbook without a
broker are tested with the wheel.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import kafkacodec as kc
from tests.integration.secure_kafka import PASSWORDS, SecureBroker
from tests.page_examples import BLOCK, assert_printed, program
from tests.wheel import ROOT

pytestmark = pytest.mark.slow

PAGES = {page.stem: page for page in sorted((ROOT / "docs" / "client").glob("*.md"))}
PAGES |= {"start": ROOT / "README.md", "recipes": ROOT / "docs" / "cookbook.md"}
WITH_EXAMPLES = [name for name, page in PAGES.items() if BLOCK.search(page.read_text())]
SECONDS = 120


def test_the_pages_have_examples() -> None:
    assert len(WITH_EXAMPLES) >= 8


@pytest.mark.parametrize("page", [page for page in WITH_EXAMPLES if page != "security"])
def test_examples(tmp_path: Path, page: str) -> None:
    with kc.broker.serve() as kafka:
        run(page, tmp_path, {"localhost:9092": kafka.bootstrap_servers})


@pytest.mark.java
def test_security(tmp_path: Path) -> None:
    broker = SecureBroker(tmp_path, "newest")
    client = broker.authority.issue("client")
    for name, source in {
        "ca.pem": broker.authority.certificate,
        "client.pem": client.both,
        "client.key": client.both,
    }.items():
        (tmp_path / name).write_bytes(source.read_bytes())
    broker.start()
    try:
        listeners = {"localhost:9093": "TLS", "localhost:9094": "SASLTLS", "localhost:9095": "MUTUAL"}
        run("security", tmp_path, {place: broker.at(name) for place, name in listeners.items()})
    finally:
        broker.kill()


def run(page: str, directory: Path, places: dict[str, str]) -> None:
    """Run the blocks of a page with other addresses, and compare what they print."""
    blocks = BLOCK.findall(PAGES[page].read_text())
    if page in ("start", "recipes"):
        blocks = [block for block in blocks if "localhost:9092" in block[0]]
    code = program(blocks)
    for place, there in places.items():
        code = code.replace(place, there)
    script = directory / "page.py"
    script.write_text(code)
    done = subprocess.run(
        [sys.executable, "-W", "error", script],
        cwd=directory,
        env=os.environ | {"KAFKA_PASSWORD": PASSWORDS["alice"]},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    # A client also logs the error of a connection that it tries again, and on a busy machine what it waits for.
    told = {line for line in done.stderr.splitlines() if not line.startswith("waiting for broker ")}
    assert not told - set(done.stdout.splitlines())
    assert_printed(blocks, re.sub(r"^WARNING waiting for broker .*\n", "", done.stdout, flags=re.M))
