"""The pytest plugin: its fixtures in a pytest of its own, in one process and in workers; what it costs unused."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLUGIN = ["-p", "kafkacodec.broker.pytest_plugin"]

USING = """
import os
import kafkacodec as kc

seen = {}

def test_a_record_comes_back(kafka_broker, kafka_topic):
    seen[kafka_topic] = kafka_broker.bootstrap_servers
    with kc.client.Producer(kafka_broker.bootstrap_servers) as producer:
        producer.send(kafka_topic, b"one").result(60)
    assert kafka_broker.records(kafka_topic)["value"].tolist() == [b"one"]

def test_another_topic_of_the_same_broker_with_brackets(kafka_broker, kafka_topic):
    assert kafka_broker.bootstrap_servers in {kafka_broker.bootstrap_servers, *seen.values()}
    assert kafka_topic not in seen
    assert len(kafka_broker.records(kafka_topic)) == 0
    assert kafka_broker.write(kafka_topic, [(None, b"x")]) == 0

def test_a_leader_moves(kafka_cluster):
    kafka_cluster.create_topic("orders")
    kafka_cluster.move_leader("orders", 0, 3)
    assert kafka_cluster.leader("orders") == 3

import pytest

@pytest.mark.parametrize("value", ["a/b c", "\\u00e9" * 300])
def test_names_that_are_no_topics(kafka_topic, value):
    assert len(kafka_topic) <= 249 and kafka_topic.isascii()
"""

UNUSED = """
import sys

def test_nothing_is_loaded():
    loaded = {name for name in sys.modules if name.startswith("kafkacodec.")}
    assert loaded <= {"kafkacodec." + name for name in ("broker", "broker.pytest_plugin", "errors", "lazy", "version")}
    assert "numpy" not in sys.modules and "asyncio" not in sys.modules
"""


def run(directory, source, *arguments):
    (directory / "test_it.py").write_text(source, "utf-8")
    (directory / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n", "utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *PLUGIN, *arguments, "test_it.py"]
    alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # and not that of an installation, too
    done = subprocess.run(command, cwd=directory, env=alone, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_fixtures(tmp_path):
    assert "5 passed" in run(tmp_path, USING)


def test_each_worker_has_a_broker(tmp_path):
    assert "5 passed" in run(tmp_path, USING, "-p", "xdist", "-n", "2")


def test_it_loads_nothing_until_a_fixture_is_used(tmp_path):
    assert "1 passed" in run(tmp_path, UNUSED)


def test_it_is_found_where_the_package_is_installed():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    (module,) = project["entry-points"]["pytest11"].values()
    assert PLUGIN[1] == module
    assert {"kafka_broker", "kafka_topic"} <= set(vars(import_module(module)))
