from typing import Any

from kafkacodec.messages._struct import Struct

TYPES: tuple[str, ...]
NULLABLE: int
COMPACT: int
ARRAY: int
COUNT16: int
LAZY: int

# (name, type code, flags, tag, program of the struct, number of the slot, default)
_Row = tuple[str, int, int, int, Program | None, int, Any]

class Program:
    cls: type[Struct]
    title: str
    def __init__(
        self,
        cls: type[Struct],
        fields: list[_Row],
        tagged: list[_Row],
        absent: list[_Row],
        required: list[_Row],
        flexible: bool,
        title: str,
    ) -> None: ...
