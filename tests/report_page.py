"""Reading the report's page in tests: its tables and numbers, and what it refers to."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from html.parser import HTMLParser


@dataclass
class Table:
    titles: list[str] = field(default_factory=list)
    rows: list[list[tuple[str, int | None]]] = field(default_factory=list)

    def column(self, title: str) -> dict[str, int | str | None]:
        """A column by the text of each row's first cell: values where cells have them, else texts."""
        place = self.titles.index(title)
        return {row[0][0]: row[place][0] if row[place][1] is None else row[place][1] for row in self.rows}


class Page(HTMLParser):
    """What a browser would make of the page.

    Attributes: `totals` by id without ``total-``, `tables` by id, `headings`, `texts` of all elements, `tags` with
    their attributes, `svgs` as parsed XML.
    """

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.totals: dict[str, int | None] = {}
        self.tables: dict[str, Table] = {}
        self.headings: list[str] = []
        self.texts: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.svgs = [ET.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", html, re.S)]
        self._table = Table()
        self._inside: list[str] = []
        self.feed(html)

    def svg_texts(self) -> list[str]:
        """The text in the plots."""
        return [text.text or "" for svg in self.svgs for text in svg.iter("{http://www.w3.org/2000/svg}text")]

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.tags.append((tag, found))
        self._inside.append(tag)
        value = found.get("data-value")
        if tag == "dd" and found["id"].startswith("total-"):
            self.totals[found["id"].removeprefix("total-")] = None if value is None else int(value)
        elif tag == "table":
            self._table = self.tables[found["id"]] = Table()
        elif tag == "tr":
            self._table.rows.append([])
        elif tag == "td":
            self._table.rows[-1].append(("", None if value is None else int(value)))
        elif tag == "th":
            self._table.titles.append("")
        elif tag == "h2":
            self.headings.append("")

    def handle_endtag(self, tag):
        if tag in self._inside:
            while self._inside.pop() != tag:
                pass
        if tag == "table":
            self._table.rows = [row for row in self._table.rows if row]

    def handle_data(self, data):
        self.texts.append(data)
        if "td" in self._inside:
            text, value = self._table.rows[-1][-1]
            self._table.rows[-1][-1] = text + data, value
        elif "th" in self._inside:
            self._table.titles[-1] += data
        elif "h2" in self._inside:
            self.headings[-1] += data
