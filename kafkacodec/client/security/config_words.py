"""Errors about options in the words of a configuration that has Java's or librdkafka's names of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

from kafkacodec.client.options import WORDS, ClientSettings, names_in_configs
from kafkacodec.client.security.java_config import JAVA_FILES, config_options
from kafkacodec.net.tls import client_context

__all__ = ["dotted", "from_config", "in_words_of", "renamed"]

Client = TypeVar("Client")


def from_config(
    make: Callable[..., Client],
    config: Mapping[str, Any],
    defaults: Mapping[str, Any],
    topics: tuple[str, ...] = (),
    options: Mapping[str, Any] | None = None,
) -> Client:
    """What `make` makes of the topics, and of the options of a configuration and those by keyword.

    Args:
        make: the class of a client.
        config: values by dotted names.
        defaults: as for `config_options`, whose errors this raises too.
        topics, options: other arguments of the call. Options replace those of the configuration.
    """
    options = options or {}
    found = {**config_options(config, defaults), **options}
    with in_words_of(config, defaults, options):
        client = make(*topics, **found)
        settings = getattr(client, "_settings", None)
        if isinstance(settings, ClientSettings):
            client_context(settings)  # a client of asyncio reads the files only at its first use
        return client


@contextmanager
def in_words_of(config: Mapping[str, Any], known: Collection[str], besides: Collection[str] = ()) -> Iterator[None]:
    """Makes a TypeError or ValueError name options as the configuration does, or as another one would.

    So do errors of the connections of a client that is made meanwhile.

    Args:
        config: what the user has written. It changes nothing if it has only names of this library.
        known: the names of all options.
        besides: options that the user has written under the names of this library.
    """
    if not any("." in name for name in config):
        yield
        return
    words = {name: word for name, word in _words(config, known).items() if name not in besides}
    try:
        with _worded(words):
            yield
    except (TypeError, ValueError) as error:
        text = renamed(str(error), words) if type(error) in (TypeError, ValueError) else str(error)
        if text == str(error):
            raise
        raise type(error)(text) from error.__cause__


def dotted(known: Collection[str]) -> AbstractContextManager[None]:
    """Around the making of a client whose user writes options with dots: so do errors of its connections.

    Args:
        known: the names of all options.
    """
    return _worded(_words((), known))


@contextmanager
def _worded(words: Mapping[str, str]) -> Iterator[None]:
    before = WORDS.set(words)
    try:
        yield
    finally:
        WORDS.reset(before)


def _words(config: Iterable[str], known: Collection[str]) -> dict[str, str]:
    """The words for options: those of the configuration, else librdkafka's of files and users, else with dots."""
    names = {**names_in_configs(known), **JAVA_FILES, **{name: name for name in known}}
    words = {name: name.replace("_", ".") for name in known}
    words |= {name: word for word, name in names_in_configs(known).items() if name.startswith(("ssl_", "sasl_plain_"))}
    return words | {names[word]: word for word in config if word in names}


def renamed(text: str, words: Mapping[str, str]) -> str:
    """The text with names replaced: one that it begins with, and those that are no usual words, paths or values."""
    begin, _, rest = text.partition(" ")
    text = f"{words.get(begin, begin)} {rest}"
    names = "|".join(sorted((re.escape(name) for name in words if "_" in name), key=len, reverse=True))
    return re.sub(rf"(?<![\w/'\".]){'(' + names + ')'}(?!\w)", lambda found: words[found[1]], text) if names else text
