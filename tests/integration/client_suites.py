"""The suite of tests that franz-go ships, against this broker and against franz-go's own stand-in, kfake.

    python -m tests.integration.client_suites [--records N] [--only kafkacodec|kfake] [--run PATTERN]

Prints how many tests pass, fail and are skipped against each, which ones these are, and what they say. The exit code is
1 if fewer pass against this broker than against kfake, or one fails here that passes there.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple

import kafkacodec as kc
from tests.integration.other_clients import CACHE, HERE

ROOT = HERE.parent.parent
_USER, _PASSWORD = "suite", "secret"
_SAID = 12
"""Lines of a test that fails or is skipped."""


class Results(NamedTuple):
    """The names of tests by how they end, and what they say."""

    passed: set[str]
    failed: dict[str, str]
    skipped: dict[str, str]


@contextmanager
def _ours() -> Iterator[dict[str, str]]:
    users = {_USER: _PASSWORD}
    listen = ("kafka://127.0.0.1:0", "kafka+sasl://127.0.0.1:0")
    with kc.broker.serve(brokers=3, listen=listen, users=users, tokens="unsecured") as broker:
        addresses = [url.partition("://")[2] for url in broker.listeners]
        secure = ",".join(a for a, url in zip(addresses, broker.listeners, strict=True) if "sasl" in url)
        yield {
            "KGO_SEEDS": ",".join(a for a, url in zip(addresses, broker.listeners, strict=True) if "sasl" not in url),
            "KGO_TEST_SCRAM": f"{_USER}:{_PASSWORD}",
            "KGO_TEST_SCRAM_SEEDS": secure,
            "KGO_TEST_OAUTH_SEEDS": secure,
        }


@contextmanager
def _kfake() -> Iterator[dict[str, str]]:
    program = CACHE / "kfake"
    subprocess.run(["go", "build", "-o", program, "."], cwd=ROOT / "benchmarks" / "kfake", check=True)
    with subprocess.Popen([program, "3"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield {"KGO_SEEDS": process.stdout.readline().strip()}
        process.communicate()


BROKERS: dict[str, Callable[[], AbstractContextManager[dict[str, str]]]] = {"kafkacodec": _ours, "kfake": _kfake}


def compiled(directory: Path, name: str, package: str, *options: str) -> tuple[list[str], Path]:
    """The tests in a package of a Go module, of the release that our tests use, and the directory that they run in."""
    module = HERE / "go"
    found = subprocess.run(["go", "mod", "download", "-json", name], cwd=module, check=True, capture_output=True)
    described = json.loads(found.stdout)
    print(f"{name} {described['Version']}", flush=True)
    source, program = directory / "source", directory / "suite.test"
    shutil.copytree(described["Dir"], source)
    for path in (source, *source.rglob("*")):
        path.chmod(path.stat().st_mode | 0o200)
    subprocess.run(["go", "test", "-c", *options, "-o", program, f"./{package}"], cwd=source, check=True)
    return ["go", "tool", "test2json", str(program), "-test.v=test2json"], source / package


def run(command: list[str], directory: Path, environment: dict[str, str]) -> Results:
    """Run the tests; each subtest counts as a test."""
    results, said = Results(set(), {}, {}), dict[str, list[str]]()
    with subprocess.Popen(
        command,
        cwd=directory,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            event = json.loads(line)
            name, action = event.get("Test"), event["Action"]
            if name is None:
                continue
            if action == "output" and not event["Output"].lstrip().startswith(("===", "---")):
                said.setdefault(name, []).append(event["Output"].rstrip())
            elif action == "pass":
                results.passed.add(name)
            elif action in ("fail", "skip"):
                ending = results.failed if action == "fail" else results.skipped
                ending[name] = "\n".join(f"    {text.strip()}" for text in said.get(name, ())[-_SAID:])
    return results


def show(name: str, results: Results, known: Mapping[str, str] = {}) -> None:
    """Print what the results are, and why a test fails if that is known."""
    passed, failed, skipped = map(len, results)
    print(f"{name}: {passed} passed, {failed} failed, {skipped} skipped")
    for word, ended in (("failed", results.failed), ("skipped", results.skipped)):
        for test, text in ended.items():
            print(f"  {word} {test}: {known[test]}" if test in known else f"  {word} {test}\n{text}".rstrip())
    sys.stdout.flush()


def main() -> int:
    """Run the suite against each broker that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", default=20_000, type=int, help="of the longest tests; franz-go's default: 500,000")
    parser.add_argument("--only", choices=BROKERS, help="one broker")
    parser.add_argument("--run", default=".", help="a pattern of names of tests")
    parser.add_argument("--minutes", default=15, type=int, help="for one broker")
    arguments = parser.parse_args()
    found = dict[str, Results]()
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        command, place = compiled(Path(directory), "github.com/twmb/franz-go", "pkg/kgo")
        command += [f"-test.timeout={arguments.minutes}m", f"-test.run={arguments.run}"]
        for name in [arguments.only] if arguments.only else BROKERS:
            with BROKERS[name]() as seeds:
                environment = seeds | {"KGO_TEST_RECORDS": str(arguments.records), "KGO_LOG_LEVEL": "none"}
                found[name] = run(command, place, environment)
            show(name, found[name])
    if arguments.only:
        return int(bool(found[arguments.only].failed))
    ours, theirs = found["kafkacodec"], found["kfake"]
    return int(len(ours.passed) < len(theirs.passed) or bool(ours.failed.keys() & theirs.passed))


if __name__ == "__main__":
    sys.exit(main())
