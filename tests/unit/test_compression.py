"""Decompression and compression of payloads: data from Kafka, unusual framing, damage, bombs, threads."""

from __future__ import annotations

import contextlib
import gzip
import random
import struct
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from types import SimpleNamespace
from typing import NamedTuple

import cramjam
import crc32c
import lz4.block
import lz4.frame
import pytest
import zstandard

import kafkacodec as kc
from kafkacodec.errors import (
    CorruptRecord,
    CrcMismatch,
    DecodeError,
    LimitExceeded,
    Truncated,
    UnsupportedCodec,
)
from kafkacodec.records import _compression
from kafkacodec.records.compression import CODECS, LEVELS, compress, compressor, decompress
from tests.corpus import Row, Sample, assert_same_records, blobs, sample, segments
from tests.leaks import assert_takes_less

MIB = 1 << 20
LIMIT = 16 * MIB
GZIP, SNAPPY, LZ4, ZSTD = range(1, 5)


class Payload(NamedTuple):
    codec: int
    magic: int
    data: bytes


def payload_at(data: bytes, position: int) -> Payload:
    """The compressed bytes of the batch or wrapper message at a position."""
    size, magic = struct.unpack_from(">i", data, position + 8)[0], data[position + 16]
    end = position + 12 + size
    if magic == 2:
        return Payload(data[position + 22] & 7, 2, data[position + 61 : end])
    key = position + 18 + 8 * magic
    key_size = struct.unpack_from(">i", data, key)[0]
    return Payload(data[position + 17] & 7, magic, data[key + 4 + max(key_size, 0) + 4 : end])


def first_payload(name: str) -> Payload:
    data = sample(f"blobs/{name}.bin").data()
    plain = 0
    while True:
        found = payload_at(data, plain)
        if found.codec:
            return found
        plain += 12 + struct.unpack_from(">i", data, plain + 8)[0]


def assert_holds(content: bytes, rows: list[Row]) -> None:
    """The content has the keys and values of the records, in order."""
    at = 0
    for row in rows:
        for part in (row.key, row.value):
            if isinstance(part, bytes):
                at = content.find(part, at)
                assert at >= 0, f"offset {row.offset}"
                at += len(part)


@pytest.mark.parametrize("golden", [*segments(), *blobs("builder", "fetch", "foreign")], ids=str)
def test_what_kafka_wrote(golden: Sample) -> None:
    data, expected = golden.data(), golden.expected
    for index, batch in enumerate(expected.batches):
        if batch.get("codecId") and not (expected.error and expected.error["batch"] == index):
            codec, magic, payload = payload_at(data, batch["position"])
            rows = [row for row in expected.records if row.batch == index]
            assert codec == batch["codecId"]
            assert_holds(decompress(codec, payload, magic=magic, limit=LIMIT), rows)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("foreign/v2-lz4-linked-blocks-flag", CorruptRecord),
        ("foreign/v2-lz4-no-end-mark", Truncated),
        ("foreign/v1-lz4-old-checksum", CrcMismatch),
        *((f"corrupt/v2-{codec}-data-random", CorruptRecord) for codec in CODECS[1:]),
        *((f"corrupt/v2-{codec}-data-not-compressed", CorruptRecord) for codec in CODECS[1:]),
        *((f"corrupt/v2-{codec}-data-cut-3", DecodeError) for codec in CODECS[1:]),
        *((f"corrupt/v2-{codec}-data-trailing", DecodeError) for codec in ("snappy", "zstd")),
        ("corrupt/v2-zstd-data-bit", CorruptRecord),
        ("corrupt/v2-gzip-data-bit", CorruptRecord),
    ],
)
def test_what_java_refuses(name: str, error: type[DecodeError]) -> None:
    codec, magic, payload = first_payload(name)
    with pytest.raises(error) as caught:
        decompress(codec, payload, magic=magic, limit=LIMIT)
    assert 0 <= caught.value.position <= len(payload)


@pytest.mark.parametrize("codec", ["gzip", "lz4"])
def test_bytes_after_the_stream_are_ignored_as_in_java(codec: str) -> None:
    trailing, clean = first_payload(f"corrupt/v2-{codec}-data-trailing"), first_payload(f"builder/v2-{codec}-create")
    assert len(decompress(*trailing[::2], limit=LIMIT)) == 6852
    content = decompress(*clean[::2], limit=LIMIT)
    assert decompress(clean.codec, clean.data + b"after", limit=LIMIT) == content


