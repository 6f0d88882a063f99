"""The inner loop of the line protocol: parses words into arguments."""

from collections.abc import Callable
from typing import Any

def read_integer(word: str) -> int:
    """Parse a 64-bit integer of ASCII digits with an optional minus sign. Leading zeros are accepted.

    Raises:
        ValueError: `word` is not such an integer; a plus sign is not accepted.
    """

def read_words(
    names: tuple[str, ...], readers: tuple[Callable[[str], Any] | None, ...], words: list[str]
) -> dict[str, Any]:
    """Parse each word with its reader; a word without a reader is kept as a string.

    Raises:
        ValueError: a word is empty, there are more words than names, or a reader raises it.
    """
