"""``kafkacodec admin groups``."""

from __future__ import annotations

import csv
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from kafkacodec.cli.commands.admin.shared import dry_run_option, json_option, show, tell, telling
from kafkacodec.cli.console import note, say
from kafkacodec.cli.options.files import in_file
from kafkacodec.cli.options.globs import refuse_strangers
from kafkacodec.cli.options.numbers import Number
from kafkacodec.cli.options.servers import Servers, server_options
from kafkacodec.cli.output import counted
from kafkacodec.errors import ItemErrors
from kafkacodec.moments import milliseconds

if TYPE_CHECKING:
    from kafkacodec.client import Admin

Key = tuple[str, int]


class _Groups(click.Group):
    """Names the command for what another one does."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command."""
        if args and args[0] == "describe":
            ctx.fail("No such command 'describe'; use: kafkacodec groups -b SERVER -g GROUP")
        return super().resolve_command(ctx, args)


@click.group(cls=_Groups, short_help="List and delete groups, and reset their offsets.")
def groups() -> None:
    """List and delete groups, and reset their offsets; `kafkacodec groups -b` and `lag -b` show more of them."""


@groups.command(name="list")
@server_options()
def list_groups(servers: Servers) -> None:
    """Print the names of all groups, one a line."""
    with servers.admin() as admin:
        for name in admin.list_groups():
            say(name)


@groups.command()
@click.argument("names", metavar="GROUP...", nargs=-1, required=True)
@server_options()
@dry_run_option
def delete(names: tuple[str, ...], servers: Servers, dry_run: bool) -> None:
    """Delete groups that have no members, with their offsets."""

    def told(name: str, result: object = None) -> None:
        tell(name, "deleted", dry_run)

    with servers.admin() as admin, telling(told):
        if dry_run:
            refuse_strangers("group", names, admin.list_groups())
        else:
            admin.delete_groups(names)
    for name in names:
        told(name)


@groups.command(name="reset-offsets")
@click.argument("group")
@server_options()
@click.option(
    "--topic", "topics", metavar="TOPIC[:N,...]", multiple=True, help="These partitions; default: all committed ones."
)
@click.option("--to-earliest", is_flag=True, help="To the first record.")
@click.option("--to-latest", is_flag=True, help="To the end.")
@click.option("--to-offset", metavar="N", type=Number(min=0), help="To an offset.")
@click.option("--shift-by", metavar="N", type=int, help="Forward by N, or back if N is negative.")
@click.option("--to-time", metavar="TIME", help="To the first record of this time or later.")
@click.option("--by-duration", metavar="DURATION", help="To the first record that is not older: 1h, 1d12h or PT1H.")
@click.option(
    "--from-file",
    metavar="FILE",
    type=click.File(encoding="utf-8"),
    help="To the offsets in CSV: topic,partition,offset, or with a header as `kafkacodec offsets -o FILE` writes.",
)
@json_option
@dry_run_option
def reset_offsets(
    group: str,
    servers: Servers,
    topics: tuple[str, ...],
    to_earliest: bool,
    to_latest: bool,
    to_offset: int | None,
    shift_by: int | None,
    to_time: str | None,
    by_duration: str | None,
    from_file: Any,
    as_json: bool,
    dry_run: bool,
) -> None:
    """Set the offsets of a group without members.

    Prints each partition with its offset before and after. Offsets stay within the partition.
    """
    ways: dict[str, Any] = {
        "--to-earliest": "earliest" if to_earliest else None,
        "--to-latest": "latest" if to_latest else None,
        "--to-offset": to_offset,
        "--shift-by": shift_by,
        "--to-time": None if to_time is None else _time("--to-time", to_time),
        "--by-duration": None if by_duration is None else _ago(by_duration),
        "--from-file": from_file,
    }
    given = {name: value for name, value in ways.items() if value is not None}
    if len(given) != 1:
        raise click.UsageError(f"one of {', '.join(ways)} is required" + (f", not {len(given)}" if given else ""))
    if topics and from_file is not None:
        raise click.UsageError("--from-file names the partitions; --topic does not apply")
    ((way, value),) = given.items()
    asked = _file_rows(from_file, group) if from_file is not None else {}
    named = _named(topics)
    with servers.admin() as admin:
        before = {(key.topic, key.partition): offset.offset for key, offset in admin.list_group_offsets(group).items()}
        if not before:
            _check_group(admin, group, topics or tuple(asked))
        keys = list(asked) or _partitions(admin, named) or list(before)
        after = _targets(admin, keys, way, value, before, asked)
        try:
            if not dry_run:
                admin.alter_group_offsets(group, after)
        except ItemErrors as partly:
            _show_reset(list(partly.results), before, after, as_json)
            raise
    _show_reset(after, before, after, as_json)
    if dry_run:
        note("nothing was changed (--dry-run)")


