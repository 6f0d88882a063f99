"""Writes the field tables at the end of the pages in docs/protocol/ from the schema tables.

protocol_docs.py           rewrite the tables
protocol_docs.py --check   exit with 1 if a page is out of date

A page has the name of its API; the text before the marker is written by hand.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from kafkacodec.messages import message_class
from kafkacodec.messages.model import StructSpec, version_text

PAGES = Path(__file__).parent.parent / "docs" / "protocol"
MARKER = "<!-- The rest is written by tools/protocol_docs.py. -->\n"


def table(name: str) -> Iterator[str]:
    """A message's heading and its fields."""
    cls = message_class(name)
    flexible = version_text(cls.flexible_versions, cls.valid_versions)
    yield f"\n## {name}\n\nVersions {version_text(cls.valid_versions)}, flexible {flexible}.\n\n"
    yield "| field | type | versions | nullable | tag | default |\n|---|---|---|---|---|---|\n"
    yield from rows(cls._spec, cls.valid_versions, 0)


def rows(spec: StructSpec, valid: range, depth: int) -> Iterator[str]:
    """A line for each field; those of a struct follow it, indented by dots."""
    for field in spec.fields:
        nullable = version_text(field.nullable, valid) if field.nullable else ""
        tag = str(field.tag) if field.tagged else ""
        name = "· " * depth + field.attribute
        versions = version_text(field.versions, valid)
        yield f"| {name} | {field.type_text} | {versions} | {nullable} | {tag} | {field.default_text} |\n"
        if field.struct:
            yield from rows(field.struct, valid, depth + 1)


def page(path: Path) -> str:
    """The text of a page with regenerated tables."""
    prose, marker, _ = path.read_text().partition(MARKER)
    return prose + marker + "".join([*table(path.stem + "Request"), *table(path.stem + "Response")])


def main(argv: list[str]) -> int:
    """Rewrite, or compare with --check."""
    stale = 0
    for path in sorted(PAGES.glob("*.md")):
        if MARKER not in path.read_text():
            continue
        text = page(path)
        if "--check" not in argv:
            path.write_text(text)
        elif text != path.read_text():
            stale += 1
            print(f"{path.name} is out of date: run tools/protocol_docs.py")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
