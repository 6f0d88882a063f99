"""A check that the topics of a write exist, which reports a missing one at once, before a producer gives up."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from kafkacodec.client import Admin, Producer
from kafkacodec.errors import UNKNOWN_TOPIC_OR_PARTITION, BrokerError, DeadlineExceeded, ItemErrors
from kafkacodec.spark.errors import OptionError
from kafkacodec.spark.live.client_options import shared_options
from kafkacodec.spark.live.connections import borrowed
from kafkacodec.spark.live.write_options import SinkOptions

__all__ = ["require_topics"]

_CREATION_MS: Final = 3000
"""How long brokers may take to create a topic that is asked for, if they do that, or to hear of a new one."""


def require_topics(options: SinkOptions, topics: Collection[str]) -> None:
    """Have brokers create missing topics, if they create what is asked for.

    Raises:
        OptionError: the cluster does not have a topic, or refuses it to this client.
        BrokerError, ConnectionFailed, DeadlineExceeded: the brokers do not answer.
    """
    with borrowed(Admin, shared_options(options.producer)) as admin:
        try:
            admin.describe_topics(sorted(topics))
            return
        except ItemErrors as found:
            errors = found.errors
    for name, problem in errors.items():
        if not isinstance(problem, BrokerError):
            raise problem
        if problem.code != UNKNOWN_TOPIC_OR_PARTITION:
            raise OptionError(f"topic: {name}: {problem}")
    limit = min(_CREATION_MS, options.producer.get("max_block_ms", _CREATION_MS))
    with Producer(**{**options.producer, "max_block_ms": limit}) as producer:
        for name in errors:
            try:
                producer.partitions_for(str(name))
            except (BrokerError, DeadlineExceeded) as problem:
                reason = problem if isinstance(problem, BrokerError) else problem.__cause__
                if isinstance(reason, BrokerError) and reason.code != UNKNOWN_TOPIC_OR_PARTITION:
                    raise OptionError(f"topic: {name}: {reason}") from None
                raise OptionError(f"topic: the cluster does not have {name!r} and does not create it") from None
