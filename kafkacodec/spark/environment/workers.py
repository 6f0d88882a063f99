"""The Python processes that Spark starts for tasks and for streams."""

from __future__ import annotations

import gc
import sys

__all__ = ["settle"]

_settled = False


def settle() -> None:
    """In a process of Spark: leave what is imported by now out of later searches for garbage.

    Spark's workers search all objects after each task (`gc.collect` in pyspark.daemon). The modules of pyspark, pandas
    and pyarrow have so many that this takes as long as it takes to read 50,000 records. Modules stay anyway. Does
    nothing after the first call, and nothing in a process of the user.
    """
    global _settled
    if not _settled and _is_of_spark():
        gc.collect()  # garbage would stay too
        gc.freeze()
    _settled = True


def _is_of_spark() -> bool:
    """Whether this process runs a module of pyspark: its workers, and its programs for streams."""
    spec = sys.modules["__main__"].__spec__
    return spec is not None and spec.name.startswith("pyspark.")