def test_only_the_first_of_two_lz4_frames_is_read() -> None:
    codec, _, payload = first_payload("foreign/v2-lz4-two-frames")
    assert decompress(codec, payload, limit=LIMIT) == decompress(codec, payload + b"x", limit=LIMIT)
    assert len(decompress(codec, payload, limit=LIMIT)) == 3000  # Java fails in record 139 of 400


def test_magic_0_takes_either_lz4_header_checksum() -> None:
    old, right = first_payload("foreign/v0-lz4-old-checksum"), first_payload("foreign/v0-lz4-right-checksum")
    assert old.data != right.data
    contents = [decompress(LZ4, payload.data, magic=0, limit=LIMIT) for payload in (old, right)]
    assert contents[0] == contents[1]


def samples_of(codec: int) -> list[bytes]:
    """Small payloads of other writers, in every framing, and one of Kafka."""
    content = b"".join(b"key-%d a value, a value %d;" % (i % 7, i) for i in range(40))
    kafka = first_payload(f"builder/v2-{CODECS[codec]}-delete-horizon").data
    return [kafka, *SHAPES[codec](content)]


def gzip_shapes(content: bytes) -> list[bytes]:
    return [gzip.compress(content), gzip.compress(content[:300]) + gzip.compress(content[300:])]


def snappy_shapes(content: bytes) -> list[bytes]:
    return [bytes(cramjam.snappy.compress_raw(content)), bytes(compress(SNAPPY, content * 40))[:3000]]


def lz4_shapes(content: bytes) -> list[bytes]:
    options = {"block_linked": False, "content_checksum": True, "block_checksum": True}
    return [lz4.frame.compress(content, **options), lz4.frame.compress(content, block_linked=False, store_size=True)]


def zstd_shapes(content: bytes) -> list[bytes]:
    sizeless = zstandard.ZstdCompressor(write_content_size=False, write_checksum=True)
    skippable = b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc"
    return [skippable + sizeless.compress(content), zstandard.compress(content) * 2]


SHAPES = {GZIP: gzip_shapes, SNAPPY: snappy_shapes, LZ4: lz4_shapes, ZSTD: zstd_shapes}


@pytest.mark.parametrize("codec", range(1, 5))
@pytest.mark.parametrize("which", range(3))
def test_every_cut_is_refused_or_harmless(codec: int, which: int) -> None:
    payload = samples_of(codec)[which]
    for magic in (0, 2):
        for cut in range(len(payload)):
            try:
                decompress(codec, payload[:cut], magic=magic, limit=MIB)
            except DecodeError as error:
                assert error.position is not None  # noqa: PT017


@pytest.mark.parametrize("codec", range(1, 5))
@pytest.mark.parametrize("which", range(3))
def test_every_changed_byte_is_refused_or_harmless(codec: int, which: int) -> None:
    payload = bytearray(samples_of(codec)[which])
    for at in range(len(payload)):
        for change in (0x01, 0x80, 0xFF):
            payload[at] ^= change
            with contextlib.suppress(DecodeError):
                assert len(decompress(codec, payload, limit=MIB)) <= MIB
            payload[at] ^= change


@pytest.mark.parametrize("codec", range(1, 5))
def test_random_bytes(codec: int) -> None:
    rnd = random.Random(codec)
    starts = {GZIP: b"\x1f\x8b\x08", SNAPPY: b"\x82SNAPPY\0\0\0\0\1\0\0\0\1", LZ4: b"\x04\x22\x4d\x18\x60\x40\x82"}
    start = starts.get(codec, b"\x28\xb5\x2f\xfd")
    for _ in range(500):
        with pytest.raises(DecodeError):
            decompress(codec, start + rnd.randbytes(rnd.randrange(1, 60)) + b"\xff\xff\xff\x7f", limit=MIB)


BOMBS = [f"corrupt/{name}" for name in ("v1-gzip-bomb", "v2-gzip-bomb-one-record", "v2-zstd-bomb-one-record")]


