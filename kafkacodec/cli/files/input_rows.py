"""The rows of all inputs of a command as Arrow batches, with keys and values decoded as asked."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

import click

from kafkacodec.cli.files.sources import Source, is_typed
from kafkacodec.cli.output import progress

if TYPE_CHECKING:
    import pyarrow as pa

MAX_INT32 = 2**31 - 1
# Values of --key-encoding and --value-encoding other than text.
DECODERS = ("hex", "base64")


def batches(
    sources: list[Source], asked: dict[str, str | None], encodings: dict[str, str]
) -> Generator[pa.RecordBatch, None, None]:
    """The rows of all inputs; `asked` has the columns' names in the files, None for those that need not exist."""
    import pyarrow as pa

    from kafkacodec.cli.files.readers import READERS, Names, decoded

    required = frozenset(column for column, name in asked.items() if name is not None)
    names = Names({column: name or column for column, name in asked.items()}, required)
    total = sum(source.size_in_bytes for source in sources)
    with progress("encoding", total or None, typing=is_typed(sources)) as advance:
        for source in sources:
            source.advance = advance
            try:
                for batch in READERS[source.kind](source, names):
                    yield decoded(batch, encodings)
            except (pa.ArrowException, ValueError) as error:
                raise click.ClickException(f"{source.name}: {error}") from None
