"""Records as JSON lines with the names that kcat gives their fields."""

from __future__ import annotations

from collections.abc import Collection

from kafkacodec.cli.console import json_text, say_text
from kafkacodec.cli.output import json_value
from kafkacodec.cli.rows.record_rows import Given, Origin, Page
from kafkacodec.cli.rows.record_text import Pages, Piece, constant, texts

__all__ = ["print_kcat_json"]

_TIMES = {0: b'"create"', 1: b'"logappend"'}
_UNKNOWN = b'"unknown"'
_KIND, _HEADERS = "kind of time", "headers in turn"


def print_kcat_json(pages: Pages) -> None:
    """As ``kcat -J`` prints them, but without the broker's number; bytes that are not UTF-8 are base64 in an object."""
    say_text(texts(pages, _pieces, _given))


def _pieces(place: Origin, ready: Collection[str]) -> list[Piece]:
    start = f'{{"topic":{json_text(place.topic)},"partition":{json_text(place.partition)},"offset":'
    return [
        constant(start.encode()),
        Piece("number", "offset"),
        constant(b',"tstype":'),
        Piece("plain", _KIND),
        constant(b',"ts":'),
        Piece("number", "timestamp", b"null"),
        Piece("plain", _HEADERS),
        constant(b',"key":'),
        Piece("json", "key", b"null"),
        constant(b',"payload":'),
        Piece("json", "value", b"null"),
        constant(b"}\n"),
    ]


def _given(page: Page) -> tuple[Given, Collection[str]]:
    times = zip(page.cells("timestamp_type"), page.cells("timestamp"), strict=True)
    kinds: list[bytes | None] = [_UNKNOWN if time is None else _TIMES.get(kind, _UNKNOWN) for kind, time in times]
    return {**page.given, _KIND: kinds, _HEADERS: [_headers(found) for found in page.cells("headers")]}, ()


def _headers(found: tuple[tuple[str, bytes | None], ...] | None) -> bytes | None:
    if not found:
        return None
    return f',"headers":{json_text([part for key, value in found for part in (key, json_value(value))])}'.encode()
