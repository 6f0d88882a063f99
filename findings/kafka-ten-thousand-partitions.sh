#!/usr/bin/env bash
# Kafka refuses a topic of 10,000 partitions by a policy that nobody set, and 4.1 has no error for adding more of them.
#
# Versions: Apache Kafka 4.1.0 and 4.4.0 (KRaft, settings at their defaults), confluent-kafka 2.16.1, Python 3.11.
#
# The controller writes at most 10,000 records for one request. A new topic takes one record, and one more for each
# partition and each configuration: a topic of 9,999 partitions is created, one of 10,000 is refused. The error is
# POLICY_VIOLATION, although no policy is configured, and all topics of the request get it.
# CreatePartitions writes no record for the topic: 10,000 may be added at once. With more, 4.1.0 answers
# UNKNOWN_SERVER_ERROR, and only for the topic at which the limit was passed; 4.4.0 answers POLICY_VIOLATION for all.
# Why it matters: the limit is in no configuration, and the answers name neither the limit nor the way out, which is
# several requests. UNKNOWN_SERVER_ERROR looks like a fault of the cluster, and callers try again.
#
# All requests only validate: nothing is created but two small topics.
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

start() { # VERSION: leaves `server` and `port`
    local home="$work/$1"
    mkdir -p "$home"
    cat > "$home/pom.xml" <<POM
<project><modelVersion>4.0.0</modelVersion><groupId>g</groupId><artifactId>a</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>$1</version></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>1.7.36</version></dependency>
</dependencies></project>
POM
    mvn -q -B -f "$home/pom.xml" dependency:copy-dependencies -DoutputDirectory="$home/jars" > "$home/maven.txt"
    port=$(free_port)
    cat > "$home/server.properties" <<PROPERTIES
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$(free_port)
advertised.listeners=PLAINTEXT://127.0.0.1:$port
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=$home/data
offsets.topic.replication.factor=1
PROPERTIES
    sed -i "/^listeners/{h;s/.*CONTROLLER:..127.0.0.1:\([0-9]*\)/controller.quorum.voters=1@127.0.0.1:\1/;H;x}" \
        "$home/server.properties"
    java -cp "$home/jars/*" kafka.tools.StorageTool format -t "AAAAAAAAAAAAAAAAAAAAAQ" \
        -c "$home/server.properties" > "$home/format.txt"
    java -Xmx512m -cp "$home/jars/*" kafka.Kafka "$home/server.properties" > "$home/kafka.txt" 2>&1 &
    server=$!
}

cat > "$work/ask.py" <<'PYTHON'
import sys

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{sys.argv[1]}", "log_level": 0})
admin.list_topics(timeout=60)


def told(futures):
    for name, future in sorted(futures.items()):
        try:
            future.result(60)
            yield f"{name} yes"
        except KafkaException as error:
            yield f"{name} {error.args[0].name()}"


for topics in ({"a": 9999}, {"a": 10_000}, {"a": 5000, "b": 5000}):
    asked = [NewTopic(name, count, 1) for name, count in topics.items()]
    print("create", topics, "->", *told(admin.create_topics(asked, validate_only=True)))
for future in admin.create_topics([NewTopic("x", 1, 1), NewTopic("y", 1, 1)]).values():
    future.result(60)
for counts in ({"x": 10_001}, {"x": 10_002}, {"x": 10_001, "y": 2}):
    asked = [NewPartitions(name, count) for name, count in counts.items()]
    print("grow", counts, "->", *told(admin.create_partitions(asked, validate_only=True)))
PYTHON

for version in 4.1.0 4.4.0; do
    start "$version"
    echo "$version"
    "$work/venv/bin/python" "$work/ask.py" "$port"
    kill "$server"
    wait "$server" || true
    server=""
done > "$work/seen.txt"
cat "$work/seen.txt"

cat > "$work/expected.txt" <<'EXPECTED'
4.1.0
create {'a': 9999} -> a yes
create {'a': 10000} -> a POLICY_VIOLATION
create {'a': 5000, 'b': 5000} -> a POLICY_VIOLATION b POLICY_VIOLATION
grow {'x': 10001} -> x yes
grow {'x': 10002} -> x UNKNOWN
grow {'x': 10001, 'y': 2} -> x yes y UNKNOWN
4.4.0
create {'a': 9999} -> a yes
create {'a': 10000} -> a POLICY_VIOLATION
create {'a': 5000, 'b': 5000} -> a POLICY_VIOLATION b POLICY_VIOLATION
grow {'x': 10001} -> x yes
grow {'x': 10002} -> x POLICY_VIOLATION
grow {'x': 10001, 'y': 2} -> x POLICY_VIOLATION y POLICY_VIOLATION
EXPECTED
diff "$work/expected.txt" "$work/seen.txt"
