"""The types of arguments that name logs: a path, or where a command reads them, a URL of an object store."""

from __future__ import annotations

import click

__all__ = ["LocalPath", "LogPath"]


class LocalPath(click.Path):
    """As `click.Path`, for commands that read and write files of this machine only: a URL is refused."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:  # type: ignore[override]
        """The path as it is."""
        if "://" in value:
            self.fail(f"{value}: object stores are not supported here; name a path of this machine", param, ctx)
        return str(super().convert(value, param, ctx))


class LogPath(click.Path):
    """As `click.Path`, but whether a URL exists is found out when it is read."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:  # type: ignore[override]
        """The path or the URL as it is."""
        if "://" not in value:
            return str(super().convert(value, param, ctx))
        from kafkacodec.log.storage.objects import check_url

        try:
            check_url(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return value
