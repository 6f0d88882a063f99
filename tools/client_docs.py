"""Writes the tables of options in docs/client/configuration.md from the settings of the clients.

client_docs.py           rewrite the tables
client_docs.py --check   exit with 1 if the page is out of date

The text before the marker is written by hand.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

from kafkacodec.client.consuming.settings import ConsumerSettings
from kafkacodec.client.options import _ALIASES, ClientSettings
from kafkacodec.client.producing.settings import ProducerSettings
from kafkacodec.client.sharing.settings import ShareConsumerSettings

PAGE = Path(__file__).parent.parent / "docs" / "client" / "configuration.md"
MARKER = "<!-- The rest is written by tools/client_docs.py. -->\n"
PARTS: list[tuple[str, type[ClientSettings]]] = [
    ("All clients", ClientSettings),
    ("Producer", ProducerSettings),
    ("Consumer", ConsumerSettings),
    ("Share consumer", ShareConsumerSettings),
]


def tables() -> Iterator[str]:
    """A heading and a table for each class of settings, without the options of those before."""
    seen: set[str] = set()
    for title, settings in PARTS:
        meanings = described(settings)
        own = [option for option in fields(settings) if option.name not in seen]
        seen.update(option.name for option in own)
        yield f"\n## {title}\n\n| option | default | other names | meaning |\n|---|---|---|---|\n"
        for option in own:
            yield row(option, meanings[option.name])


def row(option: Field[Any], meaning: str) -> str:
    """A line of a table."""
    dotted = [option.name.replace("_", "."), *(alias for alias, name in _ALIASES.items() if name == option.name)]
    others = ", ".join(f"`{name}`" for name in dict.fromkeys(dotted) if name != option.name)
    return f"| `{option.name}` | {default(option)} | {others} | {meaning} |\n"


def default(option: Field[Any]) -> str:
    """The default as code; numbers as people read them."""
    if option.default is MISSING:
        return "required"
    value = option.default
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return f"{value:,}" if is_number else f"`{value!r}`"


def described(settings: type) -> dict[str, str]:
    """The meaning of each option, from the section ``Args`` of the class's docstring."""
    lines = inspect.cleandoc(settings.__doc__ or "").partition("\nArgs:\n")[2].splitlines()
    found: dict[str, str] = {}
    names: list[str] = []
    for line in lines:
        entry = re.fullmatch(r" {4}([a-z][\w, ]*): (.*)", line)
        if entry:
            names = entry[1].split(", ")
            found |= dict.fromkeys(names, entry[2])
        elif line.startswith(" " * 8) and names:
            found |= {name: f"{found[name]} {line.strip()}" for name in names}
        else:
            names = []
    return {name: text.replace("``", "`").replace("|", "\\|") for name, text in found.items()}


def main(argv: list[str]) -> int:
    """Rewrite, or compare with --check."""
    prose, marker, _ = PAGE.read_text().partition(MARKER)
    text = prose + marker + "".join(tables())
    if "--check" not in argv:
        PAGE.write_text(text)
    elif text != PAGE.read_text():
        print(f"{PAGE.name} is out of date: run tools/client_docs.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
