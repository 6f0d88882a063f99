"""The error for a wrong option."""

from __future__ import annotations

from kafkacodec.errors import KafkaCodecError

__all__ = ["OptionError"]


class OptionError(KafkaCodecError, ValueError):
    """An option is unknown, malformed, or contradicts another one. The message starts with its name."""
