"""Small record sets one at a time, as a proxy or a lambda handles them: decoding one record, encoding ten."""

from __future__ import annotations

from collections.abc import Callable

import kafkacodec as kc
from benchmarks import reading
from benchmarks.contest import Contest

SETS = 5_000
ROWS = [(b"key-%06d" % i, b"v" * 100) for i in range(10)]


def contests() -> list[Contest]:
    """Options once for all record sets and once for each, and the peers."""
    one, decoder, encoder = kc.encode(ROWS[:1]), kc.Decoder(), kc.Encoder()
    assert [*kc.iter_records(encoder.encode(ROWS))] == [*kc.iter_records(_aiokafka_built())]
    decoding: dict[str, Callable[[], object]] = {
        "Decoder.decode": lambda: decoder.decode(one),
        "decode": lambda: kc.decode(one),
        "Decoder.iter_records": lambda: [*decoder.iter_records(one)],
        "iter_records": lambda: [*kc.iter_records(one)],
        "aiokafka": lambda: reading.aiokafka(one),
        "kafka-python": lambda: reading.kafka_python(one),
    }
    encoding: dict[str, Callable[[], object]] = {
        "Encoder.encode": lambda: encoder.encode(ROWS),
        "encode": lambda: kc.encode(ROWS),
        "aiokafka": _aiokafka_built,
    }
    return [_repeated("decode sets of one record", decoding), _repeated("encode sets of ten records", encoding)]


def _aiokafka_built() -> bytes:
    from aiokafka.record.default_records import DefaultRecordBatchBuilder

    builder = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 1 << 30)
    for offset, (key, value) in enumerate(ROWS):
        builder.append(offset, -1, key, value, [])
    return bytes(builder.build())


def _repeated(name: str, calls: dict[str, Callable[[], object]]) -> Contest:
    return Contest(name, "record sets", SETS, {competitor: _many(call) for competitor, call in calls.items()})


def _many(call: Callable[[], object]) -> Callable[[], None]:
    def work() -> None:
        for _ in range(SETS):
            call()

    return work
