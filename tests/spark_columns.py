"""Spark's columns compared with the golden files' records."""

from pathlib import Path

import pyarrow as pa

from tests.corpus import Row, Sample, segments


def as_decoded(table):
    """The table with the decoder's column names and types, for comparison with the golden records."""
    return pa.table(
        {
            "offset": table["offset"],
            "timestamp": table["timestamp"].cast(pa.timestamp("ms", tz="UTC")),
            "timestamp_type": table["timestampType"],
            "key": table["key"],
            "value": table["value"],
            "headers": table["headers"],
        }
    )


# Spark's timestamps are microseconds: times out of range are null.
LIMIT = ((1 << 63) - 1) // 1000


def consumer_records(samples: list[Sample]) -> list[Row]:
    """What a consumer receives of these segments in order: all except control records."""
    return [_limited(row) for sample in samples for row in sample.expected.records if not row.is_control]


def has_far_times(sample: Sample) -> bool:
    """Whether a record has a time that Spark cannot hold."""
    return any(_limited(row) != row for row in sample.expected.records)


def _limited(row: Row) -> Row:
    return row._replace(timestamp=None) if row.timestamp is not None and abs(row.timestamp) > LIMIT else row


def partition_directories(magics: set[int]) -> dict[Path, list[Sample]]:
    """The golden segments by partition directory, oldest first, if all are of these formats."""
    found: dict[Path, list[Sample]] = {}
    for sample in sorted(segments(), key=lambda sample: sample.name):
        if sample.path.suffix == ".log":
            found.setdefault(sample.path.parent, []).append(sample)
    return {path: samples for path, samples in found.items() if all(s.magics <= magics for s in samples)}
