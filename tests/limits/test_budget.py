"""Bombs of every codec and format through every public call, with little address space.

The outcome is LimitExceeded or a bounded result, never MemoryError, and no process is killed.
"""

import json
import os
import subprocess
import sys
from collections import Counter

import pytest

# Allowed outcomes besides a result: rejected data. "exit" is from the command.
REFUSALS = {"LimitExceeded", "Truncated", "DecodeError"}


def outcomes(group: str) -> list[tuple[str, str, str, str]]:
    environment = os.environ | {"MALLOC_ARENA_MAX": "1"}  # an arena for each thread takes 128 MiB of address space
    command = [sys.executable, "-m", "tests.limits.budget", group]
    finished = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600, check=False)
    assert not finished.returncode, finished.stderr
    return [tuple(json.loads(line)) for line in finished.stdout.splitlines()]


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux: address space is bounded by RLIMIT_AS")
@pytest.mark.parametrize(("group", "least"), [("records", 90), ("kafka07", 8), ("messages", 14), ("log", 48)])
def test_no_bomb_takes_more_than_it_is_given(group, least):
    found = outcomes(group)
    wrong = [case for case in found if case[2] != "returned" and case[2] not in REFUSALS]
    assert not wrong
    assert len(found) >= least


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux: address space is bounded by RLIMIT_AS")
def test_without_limits_the_bombs_go_off():
    """Otherwise the test above would prove nothing."""
    kinds = Counter(case[2] for case in outcomes("unbounded"))
    assert set(kinds) == {"MemoryError"}
