"""Python in a checkout that is not compiled says so, even where another kafkacodec is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import kafkacodec

PACKAGE = Path(kafkacodec.__file__).parent


@pytest.mark.parametrize(
    "statement", ["import kafkacodec as kc", "import kafkacodec.log", "from kafkacodec import decode"]
)
def test_sources_that_are_not_compiled(tmp_path: Path, statement: str) -> None:
    ignored = shutil.ignore_patterns("*.so", "*.dylib", "__pycache__", "schemas")
    shutil.copytree(PACKAGE, tmp_path / "kafkacodec", ignore=ignored)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    finished = subprocess.run(
        [sys.executable, "-c", statement], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert finished.returncode == 1
    assert finished.stderr.splitlines()[-1] == (
        f"ImportError: {tmp_path / 'kafkacodec'} has the sources of kafkacodec, which are not compiled: to use an "
        f"installed kafkacodec, run Python in another directory; to use these sources, run `make build` in {tmp_path}"
    )
