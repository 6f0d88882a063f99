"""Python code in a process of its own, which may crash."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def run_python(code: str, *arguments: object, seconds: int = 60) -> subprocess.CompletedProcess[str]:
    """The end of the process, with its output. Raises subprocess.TimeoutExpired after so many seconds."""
    command = [sys.executable, "-X", "faulthandler", "-c", code, *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=seconds)
