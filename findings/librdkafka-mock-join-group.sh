#!/usr/bin/env bash
# librdkafka's mock cluster advertises version 6 of JoinGroup, but closes the connection of a client that uses it.
#
# Versions: confluent-kafka 2.16.1 with librdkafka 2.16.0, Python 3.11.
#
# The mock cluster (test.mock.num.brokers) answers ApiVersions with JoinGroup 0 to 6. Version 6 is the first flexible one
# (KIP-482): its header ends with tagged fields, and its strings and arrays are compact. The mock cluster reads it as it
# reads version 5. It closes the connection without an answer; the same request in version 5 is answered.
# Why it matters: the mock cluster stands in for Kafka in the tests of other clients. One that takes the newest version
# that both sides know, as the protocol says, never joins a group there. librdkafka's own consumer uses version 5.
#
# Output seen: see EXPECTED. The script fails if the mock cluster behaves differently.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet confluent-kafka==2.16.1

cat > "$work/join.py" <<'PYTHON'
import socket
import struct

from confluent_kafka.admin import AdminClient

JOIN_GROUP, API_VERSIONS = 11, 18

admin = AdminClient({"test.mock.num.brokers": 1, "log_level": 0})
(broker,) = admin.list_topics(timeout=60).brokers.values()


def exact(connection, count):
    data = b""
    while len(data) < count:
        more = connection.recv(count - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def ask(request):
    """The answer without its size, or None where the connection is closed instead."""
    with socket.create_connection((broker.host, broker.port), timeout=60) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        try:
            return exact(connection, struct.unpack(">i", exact(connection, 4))[0])
        except (EOFError, ConnectionResetError):
            return None


def header(key, version):
    return struct.pack(">hhih", key, version, 7, 1) + b"c"


def string(text):
    return struct.pack(">h", len(text)) + text


def compact(text):
    return bytes([len(text) + 1]) + text


answer = ask(header(API_VERSIONS, 0))
(count,) = struct.unpack_from(">i", answer, 6)
for place in range(count):
    key, first, last = struct.unpack_from(">hhh", answer, 10 + 6 * place)
    if key == JOIN_GROUP:
        print("JoinGroup is advertised in versions", first, "to", last)

times = struct.pack(">ii", 6000, 6000)
subscription = struct.pack(">hi", 0, 1) + string(b"topic") + struct.pack(">i", -1)
five = (
    string(b"group") + times + string(b"") + struct.pack(">h", -1) + string(b"consumer")
    + struct.pack(">i", 1) + string(b"range") + struct.pack(">i", len(subscription)) + subscription
)  # fmt: skip
six = (
    compact(b"group") + times + compact(b"") + b"\0" + compact(b"consumer")
    + b"\2" + compact(b"range") + compact(subscription) + b"\0" + b"\0"
)  # fmt: skip
answer = ask(header(JOIN_GROUP, 5) + five)
print("version 5:", "closed" if answer is None else f"error {struct.unpack_from('>h', answer, 8)[0]}")
answer = ask(header(JOIN_GROUP, 6) + b"\0" + six)
print("version 6:", "closed" if answer is None else f"{len(answer)} bytes")
PYTHON

cat > "$work/EXPECTED" <<'EXPECTED'
JoinGroup is advertised in versions 0 to 6
version 5: error 0
version 6: closed
EXPECTED

"$work/venv/bin/python" "$work/join.py" > "$work/seen"
diff "$work/EXPECTED" "$work/seen" && cat "$work/seen"
