"""Completions in the shell of names that are on disk, or that brokers have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_BROKER_MS = 1500  # someone waits after a key


def complete_topic(context: click.Context, option: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The topics of the brokers, or in the paths, that are typed already, before the option."""
    from click.shell_completion import CompletionItem

    if context.params.get("bootstrap"):
        topics = _topics_of(context)
    else:
        # An option without its value ends click's parsing, and leaves the words before it here.
        typed = (context.params.get(name) for name in ("paths", "directories", "directory"))
        given = next(filter(None, typed), context.args)
        topics = {topic for path in ([given] if isinstance(given, str) else given) for topic in _topics_in(path)}
    return [CompletionItem(topic) for topic in sorted(topics) if topic.startswith(incomplete) and topic.isprintable()]


def _topics_in(path: str) -> set[str]:
    from kafkacodec.errors import KafkaCodecError
    from kafkacodec.log import discover

    try:
        return {partition.topic for partition in discover(path) if partition.topic is not None}
    except (OSError, KafkaCodecError):  # a completion has no place for an error
        return set()


def _topics_of(context: click.Context) -> set[str]:
    import logging

    from kafkacodec.cli.options.servers import Servers
    from kafkacodec.errors import KafkaCodecError

    logging.getLogger("kafkacodec").addHandler(logging.NullHandler())  # not on standard error
    given = context.params
    servers = Servers(given["bootstrap"], given.get("config"), tuple(given.get("properties") or ()))
    try:
        with servers.topic_admin(others=True) as admin:
            return set(admin.list_topics(timeout_ms=_BROKER_MS))
    except (OSError, KafkaCodecError, click.ClickException):  # likewise
        return set()
