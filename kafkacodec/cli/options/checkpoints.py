"""Warnings about offset checkpoints that cannot be read, without which logs are checked less."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from kafkacodec.cli.console import note

if TYPE_CHECKING:
    from kafkacodec.log import Partition

__all__ = ["warn_of_checkpoints", "warn_of_checkpoints_beside"]

_TOLD = "kafkacodec.checkpoints"


def warn_of_checkpoints(log_dirs: Iterable[str]) -> None:
    """Print a warning for each checkpoint of log directories that cannot be read, once in a command."""
    from kafkacodec.log.opening.checkpoints import WITHOUT, unreadable_checkpoints

    told: set[str] = click.get_current_context().meta.setdefault(_TOLD, set())
    for directory in sorted(set(log_dirs) - told):
        told.add(directory)
        for name, error in unreadable_checkpoints(directory).items():
            note(f"kafkacodec: warning: {error}; {WITHOUT[name]}")


def warn_of_checkpoints_beside(partitions: Iterable[Partition]) -> None:
    """The same for the log directories that partitions are in."""
    from kafkacodec.log.opening import full_path

    named = (p for p in partitions if p.topic is not None and p.state == "current")
    warn_of_checkpoints(os.path.dirname(full_path(p.path)) for p in named)
