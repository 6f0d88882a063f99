"""Run the command many times in one long-lived process, which is replaced if it dies or hangs, and check its output.

    with Runner(directory) as run:
        outcome = run(["scan", path, "--json"])
        assert not faults(["scan", path, "--json"], outcome)

``python -m tests.command_runner DIRECTORY`` is that process: it reads an argument list in JSON per line of standard
input and writes an answer per line of standard output. The command's own output goes to files in the directory.
"""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import select
import subprocess
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NamedTuple

from tests.limits.sandbox import address_space

ROOT = Path(__file__).parents[1]
SECONDS = 60
"""Longer than any command takes on the small trees of the tests, even on a busy machine."""
MEMORY = 8 << 30
"""Of address space, besides that of an empty process: a sanitizer has reserved terabytes."""
CODES = (0, 1, 2)


class Outcome(NamedTuple):
    """How a command ended; `crash` is a traceback, a signal or the time limit."""

    code: int | None
    out: bytes
    err: bytes
    crash: str | None


class Runner:
    """Runs commands in a separate process."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Runner:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def __call__(self, arguments: Sequence[object]) -> Outcome:
        """Run one command."""
        process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps([str(argument) for argument in arguments]) + "\n")
        process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], SECONDS)
        answer = process.stdout.readline() if ready else ""
        code, crash = json.loads(answer) if answer else (None, self._end(hung=not ready))
        return Outcome(code, self._printed("out"), self._printed("err"), crash)

    def _start(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.command_runner", str(self.directory)]
        environment = os.environ | {"PYTHONUTF8": "1", "COLUMNS": "80"}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment
        )
        return self._process

    def _end(self, *, hung: bool = False) -> str:
        process, self._process = self._process, None
        if process is None:
            return ""
        if hung:
            process.kill()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        process.stdout.close()
        return f"no end within {SECONDS} s" if hung else f"the process ended: {process.wait()}"

    def _printed(self, name: str) -> bytes:
        path = self.directory / name
        return path.read_bytes() if path.exists() else b""


def faults(arguments: Sequence[object], outcome: Outcome) -> list[str]:
    """The faults in a command's exit code and output; none if the program is correct."""
    if outcome.crash is not None:
        last = [*outcome.crash.splitlines()[-7:], *outcome.err.decode(errors="replace").splitlines()[-10:]]
        return ["\n    ".join(last)]
    found = [f"exit code {outcome.code}"] if outcome.code not in CODES else []
    for name, printed in (("standard output", outcome.out), ("standard error", outcome.err)):
        try:
            text = printed.decode()
        except UnicodeDecodeError as error:
            found.append(f"{name} is not UTF-8: {error}")
            continue
        found += [f"{name} has {line[:200]!r}" for line in text.split("\n") if not line.isprintable()][:3]
    return found + _wrong_errors(outcome) + (_wrong_json(outcome) if "--json" in arguments else [])


def _wrong_errors(outcome: Outcome) -> list[str]:
    lines = outcome.err.decode(errors="replace").splitlines()
    if any(line.startswith("Traceback") for line in lines):
        return ["a traceback: " + "\n    ".join(lines[-7:])]
    errors = [line for line in lines if line.startswith(("kafkacodec: error: ", "Error: "))]
    if outcome.code == 0 and errors:
        return [f"exit code 0 with {errors[0]!r}"]
    if outcome.code != 0 and (len(errors) != 1 or errors[0] != lines[-1]):
        return [f"exit code {outcome.code} with {lines[-3:]}"]
    return []


def _wrong_json(outcome: Outcome) -> list[str]:
    for line in outcome.out.decode(errors="replace").splitlines():
        try:
            _STRICT.decode(line)
        except ValueError as error:
            return [f"invalid JSON: {error}: {line[:200]!r}"]
    return []


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


_STRICT = json.JSONDecoder(parse_constant=_refuse)  # `json.loads` would make one for each line


def _serve(directory: Path) -> None:
    requests, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    _redirect(0, Path(os.devnull), os.O_RDONLY)
    limit = MEMORY + address_space()
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    faulthandler.enable()
    from kafkacodec.cli.__main__ import run

    for line in requests:
        for descriptor, name in ((1, "out"), (2, "err")):
            _redirect(descriptor, directory / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        json.dump(_run(run, json.loads(line)), answers)
        answers.write("\n")
        answers.flush()


def _redirect(descriptor: int, path: Path, flags: int) -> None:
    opened = os.open(path, flags, 0o600)
    os.dup2(opened, descriptor)
    os.close(opened)


def _run(run: Any, arguments: list[str]) -> tuple[int | None, str | None]:
    code, crash = None, None
    try:
        code = run(arguments)
    except BaseException:
        crash = traceback.format_exc()
    streams: list[IO[str]] = [sys.stdout, sys.stderr]
    for stream in streams:
        stream.flush()
    return code, crash


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