@pytest.mark.parametrize("name", [*BOMBS, "corrupt/v2-zstd-bomb-after-records"])
def test_bombs_take_no_more_than_the_limit(name: str) -> None:
    codec, magic, payload = first_payload(name)

    def refused() -> None:
        with pytest.raises(LimitExceeded):
            decompress(codec, payload, magic=magic, limit=4 * MIB)

    assert_takes_less(9 * MIB, refused)  # the limit, and again while the library's buffer grows


def gzip_bomb() -> bytes:
    return gzip.compress(bytes(80 * MIB))


def lz4_bomb() -> bytes:
    header = b"\x04\x22\x4d\x18\x60\x70\x73"  # blocks of 4 MiB
    block = lz4.block.compress(bytes(4 * MIB), store_size=False)
    return header + 20 * (struct.pack("<I", len(block)) + block) + bytes(4)


def snappy_bomb() -> bytes:
    block = bytes(cramjam.snappy.compress_raw(bytes(8 * MIB)))
    return b"\x82SNAPPY\0\0\0\0\1\0\0\0\1" + 10 * (struct.pack(">i", len(block)) + block)


@pytest.mark.parametrize(
    ("codec", "made"), [(GZIP, gzip_bomb), (SNAPPY, snappy_bomb), (LZ4, lz4_bomb)], ids=["gzip", "snappy", "lz4"]
)
def test_the_limit_is_exact_and_comes_before_the_memory(codec: int, made: Callable[[], bytes]) -> None:
    bomb = made()

    def refused(limit: int) -> None:
        with pytest.raises(LimitExceeded):
            decompress(codec, bomb, limit=limit)

    assert_takes_less(17 * MIB, lambda: refused(8 * MIB))
    refused(80 * MIB - 1)
    assert len(decompress(codec, bomb, limit=80 * MIB)) == 80 * MIB


@pytest.mark.parametrize(
    ("codec", "payload"),
    [
        (ZSTD, b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", 1 << 60) + b"\x01\x00\x00"),
        (ZSTD, b"\x28\xb5\x2f\xfd\xa0" + struct.pack("<I", 1 << 31) + b"\x15\x00\x00ab"),
        (SNAPPY, b"\xff\xff\xff\xff\x0f" + b"\x00a"),
        (LZ4, lz4.frame.compress(b"abc", block_linked=False)[:6] + struct.pack("<Q", 1 << 60)),
    ],
)
def test_sizes_that_the_data_claims_are_not_believed(codec: int, payload: bytes) -> None:

    def refused() -> None:
        with pytest.raises(DecodeError):
            decompress(codec, payload, limit=1 << 40)

    assert_takes_less(MIB, refused)


CONTENTS = [b"", b"a", bytes(range(256)) * 64, random.Random(1).randbytes(100_000), b"words and words, " * 70_000]


@pytest.mark.parametrize("content", CONTENTS, ids=len)
@pytest.mark.parametrize("codec", range(5))
def test_compress_and_back(codec: int, content: bytes) -> None:
    levels = LEVELS.get(codec)
    for level in (None,) if levels is None else (None, 1, 3, 9, levels.highest):
        payload = compress(codec, content, level=level)
        assert payload == content if codec == 0 else decompress(codec, payload, limit=len(content)) == content


def xerial(payload: bytes) -> bytes:
    """An independent reader of the framing."""
    at, parts = 16, []
    while at < len(payload):
        size = struct.unpack_from(">i", payload, at)[0]
        parts.append(bytes(cramjam.snappy.decompress_raw(payload[at + 4 : at + 4 + size])))
        at += 4 + size
    assert all(len(part) == 32768 for part in parts[:-1])
    return b"".join(parts)


@pytest.mark.parametrize("content", CONTENTS, ids=len)
def test_other_readers_take_what_compress_gives(content: bytes) -> None:
    assert gzip.decompress(compress(GZIP, content)) == content
    assert lz4.frame.decompress(compress(LZ4, content)) == content
    assert zstandard.decompress(compress(ZSTD, content)) == content
    assert xerial(bytes(compress(SNAPPY, content))) == content


@pytest.mark.parametrize(("size", "block_size"), [(65536, 65536), (65537, 262144)])
def test_lz4_frames_have_the_shape_that_every_reader_takes(size: int, block_size: int) -> None:
    info = lz4.frame.get_frame_info(compress(LZ4, bytes(size)))
    assert (info["block_linked"], info["block_size"], info["content_checksum"]) == (False, block_size, False)
    assert (info["block_checksum"], info["content_size"]) == (False, 0)


def test_lz4_in_magic_0_has_the_checksum_of_old_clients() -> None:
    golden = first_payload("foreign/v0-lz4-old-checksum").data
    content = decompress(LZ4, golden, magic=0, limit=LIMIT)
    mine = bytes(compress(LZ4, content, magic=0))
    assert mine[:7] == golden[:7]
    assert decompress(LZ4, mine, magic=0, limit=LIMIT) == content
    with pytest.raises(CrcMismatch):
        decompress(LZ4, mine, magic=1, limit=LIMIT)


@pytest.mark.parametrize(
    ("codec", "options"),
    [
        (5, {}),
        (-1, {}),
        (0, {"level": 1}),
        (SNAPPY, {"level": 1}),
        (GZIP, {"level": 10}),
        (LZ4, {"level": 0}),
        (ZSTD, {"level": 23}),
        (ZSTD, {"magic": 1}),
    ],
)
def test_what_cannot_be_compressed(codec: int, options: dict[str, int]) -> None:
    with pytest.raises(ValueError):
        compress(codec, b"abc", **options)


@pytest.mark.parametrize("codec", [0, 5, 7, -1])
def test_codecs_that_do_not_exist(codec: int) -> None:
    with pytest.raises(UnsupportedCodec):
        decompress(codec, b"abc", limit=100)


@cache
def mixed_payloads() -> list[tuple[int, bytes, bytes]]:
    rnd = random.Random(5)
    contents = [rnd.randbytes(50) * rnd.randrange(1, 2000) for _ in range(40)]
    return [(codec, bytes(compress(codec, content)), content) for content in contents for codec in range(1, 5)]


def test_threads_do_not_disturb_each_other() -> None:
    def work(seed: int) -> int:
        items = mixed_payloads().copy()
        random.Random(seed).shuffle(items)
        return sum(decompress(codec, payload, limit=LIMIT) == content for codec, payload, content in items)

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(work, range(16))) == {len(mixed_payloads())}


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_serves(kind: type) -> None:
    payload = kind(compress(ZSTD, b"abc" * 100))
    assert decompress(ZSTD, payload, limit=300) == b"abc" * 100


