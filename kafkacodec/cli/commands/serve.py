"""``kafkacodec serve``: a Kafka broker in this process, over a data directory."""

from __future__ import annotations

import signal
import threading
from typing import Literal

import click

from kafkacodec.cli.console import say


@click.command()
@click.option("--data", type=click.Path(file_okay=False), help="The data directory; by default a temporary one.")
@click.option(
    "--listen",
    "listen",
    metavar="URL",
    multiple=True,
    default=("kafka://127.0.0.1:9092",),
    show_default=True,
    help="Where to listen; port 0 takes a free one; repeatable.",
)
@click.option("--topic", "topics", metavar="NAME[:PARTITIONS]", multiple=True, help="A topic to make; repeatable.")
@click.option(
    "--config", "settings", metavar="NAME=VALUE", multiple=True, help="A configuration by Kafka's name; repeatable."
)
@click.option(
    "--brokers", type=click.IntRange(1), default=1, show_default=True,
    help="As how many brokers it appears; each listens at the next port.",
)  # fmt: skip
@click.option(
    "--release", type=click.Choice(["4", "3.9"]), default="4", show_default=True,
    help="3.9 serves clients of 0.8 to 0.11 too, as Apache Kafka did until then.",
)  # fmt: skip
def serve(
    data: str | None,
    listen: tuple[str, ...],
    topics: tuple[str, ...],
    settings: tuple[str, ...],
    brokers: int,
    release: Literal["4", "3.9"],
) -> None:
    """Run a Kafka broker for tests and for pipelines on this machine, until it is interrupted.

    Its data directory is one of Kafka: the other commands read it while it runs. Whoever reaches the address can read
    and write everything. A production cluster is Apache Kafka's job.
    """
    from kafkacodec import broker

    try:
        counts = dict(_topic(text) for text in topics)
        config = dict(_setting(text) for text in settings)
        running = broker.serve(data, listen=listen, topics=counts, config=config, brokers=brokers, release=release)
    except (ValueError, OSError) as error:
        raise click.ClickException(str(error)) from None
    ended = threading.Event()
    before = signal.signal(signal.SIGTERM, lambda *_: ended.set())
    try:
        with running:
            say(f"serving {running.data} at {', '.join(running.listeners)}; stop with Ctrl-C")
            ended.wait()
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGTERM, before)


def _topic(text: str) -> tuple[str, int]:
    name, colon, count = text.partition(":")
    if colon and not count.isdecimal():
        raise click.BadParameter(f"{text!r} is not NAME or NAME:PARTITIONS", param_hint="--topic")
    return name, int(count) if count else 1


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise click.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--config")
    return name, value
