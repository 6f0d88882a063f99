"""What a wrong option ends in."""

from __future__ import annotations

from kafkacodec.errors import KafkaCodecError

__all__ = ["OptionError"]


class OptionError(KafkaCodecError, ValueError):
    """An option that is unknown, malformed, or contradicts another one; the message starts with its name."""
