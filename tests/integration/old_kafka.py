"""Brokers of releases before KRaft, each with its ZooKeeper in the same process."""

from __future__ import annotations

from pathlib import Path

from tests.integration.kafka_jars import ALL_RELEASES, HERE, OLD_RELEASES
from tests.integration.kafka_jvm import KEEPS_OLD_RECORDS, Broker, Server, free_port, property_lines

__all__ = ["OldBroker", "broker_of"]

_JAVA = [
    f"-Dlog4j.configuration=file:{HERE / 'log4j.properties'}",
    "-Dzookeeper.admin.enableServer=false",
    # They unmap index files by what Java 16 closed, and delete no segment where they cannot.
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
]


class OldBroker(Server):
    """A broker of one of `OLD_RELEASES`; it creates topics that clients name, and starts within about a second."""

    def __init__(self, directory: Path, release: str, **settings: str) -> None:
        """`settings` are more server properties, with underscores for dots."""
        zookeeper, properties = free_port(), directory / "server.properties"
        super().__init__(directory, release, *_JAVA, "OldBroker", str(zookeeper), directory / "zookeeper", properties)
        host, port = self.server.split(":")
        listen = f"listeners=PLAINTEXT://{self.server}" if release != "0.8.2" else f"host.name={host}\nport={port}"
        properties.write_text(
            f"""broker.id=1
{listen}
zookeeper.connect=127.0.0.1:{zookeeper}
log.dirs={self.logs}
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
controlled.shutdown.enable=false
delete.topic.enable=true
{KEEPS_OLD_RECORDS}
"""
            + property_lines(settings)
        )


def broker_of(directory: Path, release: str, **settings: str) -> Server:
    """A broker of one of `ALL_RELEASES`."""
    assert release in ALL_RELEASES, f"{release} is none of {', '.join(ALL_RELEASES)}"
    kind = OldBroker if release in OLD_RELEASES else Broker
    return kind(directory, release, **settings)
