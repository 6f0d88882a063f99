"""The inner loop of the line protocol: words to arguments, text to integers."""

from collections.abc import Callable
from typing import Any

def read_integer(word: str) -> int:
    """The 64-bit integer that `word` spells in ASCII digits, with a minus sign or without.

    Raises:
        ValueError: anything else; leading zeros are taken, a plus sign is not.
    """

def read_words(
    names: tuple[str, ...], readers: tuple[Callable[[str], Any] | None, ...], words: list[str]
) -> dict[str, Any]:
    """The value of each word under its name; a word whose reader is None is its own value.

    Raises:
        ValueError: an empty word, more words than names, or what a reader raises.
    """
