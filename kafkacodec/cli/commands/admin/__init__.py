"""``kafkacodec admin``: change and describe a cluster."""

from __future__ import annotations

import click

from kafkacodec.cli.commands.admin.acls import acls
from kafkacodec.cli.commands.admin.configs import configs
from kafkacodec.cli.commands.admin.groups import groups
from kafkacodec.cli.commands.admin.quotas import quotas
from kafkacodec.cli.commands.admin.topics import topics
from kafkacodec.cli.commands.admin.transactions import transactions

__all__ = ["admin"]


@click.group()
def admin() -> None:
    """Create, change, describe and delete what brokers keep.

    Every command takes -b HOST:PORT. Commands that change something print a line for each change, and with --dry-run
    what they would change.
    """


for part in (topics, configs, groups, acls, quotas, transactions):
    admin.add_command(part)
