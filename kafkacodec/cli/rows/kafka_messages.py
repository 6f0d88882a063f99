"""``kafkacodec message`` for Kafka's own protocol: message bodies to JSON and back, and a message's fields."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Callable, Iterator
from typing import Any, TextIO

import click

from kafkacodec import messages, protocol
from kafkacodec.cli.console import say
from kafkacodec.cli.options.files import in_file, named
from kafkacodec.cli.output import Column, json_tree, print_table
from kafkacodec.cli.rows.message_hints import hint
from kafkacodec.errors import DecodeError, KafkaCodecError
from kafkacodec.messages.embedded import expand
from kafkacodec.messages.model import FieldSpec, StructSpec, version_text


def _class_of(name: str) -> Any:
    if name not in messages.message_names():
        near = [known for known in messages.message_names() if known.lower().startswith(name.lower())]
        hint = f"; did you mean {', '.join(near)}?" if near else ""
        raise click.UsageError(f"unknown message {name!r}{hint}")
    return getattr(messages, name)


def decoded(name: str | None, version: int | None, raw: bytes, frame: bool, expanded: bool = False) -> Any:
    """A body or a frame as JSON values, bytes and records in base64. A request's frame holds its key and version.

    With `expanded`, what is inside the bytes is shown, and other bytes are text if they are UTF-8.
    """
    if expanded:
        return json_tree(_decoded(name, version, raw, frame, expand))
    return json_tree(_decoded(name, version, raw, frame, lambda message: message.to_dict()), _base64)


def _decoded(
    name: str | None, version: int | None, raw: bytes, frame: bool, fields: Callable[[messages.Message], dict[str, Any]]
) -> dict[str, Any]:
    try:
        return _decoded_as(name, version, raw, frame, fields)
    except DecodeError as error:
        looks = hint(raw, name, version, frame)
        raise click.ClickException(f"{error}; {looks}") if looks else error from None


def _decoded_as(
    name: str | None, version: int | None, raw: bytes, frame: bool, fields: Callable[[messages.Message], dict[str, Any]]
) -> dict[str, Any]:
    if frame and (name is None or name.endswith("Request")):
        return _request_frame(name, version, raw, fields)
    if name is None or version is None:
        looks = hint(raw, name, version, frame)
        required = "--rpc and --version are required, except with --frame for a request"
        raise click.UsageError(f"{required}; {looks}" if looks else required)
    cls = _class_of(name)
    if not frame:
        return fields(cls.decode(raw, version))
    if not name.endswith("Response") or cls.api_key is None:
        raise click.UsageError(f"{name} is neither a request nor a response; decode it without --frame")
    header, found = protocol.decode_response(raw, cls.api_key, version)
    return {"type": name, "version": version, "header": header.to_dict(), "message": fields(found)}


def _request_frame(
    name: str | None, version: int | None, raw: bytes, fields: Callable[[messages.Message], dict[str, Any]]
) -> dict[str, Any]:
    header, found = protocol.decode_request(raw)
    kind, number = type(found).__name__, header.request_api_version
    if name not in (None, kind) or version not in (None, number):
        raise click.ClickException(f"the frame holds {kind} version {number}")
    return {"type": kind, "version": number, "header": header.to_dict(), "message": fields(found)}


@click.command()
@click.argument("name")
@click.argument("version", type=int)
@click.argument("content", metavar="[JSON]", type=click.File("r", encoding="utf-8"), default="-")
def encode(name: str, version: int, content: TextIO) -> None:
    """Encode a message body from JSON to hex.

    NAME is the message, such as MetadataRequest. JSON is a file in the format that decode prints, or - for standard
    input.
    """
    cls = _class_of(name)
    with in_file(content):
        text = content.read()
        try:
            made = cls.from_dict(_typed(json.loads(text), cls._spec))
        except KafkaCodecError:
            raise
        except (TypeError, ValueError, RecursionError) as error:  # JSON, not an object, base64, a uuid or a tag
            raise click.ClickException(f"{named(content)}invalid JSON: {error}") from None
    say(made.encode(version).hex())


@click.command()
@click.argument("name")
@click.option("--version", "-v", type=int, help="Only the fields of this version.")
def describe(name: str, version: int | None) -> None:
    """Print the fields of a message by version.

    NAME is a message, such as FetchRequest, or an API, such as Fetch, for both its request and its response.
    """
    names = [name + "Request", name + "Response"] if name + "Request" in messages.message_names() else [name]
    for each in names:
        cls = _class_of(each)
        if version is not None:
            cls.require_version(version)
        key = f", key {cls.api_key}" if cls.api_key is not None else ""
        flexible = version_text(cls.flexible_versions, cls.valid_versions)
        say(f"{each}{key}, versions {version_text(cls.valid_versions)}, flexible {flexible}")
        columns = [
            Column("field"),
            Column("type"),
            Column("versions"),
            Column("null"),
            Column("tag"),
            Column("default"),
        ]
        print_table(columns, _field_rows(cls._spec, cls.valid_versions, version, 0))


def _field_rows(spec: StructSpec, valid: range, version: int | None, depth: int) -> Iterator[list[str]]:
    for field in spec.fields:
        if version is not None and version not in field.versions:
            continue
        yield [
            "  " * depth + field.attribute,
            field.type_text,
            version_text(field.versions, valid),
            version_text(field.nullable, valid) if field.nullable else "",
            str(field.tag) if field.tagged else "",
            field.default_text,
        ]
        if field.struct:
            yield from _field_rows(field.struct, valid, version, depth + 1)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _typed(values: Any, spec: StructSpec) -> Any:
    """JSON values with base64, uuids and floats converted to the fields' types."""
    if not isinstance(values, dict):
        return values
    kinds = {field.attribute: field for field in spec.fields}
    typed = {name: _typed_field(value, kinds[name]) if name in kinds else value for name, value in values.items()}
    tags = typed.get("unknown_tagged_fields")
    if tags:
        if not isinstance(tags, dict):
            raise ValueError("unknown_tagged_fields is not an object")
        typed["unknown_tagged_fields"] = {int(tag): _bytes(f"tag {tag}", data) for tag, data in tags.items()}
    return typed


def _typed_field(value: Any, field: FieldSpec) -> Any:
    if field.array and isinstance(value, list):
        return [_typed_field(item, field._replace(array="")) for item in value]
    if field.struct:
        return _typed(value, field.struct)
    if field.type in ("bytes", "records") and isinstance(value, str):
        return _bytes(field.attribute, value)
    if field.type == "float64" and isinstance(value, str):
        return float(value)
    if field.type == "uuid" and isinstance(value, str):
        try:
            return uuid.UUID(value)
        except ValueError as error:
            raise ValueError(f"{field.attribute}: {error}") from None
    return value


def _bytes(name: str, text: Any) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (TypeError, ValueError):
        raise ValueError(f"{name}: {str(text)[:40]!r} is not base64") from None
