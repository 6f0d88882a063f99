"""Formats the log directories of KRaft brokers, without a JVM for each."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from pathlib import Path
from uuid import uuid4

from tests.integration.kafka_jars import TARGET, java

_CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"


def by_kafka(release: str, properties: Path, users: Sequence[str] = ()) -> None:
    """Format what a broker's properties name; `users` are such as ``SCRAM-SHA-256=[name=alice,password=secret]``."""
    added = [argument for user in users for argument in ("--add-scram", user)]
    command = [*java(release), "kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", properties, *added]
    utf8 = {**os.environ, "LC_ALL": "C.UTF-8"}  # of the arguments
    finished = subprocess.run(command, capture_output=True, text=True, check=False, env=utf8)
    assert finished.returncode == 0, finished.stdout + finished.stderr


def by_copy(release: str, logs: Path, node: str) -> None:
    """What Kafka has made once for a release, with the number of a broker and a new identity of the directory."""
    shutil.copytree(_formatted(release), logs)
    path = logs / "meta.properties"
    text = re.sub("(?m)^node.id=.*$", f"node.id={node}", path.read_text())
    path.write_text(re.sub("(?m)^directory.id=.*$", f"directory.id={_identity()}", text))


def _formatted(release: str) -> Path:
    """A formatted directory, made when it is first wanted and after a change of the jars."""
    java(release)
    made, jars = TARGET / f"{release}.formatted", TARGET / release
    with open(TARGET / "formatted.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists() or made.stat().st_mtime < jars.stat().st_mtime:
            partial = TARGET / f"{release}.formatting"
            for old in (partial, made):
                shutil.rmtree(old, ignore_errors=True)
            partial.mkdir()
            properties = partial / "server.properties"
            properties.write_text(
                "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@127.0.0.1:9093\n"
                "listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093\n"
                f"controller.listener.names=CONTROLLER\nlog.dirs={partial}/logs\n"
            )
            by_kafka(release, properties)
            (partial / "logs").rename(made)
            shutil.rmtree(partial)
    return made


def _identity() -> str:
    """As Kafka writes random ones, which do not begin like an option."""
    while (text := urlsafe_b64encode(uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return text
