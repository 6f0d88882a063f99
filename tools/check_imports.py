"""Checks that no modules import one another in a circle, at run time or for types.

    python tools/check_imports.py

A module is a Python file, or an extension with its stub and declarations. Imports inside functions and those for type
checkers count; importing a module does not count as importing the packages around it. (import-linter checks the
direction of dependencies between packages; it sees neither imports of types nor those of Cython.)
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = "kafkacodec"

CYTHON_IMPORT = re.compile(r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+)?c?import[ \t]+(\([^)]*\)|[^\n#]+)", re.MULTILINE)


def main(root: Path = ROOT) -> int:
    """Prints the circles; 1 if there is one."""
    graph = imports(root)
    found = circles(graph)
    for circle in found:
        print(f"these modules import one another in a circle: {', '.join(circle)}")
        for name in circle:
            print(f"  {name} imports {', '.join(sorted(graph[name] & set(circle)))}")
    print(f"{len(graph)} modules checked")
    return 1 if found else 0


def imports(root: Path) -> dict[str, set[str]]:
    """The modules that each module imports."""
    files: dict[str, list[Path]] = {}
    for path in sorted((root / PACKAGE).rglob("*.p*")):
        if path.suffix in (".py", ".pyi", ".pyx", ".pxd"):
            parts = path.relative_to(root).with_suffix("").parts
            files.setdefault(".".join(parts[:-1] if parts[-1] == "__init__" else parts), []).append(path)
    graph: dict[str, set[str]] = {}
    for module, paths in files.items():
        names = {name for path in paths for name in imported(path.read_text("utf-8"), path.suffix)}
        graph[module] = {name for name in (_module_of(name, files) for name in names) if name} - {module}
    return graph


def imported(text: str, suffix: str) -> Iterator[str]:
    """The names that a file imports, each with its module. Imports are absolute: ruff checks that."""
    if suffix in (".py", ".pyi"):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom):
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
            elif isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
        return
    for source, names in CYTHON_IMPORT.findall(text):
        for name in names.strip("()").replace("\n", " ").split(","):
            if name.strip():
                yield f"{source}.{name.split()[0]}" if source else name.split()[0]


def _module_of(name: str, modules: dict[str, list[Path]]) -> str | None:
    """The module that an imported name is, or is in."""
    while name not in modules:
        name, dot, _ = name.rpartition(".")
        if not dot:
            return None
    return name


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The largest sets of modules that all reach one another (Tarjan's strongly connected components), sorted."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_ones: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        number[module] = lowest[module] = len(number)
        open_ones.append(module)
        for other in graph[module]:
            if other not in number:
                visit(other)
            if other in open_ones:
                lowest[module] = min(lowest[module], lowest[other])
        if lowest[module] == number[module]:
            start = open_ones.index(module)
            circle = sorted(open_ones[start:])
            del open_ones[start:]
            if len(circle) > 1:
                found.append(circle)

    sys.setrecursionlimit(max(sys.getrecursionlimit(), 4 * len(graph) + 1000))
    for module in sorted(graph):
        if module not in number:
            visit(module)
    return sorted(found)


if __name__ == "__main__":
    sys.exit(main())
