"""The matrix on other interpreters: python -m tests.lifetime.pythons PYTHON...

Each gets a separate environment in .cache/lifetimes, with a wheel of this tree, and runs matrix.py there.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TREE = Path(__file__).parents[2]
ROOT = TREE / ".cache" / "lifetimes"
BUILD = ("setuptools>=77", "cython>=3.1")
NEEDED = ("pyarrow", "typing_extensions")
WANTED = ("polars",)  # omitted if there is no wheel


def run(*command: str | Path, **env: str) -> int:
    return subprocess.run(command, cwd=ROOT, env={**os.environ, **env}, check=False).returncode


def prepare(interpreter: str) -> Path:
    """The interpreter of an environment with a wheel of this tree."""
    version = subprocess.check_output(
        [interpreter, "-c", "import sys; print(sys.implementation.cache_tag, sys.version.split()[0], sep='-')"],
        text=True,
    ).strip()
    home = ROOT / version
    python = home / "bin" / "python"
    pip = (python, "-m", "pip", "install", "--quiet")
    if not python.exists():
        subprocess.run([interpreter, "-m", "venv", home], check=True)
        if run(*pip, *BUILD, *NEEDED):
            raise SystemExit(f"{interpreter}: what is needed cannot be installed")
        run(*pip, *WANTED)
    # Built in a separate directory, since the objects in the tree belong to another version.
    config = home / "build.cfg"
    config.write_text(f"[build]\nbuild_base = {home / 'build'}\n[egg_info]\negg_base = {home}\n")
    if run(*pip, "--no-build-isolation", "--force-reinstall", "--no-deps", TREE, DIST_EXTRA_CONFIG=str(config)):
        raise SystemExit(f"{interpreter}: the wheel cannot be built")
    run(*pip, TREE, "--no-build-isolation", DIST_EXTRA_CONFIG=str(config))
    return python


def main() -> int:
    ROOT.mkdir(parents=True, exist_ok=True)
    tests = ROOT / "tests"  # without the package in this tree, which must not be tested
    if not tests.is_symlink():
        tests.symlink_to(TREE / "tests")
    failed = [
        name for name in sys.argv[1:] if run(prepare(name), "-P", "-m", "tests.lifetime.matrix", PYTHONPATH=str(ROOT))
    ]
    if failed:
        print(f"failed on {', '.join(failed)}", file=sys.stderr)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
