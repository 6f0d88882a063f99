"""Checks that no file of the package has more than 500 lines, and no folder more than 25 modules.

    python tools/check_sizes.py

A module is a Python file, or an extension with its stub and declarations. Generated files do not count.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = "kafkacodec"
LINES, MODULES = 500, 25
GENERATED = ("kafkacodec/messages/types.pyi",)
STILL_LARGE = (
    "kafkacodec/messages/_decode.pyx",
    "kafkacodec/messages/_encode.pyx",
    "kafkacodec/records/_compression.pyx",
    "kafkacodec/records/_decoder.pyx",
)
"""Files and folders beyond the limits; each is removed from here when it is within them."""


def main(root: Path = ROOT, still_large: tuple[str, ...] = STILL_LARGE) -> int:
    """Prints what is too large; 1 if that is not in `still_large`, or if what is in there no longer is too large."""
    found = dict(too_large(root))
    for name, size in found.items():
        if name not in still_large:
            print(f"{name} has {size}: split it by subject")
    small = [name for name in still_large if name not in found]
    for name in small:
        print(f"{name} is within the limits: remove it from STILL_LARGE in tools/check_sizes.py")
    left = [name for name in found if name in still_large]
    print(f"files of at most {LINES} lines, folders of at most {MODULES} modules, but for {', '.join(left) or 'none'}")
    return 1 if small or len(left) < len(found) else 0


def too_large(root: Path) -> Iterator[tuple[str, str]]:
    """Each file and folder that is too large, with its size."""
    modules: dict[str, set[str]] = {}
    for path in sorted((root / PACKAGE).rglob("*.p*")):
        name = path.relative_to(root).as_posix()
        if path.suffix not in (".py", ".pyi", ".pyx", ".pxd") or name in GENERATED:
            continue
        modules.setdefault(name.rpartition("/")[0], set()).add(path.stem)
        lines = path.read_text("utf-8").count("\n")
        if lines > LINES:
            yield name, f"{lines} lines, more than {LINES}"
    for folder, stems in sorted(modules.items()):
        count = len(stems - {"__init__"})
        if count > MODULES:
            yield folder, f"{count} modules, more than {MODULES}"


if __name__ == "__main__":
    sys.exit(main())
