"""The golden files of tests/data/kafka with the results of Kafka's reader.

    from tests.corpus import blobs, segments, assert_same_records

    @pytest.mark.parametrize("sample", segments(magics={2}), ids=str)
    def test_decodes(sample):
        result = kc.decode(sample.data(), include_control=True)
        assert_same_records(result, sample.expected.records)

Listing samples reads only the manifest; expected content is parsed when it is used.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent / "data" / "kafka"
Lines = Callable[[], list[dict[str, Any]]]
TIMESTAMP_TYPES = {"CreateTime": 0, "LogAppendTime": 1, "NoTimestampType": -1}


class Digest(NamedTuple):
    """A value that is too large to be stored."""

    size: int
    sha256: str


class Row(NamedTuple):
    """A record as kafkacodec should return it (a null timestamp is None, types are Kafka's numbers)."""

    offset: int
    timestamp: int | None
    timestamp_type: int
    key: bytes | None
    value: bytes | Digest | None
    headers: list[tuple[str, bytes | None]]
    is_control: bool = False
    batch: int = 0


class Expected:
    """The result of the Java reader for one file: everything up to `error`, or the complete file if that is None.

    `batches` are the sidecar's dicts (position, sizeInBytes, magic, baseOffset, ...); `error` has the index of the
    batch (`batch`), how many of its records came out first (`recordsBefore`) and the Java exception (`error`). Batches
    and records are parsed on first use: modules of tests look at hundreds of files, and at the records of few.
    """

    def __init__(self, summary: dict[str, Any], batches: Lines, records: Lines) -> None:
        self.error: dict[str, Any] | None = summary["error"]
        self.valid_bytes: int = summary["validBytes"]
        self.trailing_bytes: int = summary["trailingBytes"]
        self._batches, self._records = batches, records

    @cached_property
    def batches(self) -> list[dict[str, Any]]:
        return self._batches()

    @cached_property
    def records(self) -> list[Row]:
        return [_row(line) for line in self._records()]


@dataclass(frozen=True)
class Sample:
    """One segment or blob. `magics` are the record formats in it (or intended, if it is damaged)."""

    name: str
    writer: str
    magics: frozenset[int]

    def __str__(self) -> str:
        return self.name.removeprefix("logs/").removeprefix("blobs/")

    @property
    def path(self) -> Path:
        return ROOT / self.name

    def data(self) -> bytes:
        return self.path.read_bytes()

    @property
    def expected(self) -> Expected:
        """With checksums checked."""
        return _expected(self.writer, "crc", self.name)

    @property
    def error(self) -> dict[str, Any] | None:
        """That of `expected`, without its records."""
        return _error(self.writer, self.name)

    @property
    def expected_without_crc(self) -> Expected:
        """With checksums ignored; for damaged blobs only."""
        return _expected(self.writer, "nocrc", self.name)


class Committed(NamedTuple):
    """The offsets that a read_committed consumer received, from the start of a partition up to `end_offset`."""

    directory: Path
    topic: str
    partition: int
    end_offset: int
    offsets: list[int]


@cache
def manifest() -> dict[str, Any]:
    return json.loads((ROOT / "manifest.json").read_text())


def segments(*, magics: Iterable[int] = (0, 1, 2), writer: str | None = None) -> list[Sample]:
    """Segments (and metadata log snapshots) with only batches of `magics`."""
    found = [s for s in _samples() if s.name.startswith("logs/") and s.magics <= {*magics}]
    return [s for s in found if writer in (None, s.writer)]


def blobs(*kinds: str, magics: Iterable[int] = (0, 1, 2)) -> list[Sample]:
    """Record sets of the given kinds (builder, cut, fetch, foreign, corrupt; all if none is named) and `magics`."""
    wanted = {f"blobs/{kind}" for kind in kinds}
    found = [s for s in _samples() if s.name.startswith("blobs/") and s.magics <= {*magics}]
    return [s for s in found if not wanted or s.writer in wanted]


def sample(name: str) -> Sample:
    """The sample at a path below tests/data/kafka."""
    return next(s for s in _samples() if s.name == name)


def copied(table: Any) -> Any:
    """A table as a validated pyarrow table, with views converted to binary."""
    import pyarrow as pa

    made = pa.table(table)
    made.validate(full=True)
    plain = [pa.field(f.name, pa.binary()) if f.type == pa.binary_view() else f for f in made.schema]
    return made.cast(pa.schema(plain)) if pa.binary_view() in made.schema.types else made


def log_directories() -> list[Path]:
    """Data directories of brokers."""
    return [path for path in sorted((ROOT / "logs").iterdir()) if path.name != "truncated"]


def index_entries(writer: str) -> dict[str, list[Any]]:
    """Entries of every index, snapshot and checkpoint file of a writer, by path below tests/data/kafka."""
    return {line["file"]: line["entries"] for line in _lines(f"expected/logs/{writer}.indexes.jsonl.gz")}


def read_committed() -> list[Committed]:
    """One item per partition read by a read_committed consumer."""
    found = []
    for path in sorted((ROOT / "expected" / "logs").glob("*/*.read_committed.json")):
        content = json.loads(path.read_text())
        directory = ROOT / "logs" / path.parent.name
        found.append(
            Committed(directory, content["topic"], content["partition"], content["end_offset"], content["offsets"])
        )
    return found


def rows(columns: Any) -> list[Row]:
    """The records of anything with the Arrow interface and kafkacodec's columns, as rows (batch unknown)."""
    import pyarrow as pa

    table = pa.table(columns)
    values = [table.column(name) for name in ("offset", "timestamp", "timestamp_type", "key", "value", "headers")]
    values[1] = values[1].cast(pa.int64())
    return [
        Row(offset, timestamp, kind, key, value, [(h["key"], h["value"]) for h in headers or []])
        for offset, timestamp, kind, key, value, headers in zip(*(c.to_pylist() for c in values), strict=True)
    ]


def assert_same_records(columns: Any, expected: list[Row]) -> None:
    """Fail with the first record that differs from the result of Kafka's reader."""
    got = rows(columns)
    for mine, theirs in zip(got, expected, strict=False):
        assert _comparable(mine, theirs) == _comparable(theirs, theirs), f"offset {theirs.offset}"
    assert len(got) == len(expected)


def _comparable(row: Row, model: Row) -> tuple[Any, ...]:
    """A row in the form of the sidecar: long values by hash, without header keys if any is not UTF-8."""
    value = row.value
    if isinstance(model.value, Digest) and isinstance(value, bytes):
        value = Digest(len(value), hashlib.sha256(value).hexdigest())
    known = all("\ufffd" not in key for key, _ in model.headers)
    headers = row.headers if known else [content for _, content in row.headers]
    return (*row[:4], value, headers)


@cache
def _samples() -> tuple[Sample, ...]:
    return tuple(
        Sample(f["path"], f["writer"], frozenset(f.get("magics", ())))
        for f in manifest()["files"]
        if f["path"].endswith((".log", ".bin", ".checkpoint")) and f["size"]
    )


@lru_cache(maxsize=64)
def _expected(writer: str, reading: str, name: str) -> Expected:
    """What a reading (with or without checksums) of a file has."""
    if writer.startswith("blobs/"):
        (line,) = _about(name, f"expected/{writer}.jsonl.gz")
        found = line[reading]
        return Expected(found["summary"], lambda: found["batches"], lambda: found["records"])
    (summary,) = _about(name, f"expected/logs/{writer}.summary.jsonl")
    files = (f"expected/logs/{writer}.{kind}.jsonl.gz" for kind in ("batches", "records"))
    return Expected(summary, *(partial(_about, name, file) for file in files))


@cache
def _error(writer: str, name: str) -> dict[str, Any] | None:
    if writer.startswith("blobs/"):
        (line,) = _about(name, f"expected/{writer}.jsonl.gz")
        summary = line["crc"]["summary"]
    else:
        (summary,) = _about(name, f"expected/logs/{writer}.summary.jsonl")
    return summary["error"]


def _about(name: str, results: str) -> list[dict[str, Any]]:
    """What a file of results has about a golden file."""
    return [json.loads(line) for line in _by_name(results).get(name, ())]


@cache
def _by_name(results: str) -> dict[str, list[bytes]]:
    """The lines of a file of results, by the golden file: as they are, since parsed ones have millions of objects."""
    found: dict[str, list[bytes]] = {}
    for line in _text(results):
        begin = b'{"file":"'
        assert line.startswith(begin), line[:50]
        found.setdefault(line[len(begin) : line.index(b'"', len(begin))].decode(), []).append(line)
    return found


def _lines(results: str) -> Iterator[dict[str, Any]]:
    return map(json.loads, _text(results))


def _text(results: str) -> Iterator[bytes]:
    path = ROOT / results
    if path.exists():
        with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as lines:
            yield from lines


def _row(line: dict[str, Any]) -> Row:
    value = Digest(line["valueSize"], line["valueSha256"]) if "valueSha256" in line else _bytes(line["value"])
    return Row(
        line["offset"],
        None if line["timestamp"] == -1 else line["timestamp"],
        TIMESTAMP_TYPES[line["timestampType"]],
        _bytes(line["key"]),
        value,
        [(key, _bytes(content)) for key, content in line["headers"]],
        "control" in line,
        line["batch"],
    )


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
