"""``kafkacodec recover``: copy the intact batches of damaged logs to a new directory."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from kafkacodec.cli.advice import advised
from kafkacodec.cli.console import say, say_json
from kafkacodec.cli.files.standard_input import path_with_copy
from kafkacodec.cli.options.checkpoints import warn_of_checkpoints_beside
from kafkacodec.cli.options.inputs import TREE_LEVELS, size_of, tiered_key_option
from kafkacodec.cli.options.log_path import LocalPath
from kafkacodec.cli.output import counted, progress, size
from kafkacodec.errors import KafkaCodecError

if TYPE_CHECKING:
    from kafkacodec.log import Report


@click.command()
@click.argument("source", type=LocalPath(exists=True, allow_dash=True), callback=path_with_copy)
@click.argument("destination", type=LocalPath())
@tiered_key_option
@click.option("--json", "as_json", is_flag=True, help="Print the report as a JSON object.")
def recover(source: str, destination: str, as_json: bool) -> None:
    """Copy every intact batch of SOURCE to a new log directory, DESTINATION.

    SOURCE is a broker's data directory, a partition directory, a segment, a tree of data directories, or - for a
    segment on standard input; it is not changed. Batches keep their bytes; offset, time and transaction indexes are
    rebuilt. DESTINATION must be empty or not exist. Prints what is missing and writes it to
    DESTINATION/recovery-report.json, for a tree in each data directory. The exit code is 1 if records were lost.
    """
    from kafkacodec import log
    from kafkacodec.log.writing.recovery import recover_tree

    partitions = log.discover(source, levels=TREE_LEVELS)
    warn_of_checkpoints_beside(partitions)
    tree = os.path.isdir(source) and not _is_log(source)
    with progress("recovering", sum(map(size_of, partitions))) as advance:
        try:
            if tree:
                reports = recover_tree(source, destination, levels=TREE_LEVELS, advance=advance)
            else:
                reports = [log.recover(source, destination, advance=advance)]
        except KafkaCodecError:
            raise
        except ValueError as error:
            raise click.UsageError(str(error)) from None
    for report in reports:
        if as_json:
            say_json(report.to_dict())
        else:
            _print(report, os.path.join(destination, os.path.relpath(report.path, source)) if tree else destination)
    lossy = [report for report in reports if not report.ok]
    if lossy:
        losses = f": {_losses(lossy[0])}" if as_json else ""  # else they are printed
        raise click.ClickException(f"{lossy[0].path}: some data could not be recovered{losses}")


def _is_log(path: str) -> bool:
    """Whether a directory is a data directory or a partition's, rather than a tree of such."""
    from kafkacodec.log import LogDirectory
    from kafkacodec.log.opening.listing import segment_files

    return bool(segment_files(path) or LogDirectory(path).all_partitions)


def _print(report: Report, destination: str) -> None:
    for finding in report.findings:
        say(advised(str(finding)))
    restored = report.counts["warning", "offset-order"]
    moved = f", {restored} with restored offsets" if restored else ""
    say(f"{destination}: {counted(report.num_batches, 'batch', 'batches')} saved{moved}, {_losses(report)}")


def _losses(report: Report) -> str:
    """The losses in words. That there are none cannot be proven: records may have followed the log's end."""
    parts = [
        f"at most {counted(report.missing_offsets, 'record')} missing" if report.missing_offsets else "",
        f"{size(report.damaged_bytes)} damaged" if report.damaged_bytes else "",
        f"{counted(left_out, 'part')} of the log left out" if (left_out := report.counts["error", "left-out"]) else "",
    ]
    return ", ".join(filter(None, parts)) or ("no loss found" if report.ok else "damaged")
