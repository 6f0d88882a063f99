"""Options of other clients that this one does not have: what replaces them, or why none is needed."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from random import choice
from typing import Any, Final

from kafkacodec.arguments import meant

__all__ = ["PARTITIONERS", "instead_of", "is_harmless", "unknown_options"]

_LOGS = "logs go to Python's logger 'kafkacodec.client': set its level"
_AHEAD = "prefetch_bytes limits the memory for records fetched ahead"
_WAITING = "buffer_memory limits the bytes of waiting records, batch_size those of a batch"
_METRICS = "metrics() has the numbers, and export_metrics() sends them to OpenTelemetry"
_SYSTEM = "not needed: sockets have the system's settings, and no delay"
_VERSIONS = "versions are detected, and broker_version_fallback is for brokers before 0.10"
_ADDRESSES = "not needed: each connection looks up all addresses of a host and tries them"
_TOKENS = "sasl_oauth_token_provider is a function that returns tokens"
_TLS = "ssl_context takes an ssl.SSLContext, which has all settings of TLS"
_DELIVERY = "send() returns a delivery, whose add_done_callback() calls a function"
_REBALANCE = "pass on_assigned and on_revoked to subscribe()"
_FUNCTION = "pass a function by the keyword of that name, with underscores"
_PARTITIONS = "partitioner takes a function, and the default is Java's: by key, else full batches in turn"
_REGISTRY = "kc.values.Registry(url) is a source of schemas"
_METADATA = "metadata_max_age_ms says when metadata is refreshed; stale metadata is refreshed at once"

# By name with dots. A name that ends with a dot stands for all that begin so.
_INSTEAD: Final[Mapping[str, str]] = {
    "api.version": _VERSIONS,
    "consumer.timeout.ms": "pass a timeout to columns() or getmany()",
    "loop": "a client belongs to the event loop of its first use",
    "rebalance.timeout.ms": "max_poll_interval_ms also limits rebalances",
    "topics": "pass topics without a name, as in Consumer('orders', 'payments')",
    "enable.auto.offset.store": "a record counts as processed when the application asks for more",
    **dict.fromkeys(
        ("statistics.interval.ms", "stats.cb", "metric.reporters", "metrics.", "enable.metrics.push"), _METRICS
    ),
    **dict.fromkeys(("log.level", "debug", "logger", "log.cb", "log.queue", "log.thread.name"), _LOGS),
    **dict.fromkeys(("queued.max.messages.kbytes", "queued.min.messages", "consume.callback.max.messages"), _AHEAD),
    **dict.fromkeys(
        ("queue.buffering.max.messages", "queue.buffering.max.kbytes", "batch.num.messages", "message.copy.max.bytes"),
        _WAITING,
    ),
    "queue.buffering.backpressure.threshold": "not needed: due batches leave at once",
    **dict.fromkeys(("error.cb", "throttle.cb"), "calls raise errors, and retries and slow calls are logged"),
    **dict.fromkeys(("dr.cb", "dr.msg.cb", "on.delivery", "callback", "delivery.report.only.error"), _DELIVERY),
    **dict.fromkeys(("rebalance.cb", "on.assign", "on.revoke", "on.lost"), _REBALANCE),
    **dict.fromkeys(("on.commit", "offset.commit.cb"), "commit() waits for the answer and raises its error"),
    **dict.fromkeys(("default.topic.config", "topic.conf"), "pass topic options like the others"),
    **dict.fromkeys(("group.id", "auto.offset.reset", "enable.auto.commit", "max.poll."), "an option of consumers"),
    **dict.fromkeys(("acks", "linger.ms", "batch.size", "transactional.id"), "an option of producers"),
    "enable.partition.eof": "end_offsets() says where partitions end, and a timeout ends an iteration",
    **dict.fromkeys(
        ("socket.keepalive.enable", "socket.nagle.disable", "socket.send.buffer.bytes", "socket.receive.buffer.bytes"),
        _SYSTEM,
    ),
    **dict.fromkeys(("send.buffer.bytes", "receive.buffer.bytes", "socket.max.fails"), _SYSTEM),
    **dict.fromkeys(("broker.address.ttl", "broker.address.family", "client.dns.lookup"), _ADDRESSES),
    **dict.fromkeys(("api.version.request", "api.version.fallback.ms", "api.version.auto.timeout.ms"), _VERSIONS),
    **dict.fromkeys(("topic.metadata.refresh.", "topic.metadata.propagation.max.ms", "metadata.recovery."), _METADATA),
    "fetch.error.backoff.ms": "retry_backoff_ms is the wait before a request is tried again",
    **dict.fromkeys(
        ("offset.store.", "offset.store.method", "auto.commit.enable"), "enable_auto_commit commits to the group"
    ),
    **dict.fromkeys(("key.serializer", "value.serializer", "key.deserializer", "value.deserializer"), _FUNCTION),
    **dict.fromkeys(("schema.registry.", "auto.register.schemas", "use.latest.version"), _REGISTRY),
    "interceptor.classes": "there are no interceptors: serializers and callbacks see each record",
    **dict.fromkeys(("partitioner.", "sticky.partitioning.linger.ms"), _PARTITIONS),
    "exclude.internal.topics": "not needed: patterns match no internal topics",
    **dict.fromkeys(("ssl.protocol", "ssl.enabled.protocols", "ssl.cipher.suites", "ssl.provider"), _TLS),
    **dict.fromkeys(("ssl.curves.list", "ssl.sigalgs.list", "ssl.ca.pem", "ssl.key.pem", "ssl.certificate.pem"), _TLS),
    **dict.fromkeys(("sasl.oauthbearer.", "sasl.login.", "sasl.client.callback.handler.class", "oauth.cb"), _TOKENS),
    "sasl.kerberos.kinit.cmd": "not needed: tickets come from the system's cache, which kinit or a keytab fills",
    "sasl.kerberos.keytab": "tickets come from the system's cache, or from the keytab that KRB5_CLIENT_KTNAME names",
    "enable.gapless.guarantee": "enable_idempotence keeps the order, and each lost record raises an error",
    "plugin.library.paths": "there are no plugins",
}


def instead_of(wrong: str, known: Collection[str]) -> str:
    """The end of an error about an unknown option."""
    dotted = wrong.replace("_", ".")
    found = _INSTEAD.get(dotted) or next((why for name, why in _INSTEAD.items() if _begins(dotted, name)), None)
    return found or meant(wrong, known) or "no option has a similar name, and the page on options lists them all"


def is_harmless(name: str) -> bool:
    """Whether an option of other clients may be left out: it says neither whom to trust nor who the client is."""
    dotted = name.replace("_", ".")
    known = dotted in _INSTEAD or any(_begins(dotted, start) for start in _INSTEAD)
    return known and not dotted.startswith(("ssl.", "sasl.", "oauth."))


def unknown_options(wrong: Sequence[str], known: Collection[str]) -> TypeError:
    """The error about all unknown options at once."""
    if len(wrong) == 1:
        return TypeError(f"unknown option {wrong[0]!r}; {instead_of(wrong[0], known)}")
    each = "; ".join(f"{name!r}: {instead_of(name, known)}" for name in wrong)
    return TypeError(f"{len(wrong)} unknown options: {each}")


def _begins(name: str, start: str) -> bool:
    return start.endswith(".") and name.startswith(start)


def _consistent_random(key: Any, every: Sequence[int], available: Sequence[int]) -> int:
    """librdkafka's default: CRC-32 of the key; records without one, or with an empty one, go anywhere."""
    return every[zlib.crc32(key) % len(every)] if key else choice(available or every)


PARTITIONERS: Final[Mapping[str, Callable[..., int] | None]] = {
    "murmur2_random": None,
    "consistent_random": _consistent_random,
}
"""librdkafka's names of partitioners, and their equivalents: a function, or None for the default."""
