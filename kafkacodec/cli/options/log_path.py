"""The type of arguments that name logs: a path that exists, or a URL of an object store."""

from __future__ import annotations

import click

__all__ = ["LogPath"]


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
