"""Signals at moments that programs seldom see."""

from __future__ import annotations

import pytest

from kafkacodec.cli.__main__ import INTERRUPTED
from tests.processes import run_python

WHILE_A_CLASS_IS_MADE = """
import os, signal, sys
from kafkacodec.cli import __main__ as command
from kafkacodec.cli.app import application

class Named:
    def __set_name__(self, owner, name):
        os.kill(os.getpid(), signal.{name})
        for _ in range(100):
            pass

application.get_command = lambda context, name: type("Row", (), {{"field": Named()}})
sys.argv = ["kafkacodec", "scan", "logs"]
command.main()
"""


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [("SIGINT", INTERRUPTED, "interrupted"), ("SIGTERM", 143, "ended by SIGTERM"), ("SIGHUP", 129, "ended by SIGHUP")],
)
def test_a_signal_while_a_module_makes_its_classes_is_one_line(name: str, code: int, words: str) -> None:
    """Python up to 3.11 wraps what a handler raises there: two tracebacks were printed, and the code was 1."""
    done = run_python(WHILE_A_CLASS_IS_MADE.format(name=name))
    assert (done.returncode, done.stderr.strip()) == (code, f"kafkacodec: error: {words}")
