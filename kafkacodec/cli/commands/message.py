"""``kafkacodec message``: convert single requests and responses between bytes and JSON."""

from __future__ import annotations

import re
from enum import IntEnum
from typing import Any, BinaryIO

import click

from kafkacodec.cli.console import say_json
from kafkacodec.cli.options.files import in_file
from kafkacodec.cli.output import json_value
from kafkacodec.cli.rows.kafka_messages import decoded, describe, encode
from kafkacodec.datatypes import fields, is_dataclass

_HEX = re.compile(rb"(?:0x)?(?:[0-9a-fA-F]{2}\s*)+")


@click.group()
def message() -> None:
    """Decode, encode and describe protocol messages."""


message.add_command(encode)
message.add_command(describe)


@message.command()
@click.option(
    "--protocol",
    default="kafka",
    type=click.Choice(["kafka", "kafka07", "rewrite", "line"]),
    help="The protocol; kafka, Kafka's own, by default.",
)
@click.option("--rpc", metavar="NAME", help="The message: MetadataRequest (kafka), Heartbeat (rewrite).")
@click.option("--version", type=int, help="kafka: the version of the message.")
@click.option(
    "--frame",
    is_flag=True,
    help="kafka: DATA is a frame, with size and header; a request then needs neither --rpc nor --version.",
)
@click.option(
    "--answers", metavar="REQUEST", help="DATA is the response to this request in hex (kafka07) or command (line)."
)
@click.option(
    "--expand",
    is_flag=True,
    help="kafka: decode the record sets of Produce and Fetch, and subscriptions and assignments of consumers.",
)
@click.argument("data", type=click.File("rb"), default="-")
def decode(
    protocol: str, rpc: str | None, version: int | None, frame: bool, answers: str | None, expand: bool, data: BinaryIO
) -> None:
    """Decode messages to JSON.

    DATA is a file, or - for standard input. It holds one body (kafka, rewrite) or one frame (kafka07, kafka with
    --frame) as hex or as bytes; for the line protocol, a message per line.

    In the JSON of kafka, bytes are base64, and message encode reads it; in that of the other protocols, and with
    --expand, they are text if they are UTF-8, else {"base64": "..."}.
    """
    from kafkacodec.dialects.line import split_lines

    content = data.read()
    if protocol == "line":
        for text in split_lines(content if content.endswith(b"\n") else content + b"\n")[0]:
            if isinstance(text, Exception):
                raise text
            say_json(_line(text, answers))
        return
    raw = _bytes(content)
    with in_file(data):
        if protocol == "kafka":
            say_json(decoded(rpc, version, raw, frame, expand), indent=2)
        else:
            say_json(_kafka07(raw, answers) if protocol == "kafka07" else _rewrite(raw, rpc))


def _bytes(content: bytes) -> bytes:
    """The bytes of hex text; anything else unchanged."""
    text = content.strip()
    return bytes.fromhex(text.removeprefix(b"0x").decode("ascii")) if _HEX.fullmatch(text) else content


def _line(text: str, command: str | None) -> dict[str, Any]:
    from kafkacodec.dialects import line

    made: dict[str, Any] = _plain(line.parse_request(text) if command is None else line.parse_response(text, command))
    return made


def _rewrite(body: bytes, rpc: str | None) -> dict[str, Any]:
    from kafkacodec.dialects import rewrite

    names = [name for name in rewrite.__all__ if isinstance(getattr(rewrite, name), type)]
    calls = [name for name in names if issubclass(getattr(rewrite, name), rewrite.Rpc) and name != "Rpc"]
    if rpc not in calls:
        raise click.UsageError(f"--rpc must be one of {', '.join(calls)}")
    return {"type": rpc, **_plain(getattr(rewrite, rpc).decode(body).to_dict())}


def _kafka07(frame: bytes, answers: str | None) -> dict[str, Any]:
    from kafkacodec.dialects import kafka07

    made: dict[str, Any]
    if answers is None:
        made = _plain(kafka07.decode_request(frame))
        return made
    try:
        asked = bytes.fromhex(answers)
    except ValueError:
        raise click.UsageError("--answers must be the request in hex") from None
    made = _plain(kafka07.decode_response(frame, kafka07.decode_request(asked)))
    return made


def _plain(value: Any) -> Any:
    """A value for JSON: messages as dicts with their type, bytes by `json_value`."""
    if is_dataclass(value) and not isinstance(value, type):
        shown = {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
        return {"type": type(value).__name__, **shown}
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    if isinstance(value, (bytes, memoryview)):
        return json_value(bytes(value))
    return int(value) if isinstance(value, IntEnum) else value
