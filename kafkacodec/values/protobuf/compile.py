"""Compilation of .proto files to descriptors, with the compiler of the package grpcio-tools.

The compiler runs in a process of its own, with a limit on its time, so that a schema cannot end or block this one. A
text may also be a file's descriptor, a FileDescriptorProto in base64, as Confluent's clients for Python and .NET
register it.

Clients in Java register what Wire prints for a descriptor: the entries of maps are messages with ``option map_entry``,
which the compiler refuses. It gets a reserved number in its place, by which the messages are found again.
"""

from __future__ import annotations

import re
import subprocess
import sys
from base64 import b64decode
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

from kafkacodec.errors import SchemaError
from kafkacodec.temporary import temporary_directory
from kafkacodec.values.protobuf.known import CONFLUENT_FILES, google_directories
from kafkacodec.values.schemas import Schema

__all__ = ["compiled_files", "message_type"]

SECONDS = 60
"""Limit on the time of the compiler."""

_NAME = "kafkacodec_value.proto"

_MAP_ENTRY = re.compile(r"\boption\s+map_entry\s*=\s*true\s*;")

_ENTRY_NUMBER = 536_870_907
"""The reserved number of entries, one of the last that there are."""


def compiled_files(schema: Schema, references: Mapping[str, Schema]) -> Any:
    """The descriptors of a .proto file and all that it imports, in a pool of their own, and the file's descriptor.

    Raises:
        SchemaError: the text is not a .proto file, or an import is missing.
    """
    from google.protobuf import descriptor_pb2, descriptor_pool

    try:
        texts = (*((name, used.text) for name, used in references.items()), (_NAME, schema.text))
        found = descriptor_pb2.FileDescriptorSet.FromString(_compiled(texts))
        pool = descriptor_pool.DescriptorPool()
        for file in found.file:
            _restore_entries(file.message_type)
            pool.Add(file)
        return [pool.FindFileByName(file.name) for file in found.file]
    except SchemaError:
        raise
    except Exception as error:  # protobuf raises TypeError, KeyError and its own
        raise SchemaError(f"protobuf does not accept the schema: {error}") from None


@lru_cache(maxsize=32)  # a process takes longer than most values
def _compiled(given: tuple[tuple[str, str], ...]) -> bytes:
    """The FileDescriptorSet of files, as pairs of a name and a text."""
    from google.protobuf import descriptor_pb2

    texts = {**CONFLUENT_FILES, **dict(given)}
    described = descriptor_pb2.FileDescriptorSet()
    with temporary_directory("kafkacodec-") as directory:
        root = Path(directory)
        for name, text in texts.items():
            file = _described(text)
            if file is None:
                _write(root, name, _MAP_ENTRY.sub(f"reserved {_ENTRY_NUMBER};", text))
            else:
                file.name = name
                described.file.append(file)
        (root / "in").write_bytes(described.SerializeToString())
        return _run(root)


def _described(text: str) -> Any:
    """The descriptor of a file that the text is in base64; None if it is not."""
    from google.protobuf import descriptor_pb2
    from google.protobuf.message import DecodeError

    try:
        return descriptor_pb2.FileDescriptorProto.FromString(b64decode(text.strip(), validate=True))
    except (ValueError, DecodeError):  # as for a .proto file, which has blanks and semicolons
        return None


def _restore_entries(messages: Any) -> None:
    """Makes entries of maps of the nested messages that were ones."""
    for message in messages:
        _restore_entries(message.nested_type)
        for nested in message.nested_type:
            is_marked = any(reserved.start == _ENTRY_NUMBER for reserved in nested.reserved_range)
            if is_marked and [(f.name, f.number) for f in nested.field] == [("key", 1), ("value", 2)]:
                nested.ClearField("reserved_range")
                nested.options.map_entry = True


def _run(root: Path) -> bytes:
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{root}", "--include_imports"]
    command += [f"-I{path}={directory}" for path, directory in google_directories().items()]
    command += [f"--descriptor_set_in={root / 'in'}", f"--descriptor_set_out={root / 'out'}", _NAME]
    try:
        finished = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False, cwd=root)
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
        SchemaError: there is none.
    """
    if name is not None and not indexes:
        found = next((each for each in _all(file.message_types_by_name.values()) if each.full_name == name), None)
        if found is None:
            raise SchemaError(f"there is no message type {name} in the schema")
    else:
        found = _at(file, indexes or (0,))
    return found


def _all(types: Any) -> Any:
    for each in types:
        yield each
        yield from _all(each.nested_types)


def _at(file: Any, indexes: tuple[int, ...]) -> Any:
    types = list(file.message_types_by_name.values())  # in the order of the file
    found = None
    for index in indexes:
        if 0 <= index < len(types) and types[index].GetOptions().map_entry:
            # No value is one. Some clients do not count the entries of maps, which a text has no messages for.
            types = [each for each in types if not each.GetOptions().map_entry]
        if not 0 <= index < len(types):
            raise SchemaError(f"there is no message type with the indexes {list(indexes)} in the schema")
        found = types[index]
        types = list(found.nested_types)
    return found
