"""Reading fields of JSON from another program."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

from kafkacodec.errors import CorruptRecord

_NOT_GIVEN = object()


class Fields:
    """An object in a JSON text; each method returns one field.

    Args:
        values: the decoded object.
        path: the file that it is in, for errors.
        place: the object's place in the text, such as ``chunkIndex.``.

    Raises (all methods):
        CorruptRecord: the field is missing, or its value is of another type or out of range.
    """

    def __init__(self, values: dict[str, Any], path: str, place: str = "") -> None:
        self.values, self.path, self.place = values, path, place

    @classmethod
    def parse(cls, text: bytes, path: str) -> Fields:
        """The JSON object of a text."""
        try:
            values = json.loads(text)
        except (ValueError, RecursionError) as error:
            position = getattr(error, "pos", getattr(error, "start", 0))
            raise CorruptRecord("the manifest is not JSON", position=position, path=path) from None
        if not isinstance(values, dict):
            raise CorruptRecord("the manifest is not a JSON object", position=0, path=path)
        return cls(values, path)

    def fault(self, name: str, what: str) -> CorruptRecord:
        """The error of a field."""
        return CorruptRecord(f"{self.place}{name} in the manifest {what}", path=self.path)

    def has(self, name: str) -> bool:
        """Whether there is a field that is not null."""
        return self.values.get(name) is not None

    def _get(self, name: str, kind: type, what: str) -> Any:
        value = self.values.get(name, _NOT_GIVEN)
        if value is _NOT_GIVEN:
            raise self.fault(name, "is missing")
        if type(value) is not kind:
            raise self.fault(name, f"is not {what}")
        return value

    def number(self, name: str, lowest: int, highest: int) -> int:
        """An integer within bounds."""
        value: int = self._get(name, int, "a whole number")
        if not lowest <= value <= highest:
            raise self.fault(name, f"is {str(value)[:20]}, not from {lowest} to {highest}")
        return value

    def flag(self, name: str) -> bool:
        """True or false."""
        found: bool = self._get(name, bool, "true or false")
        return found

    def text(self, name: str) -> str:
        """A string."""
        found: str = self._get(name, str, "a string")
        if not found.isascii() and any("\ud800" <= letter <= "\udfff" for letter in found):
            raise self.fault(name, "has half of a character")
        return found

    def binary(self, name: str) -> bytes:
        """Bytes in base64."""
        return self.decoded(name, self.text(name))

    def decoded(self, name: str, text: str) -> bytes:
        """The bytes of a part of a field that is in base64."""
        try:
            return base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            raise self.fault(name, "is not in base64") from None

    def inner(self, name: str) -> Fields:
        """An object in the object."""
        return Fields(self._get(name, dict, "an object"), self.path, f"{self.place}{name}.")
