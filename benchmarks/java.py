"""Kafka's own reader, where Maven and a JDK are there."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).parent / "java"
TARGET = Path(__file__).parent.parent / ".cache" / "bench-java"
# Long enough for the just-in-time compiler to finish.
SECONDS_PER_CASE = 4.0


def missing() -> str | None:
    """What keeps Java out of the comparison, or None."""
    absent = [tool for tool in ("mvn", "javac", "java") if shutil.which(tool) is None]
    return f"no {', '.join(absent)} on PATH" if absent else None


def prepare() -> list[str]:
    """Fetch Kafka's client library and compile; returns the command to run."""
    jars = TARGET / "jars"
    if not jars.is_dir():
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={jars}"]
        subprocess.run(["mvn", "-q", "-B", "-f", HERE / "pom.xml", *goal], check=True)
    classpath = f"{TARGET}{os.pathsep}{jars}/*"
    subprocess.run(["javac", "-cp", classpath, "-d", TARGET, HERE / "Iterate.java"], check=True)
    return ["java", "-Xmx2g", "-XX:+UseSerialGC", "-cp", classpath, "Iterate"]


def rates(record_sets: list[bytes]) -> list[float]:
    """Records per second for each record set, best run of several."""
    command = prepare()
    with tempfile.TemporaryDirectory() as directory:
        paths = []
        for number, data in enumerate(record_sets):
            paths.append(Path(directory) / str(number))
            paths[-1].write_bytes(data)
        finished = subprocess.run([*command, str(SECONDS_PER_CASE), *paths], check=True, capture_output=True, text=True)
    lines = [line.split() for line in finished.stdout.splitlines() if line]
    return [int(count) / int(nanoseconds) * 1e9 for count, nanoseconds in lines]
