"""Users and passwords from `sasl.jaas.config`, in the syntax of Java's login configuration."""

from __future__ import annotations

import re
from typing import Any, Final

__all__ = ["jaas_options"]

_NAME = "sasl.jaas.config"
_SHAPE = f'{_NAME}: expected a login module such as ...PlainLoginModule required username="..." password="...";'

# Java's tokens: text in quotes with backslashes, or a word; `=` and `;` stand for themselves.
_TOKEN: Final = re.compile(r"""\s*(?:"((?:[^"\\\n]|\\.)*)"|'((?:[^'\\\n]|\\.)*)'|([=;])|([^\s=;"']+))""")
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_FLAGS: Final = ("required", "requisite", "sufficient", "optional")


def jaas_options(text: str) -> dict[str, Any]:
    """Return the client's options for a login configuration.

    Raises:
        ValueError: it is malformed, or the login module has no equivalent here. The message has no part of the text,
            which has passwords.
    """
    module, values = _parsed(text)
    name = module.rpartition(".")[2]
    if name in ("PlainLoginModule", "ScramLoginModule"):
        return _user(name, values)
    if name == "Krb5LoginModule":
        return _kerberos(values)
    if name == "OAuthBearerLoginModule":
        raise ValueError(
            f"{_NAME}: OAUTHBEARER needs a function that gets tokens, which an option cannot hold; use SCRAM, PLAIN, "
            "GSSAPI or client certificates"
        )
    raise ValueError(f"{_NAME}: unknown login module; use PlainLoginModule, ScramLoginModule or Krb5LoginModule")


def _user(module: str, values: dict[str, str]) -> dict[str, Any]:
    missing = [name for name in ("username", "password") if name not in values]
    if missing:
        raise ValueError(f"{_NAME}: {module} needs {' and '.join(missing)}")
    found: dict[str, Any] = {"sasl_plain_username": values["username"], "sasl_plain_password": values["password"]}
    if module == "ScramLoginModule" and values.get("tokenauth", "false").lower() == "true":
        found["sasl_scram_tokenauth"] = True
    return found


def _kerberos(values: dict[str, str]) -> dict[str, Any]:
    if values.get("useKeyTab", "false").lower() == "true":
        raise ValueError(
            f"{_NAME}: useKeyTab is not read; name the key table in the environment variable KRB5_CLIENT_KTNAME (with "
            "Spark, of the driver and the executors), and leave useKeyTab out"
        )
    service = values.get("serviceName")
    return {} if service is None else {"sasl_kerberos_service_name": service}


def _parsed(text: str) -> tuple[str, dict[str, str]]:
    """The login module's class and its options."""
    tokens = _tokens(text)
    if len(tokens) < 3 or tokens[-1] != ";" or tokens[1].lower() not in _FLAGS:
        raise ValueError(_SHAPE)
    module, pairs = tokens[0], tokens[2:-1]
    if ";" in pairs:
        raise ValueError(f"{_NAME}: several login modules; pass one")
    if len(pairs) % 3 or any(equals != "=" for equals in pairs[1::3]):
        raise ValueError(_SHAPE)
    return str(module), {str(name): str(value) for name, value in zip(pairs[::3], pairs[2::3], strict=True)}


class _Quoted(str):
    """Text that was in quotes: an equals sign or semicolon in it is a character."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return False

    def __ne__(self, other: object) -> bool:
        return True

    __hash__ = str.__hash__


def _tokens(text: str) -> list[str]:
    found: list[str] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"{_NAME}: a quote is not closed, or a character is out of place, at position {at}")
        double, single, sign, word = match.groups()
        quoted = single if double is None else double
        found.append(sign or word if quoted is None else _Quoted(_unescaped(quoted)))
        at = match.end()
    return found


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), text)
