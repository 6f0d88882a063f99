"""What clients and brokers log while a command runs, as lines on standard error."""

from __future__ import annotations

import logging

from kafkacodec.cli.advice import in_words
from kafkacodec.cli.console import note

__all__ = ["show_warnings"]


class _Notes(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        note(f"kafkacodec: {record.levelname.lower()}: {in_words(record.getMessage())}")
        if record.exc_info:  # a fault of this package, to be reported
            for line in logging.Formatter().formatException(record.exc_info).splitlines():
                note(line)


def show_warnings(*, quiet: bool = False) -> None:
    """Print what the package logs from now on, unless that goes elsewhere already; only errors if `quiet`."""
    log = logging.getLogger("kafkacodec")
    if not log.handlers:
        log.addHandler(_Notes(logging.ERROR if quiet else logging.WARNING))
        log.propagate = False
