"""TLS contexts from options, and errors of handshakes in one sentence."""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from kafkacodec.errors import AuthenticationFailed, ConnectionFailed

if TYPE_CHECKING:
    from kafkacodec.net.settings import TlsSettings

__all__ = ["client_context", "distinguished_name", "fault_of_client", "handshake_error", "server_context", "tls_error"]

_UNKNOWN_AUTHORITY = "the broker's certificate is signed by an unknown authority: name its certificate in ssl_cafile"
_WRONG_NAME = "the broker's certificate is not valid for its host name"
_NO_TLS = "the broker's listener does not use TLS: set security_protocol to 'PLAINTEXT' or 'SASL_PLAINTEXT'"
_NO_PEM = "not valid PEM text"
_MOST_BYTES: Final = 1 << 20  # of a file with a certificate and its key
_OF_CLIENT = "ssl_certfile and ssl_keyfile"
_CERTIFICATE_NEEDED = f"the broker requires a client certificate: set {_OF_CLIENT}"
_CERTIFICATE_REFUSED = "the broker refused the client's certificate"
_NOTHING_IN_COMMON = "the broker and this client have no TLS version or cipher in common, or it wants a certificate"

# X.509 verification results of OpenSSL.
_VERIFICATION: Final = {
    9: "the broker's certificate is not valid yet",
    10: "the broker's certificate has expired",
    18: _UNKNOWN_AUTHORITY,
    19: _UNKNOWN_AUTHORITY,
    20: _UNKNOWN_AUTHORITY,
    21: _UNKNOWN_AUTHORITY,
    23: "the broker's certificate was revoked",
    62: _WRONG_NAME,
    64: _WRONG_NAME,
}

# Reasons of OpenSSL errors; those with ALERT were sent by the broker.
_REASONS: Final = {
    "WRONG_VERSION_NUMBER": _NO_TLS,
    "RECORD_LAYER_FAILURE": _NO_TLS,
    "HTTP_REQUEST": _NO_TLS,
    "PACKET_LENGTH_TOO_LONG": _NO_TLS,
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": _CERTIFICATE_NEEDED,
    "SSLV3_ALERT_BAD_CERTIFICATE": f"{_CERTIFICATE_REFUSED} or requires one: see {_OF_CLIENT}",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": f"{_CERTIFICATE_REFUSED}: it does not trust the authority, or it has expired",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": f"{_CERTIFICATE_REFUSED}: it has expired",
    "SSLV3_ALERT_CERTIFICATE_REVOKED": f"{_CERTIFICATE_REFUSED}: it was revoked",
    "TLSV1_ALERT_UNKNOWN_CA": f"{_CERTIFICATE_REFUSED}: its authority is unknown to the broker",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": _NOTHING_IN_COMMON,
    "TLSV1_ALERT_PROTOCOL_VERSION": _NOTHING_IN_COMMON,
    "UNSUPPORTED_PROTOCOL": _NOTHING_IN_COMMON,
    "NO_SHARED_CIPHER": _NOTHING_IN_COMMON,
}


def client_context(settings: TlsSettings) -> ssl.SSLContext | None:
    """The TLS context for a client's connections; None without TLS.

    Raises ValueError: a file cannot be read, is not PEM, or its password is wrong.
    """
    if not settings.security_protocol.endswith("SSL"):
        return None
    if settings.ssl_context is not None:
        return settings.ssl_context
    try:
        context = ssl.create_default_context(cafile=settings.ssl_cafile)
    except OSError as error:
        raise ValueError(f"ssl_cafile {settings.ssl_cafile!r}: {_file_fault(error)}") from error
    context.check_hostname = settings.ssl_check_hostname
    if settings.ssl_certfile is not None:
        try:
            # Without a password callback OpenSSL would ask on the terminal.
            context.load_cert_chain(settings.ssl_certfile, settings.ssl_keyfile, settings.ssl_password or "")
        except OSError as error:
            names = f"ssl_certfile {settings.ssl_certfile!r}"
            if settings.ssl_keyfile is not None:
                names = f"{names}, ssl_keyfile {settings.ssl_keyfile!r}"
            fault = _chain_fault(error, settings.ssl_certfile, settings.ssl_keyfile, "ssl_keyfile")
            raise ValueError(f"{names}: {fault}") from None
    return context


