"""The settings that TLS and SASL need, as protocols."""

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
    """Settings of TLS. Files are PEM."""

    @property
    def security_protocol(self) -> SecurityProtocol:
        """The security protocol, which determines whether TLS is used."""

    @property
    def ssl_context(self) -> ssl.SSLContext | None:
        """A context that replaces the other settings."""

    @property
    def ssl_cafile(self) -> str | os.PathLike[str] | None:
        """The certificate authorities; None: the system's."""

    @property
    def ssl_certfile(self) -> str | os.PathLike[str] | None:
        """The client's certificate."""

    @property
    def ssl_keyfile(self) -> str | os.PathLike[str] | None:
        """The key of the certificate; None: in the certificate's file."""

    @property
    def ssl_password(self) -> str | None:
        """The password of the key."""

    @property
    def ssl_check_hostname(self) -> bool:
        """Whether the peer's certificate must have its host name."""


class SaslSettings(Protocol):
    """Settings of SASL."""

    @property
    def sasl_mechanism(self) -> SaslMechanism | None:
        """The name of the mechanism."""

    @property
    def sasl_plain_username(self) -> str | None:
        """For PLAIN and SCRAM."""

    @property
    def sasl_plain_password(self) -> str | None:
        """For PLAIN and SCRAM."""

    @property
    def sasl_scram_tokenauth(self) -> bool:
        """Whether user name and password are the id and the HMAC of a delegation token."""

    @property
    def sasl_oauth_token_provider(self) -> Callable[[], Any] | None:
        """The source of tokens for OAUTHBEARER."""

    @property
    def sasl_kerberos_service_name(self) -> str:
        """The first part of the broker's principal, for GSSAPI."""

    @property
    def sasl_kerberos_domain_name(self) -> str | None:
        """The second part of the broker's principal, for GSSAPI; None: the broker's host."""
