#!/usr/bin/env bash
# With KIP-848, a librdkafka consumer that misses max.poll.interval.ms says that it leaves its group, but stays a member.
#
# Versions: confluent-kafka 2.16.1 with librdkafka 2.16.0, Apache Kafka 4.4.0 (KRaft), Python 3.11.
#
# An application that does not poll for max.poll.interval.ms is taken for stuck: its consumer logs "leaving group", so
# that others get its partitions. With group.protocol=classic it sends LeaveGroup at once, and the group is empty a
# moment later. With group.protocol=consumer it sends nothing more, neither a heartbeat that leaves nor any other, until
# the application polls: the broker keeps it as a member with its partitions until the session ends, which is the
# broker's group.consumer.session.timeout.ms, 45 s by default.
# Why it matters: max.poll.interval.ms and its log line promise a limit for how long a stuck consumer holds up its
# partitions. With the new protocol, the broker's session timeout comes on top of it.
#
# Output seen: see EXPECTED. The script fails if the client behaves differently.
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
cat > "$work/pom.xml" <<'POM'
<project><modelVersion>4.0.0</modelVersion><groupId>g</groupId><artifactId>a</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>4.4.0</version></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>1.7.36</version></dependency>
</dependencies></project>
POM
mvn -q -B -f "$work/pom.xml" dependency:copy-dependencies -DoutputDirectory="$work/jars" > "$work/maven.txt"
free_port() {
    python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
port=$(free_port)
controller=$(free_port)
cat > "$work/server.properties" <<PROPERTIES
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$controller
advertised.listeners=PLAINTEXT://127.0.0.1:$port
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:$controller
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=$work/data
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
group.initial.rebalance.delay.ms=0
PROPERTIES
java -cp "$work/jars/*" kafka.tools.StorageTool format -t "AAAAAAAAAAAAAAAAAAAAAQ" \
    -c "$work/server.properties" > "$work/format.txt"
java -Xmx512m -cp "$work/jars/*" kafka.Kafka "$work/server.properties" > "$work/kafka.txt" 2>&1 &
server=$!

cat > "$work/stuck.py" <<'PYTHON'
import logging
import sys
import time

from confluent_kafka import Consumer, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

SERVER = f"127.0.0.1:{sys.argv[1]}"
told = []


class Told(logging.Handler):
    def emit(self, record):
        told.append(record.getMessage())


admin = AdminClient({"bootstrap.servers": SERVER, "log_level": 0})
end = time.monotonic() + 120
while True:
    try:
        admin.create_topics([NewTopic("orders", 1)])["orders"].result(10)
        break
    except KafkaException:
        assert time.monotonic() < end
        time.sleep(0.2)
logger = logging.getLogger("librdkafka")
logger.propagate = False
logger.addHandler(Told())


def members(group):
    return len(admin.describe_consumer_groups([group])[group].result(60).members)


for protocol in ("classic", "consumer"):
    # By its session alone, a member of the classic protocol would go 12 s after its last poll or later.
    session = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 1000} if protocol == "classic" else {}
    options = {"bootstrap.servers": SERVER, "group.id": protocol, "group.protocol": protocol}
    consumer = Consumer(options | session | {"max.poll.interval.ms": 7000}, logger=logger)
    consumer.subscribe(["orders"])
    while not consumer.assignment():
        consumer.poll(0.1)
    told.clear()
    stuck = time.monotonic()
    left = None
    while left is None and time.monotonic() < stuck + 25:
        if members(protocol) == 0:
            left = time.monotonic() - stuck
        time.sleep(0.2)
    consumer.poll(0)  # hands the log lines out
    says = any("leaving group" in line for line in told)
    when = "18 s later it is a member" if left is None else "it left at once" if left < 10 else f"it left after {left} s"
    print(f"{protocol}: says that it leaves: {says}; {when}")
    consumer.close()
PYTHON
"$work/venv/bin/python" "$work/stuck.py" "$port" | tee "$work/seen"

cat > "$work/EXPECTED" <<'TEXT'
classic: says that it leaves: True; it left at once
consumer: says that it leaves: True; 18 s later it is a member
TEXT
diff "$work/EXPECTED" "$work/seen"