def server_context(
    certfile: str | os.PathLike[str], keyfile: str | os.PathLike[str] | None = None,
    client_cafile: str | os.PathLike[str] | None = None,
) -> ssl.SSLContext:  # fmt: skip
    """The TLS context of a server.

    Args:
        certfile: its certificate, and those between it and the authority; PEM.
        keyfile: the key; None: in the certificate's file.
        client_cafile: the authorities of the clients' certificates, which are then required; None: clients need none.

    Raises:
        ValueError: a file cannot be read, or is not PEM.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certfile, keyfile, "")
    except OSError as error:
        names = f"certificate {os.fspath(certfile)!r}, key {os.fspath(keyfile or certfile)!r}"
        raise ValueError(f"{names}: {_chain_fault(error, certfile, keyfile, '--tls-key')}") from None
    if client_cafile is not None:
        try:
            context.load_verify_locations(client_cafile)
        except OSError as error:
            raise ValueError(f"certificate {os.fspath(client_cafile)!r}: {_file_fault(error)}") from None
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def distinguished_name(certificate: Mapping[str, Any]) -> str:
    """The subject of a certificate, as `ssl.SSLSocket.getpeercert` has it, by RFC 2253: ``CN=alice,O=us``."""
    parts = ["+".join(f"{_KEYS.get(key, key)}={_escaped(value)}" for key, value in part)
             for part in reversed(certificate.get("subject", ()))]  # fmt: skip
    return ",".join(parts)


_KEYS: Final = {
    "commonName": "CN", "organizationName": "O", "organizationalUnitName": "OU", "countryName": "C",
    "localityName": "L", "stateOrProvinceName": "ST", "streetAddress": "STREET", "domainComponent": "DC",
    "userId": "UID",
}  # fmt: skip


def _escaped(value: str) -> str:
    text = re.sub(r'([,+"\\<>;])', r"\\\1", value)
    text = re.sub(r"^([ #])", r"\\\1", text)
    return re.sub(r" $", r"\\ ", text)


def tls_error(error: BaseException | None) -> AuthenticationFailed | None:
    """Return the error of a connection that failed in TLS; None if it ended for another reason."""
    if isinstance(error, ssl.SSLCertVerificationError):
        reason = _VERIFICATION.get(error.verify_code)
        return AuthenticationFailed(reason or f"the broker's certificate is invalid: {error.verify_message}")
    if isinstance(error, ssl.SSLError) and not isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError)):
        name = error.reason or "unknown error"
        return AuthenticationFailed(_REASONS.get(name) or f"TLS failed: {name.lower().replace('_', ' ')}")
    return None


def handshake_error(error: OSError) -> ConnectionFailed | None:
    """Return the error of a handshake that failed or that the broker cut off; None if `error` occurred before it."""
    if isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError, ConnectionResetError, BrokenPipeError)):
        return ConnectionFailed(
            "the broker closed the connection during the TLS handshake: its listener may not use TLS "
            "(security_protocol 'PLAINTEXT' or 'SASL_PLAINTEXT')",
            closed_unanswered=True,
        )
    return tls_error(error)


def fault_of_client(error: OSError) -> str | None:
    """Return why a client's handshake with a server failed; None if the client has gone."""
    if isinstance(error, ssl.SSLError) and not isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError)):
        name = error.reason or "unknown error"
        if _REASONS.get(name) == _NO_TLS:
            return "the client does not use TLS"
        return f"the TLS handshake failed: {name.lower().replace('_', ' ')}"
    if isinstance(error, (TimeoutError, ConnectionAbortedError)):
        return "the client did not complete the TLS handshake in time"
    return None


def _chain_fault(
    error: OSError, certfile: str | os.PathLike[str], keyfile: str | os.PathLike[str] | None, option: str
) -> str:
    """What is wrong with a certificate and its key; `option` takes the key's file."""
    fault = _file_fault(error)
    if fault != _NO_PEM:
        return fault
    with suppress(OSError), open(keyfile or certfile, "rb") as file:
        text = file.read(_MOST_BYTES)
        if b"-----BEGIN" in text and b"PRIVATE KEY-----" not in text:
            return f"there is no private key in {os.fspath(keyfile or certfile)!r}; {option} takes the file of the key"
    return fault


def _file_fault(error: OSError) -> str:
    if not isinstance(error, ssl.SSLError):
        return (error.strerror or str(error)).lower()
    if error.reason == "KEY_VALUES_MISMATCH":
        return "the key does not belong to the certificate"
    if error.reason in ("BAD_DECRYPT", "BAD_PASSWORD_READ", "PKCS12_CIPHERFINAL_ERROR", "EMPTY_PASSWORD"):
        return "ssl_password is wrong or missing"
    return _NO_PEM
