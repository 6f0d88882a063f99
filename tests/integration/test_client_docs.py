"""Every Python example of docs/client, of the README and of the cookbook runs as it is written, with a real broker.

The blocks of a page run in one process, in their order. Recipes of the cookbook without a broker are tested
with the wheel.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkacodec import errors
from kafkacodec.client import Admin
from tests.integration.kafka_jvm import Broker
from tests.integration.secure_kafka import PASSWORDS, SecureBroker
from tests.page_examples import BLOCK, assert_printed, program
from tests.wheel import ROOT

pytestmark = [pytest.mark.java, pytest.mark.slow]

PAGES = {page.stem: page for page in sorted((ROOT / "docs" / "client").glob("*.md"))}
PAGES |= {"start": ROOT / "README.md", "recipes": ROOT / "docs" / "cookbook.md"}
WITH_EXAMPLES = [name for name, page in PAGES.items() if BLOCK.search(page.read_text())]
SECONDS = 120
SETTINGS = {  # of a single broker
    "share_coordinator_state_topic_num_partitions": "1",
    "share_coordinator_state_topic_replication_factor": "1",
    "share_coordinator_state_topic_min_isr": "1",
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    made = Broker(tmp_path_factory.mktemp("broker"), "newest", **SETTINGS)
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
    assert len(WITH_EXAMPLES) >= 8


@pytest.mark.parametrize("page", [page for page in WITH_EXAMPLES if page != "security"])
def test_examples(empty: Broker, tmp_path: Path, page: str) -> None:
    run(page, tmp_path, {"localhost:9092": empty.server})


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
        broker.stop()


def run(page: str, directory: Path, places: dict[str, str]) -> None:
    """Run the blocks of a page with other addresses, and compare what they print."""
    blocks = BLOCK.findall(PAGES[page].read_text())
    if page == "recipes":
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
    # A client also logs the error of a connection that it tries again.
    assert not set(done.stderr.splitlines()) - set(done.stdout.splitlines())
    assert_printed(blocks, done.stdout)
