"""Options of Spark's Kafka source and sink that only a connection to a broker needs, and that a job may still set."""

from __future__ import annotations

import logging
from collections.abc import Iterable

__all__ = ["is_foreign", "warn_foreign"]

_PREFIX = "kafka."
_NAMES = ("groupidprefix", "kafkaconsumer.polltimeoutms", "fetchoffset.numretries", "fetchoffset.retryintervalms")

logger = logging.getLogger("kafkacodec.spark")


def is_foreign(option: str) -> bool:
    """Whether this option is ignored, because it does not apply to files."""
    return option.lower().startswith(_PREFIX) or option.lower() in _NAMES


def warn_foreign(options: Iterable[str]) -> None:
    """Log the names of the options that are ignored, in one line. Their values may be secrets."""
    names = sorted(filter(is_foreign, options))
    if names:
        logger.warning("ignored, since files are read and written without a broker: %s", ", ".join(names))
