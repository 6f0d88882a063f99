#!/usr/bin/env bash
# A consumer with a quota never gets a batch that is larger than ten seconds of it, and no error tells why.
#
# Versions: Apache Kafka 4.4.0 (KRaft, settings at their defaults), confluent-kafka 2.16.1, Python 3.11.
#
# A broker averages a client's rate over ten seconds at least. A fetch whose answer would take the client over its
# consumer_byte_rate is answered without records, with a time to wait, and then it does not count. The broker asks the
# log for no more bytes than ten seconds allow, but a fetch always gets its first batch whole. So a batch above that
# size is over the quota each time: with 20,000 bytes a second, 200,000 bytes are the limit.
# Why it matters: the consumer stands still at that offset for ever, though it may read; it sees an empty topic. One
# large record, or a producer's larger batches, are enough. The way out is a higher quota.
#
# Output seen: see EXPECTED. The script fails if Kafka answers otherwise.
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
"$work/venv/bin/pip" install --quiet confluent-kafka==2.16.1

free_port() {
    python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

cat > "$work/pom.xml" <<POM
<project><modelVersion>4.0.0</modelVersion><groupId>g</groupId><artifactId>a</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>4.4.0</version></dependency>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId><version>4.4.0</version></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>1.7.36</version></dependency>
</dependencies></project>
POM
mvn -q -B -f "$work/pom.xml" dependency:copy-dependencies -DoutputDirectory="$work/jars" > "$work/maven.txt"
port=$(free_port)
controller=$(free_port)
cat > "$work/server.properties" <<PROPERTIES
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$controller
listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$controller
advertised.listeners=PLAINTEXT://127.0.0.1:$port
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=$work/data
offsets.topic.replication.factor=1
PROPERTIES
java -cp "$work/jars/*" kafka.tools.StorageTool format -t "AAAAAAAAAAAAAAAAAAAAAQ" \
    -c "$work/server.properties" > "$work/format.txt"
java -Xmx512m -cp "$work/jars/*" kafka.Kafka "$work/server.properties" > "$work/kafka.txt" 2>&1 &
server=$!

cat > "$work/ask.py" <<'PYTHON'
import sys
import time

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

servers, task = {"bootstrap.servers": f"127.0.0.1:{sys.argv[1]}", "log_level": 0}, sys.argv[2]
if task == "write":
    admin = AdminClient(servers)
    admin.list_topics(timeout=60)
    for future in admin.create_topics([NewTopic("small", 1, 1), NewTopic("large", 1, 1)]).values():
        future.result(60)
    producer = Producer(servers)
    producer.produce("small", b"x" * 150_000)
    producer.produce("large", b"x" * 250_000)
    assert not producer.flush(60)
else:
    for topic in ("small", "large"):
        consumer = Consumer({**servers, "client.id": topic, "group.id": task, "enable.auto.commit": False})
        consumer.assign([TopicPartition(topic, 0, 0)])
        end, found = time.monotonic() + 40, None
        while found is None and time.monotonic() < end:
            found = consumer.poll(1)
        text = "nothing, and no error" if found is None else found.error() or f"{len(found.value()):,} bytes"
        print(f"{task}: {topic}: {text}")
        consumer.close()
PYTHON

quota() {
    java -cp "$work/jars/*" org.apache.kafka.tools.ConfigCommand --bootstrap-server "127.0.0.1:$port" --alter \
        --entity-type clients --entity-default "$@" > "$work/quota.txt"
}

"$work/venv/bin/python" "$work/ask.py" "$port" write
quota --add-config consumer_byte_rate=20000
"$work/venv/bin/python" "$work/ask.py" "$port" "with a quota" > "$work/seen.txt"
quota --delete-config consumer_byte_rate
"$work/venv/bin/python" "$work/ask.py" "$port" "without" >> "$work/seen.txt"
cat "$work/seen.txt"

cat > "$work/expected.txt" <<'EXPECTED'
with a quota: small: 150,000 bytes
with a quota: large: nothing, and no error
without: small: 150,000 bytes
without: large: 250,000 bytes
EXPECTED
diff "$work/expected.txt" "$work/seen.txt"
