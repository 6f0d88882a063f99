"""The options by which commands reach a cluster: its brokers, and options of the clients, also from files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kafkacodec.cli.console import note
from kafkacodec.cli.options.files import not_text
from kafkacodec.cli.options.gathering import Command, gathered
from kafkacodec.cli.options.given import refuse_given
from kafkacodec.datatypes import dataclass

if TYPE_CHECKING:
    from kafkacodec.client import Admin
    from kafkacodec.client.blocking.topic_admin import TopicAdmin
    from kafkacodec.client.options import ClientSettings

__all__ = ["Servers", "legal_topic", "made", "server_options"]

Client = TypeVar("Client")
AnyAdmin = TypeVar("AnyAdmin", bound="TopicAdmin")

BOOTSTRAP = "bootstrap_servers"
_CONFIG_VARIABLE = "KAFKACODEC_CONFIG"
_OF_FILES = {"problems": "--on-error", "tiered_key": "--tiered-key"}
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
        self,
        settings: type[ClientSettings],
        own: Mapping[str, tuple[str, Any]] | None = None,
        decided: Mapping[str, str] | None = None,
        *,
        others: bool = False,
    ) -> dict[str, Any]:
        """The options of a client: of the file, then of ``-X``, then the command's `own`.

        Names in the file that only other kinds of clients have are left out, with `others` also those of ``-X``.

        Args:
            settings: the client's.
            own: options that the command's options set: the name of that option, and the value. They replace those of
                the file; ``-X`` is refused beside them.
            decided: options that the command sets by itself, and what to do instead. Those of the file do not apply,
                which a note says.
            others: whether the command also makes a client of another kind, which has the other options of ``-X``.

        Raises:
            click.UsageError: a name is unknown, a value is wrong, or no brokers are given.
        """
        from kafkacodec.cli.warnings import show_warnings
        from kafkacodec.client.options import option_defaults
        from kafkacodec.client.security.config_words import in_words_of
        from kafkacodec.client.security.java_config import config_options
        from kafkacodec.net.tls import client_context

        show_warnings()
        own, decided = own or {}, decided or {}
        known = option_defaults(settings)
        with _wrong_options(f"{self._path()}: "):
            filed = self._file(known)
            found = config_options(filed, known)
        with _wrong_options():
            for name in sorted(decided.keys() & found.keys()):
                note(f"kafkacodec: warning: {self._path()}: {name.replace('_', '.')} does not apply: {decided[name]}")
                del found[name]
            pairs = self._given(known if others else None)
            for name in pairs:
                if _is_of_others(name, known):
                    raise TypeError(f"unknown option {name!r}; an option of {' and '.join(_kinds_with(name))}")
            given = config_options(pairs, known)
        instead = {**decided, **{name: f"{option} is given too" for name, (option, _) in own.items()}}
        if self.bootstrap is not None:
            instead[BOOTSTRAP] = "--bootstrap is given too"
        for name in sorted(given.keys() & instead.keys()):
            raise click.UsageError(f"-X {name.replace('_', '.')}: {instead[name]}")
        found |= given | {name: value for name, (_, value) in own.items()}
        if self.bootstrap is not None:
            found[BOOTSTRAP] = self.bootstrap
        if not found.get(BOOTSTRAP):
            raise click.UsageError("Missing option '-b' / '--bootstrap'.")
        with _wrong_options(), in_words_of({**filed, **pairs}, known):
            client_context(settings(**found))  # reads the files
        return found

    def instead_of(self, paths: object, metavar: str) -> bool:
        """Whether to ask brokers, and not to read files.

        Raises:
            click.UsageError: both are given, or neither is, or brokers with an option that is about files.
        """
        if paths and self:
            raise click.UsageError(f"{metavar} and --bootstrap exclude each other")
        if paths and (self.config or self.properties):
            raise click.UsageError("--config and -X need --bootstrap")
        if paths:
            return False
        if not (self or self._names_brokers()):
            if self.config or self.properties:
                raise click.UsageError("--config and -X need --bootstrap, or bootstrap.servers among them")
            raise click.UsageError(f"Missing argument '{metavar}', or option '--bootstrap'.")
        refuse_given({name: f"{option} is for files: --bootstrap asks brokers" for name, option in _OF_FILES.items()})
        return True

    def admin(self, *, others: bool = False) -> Admin:
        """An admin client; `others` as in `options`."""
        from kafkacodec.client import Admin

        return self._admin(Admin, others)

    def topic_admin(self, *, others: bool = False) -> TopicAdmin:
        """An admin client for topics and offsets alone, which starts sooner; `others` as in `options`."""
        from kafkacodec.client.blocking.topic_admin import TopicAdmin

        return self._admin(TopicAdmin, others)

    def _admin(self, kind: type[AnyAdmin], others: bool) -> AnyAdmin:
        from kafkacodec.client.aio.topic_admin import AdminSettings

        return made(kind, {"default_api_timeout_ms": _ADMIN_MS, **self.options(AdminSettings, others=others)})

    def _names_brokers(self) -> bool:
        """Whether the file or ``-X`` name brokers."""
        return any(_has({BOOTSTRAP: None}, name) for name in {**self._file(None), **self._given(None)})

    def _given(self, known: Mapping[str, Any] | None) -> dict[str, str]:
        """Those of ``-X``; without those of other clients than one with these options."""
        pairs = [text.partition("=") for text in self.properties]
        for name, equals, _ in pairs:
            if not equals or not name:
                raise click.UsageError(f"-X {name}: not NAME=VALUE")
        return {name: value for name, _, value in pairs if known is None or not _is_of_others(name, known)}

    def _path(self) -> str | None:
        return self.config or os.environ.get(_CONFIG_VARIABLE)

    def _file(self, known: Mapping[str, Any] | None) -> dict[str, str]:
        """The options of the file; without those of other clients than one with these options."""
        path = self._path()
        if not path:
            return {}
        from kafkacodec.cli.options.properties import read_properties
        from kafkacodec.client.core.foreign_options import is_harmless

        try:
            with open(path, encoding="utf-8-sig") as file:
                found = read_properties(file.read())
        except (OSError, ValueError) as error:
            where = path if self.config else f"{_CONFIG_VARIABLE}={path}"
            reason = not_text(error) if isinstance(error, UnicodeDecodeError) else getattr(error, "strerror", None)
            raise click.UsageError(f"{where}: {reason or error}") from None
        if known is None:
            return found
        own = {
            name: value
            for name, value in found.items()
            if not _is_of_others(name, known) and not value.startswith(_JAVA_SERIALIZERS)
        }
        idle = [name for name in own if name.endswith("serializer") or (is_harmless(name) and not _has(known, name))]
        if idle:
            note(f"kafkacodec: warning: {path}: without effect here: {', '.join(idle)}")
        return {name: value for name, value in own.items() if name not in idle}


def made(kind: Callable[..., Client], options: Mapping[str, Any]) -> Client:
    """A client with these options. Raises click.UsageError: one is wrong, as a file that is no certificate."""
    from kafkacodec.client.options import ClientSettings, option_defaults
    from kafkacodec.client.security.config_words import dotted

    with _wrong_options(), dotted(option_defaults(ClientSettings)):
        return kind(**options)


@contextmanager
def _wrong_options(where: str = "") -> Iterator[None]:
    try:
        yield
    except (TypeError, ValueError, OSError) as error:
        raise click.UsageError(f"{where}{error}") from None


def legal_topic(topic: str) -> None:
    """Raise click.UsageError if no topic can have this name."""
    from kafkacodec.client.checks import check_topic

    try:
        check_topic(topic)
    except ValueError as error:
        raise click.UsageError(str(error)) from None


_JAVA_SERIALIZERS = "org.apache.kafka.common.serialization."  # of bytes, text and numbers: commands have bytes


def _is_of_others(name: str, known: Mapping[str, Any]) -> bool:
    """Whether a name is none of the known options, but one of another kind of client."""
    return bool(not _has(known, name) and _kinds_with(name))


def _kinds_with(name: str) -> list[str]:
    """The kinds of clients that have an option."""
    from kafkacodec.client.consuming.settings import ConsumerSettings
    from kafkacodec.client.options import option_defaults
    from kafkacodec.client.producing.settings import ProducerSettings

    kinds = {"consumers": ConsumerSettings, "producers": ProducerSettings}
    return [kind for kind, settings in kinds.items() if _has(option_defaults(settings), name)]


def _has(options: Mapping[str, Any], name: str) -> bool:
    from kafkacodec.client.options import options_from_config

    try:
        options_from_config({name: ""}, options)
    except TypeError:
        return False
    except ValueError:  # the value is wrong, the name is not
        pass
    return True


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
