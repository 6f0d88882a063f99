"""Keys and values of lines, which are JSON, encoded with the schemas of a registry, for `kafkacodec produce`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click

from kafkacodec.cli.files.json_rows import json_fault
from kafkacodec.cli.options.gathering import Command, gathered
from kafkacodec.datatypes import dataclass, field

if TYPE_CHECKING:
    from kafkacodec.values import Encoder
    from kafkacodec.values.framing import Part
    from kafkacodec.values.schemas import Format

__all__ = ["EncodingOptions", "LineEncoders", "encoding_options"]

_FORMATS = click.Choice(["avro", "protobuf", "json"])

Pair = tuple[bytes | None, bytes | None]


@dataclass(frozen=True)
class EncodingOptions:
    """The options as given."""

    values: Format | None
    keys: Format | None
    schemas: str | None
    subject: str | None
    key_subject: str | None

    def __post_init__(self) -> None:
        if self and self.schemas is None:
            raise click.UsageError("--values and --keys need --schemas, the URL of a registry")
        if not self and self.schemas is not None:
            raise click.UsageError("--schemas needs --values or --keys")
        if (self.subject and not self.values) or (self.key_subject and not self.keys):
            raise click.UsageError("--subject needs --values, and --key-subject needs --keys")

    def __bool__(self) -> bool:
        return self.values is not None or self.keys is not None

    def encoders(self, topic: str) -> LineEncoders:
        """What encodes lines for a topic. Raises click.UsageError: the URL is wrong."""
        found: dict[Part, Encoder] = {}
        asked: dict[Part, tuple[Format | None, str | None]] = {
            "key": (self.keys, self.key_subject),
            "value": (self.values, self.subject),
        }
        for part, (format, subject) in asked.items():
            if format is not None:
                from kafkacodec.cli.options.values import registry
                from kafkacodec.values import Encoder

                place = registry(self.schemas or "")
                found[part] = Encoder(place, subject=subject or f"{topic}-{part}", format=format)
        return LineEncoders(found.get("key"), found.get("value"))


@dataclass
class LineEncoders:
    """Encodes keys and values; what has no encoder stays as it is, and null stays null."""

    key: Encoder | None
    value: Encoder | None
    _count: int = field(default=0, init=False)

    def records(self, lines: Iterable[Pair]) -> Iterator[Pair]:
        """Each key and value, encoded.

        Raises:
            click.ClickException: one is not JSON, or does not match its schema.
        """
        for key, value in lines:
            self._count += 1
            yield self._encoded(self.key, "key", key), self._encoded(self.value, "value", value)

    def _encoded(self, encoder: Encoder | None, part: Part, data: bytes | None) -> bytes | None:
        if encoder is None or data is None:
            return data
        try:
            return encoder(json.loads(data))
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise click.ClickException(f"record {self._count}: the {part} {json_fault(error)}") from None
        except (ValueError, RecursionError) as error:  # EncodeError is one
            raise click.ClickException(f"record {self._count}: {part}: {error}") from None


_OPTIONS = (
    click.option("--values", type=_FORMATS, help="Lines: values are JSON to encode so."),
    click.option("--keys", type=_FORMATS, help="Lines: keys are JSON to encode so."),
    click.option("--schemas", metavar="URL", help="The registry with the schemas of values and keys."),
    click.option("--subject", help="Where that of values is registered. Default: the topic and -value."),
    click.option("--key-subject", help="Where that of keys is registered. Default: the topic and -key."),
)


def encoding_options(command: Command) -> Command:
    """Adds the options to a command, which gets them as `EncodingOptions` in the argument ``encoding``."""
    return gathered(command, "encoding", EncodingOptions, _OPTIONS)
