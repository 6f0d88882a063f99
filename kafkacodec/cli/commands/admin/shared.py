"""Options and output that the admin commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from kafkacodec.cli.console import say, say_json
from kafkacodec.cli.output import Column, print_table
from kafkacodec.errors import ItemErrors

__all__ = ["assignments", "dry_run_option", "json_option", "show", "tell", "telling"]

dry_run_option = click.option("--dry-run", is_flag=True, help="Print the changes without making them.")
json_option = click.option("--json", "as_json", is_flag=True, help="JSON lines instead of a table.")

_NUMBERS = ("partition", "partitions", "replicas", "offset", "from", "to", "leader", "producer id", "epoch", "start")


def assignments(texts: Iterable[str], option: str) -> dict[str, str]:
    """Pairs of names and values from texts such as ``retention.ms=1000``. Raises click.UsageError."""
    pairs = [text.partition("=") for text in texts]
    for name, equals, _ in pairs:
        if not name or not equals:
            raise click.UsageError(f"{option} {name}: not NAME=VALUE")
    return {name: value for name, _, value in pairs}


def tell(what: str, done: str, dry_run: bool) -> None:
    """Print what was changed, or what would be."""
    say(f"{what}: {'would be ' if dry_run else ''}{done}")


@contextmanager
def telling(done: Callable[[Any, Any], None]) -> Iterator[None]:
    """If only some items are changed in the body, call `done` with each of those and its result before the error."""
    try:
        yield
    except ItemErrors as partly:
        for item, result in partly.results.items():
            done(item, result)
        raise


def show(names: Sequence[str], rows: Iterable[Sequence[Any]], *, as_json: bool) -> None:
    """Print rows as a table, or as JSON lines with these names."""
    if as_json:
        for row in rows:
            say_json({name.replace(" ", "_"): value for name, value in zip(names, row, strict=True)})
        return
    columns = [Column(name, right=name in _NUMBERS, stretch=name not in _NUMBERS) for name in names]
    print_table(columns, ([_text(value) for value in row] for row in rows))


def _text(value: Any) -> str:
    if value is None:
        return "-"
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
