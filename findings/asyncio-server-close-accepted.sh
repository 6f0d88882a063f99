#!/usr/bin/env bash
# asyncio: a connection that was just accepted stays open, and is told to nobody, if the server closes in the same turn.
#
# Versions: CPython 3.11 (seen with 3.11.7), its selector event loop; uvloop 0.22.1 beside it.
#
# The loop accepts a connection in one turn and gives it to a protocol in later ones. If Server.close() comes between,
# the transport is made and then refused, because the server has no sockets any more; the error is dropped. The protocol
# hears of no connection, the server's code has nothing that it could close, and the client, which is connected, gets
# neither an answer nor an end: its socket is closed when the transport is collected as garbage, perhaps much later.
# A close before that resets the connection; one after it finds the connection with its protocol.
# Why it matters: a server that stops cleanly leaves clients waiting, and its tests warn of unclosed sockets now and then.
# Whoever stops reading of the listening sockets (loop.remove_reader) and lets some turns pass first, does not meet it.
#
# Output seen: see EXPECTED: turns of the loop before close(), what the client sees, and connections that the protocol
# heard of. The script fails if that changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet uvloop==0.22.1

cat > "$work/close.py" <<'PYTHON'
import asyncio
import socket
import sys

import uvloop


class Closing(asyncio.Protocol):
    made = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        Closing.made += 1
        transport.close()


async def seen_by_a_client(turns: int) -> str:
    Closing.made = 0
    server = await asyncio.get_running_loop().create_server(Closing, "127.0.0.1", 0)
    client = socket.create_connection(server.sockets[0].getsockname())
    for _ in range(turns):
        await asyncio.sleep(0)
    server.close()
    for _ in range(10):
        await asyncio.sleep(0)
    client.settimeout(1)
    with client:
        try:
            return "the end" if client.recv(1) == b"" else "data"
        except TimeoutError:
            return "nothing"
        except ConnectionResetError:
            return "a reset"


new_loop = uvloop.new_event_loop if sys.argv[1] == "uvloop" else asyncio.SelectorEventLoop
for turns in range(5):
    with asyncio.Runner(loop_factory=new_loop) as runner:
        print(sys.argv[1], turns, runner.run(seen_by_a_client(turns)), Closing.made, sep=" | ")
PYTHON

for loop in asyncio uvloop; do
  "$work/venv/bin/python" -W ignore "$work/close.py" "$loop" 2>/dev/null
done > "$work/seen"
cat > "$work/EXPECTED" <<'EXPECTED'
asyncio | 0 | a reset | 0
asyncio | 1 | a reset | 0
asyncio | 2 | nothing | 0
asyncio | 3 | the end | 1
asyncio | 4 | the end | 1
uvloop | 0 | a reset | 0
uvloop | 1 | the end | 1
uvloop | 2 | the end | 1
uvloop | 3 | the end | 1
uvloop | 4 | the end | 1
EXPECTED
diff "$work/EXPECTED" "$work/seen" && cat "$work/seen"
