"""``kafkacodec admin transactions``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kafkacodec.cli.commands.admin.shared import dry_run_option, json_option, show, tell
from kafkacodec.cli.options.globs import matches, refuse_strangers
from kafkacodec.cli.options.numbers import Number
from kafkacodec.cli.options.servers import Servers, server_options
from kafkacodec.cli.output import SECONDS, timestamp
from kafkacodec.datatypes import NamedTuple
from kafkacodec.moments import milliseconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kafkacodec.client import Admin

_OPEN = ("Ongoing", "PrepareCommit", "PrepareAbort")
_MINUTES = 15  # the longest time of a transaction that brokers allow by default


@click.group()
def transactions() -> None:
    """List transactions, find those that hang, and abort one."""


@transactions.command(name="list")
@server_options()
@click.option(
    "--state",
    "states",
    metavar="STATE",
    multiple=True,
    help="Only transactions in this state, such as Ongoing; repeatable.",
)
@json_option
def list_transactions(servers: Servers, states: tuple[str, ...], as_json: bool) -> None:
    """Print the transactional ids with the states of their transactions."""
    with servers.admin() as admin:
        try:
            found = admin.list_transactions(states=states)
        except ValueError as error:
            raise click.UsageError(str(error)) from None
    rows = ([one.transactional_id, one.producer_id, one.state, one.coordinator] for one in found.values())
    show(["transactional id", "producer id", "state", "coordinator"], rows, as_json=as_json)


@transactions.command()
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@server_options()
@json_option
def describe(ids: tuple[str, ...], servers: Servers, as_json: bool) -> None:
    """Print the latest transaction of transactional ids."""
    with servers.admin() as admin:
        found = admin.describe_transactions(ids)
    rows = (
        [
            one.transactional_id,
            one.state,
            one.producer_id,
            one.producer_epoch,
            one.start_time_ms if as_json else timestamp(one.start_time_ms, SECONDS),
            [f"{topic}-{number}" for topic, number in one.partitions],
        ]
        for one in found.values()
    )
    names = ["transactional id", "state", "producer id", "epoch", "begun (UTC)", "partitions of it"]
    show(names, rows, as_json=as_json)


class _Hanging(NamedTuple):
    topic: str
    partition: int
    producer_id: int
    epoch: int
    coordinator_epoch: int
    start: int
    last: int


@transactions.command()
@server_options()
@click.option("--topic", "topics", metavar="GLOB", multiple=True, help="Only in topics matching GLOB; repeatable.")
@click.option(
    "--minutes",
    type=Number(min=0),
    default=_MINUTES,
    show_default=True,
    help="Without new records for at least this long.",
)
@json_option
def hanging(servers: Servers, topics: tuple[str, ...], minutes: int, as_json: bool) -> None:
    """Print transactions that are open in a partition but no longer known to their coordinators (KIP-664)."""
    with servers.admin() as admin:
        found = _hanging(admin, topics, minutes)
    rows = ([*one[:4], one.start, one.last if as_json else timestamp(one.last, SECONDS)] for one in found)
    names = ["topic", "partition", "producer id", "epoch", "start", "last record (UTC)"]
    show(names, rows, as_json=as_json)


@transactions.command()
@server_options()
@click.option("--topic", required=True)
@click.option("--partition", type=Number(min=0), required=True)
@click.option(
    "--start-offset",
    type=Number(min=0),
    required=True,
    help="The transaction's first offset, as `hanging` prints it.",
)
@click.option(
    "--force", is_flag=True, help="Even if its coordinator still knows it; its other partitions are not aborted."
)
@dry_run_option
def abort(servers: Servers, topic: str, partition: int, start_offset: int, force: bool, dry_run: bool) -> None:
    """Abort a transaction that hangs in a partition, for which readers of committed records wait."""
    place = f"{topic}-{partition}"
    with servers.admin() as admin:
        there = _open(admin, [(topic, partition)])
        chosen = next((one for one in there if one.start == start_offset), None)
        if chosen is None:
            known = ", ".join(str(one.start) for one in there) or "none"
            raise click.ClickException(f"{place}: no transaction is open at offset {start_offset}; open at: {known}")
        if not force and not _forgotten(admin, [chosen]):
            raise click.ClickException(
                f"{place}: its coordinator still knows the transaction and will end it; --force aborts it anyway"
            )
        if not dry_run:
            epoch = max(chosen.coordinator_epoch, 0)
            admin.abort_transaction(topic, partition, chosen.producer_id, chosen.epoch, epoch)
    tell(f"{place}: transaction of producer {chosen.producer_id} from {start_offset} on", "aborted", dry_run)


def _hanging(admin: Admin, topics: Sequence[str], minutes: int) -> list[_Hanging]:
    every = admin.list_topics(include_internal=True)
    if topics:
        refuse_strangers("topic", topics, every)
    names = [name for name in every if matches(name, topics)]
    described = admin.describe_topics(names)
    keys = [(topic.name, part.partition) for topic in described.values() for part in topic.partitions]
    before = milliseconds("now") - minutes * 60_000
    return _forgotten(admin, [one for one in _open(admin, keys) if one.last <= before])


def _open(admin: Admin, keys: Iterable[tuple[str, int]]) -> list[_Hanging]:
    """The open transactions of partitions."""
    return [
        _Hanging(
            *key,
            one.producer_id,
            one.producer_epoch,
            one.coordinator_epoch,
            one.transaction_start_offset,
            one.last_timestamp,
        )
        for key, producers in admin.describe_producers(keys).items()
        for one in producers
        if one.transaction_start_offset >= 0
    ]


def _forgotten(admin: Admin, found: Sequence[_Hanging]) -> list[_Hanging]:
    """The transactions that no coordinator knows in this partition."""
    if not found:
        return []
    listed = admin.list_transactions(producer_ids={one.producer_id for one in found})
    known = admin.describe_transactions(list(listed)) if listed else {}
    held = {(one.producer_id, *key) for one in known.values() if one.state in _OPEN for key in one.partitions}
    return [one for one in found if (one.producer_id, one.topic, one.partition) not in held]
