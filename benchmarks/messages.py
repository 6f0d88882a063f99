"""Large protocol messages decoded and encoded, by kafkacodec, kio, kafka-python and Kafka's own classes (java.py).

The bodies are those of tests/data/protocol/bench.jsonl.xz, which Kafka's serializers wrote. Decoding includes freeing
the result; encoding starts from the decoded objects.
"""

from __future__ import annotations

import importlib
import io
import json
import lzma
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import kafkacodec as kc
from benchmarks import compiled, objects
from benchmarks.contest import Contest
from benchmarks.goals import ALL_MADE, ALL_READ, MADE_AGAIN

BODIES = Path(__file__).parent.parent / "tests" / "data" / "protocol" / "bench.jsonl.xz"
# A round long enough for the garbage collector to run as often as in real use.
BYTES_PER_ROUND = 6_000_000

Work = Callable[[], object]


@dataclass(frozen=True)
class Body:
    """One message without size and header."""

    api: str
    key: int
    kind: str
    version: int
    data: bytes

    @property
    def name(self) -> str:
        return f"{self.api}{self.kind.capitalize()}"

    def __str__(self) -> str:
        return f"{self.api} {self.kind} v{self.version}"


def bodies() -> list[Body]:
    with lzma.open(BODIES, "rt", encoding="ascii") as lines:
        found = [json.loads(line) for line in lines]
    return [Body(line["api"], line["key"], line["kind"], line["version"], bytes.fromhex(line["hex"])) for line in found]


def contests(body: Body) -> Iterator[Contest]:
    """Decoding and encoding by every competitor."""
    pairs = {name: prepare(body) for name, prepare in COMPETITORS.items()}
    repeats = max(1, BYTES_PER_ROUND // len(body.data))
    for i, work in enumerate(("decode", "encode")):
        competitors = {name: _repeated(pair[i], repeats) for name, pair in pairs.items()}
        if work == "decode":
            competitors[ALL_MADE] = _repeated(making_objects(body), repeats)
            competitors[ALL_READ] = _repeated(reading_arrays(body), repeats)
            if compiled.absent() is None:
                competitors[MADE_AGAIN] = _repeated(making_again(body), repeats)
        yield Contest(f"{work}, {body}", "bytes", repeats * len(body.data), competitors)


def kafkacodec(body: Body) -> tuple[Work, Work]:
    cls = getattr(kc.messages, body.name)
    message = cls.decode(body.data, body.version)
    _require(message.encode(body.version) == body.data, "kafkacodec", body)
    return lambda: cls.decode(body.data, body.version), lambda: message.encode(body.version)


def making_objects(body: Body) -> Work:
    """Decodes and accesses the arrays of the message, so that all objects are made, as the others make them."""
    return partial(_with_objects, body, getattr(kc.messages, body.name))


def making_again(body: Body) -> Work:
    """Makes the same objects, without reading any bytes, by CPython's functions alone."""
    return partial(objects.again(), _with_objects(body, getattr(kc.messages, body.name)))


def _with_objects(body: Body, cls: Any) -> Any:
    message = cls.decode(body.data, body.version)
    for name in _arrays(cls):
        getattr(message, name)
    return message


@cache
def _arrays(cls: Any) -> list[str]:
    return [field.attribute for field in cls._spec.fields if field.array and field.struct]


def reading_arrays(body: Body) -> Work:
    """Also accesses every array of these objects, in Python, which takes longer than making them."""
    cls = getattr(kc.messages, body.name)

    known = {part: _arrays(part) for part in (cls, *cls._parts.values())}

    def read(struct: Any) -> None:
        for name in known[type(struct)]:
            for item in getattr(struct, name) or ():
                read(item)

    return lambda: read(cls.decode(body.data, body.version))


def kio(body: Body) -> tuple[Work, Work]:
    from kio.serial import entity_reader, entity_writer

    api = importlib.import_module(f"kio.schema.{_snake_case(body.api)}.v{body.version}.{body.kind}")
    cls = getattr(api, body.name)
    read, write = entity_reader(cls), entity_writer(cls)
    message, _ = read(body.data, 0)

    def encode() -> bytes:
        out = io.BytesIO()
        write(out, message)
        return out.getvalue()

    _require(encode() == body.data, "kio", body)
    return lambda: read(body.data, 0), encode


def kafka_python(body: Body) -> tuple[Work, Work]:
    places = {"Metadata": "metadata", "Produce": "producer"}
    cls = getattr(importlib.import_module(f"kafka.protocol.{places.get(body.api, 'consumer')}"), body.name)
    message = cls.decode(body.data, version=body.version)
    message._header = None  # the decoder does not set it, and the encoder needs it
    _require(bytes(message.encode(version=body.version)) == body.data, "kafka-python", body)
    return lambda: cls.decode(body.data, version=body.version), lambda: message.encode(version=body.version)


COMPETITORS = {"kafkacodec": kafkacodec, "kio": kio, "kafka-python": kafka_python}


def _repeated(work: Work, times: int) -> Work:
    def run() -> None:
        for _ in range(times):
            work()

    return run


def _snake_case(name: str) -> str:
    return "".join("_" + letter.lower() if letter.isupper() else letter for letter in name).lstrip("_")


def _require(holds: bool, name: str, body: Body) -> None:
    if not holds:
        raise SystemExit(f"{name} does not encode {body} to the same bytes")
