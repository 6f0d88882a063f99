"""Checks that the package names API keys and error codes, and does not write them as numbers.

    python tools/check_numbers.py

It finds numbers that are compared with, assigned to or passed as something whose name is that of an API key or an error
code; those that are looked up by a function of keys or codes; and constants of a module whose name is made of words of
the table's name for that number, such as ``_DESCRIBE = 32``. The names are `kafkacodec.messages.keys.FETCH` and
`kafkacodec.errors.NOT_COORDINATOR`. Zero, which is no error, and -1 are not found: they mean too many other things.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = "kafkacodec"
OTHER_NUMBERS = ("kafkacodec/dialects", "kafkacodec/values", "kafkacodec/spark/exporting")
"""Where a code is one of another protocol: relatives of Kafka's, and HTTP."""
NAMED = ("api_key", "error_code", "api_keys", "error_codes")
CODES = ("code", "codes")
"""Attributes of errors; a name without an object may be any code."""
LOOKUPS = ("error", "by_key", "APIS", "CODES", "Send")


def main(root: Path = ROOT) -> int:
    """Prints the numbers that have a name; 1 if there is one."""
    names = table_names(ROOT)
    faults = 0
    files = sorted((root / PACKAGE).rglob("*.py"))
    for path in files:
        place = path.relative_to(root).as_posix()
        if not place.startswith(OTHER_NUMBERS):
            for line, number in numbers(ast.parse(path.read_text("utf-8")), names):
                called = " or ".join(sorted(names.get(number, set()))) or "no known one"
                print(f"{place}:{line}: {number} is a key or code: {called}")
                faults += 1
    print(f"{len(files)} files checked for API keys and error codes that are numbers")
    return 1 if faults else 0


def table_names(root: Path) -> dict[int, set[str]]:
    """The names of each number in the tables of keys and codes."""
    found: dict[int, set[str]] = {}
    for table, module in (("messages/keys.pyi", "keys"), ("error_codes.pyi", "errors")):
        for node in ast.parse((root / PACKAGE / table).read_text("ascii")).body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
                found.setdefault(ast.literal_eval(node.value), set()).add(f"{module}.{node.target.id}")
    return found


def numbers(tree: ast.Module, names: dict[int, set[str]]) -> Iterator[tuple[int, int]]:
    """The line and the value of each number that stands for a key or code."""
    for node in ast.walk(tree):
        for value in [value for pair in _uses(node) for value in pair]:
            yield from _literals(value)
    for statement in tree.body:
        for name, value in _constants(statement):
            words = set(name.strip("_").split("_"))
            for line, number in _literals(value, within=False):
                if any(_tells(words, full) for full in names.get(number, ())):
                    yield line, number


def _tells(words: set[str], full: str) -> bool:
    """Whether words are of the name of a key, or are two of an error's name or its first: many have SIZE or ID."""
    table, _, name = full.partition(".")
    all_words = name.split("_")
    return words <= set(all_words) and (table == "keys" or len(words) > 1 or all_words[0] in words)


def _uses(node: ast.AST) -> Iterator[list[ast.expr]]:
    """The expressions that are keys or codes because of what is beside them."""
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        if any(_is_named(side) for side in sides):
            yield sides
    elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if any(_is_named(target) for target in targets):
            yield [node.value]
    elif isinstance(node, ast.keyword) and node.arg in NAMED:
        yield [node.value]
    elif isinstance(node, ast.Call) and _name(node.func) in LOOKUPS:
        yield node.args[:1]
    elif isinstance(node, ast.Subscript) and _name(node.value) in LOOKUPS:
        yield [node.slice]


def _is_named(node: ast.expr) -> bool:
    return _name(node).lstrip("_") in NAMED or (isinstance(node, ast.Attribute) and node.attr in CODES)


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _literals(node: ast.expr, within: bool = True) -> Iterator[tuple[int, int]]:
    """The numbers from 1 that an expression is, or that the collection that it is has."""
    if isinstance(node, ast.Constant) and type(node.value) is int and node.value > 0:
        yield node.lineno, node.value
    elif within and isinstance(node, ast.Tuple | ast.List | ast.Set):
        for element in node.elts:
            yield from _literals(element)
    elif within and isinstance(node, ast.Call) and _name(node.func) in ("frozenset", "set", "tuple"):
        for argument in node.args:
            yield from _literals(argument)


def _constants(node: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """The constants that a statement of a module defines."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = zip(target.elts, node.value.elts, strict=False)
            else:
                pairs = zip([target], [node.value], strict=True)
            yield from ((part.id, value) for part, value in pairs if isinstance(part, ast.Name) and part.id.isupper())
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
        yield from [(node.target.id, node.value)] if node.target.id.isupper() else []


if __name__ == "__main__":
    sys.exit(main())
