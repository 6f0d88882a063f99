"""Raw requests of Kafka 0.7 over a socket, made without the package's codec."""

from __future__ import annotations

import gzip
import socket
import struct
import zlib
from typing import NamedTuple

GZIP = 1


def string(text: str | bytes) -> bytes:
    data = text.encode() if isinstance(text, str) else text
    return struct.pack(">h", len(data)) + data


def message(payload: bytes = b"", *, magic: int = 1, attributes: int = 0, crc: int | None = None) -> bytes:
    head = bytes([magic, attributes]) if magic else bytes([magic])
    body = head + struct.pack(">I", zlib.crc32(payload) if crc is None else crc) + payload
    return struct.pack(">i", len(body)) + body


def wrapper(*inner: bytes) -> bytes:
    return message(gzip.compress(b"".join(inner), mtime=0), attributes=GZIP)


def frame(kind: int, body: bytes) -> bytes:
    return struct.pack(">ih", 2 + len(body), kind) + body


def produce_part(topic: str | bytes, partition: int, data: bytes, size: int | None = None) -> bytes:
    return string(topic) + struct.pack(">ii", partition, len(data) if size is None else size) + data


def fetch_part(topic: str | bytes, partition: int, offset: int, size: int = 1 << 20) -> bytes:
    return string(topic) + struct.pack(">iqi", partition, offset, size)


def produce(topic: str | bytes, partition: int, *messages: bytes, size: int | None = None) -> bytes:
    return frame(0, produce_part(topic, partition, b"".join(messages), size))


def fetch(topic: str | bytes, partition: int, offset: int, size: int = 1 << 20) -> bytes:
    return frame(1, fetch_part(topic, partition, offset, size))


def multi(kind: int, *parts: bytes, count: int | None = None) -> bytes:
    return frame(kind, struct.pack(">h", len(parts) if count is None else count) + b"".join(parts))


def multi_fetch(*parts: bytes, count: int | None = None) -> bytes:
    return multi(2, *parts, count=count)


def multi_produce(*parts: bytes, count: int | None = None) -> bytes:
    return multi(3, *parts, count=count)


def offsets(topic: str | bytes, partition: int, time: int, count: int) -> bytes:
    return frame(4, string(topic) + struct.pack(">iqi", partition, time, count))


class Answer(NamedTuple):
    """What came before the end of the connection, or before all the answers that were waited for."""

    frames: list[bytes]
    closed: bool


class Client:
    """A connection."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition("://")[2].rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=60)

    def send(self, *data: bytes) -> None:
        self.socket.sendall(b"".join(data))

    def frame(self) -> bytes | None:
        """A response without its size; None at the end of the connection."""
        size = self._exactly(4)
        return None if size is None else self._exactly(struct.unpack(">i", size)[0])

    def ask(self, request: bytes) -> bytes | None:
        self.send(request)
        return self.frame()

    def code(self, request: bytes) -> int | None:
        """The error code of a response; None: the connection is closed."""
        found = self.ask(request)
        return None if found is None else int(struct.unpack(">h", found[:2])[0])

    def offsets(self, topic: str, partition: int, time: int, count: int) -> list[int] | None:
        found = self.ask(offsets(topic, partition, time, count))
        if found is None:
            return None
        code, number = struct.unpack(">hi", found[:6])
        assert not code
        return list(struct.unpack(f">{number}q", found[6:]))

    def read(self, topic: str, partition: int = 0, offset: int = 0, size: int = 1 << 20) -> bytes:
        found = self.ask(fetch(topic, partition, offset, size))
        assert found is not None
        assert found[:2] == b"\0\0", found[:2]
        return found[2:]

    def is_closed(self) -> bool:
        """Whether the broker closes it now, without a byte."""
        try:
            return not self.socket.recv(1)
        except ConnectionResetError:
            return True

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _exactly(self, count: int) -> bytes | None:
        data = bytearray()
        while len(data) < count:
            try:
                piece = self.socket.recv(count - len(data))
            except ConnectionResetError:
                piece = b""
            if not piece:
                return None
            data += piece
        return bytes(data)
