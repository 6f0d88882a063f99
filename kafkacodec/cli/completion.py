"""Completions in the shell of names that are on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def complete_topic(context: click.Context, option: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The topics in the paths that are typed already, before the option."""
    from click.shell_completion import CompletionItem

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
