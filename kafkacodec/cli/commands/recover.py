"""``kafkacodec recover``: copy the intact batches of damaged logs to a new directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kafkacodec.cli.console import say, say_json
from kafkacodec.cli.files.standard_input import path_with_copy
from kafkacodec.cli.options.inputs import size_of, tiered_key_option
from kafkacodec.cli.output import counted, progress, size
from kafkacodec.errors import KafkaCodecError

if TYPE_CHECKING:
    from kafkacodec.log import Report


@click.command()
@click.argument("source", type=click.Path(exists=True, allow_dash=True), callback=path_with_copy)
@click.argument("destination", type=click.Path())
@tiered_key_option
@click.option("--json", "as_json", is_flag=True, help="Print the report as a JSON object.")
def recover(source: str, destination: str, as_json: bool) -> None:
    """Copy every intact batch of SOURCE to a new log directory, DESTINATION.

    SOURCE is a broker's data directory, a partition directory, a segment or - for a segment on standard input; it is
    not changed. Batches keep their bytes; offset, time and transaction indexes are rebuilt. DESTINATION must be empty
    or not exist. Prints what is missing and writes it to DESTINATION/recovery-report.json. The exit code is 1 if
    records were lost.
    """
    from kafkacodec import log

    total = sum(map(size_of, log.discover(source)))
    with progress("recovering", total) as advance:
        try:
            report = log.recover(source, destination, advance=advance)
        except KafkaCodecError:
            raise
        except ValueError as error:
            raise click.UsageError(str(error)) from None
    if as_json:
        say_json(report.to_dict())
    else:
        for finding in report.findings:
            say(str(finding))
        restored = report.counts["warning", "offset-order"]
        moved = f", {restored} with restored offsets" if restored else ""
        say(f"{destination}: {counted(report.num_batches, 'batch', 'batches')} saved{moved}, {_losses(report)}")
    if not report.ok:
        raise click.ClickException(f"{source}: some data could not be recovered: {_losses(report)}")


def _losses(report: Report) -> str:
    """The losses in words. That there are none cannot be proven: records may have followed the log's end."""
    parts = [
        f"at most {counted(report.missing_offsets, 'record')} missing" if report.missing_offsets else "",
        f"{size(report.damaged_bytes)} damaged" if report.damaged_bytes else "",
        f"{counted(left_out, 'part')} of the log left out" if (left_out := report.counts["error", "left-out"]) else "",
    ]
    return ", ".join(filter(None, parts)) or ("no loss found" if report.ok else "damaged")
