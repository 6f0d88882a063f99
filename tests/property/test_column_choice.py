"""The records kept of damaged data depend neither on the requested columns nor on the function."""

from __future__ import annotations

import random
import struct
import zlib
from typing import Any

import crc32c
import pyarrow as pa
import pytest

import kafkacodec as kc
from kafkacodec.records.compression import compress
from tests.corpus import Sample, blobs, copied
from tests.property.test_damaged_formats import DAMAGES

V2 = [s for s in blobs("builder", magics={2}) if "-none-" in s.name and s.path.stat().st_size < 20_000]
OLD = [s for s in blobs("builder", magics={0, 1}) if "-none-" in s.name]
EVERY = [*kc.decode(b"", batch_columns=True).column_names]
CHOICES: list[dict[str, Any]] = [
    {"columns": []},
    {"columns": [], "batch_columns": True},
    *({"columns": [name]} for name in EVERY),
    {"columns": ["offset", "timestamp"]},
    {"columns": ["key", "value"]},
    {"columns": [name for name in EVERY[:6] if name != "headers"]},
    {},
]


def spoil(data: bytearray, rnd: random.Random) -> None:
    """Small numbers and flipped bits affect lengths and counts more than large damage."""
    if len(data) > 200 and rnd.random() < 0.3:
        rnd.choice(DAMAGES)(data, rnd)
    for _ in range(rnd.randrange(1, 4)):
        if data:
            data[rnd.randrange(len(data))] = rnd.choice([0, 1, 2, 3, 0x7F, 0x80, 0xFF, rnd.randrange(256)])


def damaged_batch(sample: Sample, rnd: random.Random) -> bytes:
    """The first batch with damaged records, and a header that is consistent with them."""
    data = sample.data()
    end = 12 + struct.unpack_from(">i", data, 8)[0]
    header, records = bytearray(data[:61]), bytearray(data[61:end])
    spoil(records, rnd)
    codec = rnd.choice([0, 0, 0, 1, 2, 3, 4])
    payload = bytes(compress(codec, bytes(records)))
    header[8:12] = (len(payload) + 49).to_bytes(4, "big")
    header[22] = header[22] & 0xF8 | codec
    header[17:21] = crc32c.crc32c(bytes(header[21:]) + payload).to_bytes(4, "big")
    return bytes(header) + payload


def damaged_messages(sample: Sample, rnd: random.Random) -> bytes:
    """Messages of magic 0 or 1, one of them damaged, with correct checksums."""
    data, found, at = sample.data(), [], 0
    while at < len(data):
        size = 12 + struct.unpack_from(">i", data, at + 8)[0]
        found.append(bytearray(data[at : at + size]))
        at += size
    message = rnd.choice(found[:20])
    body = message[18:]
    spoil(body, rnd)
    message[18:] = body
    message[8:12] = (len(message) - 12).to_bytes(4, "big")
    message[12:16] = zlib.crc32(bytes(message[16:])).to_bytes(4, "big")
    whole = b"".join(found[:20])
    if rnd.random() < 0.5:
        return whole
    codec = rnd.choice([1, 2, 3])
    return wrapper(codec, whole, found[0][16])


def wrapper(codec: int, messages: bytes, magic: int) -> bytes:
    value = bytes(compress(codec, messages, magic=magic))
    timestamp = struct.pack(">q", 1) if magic else b""
    body = bytes([magic, codec]) + timestamp + struct.pack(">ii", -1, len(value)) + value
    return struct.pack(">qiI", 10**6, len(body) + 4, zlib.crc32(body)) + body


def account(table: kc.RecordColumns) -> tuple[Any, ...]:
    """The parts of the result that must not depend on the columns."""
    problems = [(p.position, p.base_offset, p.size_in_bytes, str(p.exception)) for p in table.problems]
    return len(table), table.consumed, problems


def assert_choices_agree(data: bytes, **options: Any) -> None:
    everything = kc.decode(data, batch_columns=True, **options)
    expected, complete = account(everything), pa.table(everything)
    for choice in CHOICES:
        table = kc.decode(data, **choice, **options)
        assert account(table) == expected, choice
        assert pa.table(table).equals(complete.select(table.column_names)), choice
        views = kc.decode(data, layout="view", **choice, **options)
        assert account(views) == expected, choice
        assert copied(views).equals(complete.select(table.column_names)), choice


def assert_functions_agree(data: bytes, **options: Any) -> None:
    whole = kc.decode(data, **options)
    chunks = list(kc.iter_columns(data, max_rows=3, max_bytes=100, **options))
    assert pa.concat_tables(map(pa.table, chunks)).equals(pa.table(whole))
    assert (sum(map(len, chunks)), chunks[-1].consumed, account_of(chunks)) == account(whole)
    assert list(kc.iter_records(data, **options)) == whole.records()
    views = list(kc.iter_columns(data, max_rows=3, max_bytes=100, layout="view", **options))
    assert pa.concat_tables(map(copied, views)).equals(pa.table(whole))
    assert (sum(map(len, views)), views[-1].consumed, account_of(views)) == account(whole)
    rows = kc.decode_batches(pa.array([data]), **options)
    assert pa.table(rows).drop(["row"]).equals(pa.table(whole))
    assert [p[:3] for p in rows.problems] == [p[:3] for p in whole.problems]
    assert rows.consumed == whole.consumed


def account_of(chunks: list[kc.RecordColumns]) -> list[Any]:
    return [problem for chunk in chunks for problem in account(chunk)[2]]


@pytest.mark.parametrize("verify_crc", [True, False])
@pytest.mark.parametrize("sample", [*V2, *OLD], ids=str)
def test_damage_with_right_checksums(sample: Sample, verify_crc: bool) -> None:
    rnd = random.Random(f"{sample.name} {verify_crc}")
    faulty = 0
    for _ in range(60):
        damage = damaged_batch if sample in V2 else damaged_messages
        data = damage(sample, rnd) + sample.data()[:2000]
        options = {"verify_crc": verify_crc, "on_error": rnd.choice(["skip", "stop"]), "include_control": True}
        if rnd.random() < 0.3:
            options["start_offset"] = rnd.randrange(20)
        assert_choices_agree(data, **options)
        assert_functions_agree(data, **options)
        faulty += bool(kc.decode(data, **options).problems)
    assert faulty > 4
