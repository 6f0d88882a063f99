"""Errors of the data source."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from kafkacodec.errors import KafkaCodecError

__all__ = ["OptionError", "UnfinishedWrite", "without_traceback"]


class OptionError(KafkaCodecError, ValueError):
    """An option is unknown, malformed, or contradicts another one. The message starts with its name."""


class UnfinishedWrite(KafkaCodecError):
    """A job was killed while it published, and its segments cannot be removed automatically.

    The message lists the partitions and offsets. `kafkacodec.spark.recover_write` with ``keep=True`` keeps the
    segments.
    """


@contextmanager
def without_traceback() -> Iterator[None]:
    """Let Spark show this package's and the system's errors as one sentence; also a decorator for functions that Spark
    calls.

    Spark's workers put the traceback before the message unless this variable is set when the error reaches them. A
    worker ends after an error.
    """
    try:
        yield
    except (KafkaCodecError, OSError):
        os.environ["SPARK_HIDE_TRACEBACK"] = "1"
        raise
