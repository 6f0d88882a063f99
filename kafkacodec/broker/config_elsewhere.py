"""Settings of Apache Kafka's ``server.properties`` that this broker takes elsewhere, or does not need."""

from __future__ import annotations

from typing import Final

__all__ = ["elsewhere"]

_LISTEN: Final = "listeners are URLs: pass listen, or --listen, such as kafka://127.0.0.1:9092"
_ID: Final = "pass node_id, or --broker-id"
_DATA: Final = "the data directory has an argument of its own: pass data, or --data"
_ADDRESS: Final = "leave it out: each client is told the address that it has connected to"
_ALONE: Final = "leave it out: this broker needs no other process"
_FACTOR: Final = "leave it out: internal topics have default.replication.factor"
_TLS: Final = "listen at kafka+tls:// or kafka+sasl+tls://, and pass tls, or --tls-cert"

_INSTEAD: Final = {
    **dict.fromkeys(("broker.id", "brokerid", "node.id"), _ID),
    **dict.fromkeys(("log.dir", "log.dirs", "metadata.log.dir"), _DATA),
    **dict.fromkeys(("host.name", "listeners", "port", "listener.security.protocol.map"), _LISTEN),
    **dict.fromkeys(("advertised.host.name", "advertised.listeners", "advertised.port"), _ADDRESS),
    **dict.fromkeys(
        ("controller.listener.names", "controller.quorum.bootstrap.servers", "controller.quorum.voters",
         "inter.broker.listener.name", "process.roles", "security.inter.broker.protocol", "zookeeper.connect"), _ALONE
    ),
    **dict.fromkeys(
        ("offsets.topic.replication.factor", "share.coordinator.state.topic.min.isr",
         "share.coordinator.state.topic.replication.factor", "transaction.state.log.min.isr",
         "transaction.state.log.replication.factor"), _FACTOR
    ),
}  # fmt: skip


def elsewhere(name: str) -> str | None:
    """What to do instead of a setting; None if it is not one of these."""
    return _TLS if name.startswith("ssl.") else _INSTEAD.get(name)
