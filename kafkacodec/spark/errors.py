"""Errors of the data source."""

from __future__ import annotations

from kafkacodec.errors import KafkaCodecError

__all__ = ["OptionError", "UnfinishedWrite"]


class OptionError(KafkaCodecError, ValueError):
    """An option is unknown, malformed, or contradicts another one. The message starts with its name."""


class UnfinishedWrite(KafkaCodecError):
    """A job was killed while it published, and what it left cannot be removed without a decision.

    The message lists the partitions and offsets. `kafkacodec.spark.recover_write` with ``keep=True`` keeps what is
    there.
    """
