"""Fuzzes the decoder and the encoder of messages with damaged golden bodies; `make fuzz` runs it under sanitizers.

    python -m tests.fuzz.messages [--seconds N] [--seed N] [CASE...]

What is tried is written to .cache/fuzz-messages.txt first, as the argument that tries it again (CASE is
``MetadataRequest:12:hex``), so that it is still there after a crash. A body that fails in a new way, or is the first to
be read in its version, is kept and damaged further: the reason and the path of an error tell how far decoding came.
"""

from __future__ import annotations

import contextlib
import pickle
import random
import re
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import kafkacodec as kc
from kafkacodec import messages
from tests.fuzz.driver import Finding, Target
from tests.leaks import assert_takes_less
from tests.message_values import damage
from tests.protocol_vectors import vectors

# The most that decoding may allocate, in bytes for each byte of the input, and a fixed part for one object and an
# error: an object of a dozen slots may come from two bytes on the wire.
BYTES_PER_BYTE = 200
FIXED_BYTES = 20_000
LONGEST = 2048


class Input(NamedTuple):
    """A body and what it is to be decoded as."""

    name: str
    version: int
    body: bytes

    def __str__(self) -> str:
        return f"{self.name}:{self.version}:{self.body.hex()}"

    @classmethod
    def of(cls, vector: dict[str, Any]) -> Input:
        """One of the golden bodies."""
        name = vector["schema"] if "schema" in vector else vector["api"] + vector["kind"].capitalize()
        return cls(name, int(vector["version"]), bytes.fromhex(vector["hex"]))


def seeds() -> Iterator[Input]:
    """The golden bodies, sound and damaged, that are not too long to be tried often."""
    for file in ("requests", "responses", "bad", "data"):
        for vector in vectors(file):
            if len(vector["hex"]) <= 2 * LONGEST:
                yield Input.of(vector)


def run(tried: Input) -> str:
    """Decode an input and hold the outcome to the properties; what came of it, for comparison with other inputs.

    The memory of every tenth body is held to them too: measuring takes as long again.
    """
    cls = messages.message_class(tried.name)
    if zlib.crc32(tried.body) % 10 == 0:
        check_memory(tried)
    try:
        message = cls.decode(tried.body, tried.version)
    except kc.DecodeError as error:
        if not (error.reason and 0 <= error.position <= len(tried.body)):
            raise Finding(f"{tried}: position {error.position}") from error
        return f"{tried.name} {re.sub('[0-9]+', '', f'{error.path} {error.reason}')}"
    _check_round_trip(tried, message)
    return f"{tried.name} {tried.version} read"


def check_memory(tried: Input) -> None:
    """Whether decoding takes no more memory than it may. Of a bytearray, every object is made at once."""
    cls = messages.message_class(tried.name)
    cls._programs[tried.version]  # compiled on first use, which is not the input's doing

    def decode() -> None:
        with contextlib.suppress(kc.DecodeError):
            cls.decode(bytearray(tried.body), tried.version)

    try:
        assert_takes_less(FIXED_BYTES + BYTES_PER_BYTE * len(tried.body), decode)
    except AssertionError as error:
        raise Finding(f"{tried}: too much memory for {len(tried.body)} bytes: {error}") from error


def _check_round_trip(tried: Input, message: messages.Message) -> None:
    cls, version = type(message), tried.version
    encoded = message.encode(version)
    again = cls.decode(encoded, version)
    # NaN is not equal to itself, but has one representation.
    if again != message and repr(again) != repr(message):
        raise Finding(f"{tried}: another message after encoding")
    for other in (again, cls.from_dict(message.to_dict()), pickle.loads(pickle.dumps(message))):
        if other.encode(version) != encoded:
            raise Finding(f"{tried}: other bytes after decoding, from a dict, or after pickling")
    front, end = cls.decode_prefix(b"\xff" + tried.body + b"\xff", version, 1)
    if end != 1 + len(tried.body) or front.encode(version) != encoded:
        raise Finding(f"{tried}: another message with bytes around it")


def mutations(inputs: list[Input], rnd: random.Random) -> Iterator[Input]:
    """Damaged inputs without end; some are put together from two, some are for another version."""
    while True:
        name, version, body = rnd.choice(inputs)
        body = damage(body, rnd)
        if rnd.random() < 0.1:
            other = rnd.choice(inputs).body
            body = body[: rnd.randrange(len(body) + 1)] + other[rnd.randrange(len(other) + 1) :]
        if rnd.random() < 0.1:
            version = rnd.choice(messages.message_class(name).valid_versions)
        yield Input(name, version, body[:LONGEST])


def parse(case: str) -> Input:
    """The reverse of ``str(input)``."""
    name, version, body = case.split(":")
    return Input(name, int(version), bytes.fromhex(body))


TARGET = Target("messages", seeds, mutations, run, parse)

if __name__ == "__main__":
    TARGET.main()
