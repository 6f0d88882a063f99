"""The options by which commands reach a cluster: its brokers, and options of the clients, also from files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from kafkacodec.cli.options.gathering import Command, gathered

if TYPE_CHECKING:
    from kafkacodec.client import Admin
    from kafkacodec.client.options import ClientSettings

__all__ = ["Servers", "legal_topic", "server_options"]

BOOTSTRAP = "bootstrap_servers"
_CONFIG_VARIABLE = "KAFKACODEC_CONFIG"
_OF_FILES = frozenset({"problems", "tiered_key"})  # the parameters of --on-error and --tiered-key
_ADMIN_MS = 15_000  # someone waits for the answer


@dataclass(frozen=True)
class Servers:
    """A cluster and how to talk to it."""

    bootstrap: str | None
    config: str | None
    properties: tuple[str, ...]

    def __bool__(self) -> bool:
        return self.bootstrap is not None

    def options(
        self, settings: type[ClientSettings], own: Mapping[str, Any] | None = None, *, others: bool = False
    ) -> dict[str, Any]:
        """The options of a client: of the file, then of ``-X``, then the command's `own`.

        Names in the file that only other kinds of clients have are left out, with `others` also those of ``-X``.

        Raises:
            click.UsageError: a name is unknown, a value is wrong, or no brokers are given.
        """
        from kafkacodec.cli.warnings import show_warnings
        from kafkacodec.client.options import option_defaults
        from kafkacodec.client.security.java_config import config_options

        show_warnings()
        known = option_defaults(settings)
        try:
            found = config_options({**self._file(known), **self._given(known if others else None)}, known)
        except (TypeError, ValueError) as error:
            raise click.UsageError(str(error)) from None
        found |= own or {}
        if self.bootstrap is not None:
            found[BOOTSTRAP] = self.bootstrap
        if not found.get(BOOTSTRAP):
            raise click.UsageError("Missing option '-b' / '--bootstrap'.")
        try:
            settings(**found)
        except (TypeError, ValueError) as error:
            raise click.UsageError(str(error)) from None
        return found

    def instead_of(self, paths: object, metavar: str) -> bool:
        """Whether to ask brokers, and not to read files.

        Raises:
            click.UsageError: both are given, or neither is, or brokers with an option that is about files.
        """
        if not self and (self.config or self.properties):
            raise click.UsageError("--config and -X need --bootstrap")
        if self and paths:
            raise click.UsageError(f"{metavar} and --bootstrap exclude each other")
        if not self and not paths:
            raise click.UsageError(f"Missing argument '{metavar}', or option '--bootstrap'.")
        if self:
            _refuse_options_of_files(click.get_current_context())
        return bool(self)

    def admin(self) -> Admin:
        """An admin client."""
        from kafkacodec.client import Admin
        from kafkacodec.client.aio.admin import AdminSettings

        return Admin(**{"default_api_timeout_ms": _ADMIN_MS, **self.options(AdminSettings, others=True)})

    def _given(self, known: Mapping[str, Any] | None) -> dict[str, str]:
        """Those of ``-X``; without those of other clients than one with these options."""
        pairs = [text.partition("=") for text in self.properties]
        for name, equals, _ in pairs:
            if not equals or not name:
                raise click.UsageError(f"-X {name}: not NAME=VALUE")
        return {name: value for name, _, value in pairs if known is None or not _is_of_others(name, known)}

    def _file(self, known: Mapping[str, Any]) -> dict[str, str]:
        path = self.config or os.environ.get(_CONFIG_VARIABLE)
        if not path:
            return {}
        from kafkacodec.cli.options.properties import read_properties

        try:
            with open(path, encoding="utf-8") as file:
                found = read_properties(file.read())
        except (OSError, ValueError) as error:
            where = path if self.config else f"{_CONFIG_VARIABLE}={path}"
            raise click.UsageError(f"{where}: {getattr(error, 'strerror', None) or error}") from None
        return {name: value for name, value in found.items() if not _is_of_others(name, known)}


def _refuse_options_of_files(context: click.Context) -> None:
    for option in context.command.params:
        source = context.get_parameter_source(option.name or "")
        if option.name in _OF_FILES and source is not ParameterSource.DEFAULT:
            raise click.UsageError(f"{option.opts[0]} is for files: --bootstrap asks brokers")


def legal_topic(topic: str) -> None:
    """Raise click.UsageError if no topic can have this name."""
    from kafkacodec.client.checks import check_topic

    try:
        check_topic(topic)
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def _is_of_others(name: str, known: Mapping[str, Any]) -> bool:
    """Whether a name is none of the known options, but one of another kind of client."""
    from kafkacodec.client.consuming.settings import ConsumerSettings
    from kafkacodec.client.options import option_defaults, options_from_config
    from kafkacodec.client.producing.settings import ProducerSettings

    def has(options: Mapping[str, Any]) -> bool:
        try:
            options_from_config({name: None}, options)
        except TypeError:
            return False
        return True

    return not has(known) and any(has(option_defaults(kind)) for kind in (ConsumerSettings, ProducerSettings))


_OPTIONS = (
    click.option(
        "-F",
        "--config",
        metavar="FILE",
        type=click.Path(exists=True, dir_okay=False),
        help=f"Options of the client as NAME=VALUE lines, such as Java's client.properties. [env: {_CONFIG_VARIABLE}]",
    ),
    click.option(
        "-X",
        "--option",
        "properties",
        metavar="NAME=VALUE",
        multiple=True,
        help="An option of the client, such as security.protocol=SASL_SSL; repeatable.",
    ),
)
_BOOTSTRAP_HELP = "Brokers to start from; other brokers are found."
INSTEAD_OF_FILES = "Ask these brokers instead of reading files."


def server_options(bootstrap_help: str = _BOOTSTRAP_HELP) -> Callable[[Command], Command]:
    """Add the options of `Servers` to a command, as one argument, ``servers``."""
    bootstrap = click.option(
        *("-b", "--bootstrap", "--bootstrap-server", "bootstrap"), metavar="HOST:PORT,...", help=bootstrap_help
    )

    def give(command: Command) -> Command:
        return gathered(command, "servers", Servers, (bootstrap, *_OPTIONS))

    return give
