"""Kafka's own classes, where Maven and a JDK are there."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from benchmarks.contest import Rates
from benchmarks.goals import JAVA

HERE = Path(__file__).parent / "java"
TARGET = Path(__file__).parent.parent / ".cache" / "bench-java"
# Long enough for the just-in-time compiler to finish.
SECONDS_PER_CASE = 3.0


def add(results: dict[str, Rates], record_sets: dict[str, bytes]) -> str | None:
    """Adds Java's rates of reading and writing to the contests; says why not where Java is missing."""
    absent = [tool for tool in ("mvn", "javac", "java") if shutil.which(tool) is None]
    if absent:
        return f"Kafka's Java classes were left out: no {', '.join(absent)} on PATH."
    prepare()
    for name, rate in rates("Iterate", record_sets).items():
        results[name][JAVA] = rate
    written = {name: data for name, data in record_sets.items() if f"encode, {name}" in results}
    for name, rate in rates("Build", written).items():
        results[f"encode, {name}"][JAVA] = rate
    return None


def prepare() -> None:
    """Fetch Kafka's client library and compile the programs."""
    jars = TARGET / "jars"
    if not jars.is_dir():
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={jars}"]
        subprocess.run(["mvn", "-q", "-B", "-f", HERE / "pom.xml", *goal], check=True)
    subprocess.run(["javac", "-cp", _classpath(), "-d", TARGET, *HERE.glob("*.java")], check=True)


def rates(program: str, record_sets: dict[str, bytes]) -> Rates:
    """Records per second for each record set, best run of several."""
    if not record_sets:
        return {}
    command = ["java", "-Xmx2g", "-XX:+UseSerialGC", "-cp", _classpath(), program, str(SECONDS_PER_CASE)]
    with tempfile.TemporaryDirectory() as directory:
        paths = [Path(directory) / str(number) for number in range(len(record_sets))]
        for path, data in zip(paths, record_sets.values(), strict=True):
            path.write_bytes(data)
        finished = subprocess.run([*command, *paths], check=True, capture_output=True, text=True)
    lines = [line.split() for line in finished.stdout.splitlines() if line]
    return {
        name: int(count) / int(nanoseconds) * 1e9 for name, (count, nanoseconds) in zip(record_sets, lines, strict=True)
    }


def _classpath() -> str:
    return f"{TARGET}{os.pathsep}{TARGET}/jars/*"
