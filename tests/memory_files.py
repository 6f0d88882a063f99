"""Directories in memory, for tests that sync thousands of files: a disk that others use too makes each of them wait."""

from __future__ import annotations

import os
import shutil
import tempfile

_PLACE = "/dev/shm"
_ENOUGH = 1 << 30


def temporary_directory() -> tempfile.TemporaryDirectory[str]:
    """In memory, where the system has such a file system with room to spare."""
    fits = os.access(_PLACE, os.W_OK) and shutil.disk_usage(_PLACE).free > _ENOUGH
    return tempfile.TemporaryDirectory(dir=_PLACE if fits else None)
