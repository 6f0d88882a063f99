"""Whether this package and its interpreter were brought to the driver in a way that works."""

from __future__ import annotations

import os
import shutil

import kafkacodec
from kafkacodec.errors import KafkaCodecError

__all__ = ["can_register", "require_unpacked"]


def require_unpacked() -> None:
    """Check that this package is not imported from a zip file.

    Raises:
        KafkaCodecError: it is, as after ``--py-files`` with a wheel; the message names the file and what to do.
    """
    origin = os.path.dirname(os.path.dirname(kafkacodec.__file__))
    if os.path.isfile(origin):
        raise KafkaCodecError(
            f"kafkacodec cannot run from {origin}, since Python does not import compiled modules from a zip or wheel; "
            "instead of --py-files, install it on the driver and the executors, or ship an environment by --archives"
        )


def can_register(python: str) -> bool:
    """Whether the executors' interpreter exists on the driver, where Spark uses it for a registered data source too.

    If it does not, Spark has to find the data source by itself, for which it uses PYSPARK_DRIVER_PYTHON.

    Raises:
        KafkaCodecError: that is not set, or does not exist either.
    """
    if shutil.which(python):
        return True
    if not shutil.which(os.environ.get("PYSPARK_DRIVER_PYTHON", "")):
        raise KafkaCodecError(
            f"PYSPARK_PYTHON={python} does not exist on the driver, where Spark plans with it too; "
            "set PYSPARK_DRIVER_PYTHON to the driver's Python before Spark starts"
        )
    return False
