"""Parquet files of an export: the encodings of columns, and what is read back."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafkacodec.spark.exporting.files import RecordFile
from kafkacodec.spark.exporting.options import FileOptions

OFFSETS = pa.array([7, 8, 9, 12], pa.int64())
TIMES = pa.array([1, None, 3, 2], pa.timestamp("us", "UTC"))


@pytest.mark.parametrize(
    ("values", "encoding"),
    [
        (pa.array([b"", None, b"\xff" * 3000, b"x"], pa.binary()), "DELTA_LENGTH_BYTE_ARRAY"),
        (pa.array([None] * 4, pa.binary()), "DELTA_LENGTH_BYTE_ARRAY"),
        (pa.array(["ü", None, "", "x" * 3000], pa.string()), "DELTA_LENGTH_BYTE_ARRAY"),
        (pa.array([1, None, -3, 4], pa.int64()), "PLAIN"),
        (pa.array([{"a": 1}, None, {"a": None}, {"a": 4}]), "PLAIN"),
    ],
    ids=["bytes", "nulls", "text", "integers", "structs"],
)
@pytest.mark.parametrize("compression", ["zstd", "none"])
def test_values_and_their_encoding(tmp_path, values, encoding, compression):
    batch = pa.record_batch([values, OFFSETS, TIMES], ["value", "offset", "timestamp"])
    file = RecordFile(str(tmp_path / "part.parquet"), batch.schema, FileOptions(compression=compression))
    for start in range(0, 4, 2):
        file.write(batch.slice(start, 2))
    done = file.close("t", 0, None)
    assert (done.rows, done.first_offset, done.last_offset, done.null_timestamps) == (4, 7, 12, 1)
    assert pq.read_table(done.path).equals(pa.table(batch))
    group = pq.read_metadata(done.path).row_group(0)
    by_path = {group.column(n).path_in_schema: group.column(n).encodings for n in range(group.num_columns)}
    assert encoding in next(found for path, found in by_path.items() if path.startswith("value"))
    assert "DELTA_BINARY_PACKED" in by_path["offset"]


def test_a_full_disk_names_the_file(tmp_path):
    """A process that may not write more: pyarrow's error had neither the file nor the system's words."""
    program = """
import resource, signal, sys
import pyarrow as pa
from kafkacodec.spark.exporting.files import RecordFile
from kafkacodec.spark.exporting.options import FileOptions
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
rows = pa.record_batch({"offset": [0], "value": [bytes(range(256)) * 99]})
file = RecordFile(sys.argv[1], rows.schema, FileOptions())
resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
try:
    file.write(rows)
    file.close("t", 0, None)
except OSError as error:
    print(error)
"""
    path = tmp_path / "x.parquet"
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout == f"[Errno 27] File too large: '{path}'\n"
