"""The matrix on other interpreters: python -m tests.lifetime.pythons PYTHON...

Each gets a separate environment in .cache/lifetimes, with a wheel of this tree, and runs matrix.py there.
"""

from __future__ import annotations

import sys

from tests.interpreters import ROOT, Unprepared, prepare, run


def main() -> int:
    failed = []
    for interpreter in sys.argv[1:]:
        try:
            if run(prepare(interpreter), "-P", "-m", "tests.lifetime.matrix", PYTHONPATH=str(ROOT)):
                failed.append(interpreter)
        except Unprepared as error:
            raise SystemExit(str(error)) from None
    if failed:
        print(f"failed on {', '.join(failed)}", file=sys.stderr)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
