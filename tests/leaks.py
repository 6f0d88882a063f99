"""Whether work leaks objects."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable


def assert_no_leak(work: Callable[[], None]) -> None:
    """Do the work twice: the second time must leave neither memory blocks nor references to None."""
    work()
    gc.collect()
    before, none = sys.getallocatedblocks(), sys.getrefcount(None)
    work()
    gc.collect()
    assert abs(sys.getallocatedblocks() - before) < 100
    assert abs(sys.getrefcount(None) - none) < 100