def with_right_crc(data: bytearray) -> bytes:
    """A damaged batch of magic 2 with a corrected checksum."""
    data[17:21] = crc32c.crc32c(bytes(data[21:])).to_bytes(4, "big")
    return bytes(data)


@pytest.mark.parametrize("verify_crc", [True, False])
def test_an_lz4_block_checksum_counts_always(verify_crc: bool) -> None:
    data = bytearray(sample("blobs/foreign/v2-lz4-block-checksum.bin").data())
    data[-5] ^= 1  # the last byte of the only block's checksum, before the end mark
    with pytest.raises(CrcMismatch, match="the checksum of an LZ4 block is wrong"):
        kc.decode(with_right_crc(data), verify_crc=verify_crc)


@pytest.mark.parametrize("verify_crc", [True, False])
def test_an_lz4_content_checksum_is_stepped_over_as_in_java(verify_crc: bool) -> None:
    golden = sample("blobs/foreign/v2-lz4-content-checksum.bin")
    data = bytearray(golden.data())
    data[-1] ^= 1
    assert_same_records(kc.decode(with_right_crc(data), verify_crc=verify_crc), golden.expected.records)


def test_an_lz4_content_size_is_stepped_over_as_in_java() -> None:
    short, long = (lz4.frame.compress(content, block_linked=False) for content in (b"abc", b"abc" * 100))
    header = 15  # with the size and the checksum over it
    assert decompress(LZ4, long[:header] + short[header:], limit=LIMIT) == b"abc"


def test_an_lz4_frame_ends_with_any_block_of_no_length() -> None:
    payload = bytes(compress(LZ4, b"abc"))
    assert decompress(LZ4, payload[:-4] + b"\0\0\0\x80" + b"after", limit=LIMIT) == b"abc"


@pytest.mark.parametrize("damaged", [b"\x00\x92\xff", b"\x00\x00"])
def test_a_block_that_claims_to_be_empty_comes_first(damaged: bytes) -> None:
    """In a separate thread, whose decompressor has no memory yet."""
    with ThreadPoolExecutor(1) as thread:
        assert bytes(thread.submit(decompress, 2, b"\x00", limit=100).result()) == b""
    with ThreadPoolExecutor(1) as thread:
        job = thread.submit(decompress, 2, damaged, limit=100)
        with pytest.raises(kc.CorruptRecord):
            job.result()


