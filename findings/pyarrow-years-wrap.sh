#!/usr/bin/env bash
# pyarrow: years beyond 32767 of a timestamp wrap around without an error.
#
# Versions: pyarrow 26.0.1, Python 3.11.
#
# A timestamp column holds any 64-bit number; in microseconds its last instant is in the year 294247. The year, and the
# text of a column with a time zone, come from a year of 16 bits:
#   - compute.year gives -32768 for the year 32768, and 32103 for the year 294247;
#   - cast to string of a column with a time zone fails for the year 32768 ("Failed formatting timestamp"), and for the
#     year 294247 says 32103-01-10;
#   - cast to string of the same columns without one says "<value out of range: ...>", so the limit is known there.
# Why it matters: producers that write microseconds where milliseconds are meant make such times by the million, and a
# filter by year or a CSV file then has a believable wrong one.
#
# Output seen: see EXPECTED. The script fails if the library behaves differently.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet pyarrow==26.0.1

cat > "$work/years.py" <<'PYTHON'
import pyarrow as pa
import pyarrow.compute as pc


def text(column: pa.Array) -> str:
    try:
        return column.cast(pa.string())[0].as_py()
    except pa.ArrowInvalid as error:
        return f"ArrowInvalid: {error}"


last = 2**63 - 1
first_of_32768 = 971890963200000000
for number in (first_of_32768 - 1, first_of_32768, last):
    without = pa.array([number], pa.timestamp("us"))
    zoned = pa.array([number], pa.timestamp("us", "UTC"))
    print(number, pc.year(without)[0], text(zoned), text(without), sep=" | ")
PYTHON

cat > "$work/EXPECTED" <<'EXPECTED'
971890963199999999 | 32767 | 32767-12-31 23:59:59.999999Z | 32767-12-31 23:59:59.999999
971890963200000000 | -32768 | ArrowInvalid: Failed formatting timestamp: basic_ios::clear: iostream error | <value out of range: 971890963200000000>
9223372036854775807 | 32103 | 32103-01-10 04:00:54.775807Z | <value out of range: 9223372036854775807>
EXPECTED
"$work/venv/bin/python" "$work/years.py" > "$work/seen"
diff "$work/EXPECTED" "$work/seen" && cat "$work/seen"
