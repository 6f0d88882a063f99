"""Detection of peers that speak another protocol, by the first bytes that they send."""

from __future__ import annotations

from kafkacodec.protocol.foreign import spoken

__all__ = ["foreign_protocol"]

_TLS = "the broker's listener uses TLS: set security_protocol to 'SSL' or 'SASL_SSL'"


def foreign_protocol(head: bytes) -> str | None:
    """What is wrong with a peer that sent these first four bytes; None if they do not tell."""
    name = spoken(head)
    if name is None:
        return None
    if name == "TLS":
        return _TLS
    return f"the peer {'speaks' if name in ('HTTP', 'SSH') else 'sends'} {name}: it is not a Kafka broker"
