#!/usr/bin/env bash
# Python's Avro libraries and a reader's default for a field of bytes: neither returns what the specification says.
#
# Versions: fastavro 1.13.1, avro 1.12.2 (Apache's library for Python), Python 3.11.
#
# The Avro specification writes the default of a bytes or fixed field as a JSON string in which the code points 0 to 255
# stand for the bytes 0 to 255: "\u00ff" is the one byte ff. A value written without the field, read with a schema that
# adds it, gives
#   - fastavro: the str 'ÿ' instead of b'\xff', also for fixed; and logical types are left out: a decimal's default is a
#     str and a date's an int, where a value that was written comes back as Decimal and date. A row that was read this
#     way cannot be written again with the same schema.
#   - avro: b'\xc3\xbf', the text in UTF-8, so two bytes for one.
# Why it matters: programs that evolve a schema get another type (or other bytes) in old rows than in new ones.
#
# Output seen: see EXPECTED. The script fails if the libraries behave differently.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet fastavro==1.13.1 avro==1.12.2

cat > "$work/defaults.py" <<'PYTHON'
import io
import json

import avro.io
import avro.schema
import fastavro

written = {"type": "record", "name": "T", "fields": [{"name": "a", "type": "int"}]}
added = [
    {"name": "b", "type": "bytes", "default": "\u00ff"},
    {"name": "f", "type": {"type": "fixed", "name": "F", "size": 2}, "default": "\u0001\u0002"},
    {"name": "d", "type": {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, "default": "\u0001"},
    {"name": "e", "type": {"type": "int", "logicalType": "date"}, "default": 1},
]
read = {"type": "record", "name": "T", "fields": [*written["fields"], *added]}

stored = io.BytesIO()
fastavro.schemaless_writer(stored, written, {"a": 1})

stored.seek(0)
row = fastavro.schemaless_reader(stored, written, read)
print("fastavro", ascii(row))
try:
    fastavro.schemaless_writer(io.BytesIO(), read, row)
except TypeError as error:
    print("fastavro writes it again:", error)

stored.seek(0)
schemas = [avro.schema.parse(json.dumps(schema)) for schema in (written, read)]
print("avro", avro.io.DatumReader(*schemas).read(avro.io.BinaryDecoder(stored)))
PYTHON

cat > "$work/EXPECTED" <<'EXPECTED'
fastavro {'a': 1, 'b': '\xff', 'f': '\x01\x02', 'd': '\x01', 'e': 1}
fastavro writes it again: a bytes-like object is required, not 'str' on field b
avro {'a': 1, 'b': b'\xc3\xbf', 'f': b'\x01\x02', 'd': b'\x01', 'e': 1}
EXPECTED

"$work/venv/bin/python" "$work/defaults.py" > "$work/seen"
diff "$work/EXPECTED" "$work/seen" && cat "$work/seen"
