#!/usr/bin/env bash
# kazoo forgets watches when a connection breaks, though the session lives on, and its state says only "connected" again.
#
# Versions: kazoo 2.11.0, Apache ZooKeeper 3.9.3, Python 3.11.
#
# A ZooKeeper client that loses its connection makes another one and keeps its session: ephemeral nodes stay. Java's
# client registers its watches again with the new connection (the request SetWatches). kazoo does not have that request.
# It calls each watch once with an event of type NONE and without a path, and forgets it. A program that ignores such
# events, since nothing has changed, is never told of later changes. Listeners see SUSPENDED, then CONNECTED, as at the
# start. Only the recipes ChildrenWatch and DataWatch set their watches again.
# Why it matters: what follows a group or a list of servers by get_children(path, watch) goes blind at the first short
# break of the network. Both watches below are set the same way; the connection breaks after the second is set.
#
# Output seen: see EXPECTED. The script fails if kazoo behaves differently.
set -euo pipefail
work=$(mktemp -d)
server=""
finish() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    wait 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet kazoo==2.11.0
cat > "$work/pom.xml" <<'POM'
<project><modelVersion>4.0.0</modelVersion><groupId>g</groupId><artifactId>a</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.apache.zookeeper</groupId><artifactId>zookeeper</artifactId><version>3.9.3</version></dependency>
<dependency><groupId>io.dropwizard.metrics</groupId><artifactId>metrics-core</artifactId><version>4.1.12.1</version></dependency>
<dependency><groupId>org.xerial.snappy</groupId><artifactId>snappy-java</artifactId><version>1.1.10.5</version></dependency>
</dependencies></project>
POM
mvn -q -B -f "$work/pom.xml" dependency:copy-dependencies -DoutputDirectory="$work/jars" > "$work/maven.txt"
port=$(python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
cat > "$work/zoo.cfg" <<CFG
tickTime=2000
dataDir=$work/data
clientPort=$port
clientPortAddress=127.0.0.1
admin.enableServer=false
CFG
java -cp "$work/jars/*" org.apache.zookeeper.server.ZooKeeperServerMain "$work/zoo.cfg" > "$work/zookeeper.txt" 2>&1 &
server=$!

cat > "$work/watches.py" <<'PYTHON'
import queue
import socket
import sys
import threading
import time

from kazoo.client import KazooClient

PORT = int(sys.argv[1])
pairs = []


def pump(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass
    for one in (source, target):
        try:
            one.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def relay(listener):
    """The network between client and server, whose connections can be broken."""
    while True:
        client, _ = listener.accept()
        server = socket.create_connection(("127.0.0.1", PORT))
        pairs.append((client, server))
        for way in ((client, server), (server, client)):
            threading.Thread(target=pump, args=way, daemon=True).start()


listener = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=relay, args=(listener,), daemon=True).start()
other = KazooClient(f"127.0.0.1:{PORT}", timeout=30)
other.start(60)
other.ensure_path("/group")

client = KazooClient(f"127.0.0.1:{listener.getsockname()[1]}", timeout=30)
states, events = queue.Queue(), queue.Queue()
client.add_listener(states.put)
client.start(60)
print("listener:", states.get(timeout=60))
session = client.client_id


def watch():
    client.get_children("/group", watch=lambda event: events.put((event.type, event.path)))


watch()
other.create("/group/one")
print("a child is added:", events.get(timeout=60))
watch()
pairs[-1][0].shutdown(socket.SHUT_RDWR)
print("the connection breaks:", events.get(timeout=60))
print("listener:", states.get(timeout=60), "then", states.get(timeout=60))
print("the same session:", client.client_id == session)
other.create("/group/two")
while "two" not in client.get_children("/group"):  # the change is visible on this connection
    time.sleep(0.01)
try:
    print("a child is added:", events.get(timeout=2))
except queue.Empty:
    print("a child is added: no event")
PYTHON
"$work/venv/bin/python" "$work/watches.py" "$port" | tee "$work/seen"

cat > "$work/EXPECTED" <<'TEXT'
listener: CONNECTED
a child is added: ('CHILD', '/group')
the connection breaks: ('NONE', None)
listener: SUSPENDED then CONNECTED
the same session: True
a child is added: no event
TEXT
diff "$work/EXPECTED" "$work/seen"
