"""Standard input as a segment: the library maps files, so the bytes are first copied to a temporary one."""

from __future__ import annotations

import errno
import os
import shutil
import sys

import click

from kafkacodec.cli import console
from kafkacodec.temporary import temporary_directory

STANDARD = "-"
"""The path of standard input or output."""

_PIECE = 1 << 20


def paths_with_copy(context: click.Context, option: click.Parameter, paths: tuple[str, ...]) -> tuple[str, ...]:
    """The paths of a command, with that of a copy for ``-``; the copy is removed when the command ends."""
    if STANDARD not in paths or context.resilient_parsing:
        return paths
    if paths.count(STANDARD) > 1:
        raise click.BadParameter("- is given twice", context, option)
    copy = _copy(context)
    return tuple(copy if path == STANDARD else path for path in paths)


def path_with_copy(context: click.Context, option: click.Parameter, path: str) -> str:
    """The same for one path."""
    return paths_with_copy(context, option, (path,))[0]


def _copy(context: click.Context) -> str:
    if sys.stdin is None:
        raise OSError(errno.EBADF, "standard input is closed")
    directory = context.with_resource(temporary_directory("kafkacodec."))
    # Names a partition's directory cannot have, so that topic and partition are unknown.
    path = os.path.join(directory, "stdin")
    console.show_as(path, "standard input")
    try:
        with open(path, "xb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file, _PIECE)
    except OSError as error:
        if error.filename is None:
            error.filename = "standard input"
        raise
    if not os.path.getsize(path):
        console.note("kafkacodec: warning: standard input is empty")
    return path