def test_lz4_with_no_room_at_all() -> None:
    with ThreadPoolExecutor(1) as thread:
        job = thread.submit(decompress, 3, compress(3, b"x" * 100), limit=0)
        with pytest.raises(kc.LimitExceeded):
            job.result()


@pytest.mark.parametrize("inflater", ["isal", "zlib"])
def test_gzip_members_of_any_size_follow_one_another(inflater: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if inflater == "zlib":
        monkeypatch.setattr(_compression, "_inflating", lambda: (zlib.decompressobj, zlib.error))
    rnd = random.Random(5)
    contents = [rnd.randbytes(rnd.choice([0, 1, 200, 5000, 100_000])) for _ in range(60)]
    payload = b"".join(map(gzip.compress, contents))
    assert decompress(GZIP, payload + b"after", limit=LIMIT) == b"".join(contents)
    for cut in rnd.sample(range(len(payload)), 50):
        with contextlib.suppress(Truncated):
            whole = decompress(GZIP, payload[:cut], limit=LIMIT)
            assert b"".join(contents).startswith(whole)
    with pytest.raises(LimitExceeded):
        decompress(GZIP, payload, limit=sum(map(len, contents)) - 1)


def test_many_gzip_members_take_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library copies the bytes after members at most a few times."""
    copied = 0

    class Counted:
        def __init__(self, bits: int) -> None:
            self.inner = zlib.decompressobj(bits)

        def __getattr__(self, name: str) -> object:
            nonlocal copied
            copied += len(self.inner.unused_data) if name == "unused_data" else 0
            return getattr(self.inner, name)

    monkeypatch.setattr(_compression, "_inflating", lambda: (Counted, zlib.error))
    payload = gzip.compress(b"") * 5000
    assert decompress(GZIP, payload, limit=LIMIT) == b""
    assert len(payload) <= copied < 16 * len(payload)


@pytest.mark.parametrize("codec", [LZ4, ZSTD])
def test_functions_inside_the_wheels_and_those_of_python_agree(codec: int) -> None:
    """On whole payloads, on damaged ones, and at every limit."""
    assert codec in _compression.direct_codecs()
    content = b"".join(b"line %d of some text\n" % i for i in range(9000))
    whole = bytes(compress(codec, content))
    rnd = random.Random(codec)
    payloads = [whole, b"", whole[:100], whole + whole, whole + b"x"]
    for _ in range(200):
        damaged = bytearray(whole)
        damaged[rnd.randrange(len(whole))] ^= 1 << rnd.randrange(8)
        payloads.append(bytes(damaged))
    for payload in payloads:
        for limit in (LIMIT, len(content), len(content) - 1, 0):
            assert _outcome(True, codec, payload, limit) == _outcome(False, codec, payload, limit)


def _outcome(direct: bool, codec: int, payload: bytes, limit: int) -> bytes | tuple[type, str]:
    try:
        return _compression.Decompressor(direct=direct).decompress(codec, payload, limit=limit)
    except DecodeError as error:
        return type(error), str(error)


@pytest.mark.parametrize("level", [None, 1, 3, 9, 12])
def test_lz4_frames_are_those_of_the_python_function(level: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those made in memory of the pool, and those made where the package does not export its functions."""
    rnd = random.Random(5)
    direct = compressor(LZ4, level=level)
    assert isinstance(direct, _compression.Lz4Frames)
    monkeypatch.setattr(_compression, "Lz4Frames", lambda level: SimpleNamespace(is_there=False))
    plain = compressor(LZ4, level=level)
    assert type(plain) is not type(direct)
    contents = [rnd.randbytes(size // 2) + bytes(size - size // 2) for size in (0, 1, 999, 16383, 16384, 65536, 65537)]
    contents.append(bytes(rnd.choices(b"some text\n", k=600_000)))
    frames = [direct(content) for content in contents]
    assert [bytes(frame) for frame in frames] == [plain(content) for content in contents]
    with pytest.raises(TypeError, match="bytes-like"):
        direct("text")  # type: ignore[arg-type]
