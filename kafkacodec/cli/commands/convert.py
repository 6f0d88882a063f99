"""``kafkacodec convert``: write records to a file of another format."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from kafkacodec.cli.console import note
from kafkacodec.cli.files.destination import destination_options
from kafkacodec.cli.files.table_export import ExportOptions, TableDestination, export, export_options, note_unasked
from kafkacodec.cli.options.inputs import OnceReading, once_reading_options, threads_option
from kafkacodec.cli.options.values import ValueOptions, value_options
from kafkacodec.cli.output import counted, progress, size
from kafkacodec.log.segments.kinds import BATCHES, kind_of
from kafkacodec.records.plan import PLACE_COLUMNS, RECORD_COLUMNS

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkacodec import RecordColumns
    from kafkacodec.records.plan import DecodeOptions


@click.command()
@once_reading_options
@destination_options(TableDestination, required=True)
@click.option("--batch-columns", is_flag=True, help="Add columns of the batches: producer, sequence, codec, ...")
@value_options
@threads_option
@export_options
def convert(
    reading: OnceReading,
    output: TableDestination,
    batch_columns: bool,
    typed: ValueOptions,
    threads: int | None,
    exporting: ExportOptions,
) -> None:
    """Write records to one file of Parquet, Arrow IPC, CSV or JSON.

    The columns are topic, partition, offset, timestamp, timestamp_type, key, value and headers. In CSV and JSON, bytes
    that are UTF-8 are text; other bytes are hex after 0x in CSV and {"base64": "..."} in JSON. In CSV, headers are
    JSON. The file appears when it is complete. For logs of Kafka 0.6 and 0.7, --batch-columns adds only magic and
    codec.

    Internal topics, such as __consumer_offsets, are converted only if --topic or a path names them.

    With --values and --keys, Avro, Protobuf and JSON become typed columns; records are then read twice, first to find
    their schemas. Columns with the number of the schema and with errors follow.

    With --partition-by or --spark, each call adds what is new since the last one to the directory or table that -o
    names: Parquet files, or --format iceberg or delta. Columns are those of Spark's Kafka source, since Spark may add
    rows too: key and value come first, timestampType is an int32, timestamps are microseconds. --values needs
    --reader-schema then, or --schemas FILE.
    """
    if exporting:
        export(reading, output, typed, exporting)
        return
    output.check_file()
    record_values = typed.record_values()
    partitions, unasked = reading.without_internal()
    segments = [
        segment.path
        for partition in partitions
        for replica in getattr(partition, "replicas", [partition])
        for segment in replica.segments
    ]
    output.check(segments)
    pieces = reading.ranges(partitions)
    total = sum(piece.size_in_bytes for piece in pieces)
    columns: DecodeOptions = {"columns": PLACE_COLUMNS + RECORD_COLUMNS, "batch_columns": batch_columns}
    schema = _schema(segments, columns)
    with progress("converting", total * (2 if record_values else 1)) as advance:

        def records() -> Iterator[RecordColumns]:
            for piece in pieces:
                yield from reading.read(piece, advance, columns=columns, threads=threads)

        if record_values is None:
            rows = output.write(schema, records())
        else:
            from kafkacodec.cli.files.writers import filled

            for chunk in records():
                record_values.look(filled(chunk, schema))
            fixed = record_values.fix(schema)
            rows = output.write(fixed, record_values.typed((filled(chunk, schema) for chunk in records()), fixed))
    summary = f"{counted(rows, 'record')} from {counted(len(pieces), 'segment')} ({size(total)})"
    note(f"{output.shown}: {summary}")
    note_unasked(unasked)
    if record_values is not None and record_values.num_errors:
        note(f"{counted(record_values.num_errors, 'value')} could not be decoded; the column of errors says why")


def _schema(segments: list[str], columns: DecodeOptions) -> pa.Schema:
    """The union of the segments' columns: segments of Kafka 0.6 and 0.7 have fewer."""
    import pyarrow as pa

    kinds = sorted({kind_of(path) for path in segments} or {BATCHES}, key=lambda kind: kind.has_batches, reverse=True)
    return pa.unify_schemas([pa.record_batch(kind.nothing(columns)).schema for kind in kinds])
