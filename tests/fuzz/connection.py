"""Fuzzes connections without I/O with damaged golden frames, in pieces of any size; `make fuzz` runs it.

    python -m tests.fuzz.connection [--seconds N] [--seed N] [CASE...]

CASE is a side and what it receives, each piece in hex: ``broker:00000102:00``, or for a client, which has to have asked
before, with the API's key, the version and the correlation id: ``client,3,12,77:00000102``.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import kafkacodec as kc
from kafkacodec import messages
from kafkacodec.protocol import Connection, RequestReceived
from tests.fuzz.driver import Finding, Target
from tests.message_values import damage
from tests.protocol_vectors import vectors

MAX_FRAME_SIZE = 1 << 20
LONGEST = 4096


class Input(NamedTuple):
    """What a side receives; a client has asked `asked` (API key, version, correlation id) before."""

    asked: tuple[int, int, int] | None
    pieces: tuple[bytes, ...]

    def __str__(self) -> str:
        side = "broker" if self.asked is None else ",".join(("client", *map(str, self.asked)))
        return ":".join((side, *(piece.hex() for piece in self.pieces)))


def parse(case: str) -> Input:
    """The reverse of ``str(input)``."""
    side, *pieces = case.split(":")
    _, *asked = map(int, ("0", *side.split(",")[1:]))
    return Input(tuple(asked) if asked else None, tuple(map(bytes.fromhex, pieces)))  # type: ignore[arg-type]


def seeds() -> Iterator[Input]:
    """The golden frames, a request for a broker and a response for a client that has asked for it."""
    for vector in vectors("frames"):
        asked = None
        if vector["kind"] == "response":
            version = vector.get("inReplyToVersion", vector["version"])
            if version not in messages.APIS[vector["key"]].valid_versions:
                continue
            asked = vector["key"], version, vector["header"]["correlationId"]
        if len(vector["hex"]) <= 2 * LONGEST:
            yield Input(asked, (bytes.fromhex(vector["hex"]),))


def mutations(inputs: list[Input], rnd: random.Random) -> Iterator[Input]:
    """Damaged frames in pieces; often with the size put right, so that what is inside gets its turn; some in a row."""
    while True:
        asked, pieces = rnd.choice(inputs)
        data = damage(b"".join(pieces), rnd)[:LONGEST]
        if rnd.random() < 0.7:
            data = (len(data[4:])).to_bytes(4, "big") + data[4:]
        if rnd.random() < 0.2:
            data += b"".join(rnd.choice(inputs).pieces)[:LONGEST]
        cuts = sorted(rnd.randrange(len(data) + 1) for _ in range(rnd.choice((0, 0, 1, 4))))
        yield Input(asked, tuple(data[i:j] for i, j in zip((0, *cuts), (*cuts, len(data)), strict=True)))


def run(tried: Input) -> str:
    """Receive an input and hold the outcome to the properties; what came of it."""
    connection, events, failure = _receive(tried.asked, tried.pieces)
    _, at_once, same_failure = _receive(tried.asked, (b"".join(tried.pieces),))
    if failure != same_failure or events != at_once:
        raise Finding(f"{tried}: pieces tell {events} {failure}, the whole {at_once} {same_failure}")
    if failure:
        _check_failed(tried, connection)
        return re.sub("[0-9]+", "", failure)
    if len(connection._received) > MAX_FRAME_SIZE + 4:
        raise Finding(f"{tried}: {len(connection._received)} bytes are kept")
    for event in events:
        if isinstance(event, RequestReceived) and event.wants_response:
            _answer(tried, connection, event)
    if connection.role == "broker" and connection.pending:
        raise Finding(f"{tried}: {connection.pending} requests wait after all were answered")
    return f"{tried.asked} {[type(event).__name__ for event in events]}"


def _receive(asked: tuple[int, int, int] | None, pieces: tuple[bytes, ...]) -> tuple[Connection, list[Any], str]:
    connection = Connection("client" if asked else "broker", max_frame_size=MAX_FRAME_SIZE)
    if asked:
        key, version, connection.next_correlation_id = asked
        request: Any = messages.APIS[key].request()
        if key == 0:
            request.acks = 1
        connection.send_request(request, version)
    events: list[Any] = []
    try:
        for piece in pieces:
            events += connection.receive(piece)
    except kc.RemoteProtocolError as error:
        return connection, events + error.events, str(error)
    return connection, events, ""


def _check_failed(tried: Input, connection: Connection) -> None:
    """A connection that has failed says so again, and keeps nothing."""
    if connection._received:
        raise Finding(f"{tried}: a failed connection keeps {len(connection._received)} bytes")
    try:
        connection.receive(b"\0\0\0\1")
    except kc.RemoteProtocolError:
        return
    raise Finding(f"{tried}: a failed connection goes on")


def _answer(tried: Input, broker: Connection, event: RequestReceived) -> None:
    """The answer to a request that was received can be sent, and the client that asked reads it."""
    api = messages.APIS[event.api_key]
    answer = broker.api_versions(event) if event.message is None else api.response()
    data = broker.send_response(event.correlation_id, answer)
    if event.version in api.valid_versions:
        _, received, failure = _receive((event.api_key, event.version, event.correlation_id), (data,))
        if failure or received[0].message != answer:
            raise Finding(f"{tried}: the answer {answer} arrives as {received} {failure}")


TARGET = Target("connection", seeds, mutations, run, parse)

if __name__ == "__main__":
    TARGET.main()
