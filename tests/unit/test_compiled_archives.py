"""Compiled modules in zip files are those that Python imports."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

from tests.compiled_archives import add_compiled


def test_python_imports_the_compiled_modules(tmp_path: Path) -> None:
    archive = tmp_path / "lib.zip"
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("package/__init__.py", "")
        made.writestr("package/module.py", "print(__file__)")
        made.writestr("package/data.txt", "text")
    with zipfile.ZipFile(archive) as given:
        add_compiled(given, archive)
    program = "import package.module as found; print(found.__loader__.get_source(found.__name__))"
    environment = {**os.environ, "PYTHONPATH": str(archive)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [str(archive / "package" / "module.pyc"), "print(__file__)"]
    with zipfile.ZipFile(archive) as found:
        assert found.read("package/data.txt") == b"text"
