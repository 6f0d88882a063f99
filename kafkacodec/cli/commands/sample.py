"""``kafkacodec sample``: a copy of the log directory in the package."""

from __future__ import annotations

import click

from kafkacodec.cli.console import say


@click.command()
@click.argument("directory", type=click.Path())
@click.option("--damaged", is_flag=True, help="Damage the copy in three places.")
def sample(directory: str, damaged: bool) -> None:
    """Copy a small log directory, which a Kafka broker wrote, to DIRECTORY.

    It has 600 orders, 120 payments in transactions, compacted customers, consumer groups and the broker's own topics.
    DIRECTORY must be empty or not exist.
    """
    import kafkacodec

    log = kafkacodec.sample(directory, damaged=damaged)
    say(f"{directory}: topics {', '.join(log.topics)}")
