"""The group of commands. A command's module is imported when it runs, so that ``--help`` is quick."""

from __future__ import annotations

import importlib

import click

import kafkacodec

# Command -> what it does, in a line. The module kafkacodec.cli.<command> has a click command of that name.
COMMANDS = {
    "scan": "List segments and batches without decompressing them.",
    "dump": "Print records.",
    "verify": "Check that every record can be read and trusted, index files and checkpoints.",
    "convert": "Write records to Parquet, Arrow IPC, CSV or JSON lines.",
    "encode": "Write records from such files as segments.",
    "offsets": "List the offsets that consumer groups committed.",
    "groups": "List consumer groups and their members.",
    "metadata": "Show a KRaft cluster's topics, configs, ACLs and brokers.",
    "recover": "Save what is intact of damaged logs into a new directory.",
    "message": "Decode, encode and describe messages of the protocol.",
    "bench": "Measure how fast this machine reads segments.",
    "demo": "Let Spark read a directory of segments and write Parquet.",
}

EXIT_CODES = """\b
Exit codes:
  0    done
  1    the input is damaged, is not Kafka data or cannot be read
  2    wrong usage, or an optional package is missing
  130  interrupted
  141  the reader of the output has gone"""


class Commands(click.Group):
    """Commands by the table above."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Imports the module of the command."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"kafkacodec.cli.{cmd_name}")
        command: click.Command = getattr(module, cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table itself: nothing is imported for it."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=Commands,
    epilog=EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(kafkacodec.__version__, prog_name="kafkacodec")
def application() -> None:
    """Read and write Kafka's log segments and messages without a broker.

    PATHs are segment files, partition directories, or whole data directories of a broker.
    """
