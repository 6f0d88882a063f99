#!/usr/bin/env bash
# pyarrow: array, scalar and table import pandas, wherever it is installed, also for data that are none of its own.
#
# Versions: pyarrow 26.0.1, pandas 3.1.1, CPython 3.11.
#
# They look whether the data are an object of pandas, and import it for that, although there can be none in a process
# that has not imported pandas. The first call takes the time of that import: about 0.25 s, and 57 MiB of memory.
# Why it matters: a program that sends or writes a few rows takes several times as long where pandas is installed.
# What does not import it: record_batch and RecordBatchReader.from_stream of objects with the Arrow interface,
# Table.from_batches, Array.from_buffers, and whatever pyarrow.compute does with them.
#
# Output seen: see EXPECTED. The script fails if that changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet pyarrow==26.0.1 pandas==3.1.1

cat > "$work/calls.py" <<'PYTHON'
import sys

import pyarrow as pa

NUMBERS = pa.Array.from_buffers(pa.int64(), 1, [None, pa.py_buffer(bytes(8))])
BATCH = pa.RecordBatch.from_arrays([NUMBERS], names=["n"])
CALLS = {
    "array of a list": lambda: pa.array([1, 2]),
    "scalar": lambda: pa.scalar(1),
    "table of a record batch": lambda: pa.table(BATCH),
    "record_batch of a record batch": lambda: pa.record_batch(BATCH),
    "RecordBatchReader.from_stream": lambda: pa.RecordBatchReader.from_stream(BATCH).read_all(),
    "Table.from_batches": lambda: pa.Table.from_batches([BATCH]),
    "to_pylist": lambda: NUMBERS.to_pylist(),
    "to_numpy": lambda: NUMBERS.to_numpy(),
}
if len(sys.argv) == 1:
    print(*CALLS, sep="\n")
else:
    assert "pandas" not in sys.modules
    CALLS[sys.argv[1]]()
    print(f"{sys.argv[1]}: {'imports pandas' if 'pandas' in sys.modules else 'does not'}")
PYTHON

"$work/venv/bin/python" "$work/calls.py" > "$work/names"
while read -r name; do "$work/venv/bin/python" "$work/calls.py" "$name"; done < "$work/names" > "$work/seen"
cat > "$work/EXPECTED" <<'EXPECTED'
array of a list: imports pandas
scalar: imports pandas
table of a record batch: imports pandas
record_batch of a record batch: does not
RecordBatchReader.from_stream: does not
Table.from_batches: does not
to_pylist: does not
to_numpy: imports pandas
EXPECTED
diff "$work/EXPECTED" "$work/seen" && cat "$work/seen"
