"""Parquet files of an export: the encodings of columns, and what is read back."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kafkacodec as kc
from kafkacodec.spark.exporting.days import by_day
from kafkacodec.spark.exporting.files import RecordFile
from kafkacodec.spark.exporting.options import FileOptions
from kafkacodec.spark.exporting.task import ExportTask

DAY = 86_400_000_000
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


@pytest.mark.parametrize(
    ("times", "days"),
    [
        ([0, DAY - 1], {0: [0, 1]}),
        ([-1, -DAY], {-1: [0, 1]}),
        ([DAY, 0, DAY + 1], {0: [1], 1: [0, 2]}),
        ([None, None], {None: [0, 1]}),
        ([5, None, DAY], {None: [1], 0: [0], 1: [2]}),
        ([-719_162 * DAY], {-719_162: [0]}),
        ([-719_162 * DAY - 1], {None: [0]}),
        ([2_932_897 * DAY - 1], {2_932_896: [0]}),
        ([2_932_897 * DAY, 0], {None: [0], 0: [1]}),
    ],
)
@pytest.mark.parametrize("before", [0, 2])
def test_records_by_day(times, days, before):
    """The days of UTC that dates can name; also of a part of a batch."""
    batch = pa.record_batch(
        [pa.array([3 * DAY] * before + times, pa.timestamp("us", "UTC")), pa.array(range(-before, len(times)))],
        ["timestamp", "row"],
    ).slice(before)
    assert {day: rows["row"].to_pylist() for day, rows in by_day(batch)} == days


@pytest.mark.parametrize(
    ("partition_by", "read"),
    [(("topic", "partition"), {"topic", "partition"}), (("partition",), {"partition"}), (("topic", "date"), {"topic"})],
)
def test_columns_that_only_paths_have_are_not_read(tmp_path, monkeypatch, partition_by, read):
    wanted, ordinary = [], ExportTask.write

    def noting(self, task):
        wanted.append(self.columns)
        return ordinary(self, task)

    monkeypatch.setattr(ExportTask, "write", noting)
    partition = tmp_path / "logs" / "t-1"
    partition.mkdir(parents=True)
    (partition / f"{0:020}.log").write_bytes(kc.encode([(b"k", b"v")], default_timestamp=0))
    kc.spark.export(None, tmp_path / "logs", tmp_path / "out", partition_by=partition_by)
    assert set(wanted[0]) == {"key", "value", "topic", "partition", "offset", "timestamp", "timestampType"} - read
    [row] = pq.read_table(tmp_path / "out").to_pylist()
    assert (row["key"], row["value"], row["topic"], row["partition"], row["offset"]) == (b"k", b"v", "t", 1, 0)
