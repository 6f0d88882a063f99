"""What TLS and SASL need of a client's settings, whatever else these have."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    import ssl

__all__ = ["SaslMechanism", "SaslSettings", "SecurityProtocol", "TlsSettings"]

SecurityProtocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
SaslMechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI"]


class TlsSettings(Protocol):
    """Of TLS; files are PEM."""

    @property
    def security_protocol(self) -> SecurityProtocol:
        """Whether there is TLS."""

    @property
    def ssl_context(self) -> ssl.SSLContext | None:
        """Replaces the other settings."""

    @property
    def ssl_cafile(self) -> str | os.PathLike[str] | None:
        """Authorities; None: those of the system."""

    @property
    def ssl_certfile(self) -> str | os.PathLike[str] | None:
        """The own certificate."""

    @property
    def ssl_keyfile(self) -> str | os.PathLike[str] | None:
        """Its key; None: in the file of the certificate."""

    @property
    def ssl_password(self) -> str | None:
        """Of the key."""

    @property
    def ssl_check_hostname(self) -> bool:
        """Whether the peer's certificate must have its host name."""


class SaslSettings(Protocol):
    """Of SASL."""

    @property
    def sasl_mechanism(self) -> SaslMechanism | None:
        """Its name."""

    @property
    def sasl_plain_username(self) -> str | None:
        """For PLAIN and SCRAM."""

    @property
    def sasl_plain_password(self) -> str | None:
        """For PLAIN and SCRAM."""

    @property
    def sasl_scram_tokenauth(self) -> bool:
        """Whether they are the id and the HMAC of a delegation token."""

    @property
    def sasl_oauth_token_provider(self) -> Callable[[], Any] | None:
        """For OAUTHBEARER."""

    @property
    def sasl_kerberos_service_name(self) -> str:
        """For GSSAPI, the first part of the broker's principal."""

    @property
    def sasl_kerberos_domain_name(self) -> str | None:
        """For GSSAPI, its second part; None: the broker's host."""
