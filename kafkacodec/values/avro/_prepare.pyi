from collections.abc import Callable, Iterable
from typing import Any, final

NO_NUMBERS: frozenset[str]
"""Floats that JSON has as text."""
TYPE: str
"""With what a record may have its name among its fields."""

class Prepare:
    """From a value to what fastavro takes: the same object if it needs nothing."""

    def __call__(self, value: Any) -> Any:
        """What fastavro takes for a value.

        Raises:
            kafkacodec.values.avro.mismatch.Mismatch: the value, or a part of it, does not match its type.
            RecursionError: the value is too deep.
        """

@final
class Whole(Prepare):
    """Refuses what fastavro would cut: fractions, truth values and numbers of too many bits.

    Args:
        bits: 32 or 64.
        of_text: what makes a number of text.
        of_other: what a value that is neither a number nor text becomes; by default itself.
    """

    def __init__(
        self, bits: int, of_text: Callable[[str], int] | None = None, of_other: Callable[[Any], Any] | None = None
    ) -> None: ...

@final
class Boolean(Prepare):
    """Refuses numbers and text."""

@final
class Float(Prepare):
    """Makes floats of whole numbers and of `NO_NUMBERS`."""

@final
class Optional(Prepare):
    """A union of null with one other type.

    Args:
        own: the type of Python that its values mostly have.
        only: what prepares those; None if they need nothing.
        other: what prepares others, for the union.
    """

    def __init__(self, own: type, only: Callable[[Any], Any] | None, other: Callable[[Any], Any]) -> None: ...

@final
class Array(Prepare):
    """Prepares the items of lists."""

    def __init__(self, item: Callable[[Any], Any]) -> None: ...

@final
class Map(Prepare):
    """Prepares the values of mappings."""

    def __init__(self, item: Callable[[Any], Any]) -> None: ...

@final
class Record(Prepare):
    """Prepares the fields of mappings, and refuses unknown and missing ones.

    Args:
        names: the names of all fields.
    """

    def __init__(self, names: Iterable[str]) -> None: ...
    def add(self, name: str, prepare: Callable[[Any], Any] | None, required: bool) -> None:
        """Say what prepares a field, if it needs something, and whether it has to be there."""
