"""The processes that tests start use the build that the tests use, so that `make asan` covers them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from kafkacodec._core import _memory

PROGRAM = "from kafkacodec._core import _memory; print(_memory.__file__)"


def test_processes_use_the_build_of_the_tests() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True
    )
    assert Path(done.stdout.strip()).resolve() == Path(_memory.__file__).resolve()
