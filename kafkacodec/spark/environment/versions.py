"""Checks of the installed Spark's version."""

from __future__ import annotations

import re

from kafkacodec.errors import KafkaCodecError

__all__ = ["new_enough", "require_spark"]


def new_enough(needed: tuple[int, int]) -> bool:
    """Whether the installed Spark has at least this version."""
    import pyspark

    return tuple(int(part) for part in re.findall(r"\d+", pyspark.__version__)[:2]) >= needed


def require_spark(feature: str, needed: tuple[int, int]) -> None:
    """Check that the installed Spark is new enough for a feature.

    Raises:
        KafkaCodecError: it is older; the message names the feature and both versions.
    """
    if not new_enough(needed):
        import pyspark

        version = ".".join(map(str, needed))
        raise KafkaCodecError(f"{feature} needs Spark {version} or later, not {pyspark.__version__}")
