"""Writes the stubs of what is made from tables: message classes, API keys and error codes.

message_stubs.py           write the files
message_stubs.py --check   exit with 1 if one is out of date
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from schemas import SCHEMAS

from kafkacodec import errors
from kafkacodec.messages import keys, message_class, message_names
from kafkacodec.messages.model import FieldSpec, MessageSpec, StructSpec

MESSAGES = SCHEMAS.parent

HEAD = """\
# Written by tools/message_stubs.py from the schema tables.
from typing import dataclass_transform, final
from uuid import UUID

from kafkacodec.messages.classes import Message, MessageStruct

@dataclass_transform(kw_only_default=True)
class _MessageBase(Message): ...

@dataclass_transform(kw_only_default=True)
class _StructBase(MessageStruct): ...

class _Message(_MessageBase):
    unknown_tagged_fields: dict[int, bytes] = ...  # type: ignore[override]

class _Struct(_StructBase):
    unknown_tagged_fields: dict[int, bytes] = ...  # type: ignore[override]
"""

PYTHON_TYPES = {
    "bool": "bool",
    "float64": "float",
    "string": "str",
    "bytes": "bytes",
    "records": "bytes | memoryview",
    "uuid": "UUID",
}


def annotation(field: FieldSpec, outer: str) -> str:
    """The type of a field, with None if it is nullable in any version."""
    kind = f"{outer}.{field.struct.name}" if field.struct else PYTHON_TYPES.get(field.type, "int")
    if field.array:
        kind = f"list[{kind}]"
    return f"{kind} | None" if field.nullable or field.default is None else kind


def inner_structs(spec: StructSpec, found: dict[str, StructSpec]) -> dict[str, StructSpec]:
    """The nested structs, each once, in order of first use."""
    for field in spec.fields:
        if field.struct and field.struct.name not in found:
            found[field.struct.name] = field.struct
            inner_structs(field.struct, found)
    return found


def class_lines(spec: StructSpec, base: str, outer: str, indent: str) -> Iterator[str]:
    """A class statement with the fields of one struct."""
    yield f"{indent}@final"
    yield f"{indent}class {spec.name}({base}):" + (" ..." if not spec.fields else "")
    for field in spec.fields:
        yield f"{indent}    {field.attribute}: {annotation(field, outer)} = ..."


def message_lines(spec: MessageSpec) -> Iterator[str]:
    """A message class with its nested structs."""
    lines = list(class_lines(spec.struct, "_Message", spec.name, ""))
    structs = inner_structs(spec.struct, {})
    if structs:
        lines[1] = lines[1].removesuffix(" ...")
    yield from lines[:2]
    for struct in structs.values():
        yield from class_lines(struct, "_Struct", spec.name, "    ")
        yield ""
    yield from lines[2:]


def constants(table: str, values: dict[str, int]) -> str:
    """The stub of named integers."""
    lines = [f"# Written by tools/message_stubs.py from {table}.", "from typing import Final", ""]
    return "\n".join([*lines, *(f"{name}: Final = {value}" for name, value in values.items())]) + "\n"


def message_stub() -> str:
    """The stub of the message classes."""
    lines = [HEAD]
    for name in message_names():
        lines += ["\n".join(message_lines(message_class(name)._message)), ""]
    return "\n".join(lines[:-1]) + "\n"


def stubs() -> dict[Path, str]:
    """The text of each file."""
    api_keys = {name: value for name, value in vars(keys).items() if isinstance(value, int)}
    codes = {cls.name: code for code, cls in errors.CODES.items()}
    return {
        MESSAGES / "types.pyi": message_stub(),
        MESSAGES / "keys.pyi": constants("the index of the schema tables", api_keys),
        MESSAGES.parent / "error_codes.pyi": constants("broker_errors.txt", codes),
    }


def main(argv: list[str]) -> int:
    """Write, or compare with --check."""
    wrong = 0
    for path, text in stubs().items():
        if "--check" not in argv:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            wrong = 1
            print(f"{path.name} is out of date: run tools/message_stubs.py")
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
