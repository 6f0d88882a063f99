"""A command on a pseudo-terminal."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from typing import IO

SECONDS = 120


def on_a_terminal(
    *arguments: object, columns: int = 80, kind: str = "dumb", output: IO[bytes] | None = None, until: str = ""
) -> tuple[int, str]:
    """The exit code, and all that the command writes to a terminal: on both streams, unless its output has a file.

    `until` is what it writes before it is interrupted, as by Ctrl-C; by default it ends by itself.
    """
    primary, secondary = pty.openpty()
    environment = os.environ | {"COLUMNS": str(columns), "LINES": "50", "TERM": kind}
    process = subprocess.Popen(
        [sys.executable, "-m", "kafkacodec.cli", *map(str, arguments)],
        stdin=secondary,
        stdout=secondary if output is None else output,
        stderr=secondary,
        env=environment,
    )
    os.close(secondary)
    shown = b""
    try:
        while chunk := os.read(primary, 65536):
            shown += chunk
            if until and until.encode() in shown:
                process.send_signal(signal.SIGINT)
                until = ""
    except OSError:  # how Linux ends a pseudo-terminal
        pass
    os.close(primary)
    return process.wait(SECONDS), shown.decode()
