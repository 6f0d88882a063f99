"""The options that say how records are printed."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import click

from kafkacodec.arguments import columns_hint
from kafkacodec.cli.options.gathering import Command, gathered
from kafkacodec.datatypes import dataclass

if TYPE_CHECKING:
    from kafkacodec.cli.rows.record_output import Printer

__all__ = ["Printing", "print_options"]

_RECORD = ("offset", "timestamp", "key", "value")


@dataclass(frozen=True)
class Printing:
    """How to print records."""

    columns: tuple[str, ...] | None
    as_json: bool
    kcat_json: bool
    template: str | None
    raw: bool

    def printer(self, *, several: bool, headers: bool) -> Printer:
        """What prints rows. A table has the partition if there are `several`, and the headers if there are any.

        Raises:
            click.UsageError: options exclude each other, or the format string is wrong.
        """
        from kafkacodec.cli.rows.record_format import compiled
        from kafkacodec.cli.rows.record_output import print_formatted, print_json, print_rows

        if self.kcat_json:
            if self.template is not None or self.columns is not None or self.as_json:
                raise click.UsageError("--kcat-json has its own fields: --json, --columns and --format do not apply")
            from kafkacodec.cli.rows.kcat_json import print_kcat_json

            return print_kcat_json
        if self.template is not None:
            if self.as_json or self.columns is not None:
                raise click.UsageError("--format prints by its string: --json and --columns do not apply")
            try:
                compiled(os.fsencode(self.template))
            except ValueError as error:
                raise click.UsageError(f"--format: {error}") from None
            return partial(print_formatted, template=os.fsencode(self.template))
        if self.as_json:
            return partial(print_json, columns=self.columns, raw=self.raw)
        table = ("place",) * several + _RECORD + ("headers",) * headers
        return partial(print_rows, columns=self.columns or table, raw=self.raw)


def _chosen(value: str | None, known: tuple[str, ...], context: click.Context, option: click.Parameter) -> object:
    if value is None:
        return None
    names = tuple(name.strip() for name in value.split(","))
    wrong = [name for name in names if name not in known]
    if wrong:
        raise click.BadParameter(f"unknown column {wrong[0]!r}; {columns_hint(wrong[0], known)}", context, option)
    return names


def print_options(*, batch_columns: bool) -> Callable[[Command], Command]:
    """Add the options of `Printing` to a command, as one argument, ``printing``; columns may be those of the batch."""

    def chosen(context: click.Context, option: click.Parameter, value: str | None) -> object:
        from kafkacodec.cli.rows.record_rows import COLUMNS, FIELDS

        return _chosen(value, COLUMNS if batch_columns else FIELDS, context, option)

    names = "topic, partition, offset, timestamp, key, value, headers"
    options = (
        click.option(
            "--columns",
            metavar="NAME,...",
            callback=chosen,
            help=f"Print these: {names}, or columns of the batch." if batch_columns else f"Print these: {names}.",
        ),
        click.option("-J", "--json", "as_json", is_flag=True, help="JSON lines instead of a table."),
        click.option("--kcat-json", is_flag=True, help="JSON lines with kcat's field names."),
        click.option(
            "-f",
            "--format",
            "template",
            metavar="FORMAT",
            help=r"Print by a format string, such as '%t %p %o %k %s\n'. The page on searching lists the fields.",
        ),
        click.option(
            "--raw", is_flag=True, help="Show bytes of internal topics and control records, not their fields."
        ),
    )

    def give(command: Command) -> Command:
        return gathered(command, "printing", Printing, options)

    return give
