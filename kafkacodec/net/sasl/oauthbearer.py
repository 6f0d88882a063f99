"""OAUTHBEARER: a token that the application obtains elsewhere (RFC 7628, KIP-255; extensions: KIP-342)."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from kafkacodec.errors import AuthenticationFailed, ConnectionFailed

if TYPE_CHECKING:
    from kafkacodec.net.settings import SaslSettings

__all__ = ["OAuthBearer", "provided"]

_SEPARATOR: Final = "\x01"
_TOKEN = re.compile(r"[-A-Za-z0-9._~+/]+=*")  # RFC 6750
_NAME = re.compile(r"[A-Za-z]+")
_VALUE = re.compile(r"[\x21-\x7e \t\r\n]+")


async def provided(provider: Callable[[], Any]) -> Any:
    """Call a token provider, a function or coroutine function without arguments.

    Raises ConnectionFailed, with the cause, if it raises: the next attempt may succeed.
    """
    try:
        value = provider()
        return await value if inspect.isawaitable(value) else value
    except Exception as error:
        raise ConnectionFailed(f"sasl_oauth_token_provider raised {type(error).__name__}: {error}") from error


class OAuthBearer:
    """The client side."""

    needs_token = True

    def __init__(self, settings: SaslSettings, host: str) -> None:
        self._token: str | None = None
        self._extensions: Mapping[str, str] = {}
        self._refusal: str | None = None

    def token(self, value: Any) -> None:
        """Take a token, or a pair of a token and a dict of extensions."""
        token, extensions = value if isinstance(value, tuple) and len(value) == 2 else (value, {})
        if not isinstance(token, str) or not _TOKEN.fullmatch(token):
            kind = "an invalid token" if isinstance(token, str) else type(token).__name__
            raise AuthenticationFailed(
                f"sasl_oauth_token_provider returned {kind}, not a token as text or a pair of token and extensions"
            )
        if not isinstance(extensions, Mapping):
            raise AuthenticationFailed(f"the extensions of the token must be a dict, not {type(extensions).__name__}")
        for name, text in extensions.items():
            if name == "auth" or not _NAME.fullmatch(str(name)) or not _VALUE.fullmatch(str(text)):
                raise AuthenticationFailed(f"the extension {name!r} of the token has an invalid name or value")
        self._token, self._extensions = token, {str(name): str(text) for name, text in extensions.items()}

    def first(self) -> bytes:
        """The token and its extensions."""
        if self._token is None:
            raise AuthenticationFailed("OAUTHBEARER needs a token: sasl_oauth_token_provider returned none")
        pairs = [f"auth=Bearer {self._token}", *(f"{name}={text}" for name, text in self._extensions.items())]
        return f"n,,{_SEPARATOR}{_SEPARATOR.join(pairs)}{_SEPARATOR}{_SEPARATOR}".encode()

    def step(self, challenge: bytes) -> bytes | None:
        """None if the broker accepted; otherwise an empty reply to its reason, after which it sends the refusal."""
        if self._refusal is not None:
            raise AuthenticationFailed(f"the broker refused the authentication by OAUTHBEARER: {self._refusal}")
        if not challenge:
            return None
        self._refusal = challenge[:500].decode(errors="replace")
        return _SEPARATOR.encode()
