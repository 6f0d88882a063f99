"""Fuzzes the decoder and the encoder of messages with damaged golden bodies; `make fuzz` runs it under sanitizers.

    python -m tests.fuzz.messages [--seconds N] [--seed N] [CASE...]

What is tried is written to a file first, as the arguments that try it again (CASE is ``MetadataRequest:12:hex``), so
that a crash leaves them behind. A body that fails in a new way, or is the first to be read in its version, is kept
and damaged further: the reason and the path of an error tell how far decoding came.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import pickle
import random
import re
import signal
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import kafkacodec as kc
from kafkacodec import messages
from tests.message_values import damage
from tests.protocol_vectors import vectors

# The most that decoding may allocate, in bytes for each byte of the input, and a fixed part for one object and an
# error: an object of a dozen slots may come from two bytes on the wire.
BYTES_PER_BYTE = 200
FIXED_BYTES = 20_000
LONGEST_SEED = 2048
# More than any input needs, sanitizers and a busy machine included.
HANG_SECONDS = 60
LAST = Path(__file__).parent.parent.parent / ".cache" / "fuzz-messages.txt"


class Input(NamedTuple):
    """A body and what it is to be decoded as."""

    name: str
    version: int
    body: bytes

    def __str__(self) -> str:
        return f"{self.name}:{self.version}:{self.body.hex()}"


class Finding(AssertionError):
    """A property that does not hold."""


def seeds() -> Iterator[Input]:
    """The golden bodies, sound and damaged, that are not too long to be tried often."""
    for file in ("requests", "responses", "bad", "data"):
        for vector in vectors(file):
            name = vector["schema"] if file == "data" else vector["api"] + vector["kind"].capitalize()
            if len(vector["hex"]) <= 2 * LONGEST_SEED:
                yield Input(name, int(vector["version"]), bytes.fromhex(vector["hex"]))


def run(tried: Input, measured: bool = True) -> str:
    """Decode an input and hold the outcome to the properties; what came of it, for comparison with other inputs.

    Its memory is held to them too where it is `measured`, which takes as long again.
    """
    cls = messages.message_class(tried.name)
    cls._program(tried.version)  # compiled on first use, which is not the input's doing
    if measured:
        _check_memory(tried)
    try:
        message = cls.decode(tried.body, tried.version)
    except kc.DecodeError as error:
        if not (error.reason and 0 <= error.position <= len(tried.body)):
            raise Finding(f"{tried}: position {error.position}") from error
        return f"{tried.name} {re.sub('[0-9]+', '', f'{error.path} {error.reason}')}"
    _check_round_trip(tried, message)
    return f"{tried.name} {tried.version} read"


def _check_memory(tried: Input) -> None:
    tracemalloc.start()
    with contextlib.suppress(kc.DecodeError):
        messages.message_class(tried.name).decode(tried.body, tried.version)
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    if taken > FIXED_BYTES + BYTES_PER_BYTE * len(tried.body):
        raise Finding(f"{tried}: {taken} bytes of memory for {len(tried.body)} bytes")


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
        yield Input(name, version, body)


def fuzz(inputs: list[Input], rnd: random.Random, last: Path, seconds: float) -> int:
    """Damage inputs until the time is over, writing each to the file `last` first; how many were tried."""
    known: set[str] = set()
    stop = time.monotonic() + seconds
    with open(last, "wb", buffering=0) as file:
        for tried, new in enumerate(mutations(inputs, rnd)):
            if time.monotonic() > stop:
                signal.alarm(0)
                return tried
            signal.alarm(HANG_SECONDS)
            file.seek(0)
            file.truncate()
            file.write(str(new).encode())
            outcome = run(new, measured=rnd.random() < 0.1)
            if outcome not in known and len(new.body) <= LONGEST_SEED:
                known.add(outcome)
                inputs.append(new)
    raise AssertionError("mutations do not end")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("cases", nargs="*", metavar="CASE")
    options = parser.parse_args()
    faulthandler.enable()
    faulthandler.register(signal.SIGALRM, chain=True)  # say where it hangs, then end as an alarm does
    for case in options.cases:
        name, version, body = case.split(":")
        print(run(Input(name, int(version), bytes.fromhex(body))))
    if options.cases:
        return
    LAST.parent.mkdir(exist_ok=True)
    inputs = list(seeds())
    before = len(inputs)
    tried = fuzz(inputs, random.Random(options.seed), LAST, options.seconds)
    kept = len(inputs) - before
    print(f"messages, seed {options.seed}: {before} bodies, {tried} mutations passed, {kept} kept ({kc.__file__})")


if __name__ == "__main__":
    main()
