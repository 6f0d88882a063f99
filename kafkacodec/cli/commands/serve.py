"""``kafkacodec serve``: a Kafka broker in this process, over a data directory."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, TextIO

import click

from kafkacodec.cli.console import is_terminal, note, say
from kafkacodec.cli.options.files import in_file, named
from kafkacodec.cli.options.numbers import Number
from kafkacodec.cli.output import counted, size
from kafkacodec.cli.warnings import show_warnings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafkacodec.broker import Broker, Statistics

_FILE: Final = click.Path(exists=True, dir_okay=False)
_STATUS_SECONDS: Final = 1.0
_FILES: Final = 10_640  # of 10,000 connections and of logs


@click.command()
@click.option(
    "--data", type=click.Path(file_okay=False), multiple=True,
    help="The data directory; by default a temporary one. Repeatable with --read-only.",
)  # fmt: skip
@click.option("--read-only", is_flag=True, help="Serve the directories of a dead cluster without changing them.")
@click.option(
    "--listen",
    "listen",
    metavar="URL",
    multiple=True,
    default=("kafka://127.0.0.1:9092",),
    show_default=True,
    help="Where to listen: kafka://, kafka+tls://, kafka+sasl://, kafka+sasl+tls://, or another protocol: line://, "
    "kafka07://, rewrite://. Port 0 takes a free one; repeatable.",
)
@click.option("--topic", "topics", metavar="NAME[:PARTITIONS]", multiple=True, help="A topic to create; repeatable.")
@click.option(
    "--config", "settings", metavar="NAME=VALUE", multiple=True, help="A configuration under Kafka's name; repeatable."
)
@click.option(
    "--brokers", type=Number(1), default=1, show_default=True,
    help="Number of brokers that clients see; each listens on the next port.",
)  # fmt: skip
@click.option(
    "--replicas",
    metavar="URL,…",
    help="The line:// URLs of all brokers that have the same partitions, this one's too, in the same order for each.",
)
@click.option(
    "--broker-id",
    type=Number(0),
    help="The id of this broker: its place in --replicas, from 0, or its id in rewrite.servers.",
)
@click.option(
    "--release", type=click.Choice(["4", "3.9"]), default="4", show_default=True,
    help="3.9 serves clients of 0.8 to 0.11 too, as Apache Kafka did until then.",
)  # fmt: skip
@click.option(
    "--user",
    "users",
    metavar="NAME:PASSWORD",
    multiple=True,
    help="A user for kafka+sasl://; repeatable. Other users of this machine can see it; prefer --users.",
)
@click.option(
    "--users",
    "users_file",
    metavar="FILE",
    type=click.File("r", encoding="utf-8"),
    help="A file of users, one NAME:PASSWORD per line; - for stdin.",
)
@click.option("--tls-cert", type=_FILE, help="The certificate for kafka+tls:// and kafka+sasl+tls://, PEM.")
@click.option("--tls-key", type=_FILE, help="Its key, if that is not in the same file.")
@click.option("--tls-client-ca", type=_FILE, help="The authority of clients' certificates, which are then required.")
def serve(
    data: tuple[str, ...],
    read_only: bool,
    listen: tuple[str, ...],
    topics: tuple[str, ...],
    settings: tuple[str, ...],
    brokers: int,
    replicas: str | None,
    broker_id: int | None,
    release: Literal["4", "3.9"],
    users: tuple[str, ...],
    users_file: TextIO | None,
    tls_cert: str | None,
    tls_key: str | None,
    tls_client_ca: str | None,
) -> None:
    """Run a Kafka broker for tests and for pipelines on this machine, until it is interrupted.

    The other commands can read its data directory while it runs. Without SASL, whoever reaches the
    address can read and write everything. A production cluster is Apache Kafka's job.
    """
    from kafkacodec import broker
    from kafkacodec.net.tls import server_context

    _allow_files()
    show_warnings()
    try:
        counts = dict(_topic(text) for text in topics)
        config = dict(_setting(text) for text in settings)
        passwords = dict(_user(text, "--user") for text in users) | dict(_users_in(users_file))
        if tls_cert is None and (tls_key or tls_client_ca):
            raise click.UsageError("--tls-key and --tls-client-ca need --tls-cert")
        for url in listen:
            if "://" not in url:
                raise click.UsageError(f"--listen {url}: not a URL, such as kafka://{url}")
        _check_ways([url.partition("://")[0] for url in listen], has_users=bool(passwords), has_tls=bool(tls_cert))
        _check_read_only(read_only, data, has_topics=bool(topics), brokers=brokers)
        if replicas is not None and broker_id is None:
            raise click.UsageError("--replicas needs --broker-id")
        tls = server_context(tls_cert, tls_key, tls_client_ca) if tls_cert else None
        running = broker.serve(
            data or None,
            listen=listen,
            topics=counts,
            config=config,
            users=passwords,
            tls=tls,
            brokers=brokers,
            node_id=broker_id,
            replicas=replicas.split(",") if replicas else (),
            release=release,
            read_only=read_only,
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    before = signal.signal(signal.SIGTERM, _end)
    try:
        with running:
            if sys.stdout is not None:  # closed, as for a service that nobody watches
                for listener in running.listeners:
                    say(f"listening on {listener}")
            note(f"serving {running.data}; stop with Ctrl-C")
            _watch(running)
    except (KeyboardInterrupt, _Ended):
        pass
    finally:
        signal.signal(signal.SIGTERM, before)


def _allow_files() -> None:
    """Let the process open files for as many connections as a broker takes; the system may allow fewer."""
    try:
        import resource
    except ImportError:  # a system that does not count them
        return
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if most == resource.RLIM_INFINITY else min(_FILES, most)
    if now != resource.RLIM_INFINITY and now < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def _watch(running: Broker) -> NoReturn:
    """Wait for the end; on a terminal, with a line of what happens."""
    if not is_terminal(sys.stderr):
        while True:
            signal.pause()
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    with Live(console=Console(stderr=True), auto_refresh=False, transient=True, redirect_stdout=False) as live:
        before, at = running.statistics(), time.monotonic()
        while True:
            time.sleep(_STATUS_SECONDS)
            now, then, at = running.statistics(), at, time.monotonic()
            live.update(Text(_status(before, now, at - then), no_wrap=True, overflow="ellipsis"), refresh=True)
            before = now


def _status(before: Statistics, now: Statistics, seconds: float) -> str:
    """What there is, and what has happened in some seconds."""
    requests = (now.requests - before.requests) / seconds
    received, sent = ((new - old) / seconds for new, old in zip(now[2:4], before[2:4], strict=True))
    there = f"{counted(now.connections, 'connection')}, {counted(now.topics - now.internal_topics, 'topic')}"
    return f"{there}; {requests:,.0f} requests/s, {size(received)}/s in, {size(sent)}/s out"


class _Ended(BaseException):
    """The process was told to end."""


def _end(*_: Any) -> None:
    """Leave what the main thread does. A lock that it may hold, as an event has one, is not needed for this."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise _Ended


