"""SASL mechanisms of clients, without I/O: tokens in, tokens out.

Each mechanism has its own file and library, loaded when it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from kafkacodec.net.sasl.oauthbearer import provided
from kafkacodec.shown import repr_of

if TYPE_CHECKING:
    from kafkacodec.net.settings import SaslSettings

__all__ = ["SaslExchange", "provided"]

# By name: the module and class, which is constructed with the settings and the broker's host.
_MECHANISMS: Final = {
    "PLAIN": ("plain", "Plain"),
    "SCRAM-SHA-256": ("scram", "Scram"),
    "SCRAM-SHA-512": ("scram", "Scram"),
    "OAUTHBEARER": ("oauthbearer", "OAuthBearer"),
    "GSSAPI": ("kerberos", "Kerberos"),
}


class SaslExchange:
    """One authentication by the configured mechanism; create a new one each time. An `Exchange`.

    If `needs_token` is true, first pass it the value of the settings' ``sasl_oauth_token_provider``::

        if exchange.needs_token:
            exchange.token(await provided(settings.sasl_oauth_token_provider))

    Args:
        settings: the client's settings.
        host: the host name used to connect to the broker.

    Raises:
        ModuleNotFoundError: GSSAPI without the package ``gssapi``.
    """

    def __init__(self, settings: SaslSettings, host: str) -> None:
        assert settings.sasl_mechanism is not None
        self.mechanism: str = settings.sasl_mechanism
        module, name = _MECHANISMS[self.mechanism]
        self._client: Any = getattr(import_module(f"{__name__}.{module}"), name)(settings, host)

    def __repr__(self) -> str:
        return repr_of(self, self.mechanism)

    @property
    def needs_token(self) -> bool:
        """Whether `token` must be called before `first`."""
        return bool(getattr(self._client, "needs_token", False))

    @property
    def complete(self) -> bool:
        """Whether the last token returned ends the exchange, so that the broker has nothing to reply."""
        return bool(getattr(self._client, "complete", False))

    def token(self, value: Any) -> None:
        """Take a token, or a pair of a token and a dict of extensions. Raises AuthenticationFailed."""
        self._client.token(value)

    def first(self) -> bytes:
        """The first token. Raises AuthenticationFailed."""
        token: bytes = self._client.first()
        return token

    def step(self, challenge: bytes) -> bytes | None:
        """The reply to the broker's token; None if there is nothing left to send. Raises AuthenticationFailed."""
        token: bytes | None = self._client.step(challenge)
        return token
