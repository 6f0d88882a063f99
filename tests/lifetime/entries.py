"""Every public function that takes a buffer, as data: its arguments, and how to inspect its result."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa

import kafkacodec as kc
from kafkacodec import messages, protocol
from kafkacodec.broker.topics._head import read_head
from kafkacodec.dialects import kafka07, line
from kafkacodec.log.segments._resync import Resync
from kafkacodec.records._crc import crc32
from kafkacodec.records.compression import CODECS, compress, decompress
from kafkacodec.records.parallel import runs

ROWS = [(i, i * 1000, 0, b"key %d" % i, b"value %d" % i * 9, (("header", b"x"),)) for i in range(40)]


class Entry(NamedTuple):
    """A function that takes a buffer.

    Attributes:
        good: valid bytes.
        bad: bytes that raise a KafkaCodecError; None if all bytes are valid.
        call: the call, for an exporter of the bytes.
        show: converts the result to plain values, equal for every exporter.
    """

    good: bytes
    bad: bytes | None
    call: Callable[[Any], Any]
    show: Callable[[Any], Any] = lambda result: result


def _spoiled(data: bytes) -> bytes:
    """Bytes with damage in the middle, which every checksum detects."""
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 0x55]) + data[middle + 1 :]


def _plain(value: Any) -> Any:
    if isinstance(value, (memoryview, bytearray)):
        return bytes(value)
    if isinstance(value, messages.MessageStruct):
        return value.to_dict()
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


def _rows(table: Any) -> Any:
    return [table.records(), table.consumed, [(p.position, p.size_in_bytes) for p in table.problems]]


def _searched(table: kc.RecordColumns) -> kc.RecordColumns:
    return kc.Search(grep="key 1", header=("header", b"x")).select(table)


def _tables(tables: Any) -> Any:
    return [_rows(table) for table in tables]


def _suspended(data: Any) -> Any:
    """An iterator after its first chunk, and the chunk."""
    chunks = kc.iter_columns(data, max_rows=7)
    return [chunks, next(chunks)]


def _in_threads(data: Any, **options: Any) -> Any:
    """Chunks that threads decode ahead, in runs that are short enough for so few bytes."""
    runs.FIRST_RUN = runs.SHORTEST_RUN = 300
    return kc.iter_columns(data, max_rows=7, threads=3, **options)


def _views(data: Any, **options: Any) -> Any:
    return kc.decode(data, layout="view", **options)


def _views_elsewhere(data: Any) -> Any:
    """The views as an object of another library; no objects of kafkacodec remain."""
    return pa.record_batch(_views(data)).column("value")


def _views_suspended(data: Any) -> Any:
    chunks = kc.iter_columns(data, max_rows=7, layout="view")
    return [chunks, next(chunks)]


def _fetched(data: Any) -> Any:
    partition = messages.FetchResponse.PartitionData(partition_index=5, records=data)
    topic = messages.FetchResponse.FetchableTopicResponse(topic="orders", partitions=[partition])
    return messages.FetchResponse(responses=[topic])


SET = kc.encode(ROWS, batch_bytes=500)
LARGE_SET = kc.encode([(None, bytes(20_000))])
OLD = kafka07.encode_messages([row[4] for row in ROWS])
RESPONSE = _fetched(SET).encode(12)
MANY = messages.MetadataResponse(
    topics=[messages.MetadataResponse.MetadataResponseTopic(name=f"topic {i}") for i in range(40)]
).encode(12)
TAGGED = messages.MetadataResponse(cluster_id="cluster", unknown_tagged_fields={9: b"kept"}).encode(12)
FRAME = protocol.encode_request(messages.MetadataRequest(topics=None), 12, 7, client_id="me")
ANSWER = protocol.encode_response(_fetched(SET), 12, 7)
PRODUCE07 = kafka07.ProduceRequest("orders", 1, OLD)
FETCH07 = kafka07.FetchRequest("orders", 1, 0, 1 << 20)


def _entries() -> Iterator[tuple[str, Entry]]:
    for codec in CODECS:
        data = kc.encode(ROWS, batch_bytes=500, codec=codec)
        yield f"decode {codec}", Entry(data, _spoiled(data), kc.decode, _rows)
    for magic in (0, 1):
        data = kc.encode([(b"k", b"v" * 50)] * 9, magic=magic, codec="gzip")
        yield f"decode magic {magic}", Entry(data, _spoiled(data), kc.decode, _rows)
    yield "decode in threads", Entry(SET, _spoiled(SET), lambda data: kc.decode(data, threads=3), _rows)
    yield "decode and skip", Entry(_spoiled(SET), None, lambda data: kc.decode(data, on_error="skip"), _rows)
    yield "decode and stop", Entry(_spoiled(SET), None, lambda data: kc.decode(data, on_error="stop"), _rows)
    yield "decode views", Entry(SET, _spoiled(SET), _views, _rows)
    packed = kc.encode(ROWS, batch_bytes=500, codec="lz4")
    yield "decode views, compressed", Entry(packed, _spoiled(packed), _views, _rows)
    yield "decode views and skip", Entry(_spoiled(SET), None, lambda data: _views(data, on_error="skip"), _rows)
    yield "views, in other hands", Entry(SET, _spoiled(SET), _views_elsewhere, lambda values: values.to_pylist())
    yield "iter_columns of views suspended", Entry(SET, None, _views_suspended, lambda held: _rows(held[1]))
    yield (
        "iter_columns of views in threads",
        Entry(SET, _spoiled(SET), lambda data: list(_in_threads(data, layout="view")), _tables),
    )
    yield "search views and take", Entry(SET, _spoiled(SET), lambda data: _searched(_views(data)), _rows)
    yield "search and take", Entry(SET, _spoiled(SET), lambda data: _searched(kc.decode(data)), _rows)
    yield "iter_columns", Entry(SET, _spoiled(SET), lambda data: list(kc.iter_columns(data, max_rows=7)), _tables)
    yield "iter_columns suspended", Entry(SET, None, _suspended, lambda held: _rows(held[1]))
    yield "iter_columns in threads", Entry(SET, _spoiled(SET), lambda data: list(_in_threads(data)), _tables)
    yield (
        "iter_columns in threads suspended",
        Entry(SET, None, lambda data: (lambda it: [it, next(it)])(_in_threads(data)), lambda held: _rows(held[1])),
    )
    yield "iter_columns in threads not begun", Entry(SET, None, _in_threads, lambda held: None)
    yield "iter_columns not begun", Entry(SET, None, lambda data: kc.iter_columns(data), lambda held: None)
    yield "iter_records", Entry(SET, _spoiled(SET), lambda data: list(kc.iter_records(data)))
    yield (
        "iter_records suspended",
        Entry(
            SET,
            None,
            lambda data: (lambda it: [it, list(itertools.islice(it, 3))])(kc.iter_records(data)),
            lambda r: r[1],
        ),
    )
    yield "scan", Entry(SET, b"\0" * 8 + b"\xff" * 60, kc.scan, lambda table: table["position"].tolist())
    yield "scan and stop", Entry(_spoiled(SET), None, lambda data: kc.scan(data, on_error="stop"), len)
    yield "fetch_to_columns", Entry(SET, _spoiled(SET), lambda data: protocol.fetch_to_columns(_fetched(data)), _rows)
    one = kc.encode(ROWS)
    yield (
        "a produced batch",
        Entry(one, one[:16] + b"\x09" + one[17:], read_head, lambda found: (found[0].crc_ok, found[0].records_ok)),
    )
    yield "Resync", Entry(_spoiled(SET), None, Resync, lambda search: [search.next(0), search.next(1)])

    yield "crc32c", Entry(SET * 30, None, kc.crc32c)
    yield "crc32", Entry(SET * 30, None, crc32)
    yield "murmur2", Entry(SET, None, kc.murmur2)
    yield "decode_varint", Entry(kc.encode_varint(-(1 << 40)), b"\xff", kc.decode_varint)
    yield "decode_uvarint", Entry(kc.encode_uvarint(1 << 40), b"\xff" * 11, kc.decode_uvarint)
    for number, codec in enumerate(CODECS[1:], 1):
        packed = bytes(compress(number, SET))
        yield f"compress {codec}", Entry(SET, None, lambda data, n=number: bytes(compress(n, data)))
        yield (
            f"decompress {codec}",
            Entry(packed, packed[: len(packed) // 2], lambda data, n=number: decompress(n, data, limit=1 << 20)),
        )

    yield "encode", Entry(SET, None, lambda data: kc.encode([(data, data), (None, data)]))
    yield (
        "encode compressed",
        Entry(SET, None, lambda data: kc.encode([(data, data)] * 3, codec="zstd", batch_bytes=100)),
    )
    yield "encode headers", Entry(SET, None, lambda data: kc.encode([(0, 0, 0, b"", b"", [("h", data)])]))
    yield "iter_encoded", Entry(SET, None, lambda data: list(kc.iter_encoded([(data, data)] * 3, batch_bytes=100)))
    yield "partition", Entry(SET, None, lambda data: kc.partition([data, data], 12).tolist())
    yield (
        "split_confluent",
        Entry(b"\0\0\0\0\7" + SET, None, lambda data: kc.split_confluent([data]), lambda c: len(c.payloads)),
    )

    yield (
        "decode a message",
        Entry(RESPONSE, RESPONSE[:-9], lambda data: messages.FetchResponse.decode(data, 12), _plain),
    )
    # More structs than are made at once: the others are made on first access, from bytes that the message keeps.
    yield (
        "decode a message of many structs",
        Entry(MANY, MANY[:-9], lambda data: messages.MetadataResponse.decode(data, 12), _plain),
    )
    yield "records of a message", Entry(RESPONSE, None, _records_of, bytes)
    yield (
        "decode tagged fields",
        Entry(TAGGED, TAGGED[:-1], lambda data: messages.MetadataResponse.decode(data, 12), _plain),
    )
    yield "encode a message", Entry(SET, None, lambda data: _fetched(data).encode(12))
    yield (
        "encode a message in pieces",
        Entry(LARGE_SET, None, lambda data: b"".join(_fetched(data).encode_frame_pieces(12, b"head"))),
    )
    yield "decode_request", Entry(FRAME, FRAME[:-1], protocol.decode_request, _plain)
    yield "decode_response", Entry(ANSWER, ANSWER[:-1], lambda data: protocol.decode_response(data, 1, 12), _plain)
    yield "split_frames", Entry(FRAME * 3 + b"\0", b"\xff" * 9, protocol.split_frames, _plain)
    yield "frame_size", Entry(FRAME, b"\xff" * 9, protocol.frame_size)
    yield "Connection", Entry(FRAME, b"\xff" * 9, lambda data: protocol.Connection("broker").receive(data), len)

    yield "kafka07.decode", Entry(OLD, _spoiled(OLD), kafka07.decode, _rows)
    yield (
        "kafka07.iter_columns",
        Entry(OLD, _spoiled(OLD), lambda data: list(kafka07.iter_columns(data, max_rows=3)), _tables),
    )
    yield "kafka07.iter_columns not begun", Entry(OLD, None, kafka07.iter_columns, lambda held: None)
    yield "kafka07.valid_bytes", Entry(_spoiled(OLD), None, kafka07.valid_bytes)
    yield "kafka07.encode_messages", Entry(SET, None, lambda data: kafka07.encode_messages([data, data], codec="gzip"))
    yield "kafka07.ProduceRequest", Entry(OLD, None, lambda data: kafka07.ProduceRequest("orders", 1, data).encode())
    yield (
        "kafka07.decode_request",
        Entry(PRODUCE07.encode(), PRODUCE07.encode()[:-1], kafka07.decode_request, lambda r: bytes(r.message_set)),
    )
    answer = kafka07.FetchResponse(kafka07.ErrorCode.NONE, OLD).encode()
    yield (
        "kafka07.decode_response",
        Entry(answer, answer[:-1], lambda data: kafka07.decode_response(data, FETCH07), lambda r: bytes(r.message_set)),
    )
    yield "line.split_lines", Entry(b"a b c\nd e\n", None, line.split_lines)
    yield "line.LineReader", Entry(b"a b c\nd e\n", None, lambda data: line.LineReader().receive(data))


def _records_of(data: Any) -> Any:
    return messages.FetchResponse.decode(data, 12).responses[0].partitions[0].records


ENTRIES: dict[str, Entry] = dict(_entries())
