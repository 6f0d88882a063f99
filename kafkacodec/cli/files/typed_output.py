"""Records that can be read once, written with typed keys and values: their columns are known after the last one."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from kafkacodec.temporary import temporary_directory

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkacodec.cli.files.destination import Destination
    from kafkacodec.values.record_values import RecordValues

__all__ = ["write_typed"]


def write_typed(
    output: Destination, schema: pa.Schema, batches: Iterable[pa.RecordBatch], record_values: RecordValues
) -> int:
    """Write batches of one schema with typed columns; returns the number of rows.

    They are kept in a temporary file, so that memory does not grow with their number.

    Raises:
        DecodeError, SchemaError, RegistryError: as `kafkacodec.values.decode` does.
        OSError: a file cannot be written.
    """
    import pyarrow as pa

    with temporary_directory("kafkacodec.") as directory:
        path = os.path.join(directory, "records.arrow")
        with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, schema) as kept:
            for batch in batches:
                record_values.look(batch)
                kept.write(batch)
        with pa.memory_map(path) as file:
            stored = pa.ipc.open_file(file)
            again = (stored.get_batch(number) for number in range(stored.num_record_batches))
            fixed = record_values.fix(schema)
            return output.write(fixed, record_values.typed(again, fixed))
