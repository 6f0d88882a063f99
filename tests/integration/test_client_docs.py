"""Every Python example of docs/client runs as it is written, with a real broker, and prints what the page says.

The blocks of a page run in one process, in their order. A block of text after one is what it prints.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkacodec import errors
from kafkacodec.client import Admin
from tests.integration.kafka_jvm import Broker
from tests.wheel import ROOT

pytestmark = [pytest.mark.java, pytest.mark.slow]

BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:```text\n(.*?)^```\n)?", re.M | re.S)
PAGES = {page.stem: page for page in sorted((ROOT / "docs" / "client").glob("*.md"))}
WITH_EXAMPLES = [name for name, page in PAGES.items() if BLOCK.search(page.read_text())]
END = "--- end of a block ---"
SECONDS = 120


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    made = Broker(tmp_path_factory.mktemp("broker"), "newest", group_initial_rebalance_delay_ms="0")
    made.start()
    yield made
    made.stop()


@pytest.fixture
def empty(broker: Broker) -> Broker:
    """The broker without topics and groups."""
    with Admin(broker.server) as admin:
        for _ in range(100):
            groups, topics = list(admin.list_groups()), list(admin.list_topics())
            if not groups and not topics:
                return broker
            try:
                admin.delete_topics(topics)
                admin.delete_groups(groups)
            except errors.ItemErrors:  # a member has not left yet, or the list is older than the deletion
                pass
            time.sleep(0.1)
    raise AssertionError(f"topics {topics} and groups {groups} remain")


def test_the_pages_have_examples() -> None:
    assert len(WITH_EXAMPLES) >= 3


@pytest.mark.parametrize("page", WITH_EXAMPLES)
def test_examples(empty: Broker, tmp_path: Path, page: str) -> None:
    blocks = BLOCK.findall(PAGES[page].read_text())
    script = tmp_path / "page.py"
    code = f"print({END!r}, flush=True)\n".join(code for code, _ in blocks)
    script.write_text(code.replace("localhost:9092", empty.server))
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    printed = done.stdout.split(END + "\n")
    for (code, expected), found in zip(blocks, printed, strict=True):
        assert not expected or found == expected, code
