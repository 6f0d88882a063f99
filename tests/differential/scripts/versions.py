"""ApiVersions, and what is refused before any handler sees it."""

import struct

from tests.differential.frames import frame

AREAS = {
    "data": (0, 1, 2, 3, 21, 23),
    "groups": (8, 9, 10, 11, 12, 13, 14, 15, 16, 42, 47, 68, 69),
    "transactions": (22, 24, 25, 26, 28, 61, 65, 66),
    "topics": (19, 20, 35, 37, 43, 55, 60, 75),
    "security": (17, 18, 29, 30, 31, 36, 48, 49, 50, 51),
    "configuration": (32, 33, 44, 74),
    "share": (76, 77, 78, 79, 83, 84, 85, 86, 87, 90, 91, 92),
}
OURS = ("metadata.version", "group.version", "transaction.version", "share.version", "eligible.leader.replicas.version")


def _ranges(answer, keys):
    return {
        row["api_key"]: [row["min_version"], row["max_version"]] for row in answer["api_keys"] if row["api_key"] in keys
    }


def _features(answer):
    return {
        side: [row for row in answer[side] if row["name"] in OURS]
        for side in ("supported_features", "finalized_features")
    }


def advertised(s):
    for area, keys in AREAS.items():
        s.ask("ApiVersions", 3, label=area, pick=lambda a, keys=keys: _ranges(a, keys))
    for version in (0, 1, 2, 4):
        s.ask("ApiVersions", version, pick=lambda a: [a["error_code"], _ranges(a, AREAS["data"])])


def features(s):
    s.ask("ApiVersions", 2, label="none", pick=_features)
    s.ask("ApiVersions", 3, label="minimum-0-hidden", pick=_features)
    s.ask("ApiVersions", 4, pick=_features)


def software_names(s):
    def short(a):
        return [a["error_code"], len(a["api_keys"])]

    for label, name, number in (
        ("empty", "", "1"),
        ("space", "a b", "1"),
        ("no-version", "a", ""),
        ("dash-first", "-a", "1"),
    ):
        s.ask("ApiVersions", 3, label=label, client_software_name=name, client_software_version=number, pick=short)
    s.ask(
        "ApiVersions",
        3,
        label="dots",
        client_software_name="a.b-c",
        client_software_version="1.0-x",
        pick=lambda a: a["error_code"],
    )
    s.ask("ApiVersions", 3, label="no-client-id", client=None, pick=lambda a: a["error_code"])


def unknown_version(s):
    names = b"\x02a\x021\0"
    s.raw("v99-with-tags", frame(18, 99, names, tags=b"\0"), "ApiVersions", 0)
    s.raw("v99-without-tags", frame(18, 99, b""))
    s.raw("v6", frame(18, 6, names, tags=b"\0"), "ApiVersions", 0)
    s.raw("negative", frame(18, -1, b""))


def refused(s):
    s.raw("produce-v2", frame(0, 2, struct.pack(">hii", 1, 1000, 0)))
    s.raw("produce-v0", frame(0, 0, struct.pack(">hii", 1, 1000, 0)))
    s.raw("fetch-v3", frame(1, 3, struct.pack(">iiiii", -1, 0, 0, 1000, 0)))
    s.raw("fetch-v19", frame(1, 19, b"", tags=b"\0"))
    s.raw("metadata-v14", frame(3, 14, b"", tags=b"\0"))
    s.raw("broker-only-api", frame(4, 0, b""))
    s.raw("envelope", frame(58, 0, b"", tags=b"\0"))


def broken_frames(s):
    s.raw("negative-size", struct.pack(">i", -5))
    s.raw("too-large", struct.pack(">i", 200 << 20))
    s.raw("empty", struct.pack(">i", 0))
    s.raw("half-a-header", b"\0\0\0\2\0\3")
    s.raw("cut-body", frame(3, 1, b"\0\0\0\2\0\1a"))
    s.raw("count-too-large", frame(3, 1, b"\x7f\xff\xff\xff"))
    s.raw("waits-for-the-rest", frame(18, 0, b"")[:-1], seconds=1)
    s.raw("bytes-after-the-body", frame(18, 0, b"more"), "ApiVersions", 0, pick=lambda a: a["error_code"])
    s.raw("bytes-after-metadata", frame(3, 1, b"\0\0\0\0" + b"xy"), "Metadata", 1, pick=lambda a: a["topics"])


def answers_in_order(s):
    t = s.topic()
    slow = {"topics": [{"topic": t, "partitions": [{"partition": 0, "partition_max_bytes": 1000}]}]}
    sent = [
        s.send("Fetch", 11, max_wait_ms=400, min_bytes=1, **slow),
        s.send("ApiVersions", 1),
        s.send("Metadata", 1, topics=[]),
    ]
    s.finish(sent[0])
    s.finish(sent[1], pick=lambda a: a["error_code"])
    s.finish(sent[2])
