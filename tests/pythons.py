"""This tree on the other CPythons of this machine: python -m tests.pythons

Builds a wheel for each, and runs the tests of what differs between versions: how objects of messages and records are
made, filled again and freed, and asyncio under the clients.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.interpreters import ROOT, Unprepared, found, prepare, run

TESTS = (
    "tests/unit/test_message_classes.py",
    "tests/unit/test_message_arrays.py",
    "tests/unit/test_message_numbers.py",
    "tests/unit/test_message_records.py",
    "tests/unit/test_message_limits.py",
    "tests/unit/test_record_iterator.py",
    "tests/unit/test_buffers.py",
    "tests/unit/test_client_connection.py",
    "tests/unit/test_client_consumer.py",
    "tests/unit/test_client_driver.py",
    "tests/unit/test_client_lying_brokers.py",
    "tests/unit/test_client_network.py",
    "tests/unit/test_client_producer_faces.py",
    "tests/conformance/test_messages.py",
    "tests/conformance/test_records.py",
)
# Without pythonpath of pyproject.toml, which would put the tree's own package first.
PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "pythonpath=", "-m", "not java and not spark")


def name_of(kind: tuple[int, int, bool]) -> str:
    return f"CPython {kind[0]}.{kind[1]}{' free-threaded' * kind[2]}"


def main() -> int:
    others = found()
    if not others:
        print(f"only CPython {sys.version_info[0]}.{sys.version_info[1]} is installed: no other version was tested")
    prepared: dict[tuple[int, int, bool], Path] = {}
    for kind, interpreter in others.items():
        try:
            prepared[kind] = prepare(interpreter)
        except Unprepared as error:
            print(f"{name_of(kind)} was left out: {error}")
    failed = []
    for kind, python in prepared.items():
        print(f"{name_of(kind)}: {others[kind]}", flush=True)
        if run(python, "-P", *PYTEST, *TESTS, PYTHONPATH=str(ROOT)):
            failed.append(name_of(kind))
    if failed:
        print(f"failed on {', '.join(failed)}", file=sys.stderr)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
