from collections.abc import Iterator
from typing import NoReturn

class ImportedSchema:
    """A schema that another library exported, released with this object."""

    @property
    def format(self) -> str:
        """Arrow's format string, such as ``+s`` for a struct."""

class ImportedArray:
    """An array that another library exported, released with this object."""

    @property
    def owner(self) -> ImportedSchema: ...
    def __len__(self) -> int: ...

class ArrowReader:
    """The arrays of an object with ``__arrow_c_stream__`` or ``__arrow_c_array__``, one at a time.

    Raises:
        TypeError: the object has neither.
        EncodeError: the producer reports a fault, or its stream has been read already.
    """

    def __init__(self, data: object) -> None: ...
    @property
    def owner(self) -> ImportedSchema: ...
    def open_stream(self, capsule: object) -> None: ...
    def open_array(self, schema: object, array: object) -> None: ...
    def fail(self, code: int) -> NoReturn: ...
    def __iter__(self) -> Iterator[ImportedArray]: ...
    def __next__(self) -> ImportedArray: ...