def _show_reset(keys: Collection[Key], before: Mapping[Key, int], after: Mapping[Key, int], as_json: bool) -> None:
    if keys:
        rows = ([*key, before.get(key), after[key]] for key in keys)
        show(["topic", "partition", "from", "to"], rows, as_json=as_json)


def _check_group(admin: Admin, group: str, named: Sequence[object]) -> None:
    """Refuse a group without offsets, unless partitions are named; the reset then creates the group."""
    if not named:
        refuse_strangers("group", [group], admin.list_groups())
        raise click.ClickException(f"group {group!r} has no committed offsets; add --topic")


def _named(texts: Sequence[str]) -> dict[str, set[int] | None]:
    """The partitions of each topic in ``--topic``; None for all."""
    found: dict[str, set[int] | None] = {}
    for text in texts:
        topic, colon, numbers = text.partition(":")
        if colon and not all(number.isdecimal() for number in numbers.split(",")):
            raise click.UsageError(f"--topic {text}: not numbers of partitions")
        before = found.setdefault(topic, set())
        found[topic] = before | set(map(int, numbers.split(","))) if colon and before is not None else None
    return found


def _partitions(admin: Admin, wanted: Mapping[str, set[int] | None]) -> list[Key]:
    """The partitions that are named. Raises click.ClickException: one is not there."""
    found: list[Key] = []
    for topic in admin.describe_topics(list(wanted)).values() if wanted else ():
        every = [part.partition for part in topic.partitions]
        numbers = wanted[topic.name]
        chosen = every if numbers is None else sorted(numbers)
        missing = [str(number) for number in chosen if number not in every]
        if missing:
            raise click.ClickException(
                f"{topic.name}: no partition {', '.join(missing)}; it has {counted(len(every), 'partition')}, from 0 on"
            )
        found += [(topic.name, number) for number in chosen]
    return found


def _targets(
    admin: Admin, keys: Sequence[Key], way: str, value: Any, before: Mapping[Key, int], asked: Mapping[Key, int]
) -> dict[Key, int]:
    """The new offset of each partition, within its log."""

    def listed(spec: Any) -> dict[Key, int]:
        found = admin.list_offsets(dict.fromkeys(keys, spec))
        return {(key.topic, key.partition): offset.offset for key, offset in found.items()}

    first, last = listed("earliest"), listed("latest")
    if way in ("--to-earliest", "--to-latest"):
        return first if way == "--to-earliest" else last
    if way in ("--to-time", "--by-duration"):
        return {key: last[key] if offset < 0 else offset for key, offset in listed(value).items()}
    if way == "--shift-by":
        missing = [key for key in keys if key not in before]
        if missing:
            topic, number = missing[0]
            raise click.ClickException(f"{topic}-{number}: no committed offset to shift")
    wanted = asked or {key: value if way == "--to-offset" else before[key] + value for key in keys}
    return {key: min(max(wanted[key], first[key]), last[key]) for key in keys}


def _file_rows(file: Any, group: str) -> dict[Key, int]:
    with in_file(file):
        rows = [row for row in csv.reader(file) if row]
    names = ["topic", "partition", "offset"]
    if rows and "topic" in rows[0]:
        names = rows.pop(0)
    found = {}
    for number, row in enumerate(rows, 1):
        cells = dict(zip(names, row, strict=False))
        try:
            if cells.get("group", group) == group:
                found[cells["topic"], int(cells["partition"])] = int(cells["offset"])
        except (KeyError, ValueError):
            raise click.ClickException(f"{file.name}: row {number} has no topic, partition and offset") from None
    if not found:
        raise click.ClickException(f"{file.name}: no offsets of group {group!r}")
    return found


def _time(option: str, text: str) -> int:
    try:
        time = milliseconds(text, option)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    return _not_negative(option, text, time)


def _not_negative(option: str, text: str, time: int) -> int:
    if time < 0:
        raise click.UsageError(f"{option}: {text} is before 1970")
    return time


def _ago(text: str) -> int:
    """The time before now by a duration such as ``1h`` or, of ISO 8601, ``PT1H``."""
    from kafkacodec.client.consuming.reset_policy import reset_policy

    if text.startswith("P"):
        try:
            time = milliseconds("now") - (reset_policy(f"by_duration:{text}").duration_ms or 0)
        except ValueError as error:
            raise click.UsageError(f"--by-duration: {error}") from None
        return _not_negative("--by-duration", text, time)
    try:
        time = milliseconds(f"-{text}")
    except ValueError:
        raise click.UsageError(f"--by-duration is {text!r}, which is no duration such as 1h, 1d12h or PT1H") from None
    return _not_negative("--by-duration", text, time)
