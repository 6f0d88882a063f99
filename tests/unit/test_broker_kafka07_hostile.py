"""Ten thousand random and mutated streams of bytes at a listener of Kafka 0.7."""

from __future__ import annotations

import logging
import random
import socket
import struct
from pathlib import Path

import kafkacodec as kc
from tests.kafka07_session import (
    Client,
    fetch,
    fetch_part,
    message,
    multi_fetch,
    multi_produce,
    offsets,
    produce,
    produce_part,
    wrapper,
)
from tests.leaks import KEPT_BY_SANITIZER

STREAMS = 10_000
WARM = 2_000  # until the process has its memory
MOST_GROWTH = (32 << 20) + KEPT_BY_SANITIZER  # each topic that a mutation makes costs some
M = message(b"abc")
SEEDS = [
    produce("t", 0, M, M), produce("t", 1, wrapper(M, M)), produce("t", -1, message(b"x", magic=0)), fetch("t", 0, 0),
    fetch("t", 1, 13, 50), multi_fetch(fetch_part("t", 0, 0), fetch_part("t", 1, 0)), offsets("t", 0, -1, 10),
    multi_produce(produce_part("t", 0, M), produce_part("t", 1, M)), offsets("t", 1, -2, 1),
    fetch("t", 0, 0) + produce("t", 0, M) + fetch("t", 0, 0), wrapper(wrapper(M)), b"",
]  # fmt: skip
NUMBERS = [0, 1, -1, -2, 2**31 - 1, -(2**31), 100 << 20, (100 << 20) + 1, 6]


def stream(rnd: random.Random) -> bytes:
    data = bytearray(b"".join(rnd.choice(SEEDS) for _ in range(rnd.randrange(1, 4))))
    for _ in range(rnd.randrange(4)):
        at = rnd.randrange(len(data) + 1)
        match rnd.randrange(5):
            case 0 if data:
                data[at % len(data)] = rnd.randrange(256)
            case 1:
                del data[at : at + rnd.randrange(9)]
            case 2:
                data[at:at] = rnd.randbytes(rnd.randrange(20))
            case 3:
                data[at : at + 4] = struct.pack(">i", rnd.choice(NUMBERS))
            case _:
                data = data[:at]
    return bytes(data) if rnd.random() < 0.9 else rnd.randbytes(rnd.randrange(200))


def answers(address: str, data: bytes) -> list[bytes]:
    """All responses to a stream, without their sizes; the broker closes after it."""
    with Client(address) as client:
        try:
            client.send(data)
            client.socket.shutdown(socket.SHUT_WR)
        except OSError:  # it is closed already
            return []
        found = []
        while (frame := client.frame()) is not None:
            found.append(frame)
        return found


def resident() -> int:
    fields = Path("/proc/self/statm").read_text().split()
    return int(fields[1]) * 4096


def test_any_bytes_are_answered_or_the_connection_is_closed(caplog):
    caplog.set_level(logging.WARNING, "kafkacodec.broker")  # what is logged of each would be kept
    rnd = random.Random(0)
    with kc.broker.serve(listen="kafka07://127.0.0.1:0", config={"num.partitions": 2}) as broker:
        address = broker.listeners[0]
        before = 0
        with Client(address) as steady:
            for number in range(STREAMS):
                for frame in answers(address, stream(rnd)):
                    assert struct.unpack_from(">h", frame)[0] in (-1, 0, 1, 3, 4)
                if number == WARM:
                    before = resident()
                if number % 500 == 0:
                    steady.send(produce("steady", 0, M))
                    assert steady.read("steady") == M * (number // 500 + 1)
        assert resident() - before < MOST_GROWTH
        assert broker.statistics().connections <= 1
