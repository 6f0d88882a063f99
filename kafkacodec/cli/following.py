"""Records of partitions as they are written: the loop behind ``dump --follow``."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import click

from kafkacodec.cli.console import note
from kafkacodec.cli.record_rows import Row
from kafkacodec.errors import DecodeError
from kafkacodec.log.following import Follower, Growth

SECONDS = 0.25
"""Between looks at the files."""

_TRIES = 8
"""How often records that cannot be read are read again: a preallocated file shows a batch before all of its bytes."""


def follow(followers: list[Follower], read: Callable[[Growth], Iterator[Row]]) -> Iterator[Row | None]:
    """All records as they appear; None where there are no more for now. Ends by an exception.

    Raises:
        click.ClickException: all partitions were deleted.
        DecodeError: records could not be read, again and again.
    """
    tries = dict.fromkeys(map(id, followers), 0)
    while followers:
        for follower in list(followers):
            try:
                yield from _new_rows(follower, read)
                tries[id(follower)] = 0
            except FileNotFoundError:
                followers.remove(follower)
                _warn(follower, "the partition was deleted")
            except DecodeError:
                tries[id(follower)] += 1
                if tries[id(follower)] == _TRIES:
                    raise
        yield None
        if followers:
            time.sleep(SECONDS)
    raise click.ClickException("nothing is left to follow")


def _new_rows(follower: Follower, read: Callable[[Growth], Iterator[Row]]) -> Iterator[Row]:
    growth = follower.poll()
    if growth is None:
        return
    if growth.notice is not None:
        _warn(follower, growth.notice)
    if growth.start_offset == growth.end_offset:
        return
    after = growth.start_offset
    try:
        for row in read(growth):
            after = row.record.offset + 1
            yield row
    except (DecodeError, FileNotFoundError):
        follower.again(after)
        raise


def _warn(follower: Follower, text: str) -> None:
    note(f"kafkacodec: warning: {follower.partition.path}: {text}")
