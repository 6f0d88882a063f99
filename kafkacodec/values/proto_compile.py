"""From the text of .proto files to descriptors, by the compiler of the package grpcio-tools.

The compiler runs in a process of its own, with a limit on its time, so that a schema cannot end or block this one.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from kafkacodec.errors import SchemaError
from kafkacodec.values.schemas import Schema

__all__ = ["compiled_files", "message_type"]

SECONDS = 60
"""Limit on the time of the compiler."""

MAX_FIELDS = 10_000
"""Limit on the fields of a message type, with those of nested messages counted where they are used."""

MAX_DEPTH = 60

_NAME = "kafkacodec_value.proto"


def compiled_files(schema: Schema, references: Mapping[str, Schema]) -> Any:
    """The descriptors of a .proto file and all that it imports, in a pool of their own, and the file's descriptor.

    Raises:
        SchemaError: the text is not a .proto file, or an import is missing.
    """
    from google.protobuf import descriptor_pb2, descriptor_pool

    try:
        found = descriptor_pb2.FileDescriptorSet.FromString(_compiled(schema, references))
        pool = descriptor_pool.DescriptorPool()
        for file in found.file:
            pool.Add(file)
        return [pool.FindFileByName(file.name) for file in found.file]
    except SchemaError:
        raise
    except Exception as error:  # protobuf raises TypeError, KeyError and its own
        raise SchemaError(f"protobuf does not accept the schema: {error}") from None


def _compiled(schema: Schema, references: Mapping[str, Schema]) -> bytes:
    with tempfile.TemporaryDirectory(prefix="kafkacodec-") as directory:
        root = Path(directory)
        for name, used in {**references, _NAME: schema}.items():
            _write(root, name, used.text)
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{root}", "--include_imports"]
        try:
            finished = subprocess.run(
                [*command, f"--descriptor_set_out={root / 'out'}", _NAME],
                capture_output=True,
                timeout=SECONDS,
                check=False,
                cwd=root,
            )
        except subprocess.TimeoutExpired:
            raise SchemaError(f"the compiler did not end within {SECONDS} s") from None
        if finished.returncode:
            raise _refusal(finished.stderr.decode(errors="replace").replace(f"{root}/", ""))
        return (root / "out").read_bytes()


def _refusal(output: str) -> SchemaError:
    """What the compiler says first about a file."""
    lines = [line for line in output.splitlines() if ".proto:" in line] or ["no reason given"]
    return SchemaError(f"the schema is not a .proto file: {lines[0].replace(f'{_NAME}:', 'line ')}")


def _write(root: Path, name: str, text: str) -> None:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in name:
        raise SchemaError(f"the reference {name!r} is not a relative path")
    target = root / path
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    except OSError as error:
        raise SchemaError(f"the reference {name!r} cannot be a file: {error.strerror}") from None


def message_type(file: Any, indexes: tuple[int, ...], name: str | None) -> Any:
    """The descriptor of a message type of a file: by its indexes, or by its full name, or the first.

    Raises:
        SchemaError: there is none, or it contains itself, or is too large.
    """
    if name is not None and not indexes:
        found = next((each for each in _all(file.message_types_by_name.values()) if each.full_name == name), None)
        if found is None:
            raise SchemaError(f"there is no message type {name} in the schema")
    else:
        found = _at(file, indexes or (0,))
    _measure(found, [])
    return found


def _all(types: Any) -> Any:
    for each in types:
        yield each
        yield from _all(each.nested_types)


def _at(file: Any, indexes: tuple[int, ...]) -> Any:
    types = list(file.message_types_by_name.values())  # in the order of the file
    found = None
    for index in indexes:
        if not 0 <= index < len(types):
            raise SchemaError(f"there is no message type with the indexes {list(indexes)} in the schema")
        found = types[index]
        types = list(found.nested_types)
    return found


def _measure(message: Any, open_types: list[str], count: int = 0) -> int:
    """The number of fields with nested ones, from `count` on."""
    if message.full_name in open_types:
        raise SchemaError(f"{message.full_name} contains itself; columns cannot represent recursive types")
    if len(open_types) >= MAX_DEPTH:
        raise SchemaError(f"messages are nested more than {MAX_DEPTH} levels deep")
    open_types.append(message.full_name)
    for field in message.fields:
        count += 1
        if count > MAX_FIELDS:
            raise SchemaError(f"the message type has more than {MAX_FIELDS} fields")
        if field.message_type is not None:
            count = _measure(field.message_type, open_types, count)
    open_types.pop()
    return count
