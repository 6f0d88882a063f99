"""Checks every Markdown page: relative links and their anchors lead somewhere, and lines keep within 120 characters.

    python tools/check_docs.py [--rewrap PAGE ...]

Nothing is fetched: links to other sites are left alone. Rows of tables, headings, what an example prints, and lines
that are one long word or link may be longer. `--rewrap` breaks paragraphs and list items with longer
lines anew.
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).parent.parent
WIDTH = 120
# What `make` makes, and what it downloads.
NOT_OURS = {"build", "out"}
# Pages that have longer lines yet.
LONGER = {"CHANGELOG.md", "README.md", "docs/reliability.md"}

FENCE = re.compile(r" *(```|~~~)")
CODE = re.compile(r"(`+).+?\1")
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?([^()\s>]+(?:\([^()\s]*\))?)>?(?:\s+\"[^\"]*\")?\s*\)")
DEFINITION = re.compile(r" {0,3}\[[^\]]+\]:\s*<?(\S+?)>?(?:\s|$)")
ITEM = re.compile(r"( *)([-*+]|\d+[.)]) +")
KEPT = re.compile(r" *(\||#|>|<|\[[^\]]+\]:)|( {4}|\t)")


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rewrap", nargs="+", type=Path, metavar="PAGE", help="pages whose long lines are broken")
    arguments = parser.parse_args()
    if arguments.rewrap:
        for page in arguments.rewrap:
            page.write_text(rewrapped(page.read_text()))
        return
    found = [fault for page in pages(ROOT) for fault in faults(page)]
    print("\n".join(found) if found else f"{len(list(pages(ROOT)))} Markdown pages checked")
    sys.exit(bool(found))


def pages(root: Path) -> Iterator[Path]:
    """The Markdown pages of the project, outside of hidden directories and those of `make`."""
    for path in sorted(root.rglob("*.md")):
        parents = path.relative_to(root).parts[:-1]
        if not any(part.startswith(".") or part in NOT_OURS for part in parents):
            yield path


def faults(page: Path) -> Iterator[str]:
    """What is wrong with a page, a line each, as PATH:LINE: REASON."""
    name = page.relative_to(ROOT).as_posix() if page.is_relative_to(ROOT) else str(page)
    in_session = False
    for number, line, is_code in lines(page.read_text()):
        prompt = line.strip().startswith((">>> ", "... "))
        in_session = prompt or (in_session and bool(line.strip()))
        if len(line) > WIDTH and can_break(line) and (prompt or not in_session) and name not in LONGER:
            yield f"{name}:{number}: {len(line)} characters, more than {WIDTH}"
        if not is_code:
            text = CODE.sub("``", line)
            for target in [*LINK.findall(text), *DEFINITION.findall(text)]:
                reason = dead(page, target)
                if reason:
                    yield f"{name}:{number}: {reason}"


def lines(text: str) -> Iterator[tuple[int, str, bool]]:
    """Numbered lines, and whether each lies in a fenced block of code."""
    fence = ""
    for number, line in enumerate(text.splitlines(), 1):
        found = FENCE.match(line)
        if found and fence in ("", found[1]):
            fence = "" if fence else found[1]
            yield number, line, True
        else:
            yield number, line, bool(fence)


def can_break(line: str) -> bool:
    """Whether a long line could be shorter: it is no row of a table, no heading and not just one word."""
    text = ITEM.sub("", line, count=1).strip()
    return not text.startswith(("|", "#")) and " " in LINK.sub("link", text)


def dead(page: Path, target: str) -> str | None:
    """Why a link leads nowhere."""
    if re.match(r"[a-z][a-z0-9+.-]*:", target):
        return None
    place, _, anchor = target.partition("#")
    path = page.parent / unquote(place) if place else page
    if not path.exists():
        return f"no such file: {target}"
    if anchor and path.suffix == ".md" and unquote(anchor) not in anchors(path):
        return f"no such heading: {target}"
    return None


@cache
def anchors(page: Path) -> frozenset[str]:
    """Anchors of the headings, as GitHub makes them, and those that the page sets itself."""
    found: dict[str, int] = {}
    names = set()
    for _, line, is_code in lines(page.read_text()):
        if is_code:
            continue
        names |= set(re.findall(r"<a (?:name|id)=\"([^\"]+)\"", line))
        heading = re.match(r" {0,3}#{1,6}\s+(.*?)\s*#*$", line)
        if heading:
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1])
            slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            count = found.get(slug, 0)
            found[slug] = count + 1
            names.add(f"{slug}-{count}" if count else slug)
    return frozenset(names)


def rewrapped(text: str) -> str:
    """The page with the paragraphs and list items broken anew that hold longer lines; nothing else changes."""
    out: list[str] = []
    block: list[str] = []

    def flush() -> None:
        if any(len(line) > WIDTH for line in block):
            item = ITEM.match(block[0])
            indent = " " * (len(item[0]) if item else len(block[0]) - len(block[0].lstrip()))
            words = " ".join(line.strip() for line in block)
            start = block[0][: len(item[0])] if item else indent
            words = words[len(item[0].strip()) :].strip() if item else words
            block[:] = _filled(words, start, indent)
        out.extend(block)
        block.clear()

    for _, line, is_code in lines(text):
        item = ITEM.match(line)
        inside = block and ITEM.match(block[0]) and line.startswith(" ")
        if is_code or not line.strip() or (KEPT.match(line) and not inside and not (item and len(item[1]) < 4)):
            flush()
            out.append(line)
        else:
            if item:
                flush()
            block.append(line)
    flush()
    return "\n".join(out) + "\n"


def _filled(words: str, start: str, indent: str) -> list[str]:
    """Lines that break at spaces, but not inside of code or the text of a link that would be torn from its target."""
    held = CODE.sub(lambda found: found[0].replace(" ", "\0"), words)
    held = re.sub(r" (?=([-+*#>]|\d+[.)])( |$))", "\0", held)  # what would begin an item at the start of a line
    filled = textwrap.wrap(
        held, WIDTH, initial_indent=start, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return [line.replace("\0", " ") for line in filled]


if __name__ == "__main__":
    main()
