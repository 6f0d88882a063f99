"""`layout="view"`: keys and values that stay where they are, and what keeps that alive."""

from __future__ import annotations

import gc
import os
import pickle
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import kafkacodec as kc
from kafkacodec.dialects import kafka07
from kafkacodec.messages import FetchResponse
from kafkacodec.protocol import fetch_to_columns
from tests.corpus import copied
from tests.unit.test_live_files import in_child

ROWS = 600
VALUES = [None if n % 7 == 3 else b"%d " % n * (n % 40) for n in range(ROWS)]
KEYS = [None if n % 5 == 4 else b"key %d" % n for n in range(ROWS)]
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def record_set(codec: Any = "none", magic: int = 2) -> bytes:
    records = list(zip(KEYS, VALUES, strict=True))
    return kc.encode(records, codec=codec, magic=magic, batch_bytes=2000)


def expected(table: pa.Table) -> bool:
    return table["key"].to_pylist() == KEYS and table["value"].to_pylist() == VALUES


class Source(bytearray):
    """A buffer that tells when it goes."""

    gone: list[int]

    def __del__(self) -> None:
        self.gone.append(1)


def source(data: bytes) -> tuple[Source, list[int]]:
    made = Source(data)
    made.gone = []
    return made, made.gone


@pytest.mark.parametrize("codec", CODECS)
def test_keys_and_values_are_views(codec: str) -> None:
    data = record_set(codec)
    views = kc.decode(data, layout="view")
    copies = kc.decode(data)
    assert views.schema[3:5] == (("key", "binary_view"), ("value", "binary_view"))
    assert copies.schema[3:5] == (("key", "binary"), ("value", "binary"))
    assert copied(views).equals(pa.table(copies))
    assert views.records() == copies.records() == list(kc.iter_records(data))


def test_values_lie_where_they_were() -> None:
    data = np.frombuffer(record_set(), np.uint8)
    parts = kc.decode(data, layout="view").buffers("value")
    (stretch,) = parts["data"]
    assert np.shares_memory(stretch, data)
    assert parts["views"]["size"].tolist() == [len(value or b"") for value in VALUES]
    row = next(n for n, value in enumerate(VALUES) if value and len(value) > 100)
    at = parts["views"]["position"][row]
    assert stretch[at : at + len(VALUES[row] or b"")].tobytes() == VALUES[row]
    assert parts["views"]["prefix"][row].tobytes() == (VALUES[row] or b"")[:4]


def test_short_values_do_not_keep_the_source() -> None:
    data, gone = source(kc.encode([(b"k", b"short"), (None, b"twelve bytes")]))
    table = kc.decode(data, layout="view")
    del data
    assert gone
    assert pa.table(table)["value"].to_pylist() == [b"short", b"twelve bytes"]


@pytest.mark.parametrize("layout", ["views", "", None, 1, b"view"])
def test_unknown_layouts(layout: Any, tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(record_set())
    calls: list[Callable[[], object]] = [
        lambda: kc.decode(b"", layout=layout),
        lambda: list(kc.iter_columns(b"", layout=layout)),
        lambda: kc.decode_batches(pa.array([b""]), layout=layout),
        lambda: list(kc.log.Segment(path).read(layout=layout)),
        lambda: list(kc.log.Partition(tmp_path).read(layout=layout)),
        lambda: fetch_to_columns(FetchResponse(), layout=layout),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r'unknown layout .*; use "copy", "view" or "auto"'):
            call()


def test_calls_that_have_no_layout(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="layout"):
        kafka07.decode(b"", layout="view")  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="layout"):
        kc.iter_records(b"", layout="view")  # type: ignore[call-arg]
    path = tmp_path / "00000000000000000000.kafka"
    path.write_bytes(kafka07.encode_messages([b"one", b"two"]))
    with pytest.raises(ValueError, match=r"0\.6 and 0\.7"):
        list(kc.log.Segment(path).read(layout="view"))
    (chunk,) = kc.log.Segment(path).read(layout="auto")
    assert ("value", "binary") in chunk.schema


