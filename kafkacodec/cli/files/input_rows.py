"""The rows of all inputs of a command as Arrow batches, with keys and values decoded as asked."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from kafkacodec.cli.files.sources import Source, is_typed
from kafkacodec.cli.output import progress
from kafkacodec.datatypes import dataclass
from kafkacodec.errors import EncodeError

if TYPE_CHECKING:
    import pyarrow as pa

MAX_INT32 = 2**31 - 1
# Values of --key-encoding and --value-encoding other than text.
DECODERS = ("hex", "base64")
_WITH_COLUMNS = ("parquet", "arrow", "arrow-stream", "feather", "csv")  # that all rows have
NO_COLUMN = "-"
"""Given in place of a column's name: there is none, and the records have null there, or their time of sending."""


_NOT_BYTES = "the column is neither bytes nor text"
_ROW = re.compile(r"records\[(\d+)\]\.?")


@dataclass(frozen=True)
class InputBatch:
    """Rows of an input.

    Attributes:
        rows: the rows.
        source: the name of the input.
        first: the number of its rows before these.
    """

    rows: pa.RecordBatch
    source: str
    first: int

    @contextmanager
    def named(self, places: Sequence[int] | None = None) -> Iterator[None]:
        """Makes an EncodeError about these rows, or those with the numbers `places`, name the input and its row."""
        try:
            yield
        except EncodeError as error:
            error.path = self._place(error.path or "", places)
            if _NOT_BYTES in error.reason:
                error.reason += "; convert it to text"
            raise

    def _place(self, path: str, places: Sequence[int] | None) -> str:
        match = _ROW.match(path)
        if match is not None:
            row = int(match[1]) if places is None else places[int(match[1])]
            rest = path[match.end() :]
            return f"{self.source}: row {self.first + int(row) + 1}{f': {rest}' if rest else ''}"
        return f"{self.source}: {path.removeprefix('records.')}" if path.startswith("records") else path


def batches(
    sources: list[Source], asked: dict[str, str | None], encodings: dict[str, str]
) -> Generator[InputBatch, None, None]:
    """The rows of all inputs.

    Args:
        sources: the inputs.
        asked: column -> its name in the files, None for one that need not exist, `NO_COLUMN` for one that is not read.
        encodings: column -> text, or the encoding of its text.
    """
    import pyarrow as pa

    from kafkacodec.cli.files.json_rows import Names
    from kafkacodec.cli.files.readers import READERS, decoded

    named = frozenset(column for column, name in asked.items() if name is not None)
    of = {column: name or column for column, name in asked.items() if name != NO_COLUMN}
    names = Names(of, named & of.keys(), leaves_out=bool(named - {"offset", "partition"}))
    if any(source.kind == "lines" for source in sources) and encodings["key"] != "text":
        raise click.UsageError("--key-encoding does not apply to lines, which have no keys")
    total = sum(source.size_in_bytes for source in sources)
    with progress("encoding", total or None, typing=is_typed(sources)) as advance:
        for source in sources:
            source.advance = advance
            first = 0
            try:
                for batch in READERS[source.kind](source, names):
                    if source.kind in _WITH_COLUMNS:
                        _check_encodings(batch, of, encodings)
                    yield InputBatch(decoded(batch, encodings, first), source.name, first)
                    first += batch.num_rows
            except (pa.ArrowException, ValueError) as error:
                raise click.ClickException(f"{source.name}: {error}") from None


def _check_encodings(batch: pa.RecordBatch, of: dict[str, str], encodings: dict[str, str]) -> None:
    """Raise ValueError if a column is to be decoded that is not there."""
    for column, encoding in encodings.items():
        if encoding != "text" and column not in batch.schema.names:
            what = f"no column {of[column]!r}" if column in of else "its column is left out"
            raise ValueError(f"--{column}-encoding {encoding}: {what}")
