"""Peers that are programs of their own: Kafka's Java classes, franz-go, rust-rdkafka. Each needs its tools on PATH."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import kafkacodec as kc
from benchmarks.compared import Digest
from benchmarks.contest import Measured
from benchmarks.goals import FRANZ, JAVA, RUST
from benchmarks.messages import Body

HERE = Path(__file__).parent
CACHE = HERE.parent / ".cache"
JAVA_CLASSES, GO_PROGRAM = CACHE / "bench-java", CACHE / "bench-go" / "peers"
RUST_TARGET = CACHE / "bench-rust"
RUST_PROGRAM = RUST_TARGET / "release" / "peers"
# Before anything is timed: long enough for the just-in-time compiler to finish.
SECONDS_PER_CASE = 3.0


@dataclass(frozen=True)
class Program:
    """`command` is what runs a work: "records", "copied records", "encode" or "messages"; None if it cannot do it."""

    name: str
    tools: tuple[str, ...]
    build: Callable[[], None]
    command: Callable[[str], list[str] | None]

    @property
    def absent(self) -> str | None:
        """Why it cannot run, if a tool is missing."""
        missing = [tool for tool in self.tools if shutil.which(tool) is None]
        return f"{self.name} was skipped: no {', '.join(missing)} on PATH." if missing else None


def add(
    results: Mapping[str, Measured], record_sets: Mapping[str, bytes], bodies: Sequence[Body] = ()
) -> list[str | None]:
    """Add the rates of all programs to the contests that were run. Returns why some are missing."""
    return [_add(program, results, record_sets, bodies) for program in PROGRAMS]


def _add(
    program: Program, results: Mapping[str, Measured], record_sets: Mapping[str, bytes], bodies: Sequence[Body]
) -> str | None:
    if program.absent:
        return program.absent
    program.build()
    contests = {"records": "", "copied records": "all bytes of ", "encode": "encode, "}
    for work, prefix in contests.items():
        sets = {prefix + name: data for name, data in record_sets.items() if prefix + name in results}
        for name, lines in _run(program, work, sets).items():
            (records, *digest, nanoseconds), data = lines[0], sets[name]
            Digest.of(kc.iter_records(data)).require(Digest(records, *digest), program.name, name)
            amount = len(data) if results[name].unit == "bytes" else records
            results[name].add(program.name, amount / nanoseconds * 1e9)
    files = {f"{body.key}-{body.kind}-{body.version}": body.data for body in bodies}
    found = _run(program, "messages", files)
    for body, lines in zip(bodies if found else (), found.values(), strict=True):
        for direction, (amount, nanoseconds) in zip(("decode", "encode"), lines, strict=True):
            results[f"{direction}, {body}"].add(program.name, amount / nanoseconds * 1e9)
    return None


def _run(program: Program, work: str, files: Mapping[str, bytes]) -> dict[str, list[list[int]]]:
    """The lines that the program prints for each file, as integers; nothing if it cannot do the work."""
    command = program.command(work)
    if not files or command is None:
        return {}
    with tempfile.TemporaryDirectory() as directory:
        paths = [Path(directory) / name for name in files]
        for path, data in zip(paths, files.values(), strict=True):
            path.write_bytes(data)
        finished = subprocess.run([*command, str(SECONDS_PER_CASE), *paths], check=True, stdout=subprocess.PIPE)
    lines = [list(map(int, line.split())) for line in finished.stdout.decode().splitlines() if line]
    each = len(lines) // len(files)
    return {name: lines[i * each : (i + 1) * each] for i, name in enumerate(files)}


def _build_java() -> None:
    """Fetch Kafka's client library and compile the programs."""
    jars = JAVA_CLASSES / "jars"
    if not jars.is_dir():
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={jars}"]
        subprocess.run(["mvn", "-q", "-B", "-f", HERE / "java" / "pom.xml", *goal], check=True)
    sources = (HERE / "java").glob("*.java")
    subprocess.run(["javac", "-cp", f"{jars}/*", "-d", JAVA_CLASSES, *sources], check=True)


def _java(work: str) -> list[str]:
    programs = {
        "records": ["Iterate"],
        "copied records": ["-Dcopy=true", "Iterate"],
        "encode": ["Build"],
        "messages": ["Messages"],
    }
    *options, program = programs[work]
    path = f"{JAVA_CLASSES}{os.pathsep}{JAVA_CLASSES}/jars/*"
    return ["java", "-Xmx2g", "-XX:+UseSerialGC", *options, "-cp", path, program]


def _build_go() -> None:
    """Compile the program of franz-go."""
    subprocess.run(["go", "build", "-o", GO_PROGRAM, "."], cwd=HERE / "go", check=True)


def _go(work: str) -> list[str] | None:
    return [str(GO_PROGRAM), work] if work in ("records", "messages") else None


def _build_rust() -> None:
    """Compile the program of rust-rdkafka, with librdkafka: minutes, the first time."""
    command = ["cargo", "build", "--release", "--locked", "--quiet", "--target-dir", str(RUST_TARGET)]
    subprocess.run(command, cwd=HERE / "rust", check=True)


FRANZ_GO = Program(FRANZ, ("go",), _build_go, _go)
PROGRAMS = (Program(JAVA, ("mvn", "javac", "java"), _build_java, _java), FRANZ_GO)
LIVE = (FRANZ_GO, Program(RUST, ("cargo", "make", "cc"), _build_rust, lambda _: None))
"""Those that produce and consume with a broker; see `live_clients`."""


def versions() -> dict[str, str]:
    """The versions of the programs' libraries."""
    found = {"kafka-clients": (HERE / "java" / "pom.xml", r"kafka-clients</artifactId>\s*<version>([^<]+)")}
    found["franz-go"] = (HERE / "go" / "go.mod", r"twmb/franz-go (v\S+)")
    found["rust-rdkafka"] = (HERE / "rust" / "Cargo.toml", r'rdkafka = .*"=([^"]+)"')
    found["librdkafka of rust-rdkafka"] = (HERE / "rust" / "Cargo.lock", r'"rdkafka-sys"\nversion = ".*\+([^"]+)"')
    return {name: re.findall(pattern, path.read_text())[0] for name, (path, pattern) in found.items()}
