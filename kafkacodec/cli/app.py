"""The group of commands. A command's module is imported when it runs, so that ``--help`` is fast."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

import click

import kafkacodec

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# Command -> one line of help. The module kafkacodec.cli.<command> has a click command of that name.
COMMANDS = {
    "topics": "List topics: records, offsets, times, sizes, codecs, producers.",
    "scan": "List segments and batches without decompressing them.",
    "dump": "Print records.",
    "diff": "Compare two copies of logs.",
    "verify": "Check all records, index files and checkpoints.",
    "stats": "Estimate savings by codec; show hot keys, sizes and times of records.",
    "report": "Write a page with plots of sizes, times, compression, lag and damage.",
    "convert": "Write records to Parquet, Arrow IPC, CSV or JSON.",
    "encode": "Write segments from Parquet, Arrow IPC, CSV, JSON or lines.",
    "consume": "Print records of topics from brokers.",
    "produce": "Send records to a topic: lines, Parquet, Arrow IPC, CSV or JSON.",
    "serve": "Run a Kafka broker for tests and for this machine.",
    "admin": "Create, change, describe and delete topics, configs, groups, ACLs, quotas, transactions.",
    "offsets": "List the committed offsets of consumer groups.",
    "lag": "Show how far consumer groups are behind.",
    "groups": "List consumer groups and their members.",
    "metadata": "Show a KRaft cluster's topics, configs, ACLs and brokers.",
    "recover": "Copy the intact batches of damaged logs to a new directory.",
    "message": "Decode, encode and describe protocol messages.",
    "bench": "Measure how fast this machine reads segments.",
    "sample": "Copy a small log directory to try things out with.",
    "demo": "Show records, transactions, recovery and SQL on a sample.",
}

# Word of other tools -> the command for it.
_MEANT = {
    **dict.fromkeys(("broker", "kafka", "listen", "run", "server", "start"), "serve"),
    **dict.fromkeys(("consumer", "read", "subscribe"), "consume"),
    **dict.fromkeys(("producer", "publish", "send", "write"), "produce"),
    **dict.fromkeys(("acls", "configs", "quotas"), "admin"),
    **dict.fromkeys(("cat", "print", "show"), "dump"),
}

EXIT_CODES = """\b
Exit codes:
  0    success
  1    the input is damaged, is not Kafka data or cannot be read; copies differ (diff); brokers fail
  2    usage error, or an optional package is missing
  130  interrupted (129, 143: ended by SIGHUP, SIGTERM)
  141  the output's reader closed the pipe"""


class Commands(click.Group):
    """The commands of `COMMANDS`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's module."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"kafkacodec.cli.commands.{cmd_name}")
        command: click.Command = getattr(module, cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggest a command for an unknown one."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from kafkacodec.arguments import suggestion

            meant = _MEANT.get(args[0].lower())
            known = f"use: kafkacodec {meant}" if meant else suggestion(args[0], COMMANDS, "commands")
            ctx.fail(f"No such command {args[0]!r}; {known}")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete a command's name from the table, an option as click does."""
        from click.shell_completion import CompletionItem

        if incomplete.startswith("-"):
            return super(click.Group, self).shell_complete(ctx, incomplete)
        return [CompletionItem(name, help=line) for name, line in COMMANDS.items() if name.startswith(incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table without importing any command."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=Commands,
    epilog=EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(kafkacodec.__version__, prog_name="kafkacodec")
def application() -> None:
    """Read and write Kafka's log segments and messages, without a broker or with one.

    A PATH is a segment file, a partition directory, a broker's data directory, or - for a segment on standard input.
    """
