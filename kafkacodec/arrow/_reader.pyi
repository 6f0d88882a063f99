from collections.abc import Iterator

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

class ImportedStream:
    """A stream that another library exported, released with this object."""

class ArrowReader:
    """The arrays of an object with ``__arrow_c_stream__`` or ``__arrow_c_array__``, one at a time.

    Raises:
        TypeError: the object has neither.
        ValueError, OSError: the producer reports an error, or its data was already consumed.
    """

    def __init__(self, data: object) -> None: ...
    @property
    def owner(self) -> ImportedSchema: ...
    def __iter__(self) -> Iterator[ImportedArray]: ...
    def __next__(self) -> ImportedArray: ...
