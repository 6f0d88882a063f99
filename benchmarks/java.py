"""Kafka's own classes, if Maven and a JDK are installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.contest import Rates
from benchmarks.goals import JAVA
from benchmarks.messages import Body

HERE = Path(__file__).parent / "java"
TARGET = Path(__file__).parent.parent / ".cache" / "bench-java"
# Long enough for the just-in-time compiler to finish.
SECONDS_PER_CASE = 3.0


def add(results: dict[str, Rates], record_sets: dict[str, bytes], bodies: Sequence[Body] = ()) -> str | None:
    """Add Java's rates to the contests that were run. Returns the reason if Java is missing."""
    absent = [tool for tool in ("mvn", "javac", "java") if shutil.which(tool) is None]
    if absent:
        return f"Kafka's Java classes were skipped: no {', '.join(absent)} on PATH."
    prepare()
    for name, rate in zip(record_sets, rates("Iterate", record_sets), strict=True):
        results[name][JAVA] = rate
    handed_on = {name: data for name, data in record_sets.items() if f"all bytes of {name}" in results}
    for name, rate in zip(handed_on, rates("Iterate", handed_on, "-Dcopy=true"), strict=True):
        results[f"all bytes of {name}"][JAVA] = rate
    written = {name: data for name, data in record_sets.items() if f"encode, {name}" in results}
    for name, rate in zip(written, rates("Build", written), strict=True):
        results[f"encode, {name}"][JAVA] = rate
    files = {f"{body.key}-{body.kind}-{body.version}": body.data for body in bodies}
    contests = [f"{work}, {body}" for body in bodies for work in ("decode", "encode")]
    for name, rate in zip(contests, rates("Messages", files), strict=True):
        results[name][JAVA] = rate
    return None


def prepare() -> None:
    """Fetch Kafka's client library and compile the programs."""
    jars = TARGET / "jars"
    if not jars.is_dir():
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={jars}"]
        subprocess.run(["mvn", "-q", "-B", "-f", HERE / "pom.xml", *goal], check=True)
    subprocess.run(["javac", "-cp", _classpath(), "-d", TARGET, *HERE.glob("*.java")], check=True)


def rates(program: str, files: dict[str, bytes], *options: str) -> list[float]:
    """A program's records or bytes per second for each of its files, in their order: the best of several runs."""
    if not files:
        return []
    command = ["java", "-Xmx2g", "-XX:+UseSerialGC", *options, "-cp", _classpath(), program, str(SECONDS_PER_CASE)]
    with tempfile.TemporaryDirectory() as directory:
        paths = [Path(directory) / name for name in files]
        for path, data in zip(paths, files.values(), strict=True):
            path.write_bytes(data)
        finished = subprocess.run([*command, *paths], check=True, capture_output=True, text=True)
    lines = [line.split() for line in finished.stdout.splitlines() if line]
    return [int(amount) / int(nanoseconds) * 1e9 for amount, nanoseconds in lines]


def _classpath() -> str:
    return f"{TARGET}{os.pathsep}{TARGET}/jars/*"
