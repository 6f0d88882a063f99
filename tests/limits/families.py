"""Hostile data of any size n, and functions whose work must not grow faster than n.

A family creates its data for an n and returns the call to count. `units` is the smallest n. Families that are `long`
run only on request: others mostly cover the same code.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import kafkacodec as kc
from kafkacodec import messages, protocol
from kafkacodec.dialects import kafka07, line, zookeeper
from kafkacodec.errors import KafkaCodecError
from kafkacodec.log.formats import indexes
from kafkacodec.log.opening import checkpoints
from kafkacodec.log.opening.indexes import read_transaction_index
from kafkacodec.records.compression import compress, decompress
from tests.limits.numbers import count, uvarint

GZIP, SNAPPY, LZ4, ZSTD = range(1, 5)
LIMIT = 1 << 24

Call = Callable[[], object]


class Family(NamedTuple):
    """Creates the call for an n, in a separate directory for family and n."""

    units: int
    make: Callable[[int, Path], Call]
    long: bool


FAMILIES: dict[str, Family] = {}


def family(
    name: str, units: int, *, long: bool = False
) -> Callable[[Callable[[int, Path], Call]], Callable[[int, Path], Call]]:
    def note(make: Callable[[int, Path], Call]) -> Callable[[int, Path], Call]:
        FAMILIES[name] = Family(units, make, long)
        return make

    return note


def refused(call: Call) -> Call:
    """A call that may raise a KafkaCodecError."""

    def calling() -> object:
        try:
            return call()
        except KafkaCodecError as error:
            return error.__class__

    return calling


# --- codecs ---------------------------------------------------------------------------------------------------------


def _member(content: bytes = b"") -> bytes:
    made = zlib.compressobj(9, zlib.DEFLATED, 31)
    return made.compress(content) + made.flush()


def _stored_blocks(n: int) -> bytes:
    """One gzip member of empty stored blocks."""
    header = b"\x1f\x8b\x08" + bytes(7)
    return header + b"\x00\x00\x00\xff\xff" * n + b"\x01\x00\x00\xff\xff" + bytes(8)


def _lz4_blocks(n: int) -> bytes:
    """An LZ4 frame of stored blocks of one byte."""
    head = compress(LZ4, b"")[:7]
    return bytes(head) + (b"\x01\x00\x00\x80" + b"a") * n + bytes(4)


CODEC_DATA: dict[str, tuple[int, int, Callable[[int], bytes]]] = {
    "gzip: empty members": (GZIP, 150, lambda n: _member() * n),
    "gzip: members of a byte": (GZIP, 150, lambda n: _member(b"a") * n),
    "gzip: a cut member after many": (GZIP, 150, lambda n: _member(b"a") * n + _member(b"a")[:-1]),
    "gzip: empty blocks": (GZIP, 2000, _stored_blocks),
    "snappy: blocks of a byte": (
        SNAPPY,
        1000,
        lambda n: b"\x82SNAPPY\x00" + b"\x00\x00\x00\x01" * 2 + (b"\x00\x00\x00\x03" + b"\x01\x00a") * n,
    ),
    "lz4: blocks of a byte": (LZ4, 1000, _lz4_blocks),
    "zstd: empty frames": (ZSTD, 400, lambda n: bytes(compress(ZSTD, b"")) * n),
    "zstd: frames of a byte": (ZSTD, 400, lambda n: bytes(compress(ZSTD, b"a")) * n),
    "zstd: skippable frames": (ZSTD, 2000, lambda n: (b"\x50\x2a\x4d\x18" + bytes(4)) * n),
    "zstd: empty blocks": (ZSTD, 2000, lambda n: b"\x28\xb5\x2f\xfd\x00\x58" + bytes(3) * n + b"\x01\x00\x00"),
}
for _name, (_codec, _units, _data) in CODEC_DATA.items():

    @family(_name, _units)
    def _decompress(n: int, _: Path, codec: int = _codec, data: Callable[[int], bytes] = _data) -> Call:
        made = data(n)
        return refused(lambda: decompress(codec, made, limit=LIMIT))


# --- record sets ----------------------------------------------------------------------------------------------------

GOOD = {magic: kc.encode([(b"k", b"v")], magic=magic) for magic in (0, 1, 2)}


def _with(data: bytes, at: int, value: bytes) -> bytes:
    return data[:at] + value + data[at + len(value) :]


def _numbered(batches: list[bytes]) -> bytes:
    return b"".join(_with(batch, 0, i.to_bytes(8, "big")) for i, batch in enumerate(batches))


def _alternating(n: int, damaged: bytes, magic: int = 2) -> bytes:
    return _numbered([GOOD[magic], damaged] * n)


RECORD_DATA: dict[str, Callable[[int], bytes]] = {
    "batches of a record": lambda n: _numbered([GOOD[2]] * n),
    "messages of magic 0": lambda n: _numbered([GOOD[0]] * n),
    "zeros": lambda n: bytes(70 * n),
    "zeros after a batch": lambda n: GOOD[2] + bytes(70 * n),
    "ones": lambda n: b"\xff" * (70 * n),
    "wrong checksums": lambda n: _numbered([GOOD[2][:-1] + b"?"] * n),
    "wrong checksums alternating": lambda n: _alternating(n, GOOD[2][:-1] + b"?"),
    "wrong checksums alternating, magic 1": lambda n: _alternating(n, GOOD[1][:-1] + b"?", 1),
    "wrong lengths alternating": lambda n: _alternating(n, _with(GOOD[2], 8, b"\x00\x00\x02\xff")),
    "short lengths alternating": lambda n: _alternating(n, _with(GOOD[2], 8, b"\x00\x00\x00\x01")),
    "wrong magics alternating": lambda n: _alternating(n, _with(GOOD[2], 16, b"\x09")),
    "lengths beyond the end": lambda n: _numbered([_with(GOOD[2], 8, b"\x7f\x00\x00\x00")] * n),
    "starts of batches": lambda n: _numbered([_with(GOOD[2], 8, (70 * n).to_bytes(4, "big"))[:24]] * n),
    "wrappers that cannot be read": lambda n: _numbered([kc.encode([(b"k", b"v")], codec="gzip")[:-9] + bytes(9)] * n),
}
RECORD_CALLS: dict[str, Callable[[bytes], object]] = {
    "decode, skip": lambda data: kc.decode(data, on_error="skip"),
    "iter_columns, skip": lambda data: sum(len(chunk) for chunk in kc.iter_columns(data, on_error="skip")),
    "scan": lambda data: kc.scan(data, on_error="stop"),
}
for _data_name, _make_data in RECORD_DATA.items():
    for _call_name, _call in RECORD_CALLS.items():

        @family(f"{_call_name}: {_data_name}", 200, long=_call_name != "decode, skip")
        def _read(
            n: int,
            _: Path,
            make_data: Callable[[int], bytes] = _make_data,
            call: Callable[[bytes], object] = _call,
        ) -> Call:
            data = make_data(n)
            return refused(lambda: call(data))


@family("decode: headers of a record", 2000)
def _headers(n: int, _: Path) -> Call:
    data = kc.encode([kc.Record(0, 0, 0, None, None, (("", None),) * n)])
    return lambda: kc.decode(data)


@family("decode in threads: alternating damage", 300)
def _threads(n: int, _: Path) -> Call:
    data = _alternating(n, GOOD[2][:-1] + b"?")
    return lambda: kc.decode(data, threads=3, on_error="skip")


@family("encode: batches of a record", 1000)
def _encode(n: int, _: Path) -> Call:
    records = [(None, None)] * n
    return lambda: kc.encode(records, batch_bytes=1)


# --- files ----------------------------------------------------------------------------------------------------------


def _segment(directory: Path, data: bytes) -> Path:
    path = directory / "t-0" / f"{0:020}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


LOG_CALLS: dict[str, Callable[[kc.log.Segment], object]] = {
    "verify": lambda segment: segment.verify(),
    "ranges": lambda segment: segment.ranges(max_bytes=1024),
    "last_offset": lambda segment: segment.last_offset(),
    "offset_of_timestamp": lambda segment: segment.offset_of_timestamp(1 << 50),
    "read": lambda segment: sum(len(chunk) for chunk in segment.read(on_error="skip")),
}
LOG_DATA = (
    "batches of a record",
    "messages of magic 0",
    "wrong checksums alternating",
    "wrong lengths alternating",
    "lengths beyond the end",
)
for _data_name in LOG_DATA:
    for _call_name, _log_call in LOG_CALLS.items():

        @family(f"Segment.{_call_name}: {_data_name}", 40, long=_call_name != "verify")
        def _log(
            n: int,
            directory: Path,
            make_data: Callable[[int], bytes] = RECORD_DATA[_data_name],
            call: Callable[[kc.log.Segment], object] = _log_call,
        ) -> Call:
            path = _segment(directory, make_data(n))
            return refused(lambda: call(kc.log.Segment(path)))


@family("Segment.read, a row at a time: messages before long damage", 300)
def _before_damage(n: int, directory: Path) -> Call:
    length = (1 << 30).to_bytes(4, "big")
    path = _segment(directory, _numbered([GOOD[0]] * n + [_with(GOOD[0], 8, length) + bytes(70 * n)] + [GOOD[0]]))
    return lambda: sum(len(chunk) for chunk in kc.log.Segment(path).read(on_error="skip", max_rows=1))


def _entries(n: int, pointing: int) -> bytes:
    offsets = np.arange(n)
    return indexes.encode_offset_index(offsets, offsets * pointing, 0)


for _what, _pointing in (("at every batch", 70), ("between batches", 71), ("after the end", 1 << 12)):
    for _call_name, _log_call in LOG_CALLS.items():

        @family(f"Segment.{_call_name}: an index that points {_what}", 100, long=_pointing != 71)
        def _index(
            n: int,
            directory: Path,
            pointing: int = _pointing,
            call: Callable[[kc.log.Segment], object] = _log_call,
        ) -> Call:
            path = _segment(directory, RECORD_DATA["batches of a record"](n))
            path.with_suffix(".index").write_bytes(_entries(n, pointing))
            times = np.arange(n)
            path.with_suffix(".timeindex").write_bytes(indexes.encode_time_index(times + (1 << 49), times, 0))
            return refused(lambda: call(kc.log.Segment(path)))


def _transactions(n: int, *, open_ones: bool = False) -> bytes:
    """Transactions of one batch each, each of another producer; aborted, or still open."""
    parts: list[bytes] = []
    for i in range(n):
        at = {"producer_id": i % 7 if not open_ones else i, "producer_epoch": 0}
        parts.append(kc.encode([(None, None)], base_offset=2 * i, base_sequence=0, is_transactional=True, **at))
        if not open_ones:
            parts.append(kc.control_batch("abort", offset=2 * i + 1, **at))
    return b"".join(parts)


PARTITION_CALLS: dict[str, Callable[[kc.log.Partition], object]] = {
    "read, committed": lambda log: sum(len(chunk) for chunk in log.read(isolation_level="read_committed")),
    "verify": lambda log: log.verify(),
    "last_stable_offset": lambda log: log.last_stable_offset(),
}
for _call_name, _partition_call in PARTITION_CALLS.items():
    for _open in (False, True):

        @family(f"Partition.{_call_name}: {'open' if _open else 'aborted'} transactions", 25, long=_open)
        def _aborted(
            n: int,
            directory: Path,
            open_ones: bool = _open,
            call: Callable[[kc.log.Partition], object] = _partition_call,
        ) -> Call:
            path = _segment(directory, _transactions(n, open_ones=open_ones))
            return refused(lambda: call(kc.log.Partition(path.parent)))


@family("Partition.read: segments", 8)
def _segments(n: int, directory: Path) -> Call:
    for i in range(n):
        _segment(directory, _with(GOOD[2], 0, i.to_bytes(8, "big"))).rename(directory / "t-0" / f"{i:020}.log")
    return lambda: sum(len(chunk) for chunk in kc.log.Partition(directory / "t-0").read())


def _file(directory: Path, name: str, content: bytes) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_bytes(content)
    return directory / name


FILES: dict[str, tuple[str, Callable[[int], bytes], Callable[[Path], object]]] = {
    "read_leader_epochs": (
        "leader-epoch-checkpoint",
        lambda n: f"0\n{n}\n".encode() + b"".join(b"%d %d\n" % (i, i) for i in range(n)),
        checkpoints.read_leader_epochs,
    ),
    "read_checkpoint": (
        "replication-offset-checkpoint",
        lambda n: f"0\n{n}\n".encode() + b"".join(b"t %d %d\n" % (i, i) for i in range(n)),
        checkpoints.read_checkpoint,
    ),
    "read_properties": (
        "meta.properties",
        lambda n: b"".join(b"k%d=v\n" % i for i in range(n)),
        checkpoints.read_properties,
    ),
    "read_properties of one name": ("meta.properties", lambda n: b"k=v\n" * n, checkpoints.read_properties),
    "read_transaction_index": (
        f"{0:020}.txnindex",
        lambda n: indexes.encode_transaction_index((0, i, i, i + 1, i) for i in range(n)),
        read_transaction_index,
    ),
}
for _name, (_file_name, _content, _reader) in FILES.items():

    @family(_name, 300)
    def _read_file(
        n: int,
        directory: Path,
        name: str = _file_name,
        content: Callable[[int], bytes] = _content,
        read: Callable[[Path], object] = _reader,
    ) -> Call:
        path = _file(directory, name, content(n))
        return refused(lambda: read(path))


# --- messages -------------------------------------------------------------------------------------------------------


MESSAGE_DATA: dict[str, tuple[str, int, Callable[[int], bytes]]] = {
    "structs": ("MetadataRequest", 0, lambda n: count(n) + b"\x00\x00" * n),
    "strings": ("MetadataRequest", 0, lambda n: count(n) + b"\x00\x04name" * n),
    "unknown tags": (
        "MetadataRequest",
        9,
        lambda n: b"\x01" + bytes(3) + uvarint(n) + b"".join(uvarint(1000 + i) + b"\x00" for i in range(n)),
    ),
    "one tag, many times": ("MetadataRequest", 9, lambda n: b"\x01" + bytes(3) + uvarint(n) + b"\x63\x00" * n),
    "structs with tags": (
        "MetadataRequest",
        9,
        lambda n: uvarint(n + 1) + (b"\x01" + b"\x02" + b"\x63\x00\x64\x00") * n + bytes(4),
    ),
    "topics of one name": (
        "CreateTopicsRequest",
        2,
        lambda n: count(n) + (b"\x00\x01t" + bytes(4) + bytes(2) + bytes(8)) * n + bytes(5),
    ),
    "empty arrays": ("OffsetCommitRequest", 0, lambda n: b"\x00\x01g" + count(n) + (b"\x00\x00" + bytes(4)) * n),
}


def _decoded(name: str, version: int, body: bytes) -> Any:
    return getattr(messages, name).decode(body, version)


MESSAGE_CALLS: dict[str, Callable[[Any, int], object]] = {
    "encode": lambda message, version: message.encode(version),
    "to_dict": lambda message, version: message.to_dict(),
    "==": lambda message, version: message == message.from_dict(message.to_dict()),
    "repr": lambda message, version: repr(message),
}
for _name, (_cls, _version, _body) in MESSAGE_DATA.items():

    @family(f"decode: {_name}", 500)
    def _decode(
        n: int, _: Path, cls: str = _cls, version: int = _version, body: Callable[[int], bytes] = _body
    ) -> Call:
        data = body(n)
        return refused(lambda: _decoded(cls, version, data))

    if _name in ("structs", "unknown tags"):
        for _call_name, _message_call in MESSAGE_CALLS.items():

            @family(f"{_call_name}: {_name}", 200, long=_call_name != "encode")
            def _on_message(
                n: int,
                _: Path,
                cls: str = _cls,
                version: int = _version,
                body: Callable[[int], bytes] = _body,
                call: Callable[[Any, int], object] = _message_call,
            ) -> Call:
                message = _decoded(cls, version, body(n))
                repr(message)  # makes its arrays
                return lambda: call(message, version)


@family("split_frames: empty frames", 1000)
def _frames(n: int, _: Path) -> Call:
    data = bytes(4 * n)
    return lambda: protocol.split_frames(data)


@family("Connection: requests at once", 50)
def _requests(n: int, _: Path) -> Call:
    data = b"".join(protocol.encode_request(messages.MetadataRequest(), 1, i, "c") for i in range(n))
    return lambda: protocol.Connection("broker", max_pending=1 << 20).receive(data)


@family("Connection: requests of a paused broker", 60)
def _paused(n: int, _: Path) -> Call:
    data = b"".join(protocol.encode_request(messages.HeartbeatRequest(), 1, i, "c") for i in range(n))

    def call() -> None:
        connection = protocol.Connection("broker", max_pending=1)
        events = connection.receive(data)
        while events:
            connection.send_response(events[0].correlation_id, messages.HeartbeatResponse())
            events = connection.receive(b"")

    return call


@family("Connection: answers in the opposite order", 50)
def _answers(n: int, _: Path) -> Call:
    data = b"".join(protocol.encode_request(messages.HeartbeatRequest(), 1, i, "c") for i in range(n))

    def call() -> None:
        connection = protocol.Connection("broker", max_pending=1 << 20)
        for event in reversed(connection.receive(data)):
            connection.send_response(event.correlation_id, messages.HeartbeatResponse())

    return call


@family("Connection: a request byte by byte", 400)
def _bytewise(n: int, _: Path) -> Call:
    data = protocol.encode_request(messages.MetadataRequest(), 1, 0, "c" * n)

    def call() -> None:
        connection = protocol.Connection("broker")
        for i in range(len(data)):
            connection.receive(data[i : i + 1])

    return call


@family("fetch_to_columns: partitions", 60)
def _partitions(n: int, _: Path) -> Call:
    parts = [messages.FetchResponse.PartitionData(partition_index=i, records=GOOD[2]) for i in range(n)]
    topic = messages.FetchResponse.FetchableTopicResponse(topic="t", partitions=parts)
    return lambda: protocol.fetch_to_columns(messages.FetchResponse(responses=[topic]))


@family("fetch_to_columns: aborted transactions", 60)
def _fetched_aborted(n: int, _: Path) -> Call:
    aborted = [messages.FetchResponse.AbortedTransaction(producer_id=i % 7, first_offset=2 * i) for i in range(n)]
    part = messages.FetchResponse.PartitionData(records=_transactions(n), aborted_transactions=aborted)
    topic = messages.FetchResponse.FetchableTopicResponse(topic="t", partitions=[part])
    response = messages.FetchResponse(responses=[topic])
    return lambda: protocol.fetch_to_columns(response, isolation_level="read_committed")


# --- dialects -------------------------------------------------------------------------------------------------------


@family("kafka07.decode: empty messages", 1000)
def _old(n: int, _: Path) -> Call:
    data = kafka07.encode_messages([b""] * n)
    return lambda: kafka07.decode(data)


@family("kafka07.decode, skip: wrong checksums", 150)
def _old_damage(n: int, _: Path) -> Call:
    good = kafka07.encode_messages([b"value"])
    data = (good + good[:-1] + b"?") * n
    return lambda: kafka07.decode(data, on_error="skip")


@family("kafka07.decode: compressed messages", 100)
def _old_compressed(n: int, _: Path) -> Call:
    data = kafka07.encode_messages([b""], codec="gzip") * n
    return lambda: kafka07.decode(data)


@family("zookeeper.Registry: nodes", 100)
def _nodes(n: int, _: Path) -> Call:
    nodes = {f"/brokers/topics/t/{i}": "1" for i in range(n)} | {f"/consumers/g/ids/c{i}": "{ }" for i in range(n)}
    return refused(lambda: zookeeper.Registry(nodes).assignment("g", "t"))


@family("zookeeper.assign", 300)
def _assign(n: int, _: Path) -> Call:
    partitions, threads = [f"{i}-0" for i in range(n)], [f"c-{i}" for i in range(n // 2)]
    return lambda: zookeeper.assign(partitions, threads)


@family("zookeeper.parse_subscription: deep JSON", 300)
def _deep(n: int, _: Path) -> Call:
    text = "[" * n
    return refused(lambda: zookeeper.parse_subscription(text))


@family("zookeeper.parse_subscription: topics", 300)
def _wide(n: int, _: Path) -> Call:
    text = json.dumps({f"t{i}": 1 for i in range(n)})
    return refused(lambda: zookeeper.parse_subscription(text))


LINES: dict[str, Callable[[int], str]] = {
    "a long word": lambda n: "1|" + "A" * n,
    "many words": lambda n: "1|PRODUCE " + "a " * n,
    "many bars": lambda n: "|" * n,
    "many messages": lambda n: "1|PRODUCE t 0 " + ",".join(f"{i}:v" for i in range(n)),
}
for _name, _line in LINES.items():

    @family(f"line.parse_request: {_name}", 500)
    def _parse(n: int, _: Path, make: Callable[[int], str] = _line) -> Call:
        text = make(n)

        def call() -> object:
            try:
                return line.parse_request(text)
            except line.LineProtocolError as error:
                return error.code

        return call


@family("line.parse_response: messages", 300)
def _answer(n: int, _: Path) -> Call:
    text = "1|OK|" + ",".join(f"{i}:v" for i in range(n))
    return refused(lambda: line.parse_response(text, "CONSUME"))
