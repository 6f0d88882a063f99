"""The types of arguments that name logs: a path, or where a command reads them, a URL of an object store."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

import click

__all__ = ["LocalPath", "LogPath"]

_BROKER = re.compile(r"(?:kafka://)?([\w.-]+:\d{1,5})(?:,.*)?")


def _refuse_broker(kind: click.Path, value: str, param: click.Parameter | None, ctx: click.Context | None) -> None:
    """Refuse the address of a broker, and say where it goes."""
    found = _BROKER.fullmatch(value)
    if found is None or os.path.lexists(value):
        return
    asks = ctx is not None and any("--bootstrap" in option.opts for option in ctx.command.params)
    instead = "--bootstrap {}" if asks else "kafkacodec consume TOPIC --bootstrap {}"
    kind.fail(f"{value} is no path; for a broker: {instead.format(found[1])}", param, ctx)


@contextmanager
def _suggesting(path: str) -> Iterator[None]:
    """Names a similar path in the error that this one does not exist."""
    try:
        yield
    except click.BadParameter as error:
        from kafkacodec.log.opening.missing import similar_path

        hint = similar_path(path)
        if not hint:
            raise
        text = f"{error.message.rstrip('.')}; {hint}"
        raise click.BadParameter(text, error.ctx, error.param, error.param_hint) from None


class LocalPath(click.Path):
    """As `click.Path`, for commands that read and write files of this machine only: a URL is refused."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:  # type: ignore[override]
        """The path as it is."""
        _refuse_broker(self, value, param, ctx)
        if "://" in value:
            self.fail(f"{value}: object stores are not supported here; name a path of this machine", param, ctx)
        with _suggesting(value):
            return str(super().convert(value, param, ctx))


class LogPath(click.Path):
    """As `click.Path`, but whether a URL exists is found out when it is read."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:  # type: ignore[override]
        """The path or the URL as it is."""
        _refuse_broker(self, value, param, ctx)
        if "://" not in value:
            with _suggesting(value):
                return str(super().convert(value, param, ctx))
        from kafkacodec.log.storage.objects import check_url

        try:
            check_url(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return value
