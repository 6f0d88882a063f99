"""Writes a topic of a backup to another cluster, with the same partitions, keys, headers and times.

    python replay_into_another_cluster.py [DATA_DIRECTORY TOPIC HOST:PORT]

Without arguments: the sample of the package, into a broker in this process.
"""

import sys

import kafkacodec as kc


def replay(topic: kc.log.Topic, servers: str) -> int:
    """The number of records that the cluster has acknowledged."""
    with kc.client.Admin(servers) as admin:
        if topic.name not in admin.list_topics():
            admin.create_topics(kc.client.NewTopic(topic.name, len(topic.partitions), replication_factor=1))
    sent = 0
    with kc.client.Producer(servers, compression_type="zstd", enable_idempotence=True) as producer:
        # Without aborted transactions, and those that never ended: consumers did not see their records.
        columns = ["partition", "timestamp", "key", "value", "headers"]
        for batch in topic.reader(columns=columns, isolation_level="read_committed"):
            sent += producer.send_columns(batch, topic=topic.name).result().rows
    return sent


if len(sys.argv) > 1:
    directory, name, servers = sys.argv[1:]
    print(replay(kc.log.LogDirectory(directory).topic(name), servers), "records sent")
else:
    with kc.broker.serve() as kafka:
        print(replay(kc.sample().topic("orders"), kafka.bootstrap_servers), "records sent")
        print(kafka.records("orders")["value"][0])
