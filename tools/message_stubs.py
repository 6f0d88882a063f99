"""Writes kafkacodec/messages/types.pyi, the stubs of the message classes, from the schema tables.

message_stubs.py           write the file
message_stubs.py --check   exit with 1 if the file is out of date
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from schemas import SCHEMAS

from kafkacodec.messages import message_class, message_names
from kafkacodec.messages.model import FieldSpec, MessageSpec, StructSpec

STUB = SCHEMAS.parent / "types.pyi"

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


def stub() -> str:
    """The text of the file."""
    lines = [HEAD]
    for name in message_names():
        lines += ["\n".join(message_lines(message_class(name)._message)), ""]
    return "\n".join(lines[:-1]) + "\n"


def main(argv: list[str]) -> int:
    """Write, or compare with --check."""
    text = stub()
    if "--check" in argv:
        same = STUB.read_text() == text
        print(f"{STUB.name} is {'up to date' if same else 'out of date: run tools/message_stubs.py'}")
        return 0 if same else 1
    STUB.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
