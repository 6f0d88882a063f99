"""``kafkacodec report``: one page with plots and tables of log directories, for a browser or a printer."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

import click

from kafkacodec.cli.console import note, say
from kafkacodec.cli.files.destination import check_new_file, open_output
from kafkacodec.cli.files.standard_input import STANDARD
from kafkacodec.cli.options.inputs import TREE_LEVELS, Choice, choice_options, threads_option
from kafkacodec.cli.output import counted, progress, size

if TYPE_CHECKING:
    from kafkacodec.log import Partition


@click.command()
@choice_options
@click.option(
    *("-o", "--output", "path"),
    metavar="FILE",
    required=True,
    type=click.Path(dir_okay=False),
    help="The page to write, such as report.html; - for standard output.",
)
@click.option("--force", is_flag=True, help="Replace the page if it exists.")
@click.option(
    "--verify/--no-verify",
    default=True,
    help="Read and check all records (default), or only the headers of batches, which finds less damage.",
)
@threads_option
def report(choice: Choice, path: str, force: bool, verify: bool, threads: int | None) -> None:
    """Write a page with plots and tables: sizes, records over time, compression, lag, and a map of damage.

    The page is one HTML file, which loads nothing from elsewhere and runs no scripts. It appears when it is complete.
    Damage is shown in the page and is not an error here: verify exits with 1.
    """
    if path != STANDARD:
        check_new_file(path, choice.paths, force=force)
    suffix = os.path.splitext(path)[1].lower()
    if suffix not in ("", ".html", ".htm"):
        raise click.UsageError(f"-o {path}: the page is HTML, not {suffix[1:]}; a browser prints it into a PDF")
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # which warns where it cannot keep a cache
    from kafkacodec.cli.commands.report.page import render
    from kafkacodec.log.analysis.copies import copies_of, copies_sentence
    from kafkacodec.log.analysis.survey import survey

    partitions = choice.partitions(levels=TREE_LEVELS)
    with progress("reading", sum(map(_size, partitions))) as advance:
        found = survey(
            partitions, log_dirs=_log_directories(choice, partitions), verify=verify, threads=threads, advance=advance
        )
    if choice.topics or choice.numbers:
        chosen = {(partition.topic, partition.partition) for partition in partitions}
        found.lags = [line for line in found.lags if (line.topic, line.partition) in chosen]
    sentence = copies_sentence(copies_of(partitions))
    if sentence:
        note(f"kafkacodec: warning: {sentence}")
    page = render(found, choice.paths).encode("utf-8")
    with open_output(path, force=force) as file:
        file.write(page)
    if path != STANDARD:
        say(f"{path}: {counted(len(partitions), 'partition')}, {size(sum(map(_size, partitions)))}")


def _log_directories(choice: Choice, partitions: list[Partition]) -> list[str]:
    """The log directories of the partitions, if they are among the paths or below them."""
    given = [os.path.join(os.path.abspath(path), "") for path in choice.paths]
    found = {os.path.dirname(os.path.abspath(partition.path)) for partition in partitions}
    return sorted(path for path in found if os.path.join(path, "").startswith(tuple(given)))


def _size(partition: Partition) -> int:
    try:
        return partition.size_in_bytes
    except OSError:  # the page says why
        return 0