def _check_ways(ways: Sequence[str], *, has_users: bool, has_tls: bool) -> None:
    """Refuse options without a listener that they are for, and a listener without its options."""
    for way in ways:
        if way.endswith("tls") and not has_tls:
            raise click.UsageError(f"{way}:// needs --tls-cert")
    if has_tls and not any(way.endswith("tls") for way in ways):
        raise click.UsageError("--tls-cert is for kafka+tls:// and kafka+sasl+tls://")
    if has_users and not any("sasl" in way for way in ways):
        raise click.UsageError("--user and --users are for kafka+sasl:// and kafka+sasl+tls://")


def _check_read_only(read_only: bool, data: Sequence[str], *, has_topics: bool, brokers: int) -> None:
    """Refuse what --read-only does not go with, or what needs it."""
    if read_only and not data:
        raise click.UsageError("--read-only needs --data: the directory of a dead broker, or several of one cluster")
    if read_only and has_topics:
        raise click.UsageError("--read-only does not create topics; leave out --topic")
    if read_only and brokers > 1:
        raise click.UsageError("--read-only serves one broker; leave out --brokers")
    if len(data) > 1 and not read_only:
        raise click.UsageError("several --data need --read-only; a broker writes to one directory only")


def _topic(text: str) -> tuple[str, int]:
    name, colon, count = text.partition(":")
    if colon and not (count.isascii() and count.isdecimal() and int(count)):
        raise click.BadParameter(f"{text!r} is not NAME or NAME:PARTITIONS, with at least 1", param_hint="--topic")
    return name, int(count) if count else 1


def _user(text: str, option: str, what: str = "it") -> tuple[str, str]:
    name, colon, password = text.partition(":")
    if not colon or not name or not password:  # the text may have a password: it is not shown
        raise click.BadParameter(f"{what} is not NAME:PASSWORD", param_hint=option)
    return name, password


def _users_in(file: TextIO | None) -> Iterator[tuple[str, str]]:
    """The users of the lines that are not empty."""
    if file is not None:
        with in_file(file):
            for number, line in enumerate(file, 1):
                if text := line.rstrip("\r\n"):
                    yield _user(text, "--users", f"{named(file)}line {number}")


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise click.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--config")
    return name, value
