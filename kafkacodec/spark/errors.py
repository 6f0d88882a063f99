"""Errors of the data source."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from kafkacodec.errors import KafkaCodecError

__all__ = ["LostOffsets", "OptionError", "UnfinishedWrite", "without_traceback"]


class OptionError(KafkaCodecError, ValueError):
    """An option is unknown, malformed, or contradicts another one. The message starts with its name."""


class LostOffsets(OptionError):
    """Offsets that were to be read are lost, and the option ``failOnDataLoss`` does not accept that.

    Attributes:
        what (str): which offsets, of which partition, and why.
        go_on (str): where reading continues if that is accepted, as the end of a sentence.
    """

    def __init__(self, what: str, go_on: str) -> None:
        super().__init__(what, go_on)
        self.what, self.go_on = what, go_on

    def __str__(self) -> str:
        return f"failOnDataLoss: {self.what}; with failOnDataLoss=false reading continues {self.go_on}"


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
