"""GSSAPI: Kerberos, through the package ``gssapi`` (RFC 4752). Credentials come from the process's environment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kafkacodec.errors import AuthenticationFailed
from kafkacodec.lazy import missing_package

if TYPE_CHECKING:
    from kafkacodec.net.settings import SaslSettings

__all__ = ["Kerberos"]

_NO_LAYER: Final = 1


class Kerberos:
    """The client side. Like Kafka's brokers it uses no security layer: TLS encrypts.

    Attributes:
        complete: whether the last token chose the layer, which old brokers do not answer.
    """

    def __init__(self, settings: SaslSettings, host: str) -> None:
        try:
            import gssapi
        except ImportError:
            raise missing_package("sasl_mechanism 'GSSAPI' needs", "gssapi", "gssapi") from None
        self.complete = False
        self._errors: Any = gssapi.exceptions.GSSError
        name = f"{settings.sasl_kerberos_service_name}@{settings.sasl_kerberos_domain_name or host}"
        target = gssapi.Name(name, gssapi.NameType.hostbased_service)
        self._context: Any = gssapi.SecurityContext(name=target, usage="initiate")

    def first(self) -> bytes:
        """The first token, with the ticket for the broker."""
        return self._advance(None)

    def step(self, challenge: bytes) -> bytes | None:
        """The next token of the context, then the choice of the layer, then None."""
        if self.complete:
            return None
        if not self._context.complete:
            return self._advance(challenge)
        try:
            offered: bytes = self._context.unwrap(challenge).message
            if len(offered) != 4 or not offered[0] & _NO_LAYER:
                raise AuthenticationFailed("GSSAPI: the broker demands a security layer; this client has none")
            answer: bytes = self._context.wrap(bytes([_NO_LAYER, 0, 0, 0]), False).message
        except self._errors as error:
            raise self._failed(error) from error
        self.complete = True
        return answer

    def _advance(self, challenge: bytes | None) -> bytes:
        try:
            return self._context.step(challenge) or b""
        except self._errors as error:
            raise self._failed(error) from error

    def _failed(self, error: Exception) -> AuthenticationFailed:
        text = " ".join(str(error).split())
        return AuthenticationFailed(f"GSSAPI: {text}")
