"""Records of partitions as they are written: the loop behind ``dump --follow``."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator

import click

from kafkacodec.cli.console import note
from kafkacodec.cli.rows.record_rows import Page
from kafkacodec.errors import DecodeError
from kafkacodec.log.partitions.following import Follower, Growth

SECONDS = 0.25
"""Between looks at the files."""

LISTING_SECONDS = 1.0
"""Between looks for new partitions."""

_TRIES = 8
"""How often to read again what cannot be read: a preallocated file shows a batch before all of its bytes, and a segment
may be deleted between its listing and its reading."""


def follow(
    followers: list[Follower], read: Callable[[Growth], Iterator[Page]], added: Callable[[set[str]], list[Follower]]
) -> Iterator[Page | None]:
    """All records as they appear; None where there are no more for now. Ends by an exception.

    Args:
        followers: of the partitions that are there.
        read: gives the records of a growth.
        added: gives followers of the partitions whose paths are not among those given.

    Raises:
        click.ClickException: all partitions were deleted.
        DecodeError: records could not be read, again and again.
    """
    left = dict.fromkeys(map(id, followers), _TRIES)
    listed_at = time.monotonic()
    while followers:
        if time.monotonic() >= listed_at + LISTING_SECONDS:
            new = added({follower.partition.path for follower in followers})
            followers += new
            left |= dict.fromkeys(map(id, new), _TRIES)
            listed_at = time.monotonic()
        for follower in list(followers):
            try:
                yield from _new_rows(follower, read)
                left[id(follower)] = _TRIES
            except FileNotFoundError:
                left[id(follower)] -= 1
                if left[id(follower)] == 0 or not os.path.exists(follower.partition.path):
                    followers.remove(follower)
                    _warn(follower, "the partition was deleted")
            except DecodeError:
                left[id(follower)] -= 1
                if left[id(follower)] == 0:
                    raise
        yield None
        if followers:
            time.sleep(SECONDS)
    raise click.ClickException("nothing is left to follow")


def _new_rows(follower: Follower, read: Callable[[Growth], Iterator[Page]]) -> Iterator[Page]:
    growth = follower.poll()
    if growth is None:
        return
    if growth.notice is not None:
        _warn(follower, growth.notice)
    if growth.start_offset == growth.end_offset:
        return
    after = growth.start_offset
    try:
        for page in read(growth):
            after = page.cells("offset")[-1] + 1
            yield page
    except (DecodeError, FileNotFoundError):
        follower.again(after)
        raise


def _warn(follower: Follower, text: str) -> None:
    note(f"kafkacodec: warning: {follower.partition.path}: {text}")
