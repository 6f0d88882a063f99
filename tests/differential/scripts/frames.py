"""Order of answers, correlation ids, client ids, headers, many requests at once, requests cut into pieces."""

import struct
import time

from tests.broker_wire import Connection
from tests.differential.frames import frame


def _numbers(s, label, data, count, seconds=15):
    """The correlation ids of `count` answers to these bytes, as a step."""
    wire, found = Connection(s.server.address), []
    wire.write(data)
    for _ in range(count):
        try:
            got = wire.frame(seconds)
        except TimeoutError:
            got = b"\0\0\0\0none"
        found.append(
            "closed"
            if got is None
            else got[4:8].decode()
            if got[4:] == b"none"
            else struct.unpack_from(">i", got, 4)[0]
        )
        if got is None:
            break
    wire.close()
    s.note(label, found, ordered=True)


def _request(key, version, number, body, client=b"\0\1c", tags=b""):
    data = struct.pack(">hhi", key, version, number) + client + tags + body
    return struct.pack(">i", len(data)) + data


def correlation_ids(s):
    for number in (0, -1, 2_147_483_647, -2_147_483_648):
        _numbers(s, f"number-{number}", _request(18, 0, number, b""), 1)
    _numbers(s, "same-number-three-times", _request(18, 0, 5, b"") * 3, 3)
    _numbers(s, "falling-numbers", b"".join(_request(3, 1, n, b"\0\0\0\0") for n in (9, 8, 7)), 3)


def many_at_once(s):
    _numbers(s, "twenty", b"".join(_request(18, 0, n, b"") for n in range(20)), 20)
    wire = b"".join(_request(*(18, 0) if n % 2 else (3, 1), n, b"" if n % 2 else b"\0\0\0\0") for n in range(10))
    _numbers(s, "two-kinds-by-turns", wire, 10)


def good_ones_before_a_bad_one(s):
    good = _request(18, 0, 1, b"")
    _numbers(s, "fetch-v3-last", good + _request(1, 3, 2, struct.pack(">iiiii", -1, 0, 0, 1000, 0)), 2)
    _numbers(s, "unknown-version-last", good + _request(3, 99, 2, b""), 2)
    _numbers(
        s,
        "api-versions-99-in-between",
        good + _request(18, 99, 2, b"\x02a\x021\0", tags=b"\0") + _request(18, 0, 3, b""),
        3,
    )


def slow_one_first(s):
    t = s.topic()
    body = struct.pack(">iiiib", -1, 300, 1, 1000, 0)
    name = t.encode()
    body += struct.pack(">ih", 1, len(name)) + name + struct.pack(">iiqi", 1, 0, 0, 1000)
    _numbers(
        s, "fetch-v4-that-waits", _request(1, 4, 1, body) + _request(18, 0, 2, b"") + _request(3, 1, 3, b"\0\0\0\0"), 3
    )


def in_pieces(s):
    for label, cuts in {
        "one-byte-at-a-time": range(1, 40),
        "in-the-size": (2,),
        "after-the-size": (4,),
        "in-the-header": (9,),
    }.items():
        data = _request(18, 0, 3, b"")
        wire, at = Connection(s.server.address), 0
        for cut in [c for c in cuts if c < len(data)] + [len(data)]:
            wire.write(data[at:cut])
            at = cut
            time.sleep(0.005)
        got = wire.frame(3)
        s.note(label, None if got is None else struct.unpack_from(">ih", got, 4))
        wire.close()


def client_ids(s):
    def short(a):
        return a["error_code"]

    for label, client in {
        "null": b"\xff\xff",
        "empty": b"\0\0",
        "utf-8": b"\0\2\xc3\xa4",
        "long": struct.pack(">h", 9000) + b"x" * 9000,
    }.items():
        s.raw(label, frame(18, 0, b"", client=client), "ApiVersions", 0, pick=short)
    s.raw("minus-2", frame(18, 0, b"", client=b"\xff\xfe"), "ApiVersions", 0, pick=short)
    s.raw("longer-than-the-frame", frame(18, 0, b"", client=b"\0\x50abc"))


def header_tags(s):
    names = b"\x02a\x021\0"

    def short(a):
        return a["error_code"]

    s.raw("none", frame(18, 3, names, tags=b"\0"), "ApiVersions", 3, pick=short)
    s.raw("one-unknown", frame(18, 3, names, tags=b"\1\x63\3abc"), "ApiVersions", 3, pick=short)
    s.raw("two-unknown", frame(18, 3, names, tags=b"\2\x10\1a\x20\0"), "ApiVersions", 3, pick=short)
    s.raw("body-tag-unknown", frame(18, 3, names[:-1] + b"\1\x63\2hi", tags=b"\0"), "ApiVersions", 3, pick=short)
    s.raw("not-there", frame(3, 9, b"\1\0\0\0\0"))


def bodies(s):
    text = b"\0\1t"
    cases = {
        "metadata-null-name": frame(3, 1, b"\0\0\0\1\xff\xff"),
        "metadata-name-minus-2": frame(3, 1, b"\0\0\0\1\xff\xfe"),
        "metadata-v0-null-topics": frame(3, 0, b"\xff\xff\xff\xff"),
        "heartbeat-cut": frame(12, 0, text + b"\0\0"),
        "find-coordinator-null": frame(10, 0, b"\xff\xff"),
        "find-coordinator-empty-body": frame(10, 0, b""),
        "produce-null-topics": frame(0, 3, b"\xff\xff" + struct.pack(">hii", 1, 100, -1)),
        "produce-acks-0-unknown-topic": frame(
            0, 3, b"\xff\xff" + struct.pack(">hii", 0, 100, 1) + text + struct.pack(">iii", 1, 0, -1)
        ),
        "metadata-v9-varint-too-long": frame(3, 9, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", tags=b"\0"),
        "metadata-v9-cut-tags": frame(3, 9, b"\1\0\0\0", tags=b"\0"),
    }
    for label, data in cases.items():
        s.raw(label, data)
    s.raw("list-groups-with-more", frame(16, 0, b"extra"), "ListGroups", 0, pick=lambda a: a["error_code"])
    s.raw(
        "metadata-count-minus-2",
        frame(3, 1, b"\xff\xff\xff\xfe"),
        "Metadata",
        1,
        pick=lambda a: [len(a["brokers"]), len(a["topics"]) > 0],
    )


def after_an_error_others_go_on(s):
    s.ask("ApiVersions", 1, on="one", pick=lambda a: a["error_code"])
    s.raw("bad-one", frame(3, 99, b""))
    s.ask("ApiVersions", 1, on="one", label="same-connection-as-before", pick=lambda a: a["error_code"])
    wires = [s.connection(f"w{n}") for n in range(20)]
    s.note("open-connections", len(wires))
    for n in (0, 19):
        s.ask("ApiVersions", 1, on=f"w{n}", label=f"connection-{n}", pick=lambda a: a["error_code"])