# ---- auto -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", ["none", "lz4"])
@pytest.mark.parametrize(("size", "kind"), [(63, "binary"), (64, "binary_view"), (0, "binary"), (5000, "binary_view")])
def test_auto_goes_by_the_first_values(codec: Any, size: int, kind: str, tmp_path: Path) -> None:
    data = kc.encode([(b"k", b"v" * size)] * 100 + [(b"k", b"v" * (5000 - size))] * 100, codec=codec)
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(data)
    tables = [
        kc.decode(data, layout="auto"),
        kc.decode(data, layout="auto", start_offset=150),
        kc.decode(data, layout="auto", threads=3),
        *kc.iter_columns(data, layout="auto", max_rows=7),
        kc.decode_batches(pa.array([None, b"", data]), layout="auto"),
        fetch_to_columns(fetched(b"", data), layout="auto"),
        *kc.log.Segment(path).read(layout="auto"),
        *kc.log.Partition(tmp_path).read(layout="auto", max_rows=7),
    ]
    assert {dict(table.schema)["value"] for table in tables} == {kind}


def test_auto_without_records() -> None:
    for data in (b"", b"\0" * 100, b"no records at all, but bytes"):
        assert ("value", "binary") in kc.decode(data, layout="auto", on_error="stop").schema


def test_auto_has_one_layout_for_all_segments(tmp_path: Path) -> None:
    for first, size in ((0, 10), (10, 1000), (20, 10)):
        path = tmp_path / f"{first:020}.log"
        path.write_bytes(kc.encode([(None, b"v" * size)] * 10, base_offset=first))
    chunks = list(kc.log.Partition(tmp_path).read(layout="auto"))
    assert len(chunks) == 3
    assert {dict(chunk.schema)["value"] for chunk in chunks} == {"binary"}
    later = list(kc.log.Partition(tmp_path).read(layout="auto", start_offset=10))
    assert {dict(chunk.schema)["value"] for chunk in later} == {"binary_view"}


# ---- what others do with them ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", CODECS)
def test_pyarrow(codec: str, tmp_path: Path) -> None:
    data, gone = source(record_set(codec))
    chunks = [pa.record_batch(chunk) for chunk in kc.iter_columns(data, max_rows=100, layout="view")]
    table = pa.Table.from_batches(chunks)
    del data, chunks
    gc.collect()
    table.validate(full=True)
    assert expected(table)
    assert table.slice(333, 50)["value"].to_pylist() == VALUES[333:383]
    assert expected(table.combine_chunks())
    joined = pa.concat_tables([table.slice(300), table.slice(0, 300)])
    assert joined["key"].to_pylist() == KEYS[300:] + KEYS[:300]
    pa.parquet.write_table(table, tmp_path / "views.parquet")
    assert expected(pa.parquet.read_table(tmp_path / "views.parquet"))
    with pa.ipc.new_file(tmp_path / "views.arrow", table.schema) as out:
        out.write_table(table)
    assert expected(pa.ipc.open_file(tmp_path / "views.arrow").read_all())
    del table, joined
    assert gone


def test_ipc_has_the_values_of_a_chunk_alone() -> None:
    data = record_set()
    chunks = list(kc.iter_columns(data, max_rows=20, layout="view"))
    sizes = [pa.ipc.get_record_batch_size(pa.record_batch(chunk.to_pyarrow().select(["value"]))) for chunk in chunks]
    assert sum(sizes) < 2 * len(data)


