"""The options that choose records by content."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from kafkacodec.cli.options.gathering import Command, gathered
from kafkacodec.datatypes import dataclass

if TYPE_CHECKING:
    from kafkacodec import Search

_HEX = "0x"


@dataclass(frozen=True)
class Wanted:
    """What records must have; every option that is given counts, and one of its values is enough."""

    key_bytes: tuple[str, ...]
    value_bytes: tuple[str, ...]
    headers: tuple[str, ...]
    anywhere: tuple[str, ...]
    regex: bool
    invert: bool

    def search(self) -> Search | None:
        """The conditions; None without any.

        Raises:
            click.UsageError: hex that is not, an invalid expression, or ``-E`` or ``-v`` without a condition.
        """
        from kafkacodec import Search
        from kafkacodec.patterns import PatternError

        if not (self.key_bytes or self.value_bytes or self.headers or self.anywhere):
            if self.regex or self.invert:
                raise click.UsageError("-E and -v need --key, --value, --header or --grep")
            return None
        try:
            return Search(
                key=self._bytes(self.key_bytes),
                value=self._bytes(self.value_bytes),
                header=[self._header(text) for text in self.headers] or None,
                grep=self._bytes(self.anywhere),
                regex=self.regex,
                invert=self.invert,
            )
        except PatternError as error:
            raise click.UsageError(str(error)) from None

    def _bytes(self, texts: tuple[str, ...]) -> list[bytes] | None:
        return [self._pattern(text) for text in texts] or None

    def _header(self, text: str) -> str | tuple[str, bytes]:
        name, equals, value = text.partition("=")
        return (name, self._pattern(value)) if equals else name

    def _pattern(self, text: str) -> bytes:
        """The bytes to find: hex after ``0x``, else the text as it is on the command line."""
        if self.regex or not text.startswith(_HEX):
            return os.fsencode(text)
        try:
            return bytes.fromhex(text.removeprefix(_HEX))
        except ValueError:
            raise click.UsageError(
                f"{text!r} is not hex; to find this text, give it as an expression with -E"
            ) from None


_OPTIONS = (
    click.option(
        "--key", "key_bytes", metavar="BYTES", multiple=True, help="Only records with this key; repeatable. 0x: hex."
    ),
    click.option(
        "--value", "value_bytes", metavar="BYTES", multiple=True, help="Only records with this value; repeatable."
    ),
    click.option(
        "--header",
        "headers",
        metavar="NAME[=BYTES]",
        multiple=True,
        help="Only records with a header of this name, and this value if given; repeatable.",
    ),
    click.option(
        "--grep",
        "anywhere",
        metavar="BYTES",
        multiple=True,
        help="Only records whose key, value or a header's value contains this; repeatable.",
    ),
    click.option(
        "-E",
        "--regex",
        is_flag=True,
        help="BYTES is a regular expression (RE2's syntax), which may match anywhere: '^a' finds a key that begins so.",
    ),
    click.option("-v", "--invert", is_flag=True, help="Only records that do not match."),
)


def search_options(command: Command) -> Command:
    """Add the options of `Wanted` to a command, as one argument, ``wanted``."""
    return gathered(command, "wanted", Wanted, _OPTIONS)
