"""The checker of Markdown pages: dead links, anchors, long lines, and how it breaks lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import check_docs

LONG = "word " * 30


def faults(directory: Path, text: str) -> list[str]:
    (directory / "other.md").write_text("# One thing\n\n## One thing\n\n## `code` & [link](x.md), more_so\n")
    page = directory / "page.md"
    page.write_text(text)
    check_docs.anchors.cache_clear()
    return [fault.partition("page.md:")[2] for fault in check_docs.faults(page)]


@pytest.mark.parametrize(
    "text",
    [
        "[a](other.md) and [b](other.md#one-thing), [c](other.md#one-thing-1), [d](other.md#code--link-more_so)",
        "# Here\n\n[a](#here), [b](https://example.org/nothing#there), ![c](other.md)",
        "`[a](missing.md)`\n\n```\n[a](missing.md)\n```\n",
        "| " + LONG + "|",
        "[" + LONG + "](other.md)",
        "- " + "x" * 130,
        ">>> print()\n" + LONG,
    ],
)
def test_sound_pages(tmp_path: Path, text: str) -> None:
    assert faults(tmp_path, text) == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("text\n[a](missing.md)", "2: no such file: missing.md"),
        ("[a][b]\n\n[b]: missing.md", "3: no such file: missing.md"),
        ("[a](other.md#two-things)", "1: no such heading: other.md#two-things"),
        ("[a](#here)", "1: no such heading: #here"),
        ("[a [b] c](missing.md)", "1: no such file: missing.md"),
        (LONG, "1: 150 characters, more than 120"),
        (">>> print()\nword\n\n" + LONG, "4: 150 characters, more than 120"),
        (">>> " + LONG, "1: 154 characters, more than 120"),
        ("```\n" + LONG.strip() + "\n```", "2: 149 characters, more than 120"),
    ],
)
def test_faults(tmp_path: Path, text: str, fault: str) -> None:
    assert faults(tmp_path, text) == [fault]


def test_only_paragraphs_with_long_lines_are_broken_anew() -> None:
    kept = "short\nlines\n\n| " + LONG + "|\n\n```\n" + LONG + "\n```\n\n- item\n  of two lines\n"
    assert check_docs.rewrapped(kept) == kept
    page = f"short\nlines\n\n- {LONG}`{'code ' * 10}`\n  and more\n- next\n"
    made = check_docs.rewrapped(page)
    assert max(map(len, made.splitlines())) <= check_docs.WIDTH
    assert made.split() == page.split()
    assert made.startswith("short\nlines\n\n- word")
    assert made.endswith("\n- next\n")
    assert all(line.startswith("  ") for line in made.splitlines()[4:-1])
    assert check_docs.rewrapped(made) == made


@pytest.mark.parametrize("word", ["-", "+", "1.", "#"])
def test_no_line_of_a_paragraph_becomes_an_item(word: str) -> None:
    made = check_docs.rewrapped(f"{'x' * 119} {word} y\n")
    assert not any(line.startswith(word) for line in made.splitlines())