@pytest.mark.parametrize("codec", ["none", "lz4", "zstd"])
def test_polars(codec: str, tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    data, gone = source(record_set(codec))
    frames = [polars.DataFrame(chunk) for chunk in kc.iter_columns(data, max_rows=100, layout="view")]
    frame = polars.concat(frames)
    del data, frames
    gc.collect()
    assert frame["value"].to_list() == VALUES
    assert frame.slice(333, 50)["key"].to_list() == KEYS[333:383]
    assert frame.rechunk().filter(polars.col("value").is_null()).height == VALUES.count(None)
    frame.write_parquet(tmp_path / "views.parquet")
    assert expected(pa.parquet.read_table(tmp_path / "views.parquet"))
    del frame
    gc.collect()
    assert gone


def query(views: Any, directory: Path) -> None:
    """In a frame of its own, whose variables DuckDB looks at and so keeps alive up to CPython 3.12."""
    import duckdb

    with duckdb.connect() as connection:
        rows = connection.sql('select key, value from views order by "offset"').fetchall()
        assert rows == list(zip(KEYS, VALUES, strict=True))
        some = 'select sum(octet_length(value)), count(key) from views where "offset" between 100 and 199'
        size, keys = sum(len(value or b"") for value in VALUES[100:200]), 100 - KEYS[100:200].count(None)
        assert connection.sql(some).fetchall() == [(size, keys)]
        connection.sql(f"copy (select key, value from views) to '{directory / 'views.parquet'}' (format parquet)")
        assert expected(pa.parquet.read_table(directory / "views.parquet"))
        both = connection.sql("select value from views union all select value from views").fetchall()
        assert len(both) == 2 * ROWS


@pytest.mark.parametrize("codec", ["none", "lz4", "zstd"])
def test_duckdb(codec: str, tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    data, gone = source(record_set(codec))
    views = kc.decode(data, layout="view")
    del data
    query(views, tmp_path)
    del views
    gc.collect()
    assert gone


def test_pandas() -> None:
    frame = kc.decode(record_set(), layout="view").to_pandas()
    assert [None if value is None else bytes(value) for value in frame["value"]] == VALUES


def test_what_a_table_says() -> None:
    data = record_set()
    table = kc.decode(data, layout="view")
    assert len(table) == ROWS
    assert repr(table).startswith(f"<RecordColumns: {ROWS:,} rows (offset, timestamp")
    assert 32 * ROWS < table.nbytes < 64 * ROWS  # the source is not its own memory
    packed = kc.decode(record_set("lz4"), layout="view")
    assert packed.nbytes > table.nbytes + sum(len(value or b"") for value in VALUES)
    assert table["value"].tolist() == VALUES
    with pytest.raises(TypeError, match="to_arrow"):
        pickle.dumps(table)
    assert expected(pa.table(pickle.loads(pickle.dumps(pa.table(table)))))


def test_threads_pass_them_on() -> None:
    data, gone = source(record_set("zstd"))
    batches = [pa.record_batch(chunk) for chunk in kc.iter_columns(data, max_rows=50, layout="view")]
    del data
    found: list[list[bytes | None]] = [[] for _ in batches]

    def look(i: int) -> None:
        found[i] = batches[i]["value"].to_pylist()
        batches[i] = None  # the last reference: memory is given back here

    workers = [threading.Thread(target=look, args=(i,)) for i in range(len(batches))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [value for part in found for value in part] == VALUES
    assert gone


@pytest.mark.parametrize("threads", [2, 5])
def test_decoding_in_threads(threads: int) -> None:
    for codec in ("none", "lz4"):
        data, gone = source(record_set(codec) + record_set("zstd"))
        table = kc.decode(data, threads=threads, layout="view")
        one = kc.decode(bytes(data), layout="copy")
        assert copied(table).equals(pa.table(one))
        del data, table
        gc.collect()
        assert gone


def test_what_is_exported_is_not_resized() -> None:
    data = bytearray(record_set())
    table = kc.decode(data, layout="view")
    with pytest.raises(BufferError):
        data.clear()
    del table
    data.clear()


def test_encoding_takes_them() -> None:
    for codec in ("none", "zstd"):
        table = kc.decode(record_set(codec), layout="view")
        assert kc.encode(table, batch_bytes=2000) == record_set()


@pytest.mark.slow
def test_at_the_end_of_the_interpreter() -> None:
    import subprocess

    code = (
        "import kafkacodec as kc, pyarrow as pa\n"
        "table = pa.table(kc.decode(bytearray(kc.encode([(b'k', b'v' * 100)] * 10, codec='zstd')), layout='view'))\n"
        "kc.kept = pa.table(kc.decode(bytearray(kc.encode([(b'k', b'v' * 100)] * 10)), layout='view'))\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# ---- other sources --------------------------------------------------------------------------------------------------


def fetched(*partitions: bytes) -> FetchResponse:
    made = [FetchResponse.PartitionData(partition_index=i, records=data) for i, data in enumerate(partitions)]
    response = FetchResponse(responses=[FetchResponse.FetchableTopicResponse(topic="t", partitions=made)])
    return FetchResponse.decode(response.encode(12), 12)


def test_fetch_responses() -> None:
    table = fetch_to_columns(fetched(record_set(), record_set("lz4")), layout="view")
    gc.collect()
    assert pa.table(table)["value"].to_pylist() == VALUES + VALUES


@pytest.mark.parametrize(
    "kind", [pa.binary(), pa.large_binary(), pa.binary_view(), pa.dictionary(pa.int32(), pa.binary())], ids=str
)
def test_columns_of_blobs(kind: pa.DataType) -> None:
    data = record_set()
    pieces = [record_set(), None, b"", record_set("zstd"), data[: len(data) // 2], record_set("lz4")]
    blobs = (
        pa.array(pieces, pa.binary()).cast(kind)
        if not pa.types.is_dictionary(kind)
        else (pa.array(pieces, pa.binary()).dictionary_encode())
    )
    copies = kc.decode_batches(blobs)
    for column in (blobs, pa.chunked_array([blobs.slice(0, 2), blobs.slice(2)])):
        views = kc.decode_batches(column, layout="view")
        del column
        assert copied(views).equals(pa.table(copies))
    del blobs, pieces
    gc.collect()
    assert copied(views).equals(pa.table(copies))


def test_blobs_of_one_column_share_a_buffer() -> None:
    views = kc.decode_batches(pa.array([record_set()] * 20), layout="view")
    assert len(views.buffers("value")["data"]) == 1


def test_the_limit_counts_what_is_decompressed() -> None:
    data = kc.encode([(None, b"v" * 100_000)] * 100, codec="lz4")
    assert len(kc.decode(data, layout="view", max_total_bytes=40 << 20)) == 100
    for codec in ("lz4", "zstd"):
        packed = kc.encode([(None, b"v" * 100_000)] * 100, codec=codec)
        with pytest.raises(kc.errors.LimitExceeded, match="max_total_bytes"):
            kc.decode(packed, layout="view", max_total_bytes=4 << 20, on_error="skip")
    plain = kc.encode([(None, b"v" * 100_000)] * 100)
    assert len(kc.decode(plain, layout="view", max_total_bytes=1 << 20)) == 100


# ---- files ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(kc.encode([(None, b"%06d" % n * 20) for n in range(5000)]))
    return path


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_chunks_of_files_have_their_own_bytes(codec: Any, tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(kc.encode([(None, b"%06d" % n * 20) for n in range(5000)], codec=codec))
    chunks = list(kc.log.Segment(path).read(layout="view"))
    os.truncate(path, 0)
    values = [value for chunk in chunks for value in pa.table(chunk)["value"].to_pylist()]
    assert values == [b"%06d" % n * 20 for n in range(5000)]


def test_a_mapped_file_that_is_shortened_reads_as_zeros(segment: Path) -> None:
    def look() -> str:
        chunks = [pa.table(chunk) for chunk in kc.log.Segment(segment).read(layout="view", mapped=True)]
        os.truncate(segment, 4096)
        values = [value for chunk in chunks for value in chunk["value"].to_pylist()]
        return f"{values[0][:6].decode()} {values[-1].count(0)}"

    assert in_child(look) == "000000 120"


def test_a_file_that_is_shortened_while_it_is_read(segment: Path) -> None:
    def look(mapped: bool) -> str:
        given = 0
        try:
            for chunk in kc.log.Segment(segment).read(layout="view", mapped=mapped, max_rows=100):
                given += len(chunk)
                os.truncate(segment, 100_000)
        except kc.errors.Truncated as error:
            return f"{given} {error.position}"
        return "no error"

    whole = segment.read_bytes()
    for mapped in (False, True):
        segment.write_bytes(whole)
        assert in_child(lambda mapped=mapped: look(mapped)) == "100 100000"


LIMIT = 1 << 20


def with_much_beside(codec: Any, *, records: int, batch_bytes: int) -> bytes:
    """Keys that are longer than a view, and values that are not asked for."""
    return kc.encode(
        [(b"a key that is longer than a view", bytes(100_000))] * records, codec=codec, batch_bytes=batch_bytes
    )


def sizes(chunks: Any) -> tuple[list[int], list[int]]:
    """Of each chunk: its rows, and its memory in bytes."""
    rows, memory = [], []
    for chunk in chunks:
        rows.append(len(chunk))
        memory.append(chunk.nbytes)
    return rows, memory


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("codec", "magic"), [*((codec, 2) for codec in CODECS[1:]), ("gzip", 1), ("lz4", 0)])
def test_a_chunk_keeps_few_decompressed_records(codec: Any, magic: int, threads: int) -> None:
    """A few bytes of a batch keep all of it in memory."""
    one = kc.encode([(b"a key that is longer than a view", bytes(100_000))], codec=codec, magic=magic)
    before = kc.memory_in_use().live
    chunks = kc.iter_columns(one * 100, columns=["key"], layout="view", max_bytes=LIMIT, threads=threads)
    first = next(chunks)
    assert 10 <= len(first) <= 11
    assert LIMIT <= first.nbytes <= LIMIT + 101_000
    if threads == 1:
        assert kc.memory_in_use().live - before < 6 * LIMIT  # blocks for several batches, of which chunks share some
    rows, memory = sizes(chunks)
    assert len(first) + sum(rows) == 100
    assert max(memory) <= LIMIT + 101_000


def test_a_batch_that_is_in_memory_is_read_on() -> None:
    """Its records beyond the limit take no more memory, and chunks of a row would take time."""
    data = with_much_beside("lz4", records=60, batch_bytes=3_000_000)
    rows, _ = sizes(kc.iter_columns(data, columns=["key"], layout="view", max_bytes=LIMIT))
    assert rows == [29, 29, 2]


@pytest.mark.parametrize("batch_bytes", [1, 10**8])
def test_a_chunk_copies_few_bytes_of_a_file(batch_bytes: int, tmp_path: Path) -> None:
    """The copy has everything from the first key to the last."""
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(with_much_beside("none", records=100, batch_bytes=batch_bytes))
    rows, memory = sizes(kc.log.Segment(path).read(columns=["key"], layout="view", max_bytes=LIMIT))
    assert sum(rows) == 100
    assert max(memory) <= LIMIT + 101_000
    mapped, _ = sizes(kc.log.Segment(path).read(columns=["key"], layout="view", max_bytes=LIMIT, mapped=True))
    assert mapped == [100]  # which takes no memory


def test_skipped_batches_are_not_copied(tmp_path: Path) -> None:
    batch = kc.encode([(None, b"a value that is longer than a view")])
    control = bytearray(kc.encode([(None, bytes(LIMIT))]))
    control[22] |= 0x20  # attributes: a control batch
    control[17:21] = kc.crc32c(control[21:]).to_bytes(4, "big")
    path = tmp_path / "repeated.log"  # no offset: the batches have the same ones
    path.write_bytes((batch + control) * 50)
    rows, memory = sizes(kc.log.Segment(path).read(layout="view"))
    assert rows == [50]
    assert memory[0] < 50 * 200
