"""Checks that the driver has this package and its interpreter in a form that works."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kafkacodec.errors import KafkaCodecError

if TYPE_CHECKING:
    from pyspark import SparkContext

__all__ = ["require_interpreter", "require_unpacked", "use_this_python"]

_DEFAULT: Final = "python3"
"""What Spark runs without PYSPARK_PYTHON."""


def require_unpacked() -> None:
    """Check that this package is not imported from a zip file.

    Raises:
        KafkaCodecError: it is, as after ``--py-files`` with a wheel; the message names the file and what to do.
    """
    origin = str(Path(__file__).parents[3])  # where the package kafkacodec is
    if os.path.isfile(origin):
        raise KafkaCodecError(
            f"kafkacodec cannot run from {origin}, since Python does not import compiled modules from a zip or wheel; "
            "instead of --py-files, install it on the driver and the executors, or ship an environment by --archives"
        )


def use_this_python(context: SparkContext) -> None:
    """On one machine, have Spark's Python processes run the driver's Python, unless another one was named.

    Without PYSPARK_PYTHON, Spark takes the python3 of PATH, which has no packages of a virtual environment that is not
    activated.
    """
    if context.master.startswith("local") and context.pythonExec == _DEFAULT:
        context.pythonExec = sys.executable


def require_interpreter(python: str) -> None:
    """Check that the executors' Python is on the driver too: Spark plans with it there.

    Setting PYSPARK_DRIVER_PYTHON does not help: a data source that Spark finds by itself is planned and run with it on
    the executors as well.

    Raises:
        KafkaCodecError: it is not there; the message names it and says what to do.
    """
    if not shutil.which(python):
        raise KafkaCodecError(
            f"the executors' Python, {python}, does not exist on the driver, where Spark plans with it: "
            "unpack the environment there too, so that this path is right"
        )
