from typing_extensions import Buffer

from kafkacodec.arrow._columns import Table

class LineSplitter:
    """Splits text into records.

    Args:
        delimiter: ends a record.
        key_delimiter: ends the key at the start of a record; None if records have no keys.
        key: that of all records then; None: null.
        empty_as_null: whether an empty key or value is null.

    Raises:
        ValueError: a delimiter is empty.
    """

    def __init__(
        self,
        delimiter: bytes,
        key_delimiter: bytes | None,
        key: bytes | None,
        empty_as_null: bool,
    ) -> None: ...
    def split(self, data: Buffer, last: bool, most: int) -> tuple[Table, int]:
        """The records that end in the data, at most `most`, and where the next one begins.

        With `last`, what is after the last delimiter is a record too, unless it is empty.
        """
