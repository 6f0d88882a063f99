"""Where JVMs of tests have their temporary files: those that are killed, as by most tests of crashes, remove none."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

__all__ = ["option"]

_VARIABLE = "KAFKACODEC_JVM_FILES"


def option() -> str:
    """What a JVM is given. The directory is that of the first process which has asked, and is removed at its end."""
    if _VARIABLE not in os.environ:
        os.environ[_VARIABLE] = tempfile.mkdtemp(prefix="kafkacodec-jvms-")
        atexit.register(shutil.rmtree, os.environ[_VARIABLE], ignore_errors=True)
    return f"-Djava.io.tmpdir={os.environ[_VARIABLE]}"
