"""Compiles a struct's fields to the operations that the interpreter runs, for one version."""

from __future__ import annotations

from typing import Any

from kafkacodec.messages import _program
from kafkacodec.messages._program import ARRAY, COMPACT, COUNT16, LAZY, NULLABLE, Program
from kafkacodec.messages.model import FieldSpec, MessageSpec, StructSpec

__all__ = ["compile_message"]

_CODES = {name: code for code, name in enumerate(_program.TYPES)}


def compile_message(spec: MessageSpec, classes: dict[str, type], version: int) -> Program:
    """The program of a message in one version; `classes` are those of its structs, by name."""
    return _Compiler(spec, classes, version).struct(spec.struct)


class _Compiler:
    def __init__(self, spec: MessageSpec, classes: dict[str, type], version: int) -> None:
        self.classes = classes
        self.version = version
        self.flexible = version in spec.flexible
        self.title = f"{spec.name} v{version}"
        self.programs: dict[str, Program] = {}

    def struct(self, spec: StructSpec) -> Program:
        program = self.programs.get(spec.name)
        if program is None:
            program = self.programs[spec.name] = self.build(spec)
        return program

    def build(self, spec: StructSpec) -> Program:
        fields, tagged, absent, required = [], [], [], []
        for field in spec.fields:
            row = self.row(field, self.classes[spec.name])
            if self.version in field.tagged:
                tagged.append(row)
            elif self.version in field.versions:
                fields.append(row)
            else:
                absent.append(row)
                if not field.ignorable:
                    required.append(row)
        tagged.sort(key=lambda row: row[3])
        return Program(self.classes[spec.name], fields, tagged, absent, required, self.flexible, self.title)

    def row(self, field: FieldSpec, cls: Any) -> tuple[Any, ...]:
        """(name, type code, flags, tag, program of the struct, number of the slot, default)."""
        name = field.attribute
        flags = 0
        if self.version in field.nullable:
            flags |= NULLABLE
        if self.flexible and field.compact:
            flags |= COMPACT
        if field.array:
            flags |= ARRAY | (COUNT16 if field.array == "int16" else 0)
        default, lazy, slot = cls._rows[name]
        if lazy:
            flags |= LAZY
        program = None
        if field.struct and self.version in field.versions:
            program = self.struct(field.struct)
        code = _CODES["struct" if field.struct else field.type]
        return name, code, flags, field.tag, program, slot, default
