"""Names of Java's client for TLS and SASL that stand for other options of this one: stores, host names, JAAS."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from kafkacodec.arguments import require_text
from kafkacodec.client.options import options_from_config
from kafkacodec.client.security.jaas import jaas_options

__all__ = ["JAVA_FILES", "config_options", "java_security_options"]

_PEM: Final = b"-----BEGIN"

# Java's name of a file -> the client's option, the name of its type, the name of its password.
_STORES: Final = {
    "ssl.truststore.location": ("ssl_cafile", "ssl.truststore.type", "ssl.truststore.password"),
    "ssl.keystore.location": ("ssl_certfile", "ssl.keystore.type", "ssl.keystore.password"),
}

JAVA_FILES: Final = {location: option for location, (option, _, _) in _STORES.items()}
"""The options of files by Java's names."""

_HOST_NAME: Final = "ssl.endpoint.identification.algorithm"
_LOGIN: Final = "sasl.jaas.config"
_NAMES: Final = (*_STORES, *(name for store in _STORES.values() for name in store[1:]), _HOST_NAME, _LOGIN)


def config_options(config: Any, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a configuration with names of Java or librdkafka, for ``from_config``.

    Arguments and errors are those of `options_from_config` and `java_security_options`.
    """
    if not isinstance(config, Mapping):
        raise TypeError(f"a configuration must be a dict of values by name, not {type(config).__name__}")
    left = dict(config)
    found = java_security_options(left)
    return found | options_from_config(left, defaults)


def java_security_options(config: dict[str, Any]) -> dict[str, Any]:
    """Take the names that only Java's client has from a configuration; returns the options that they stand for.

    ``security.protocol`` is put into capitals.

    Raises:
        ValueError: a value is malformed or not possible, or a file is not PEM. The message starts with the name, and
            has no password.
        TypeError: a value is not text.
    """
    for name in ("security.protocol", *_NAMES):
        if name in config:
            require_text(name, config[name])
    if "security.protocol" in config:
        config["security.protocol"] = config["security.protocol"].strip().upper()
    text = config.pop(_LOGIN, None)
    return {**_files(config), **_host_name(config), **({} if text is None else jaas_options(text))}


def _files(config: dict[str, Any]) -> dict[str, str]:
    """The files of Java's stores, which must be PEM."""
    found = {}
    for location, (option, kind, password) in _STORES.items():
        given, type_ = config.pop(location, None), config.pop(kind, None)
        if given is None:
            continue
        form = type_.upper() if type_ else _guessed_type(given)
        if form != "PEM":
            raise ValueError(
                f"{location}: {given} is {form}, and only PEM files are read; convert it with "
                f"`keytool -importkeystore -deststoretype PKCS12` and `openssl pkcs12 -nodes`"
            )
        if password in config:
            raise ValueError(f"{password}: PEM files have none; that of a key is ssl.key.password")
        if not os.path.isfile(given):
            raise ValueError(f"{location}: {given} is not a file")
        found[option] = given
    return found


def _guessed_type(path: str) -> str:
    """Return Java's type of a store without a type: from its first bytes, otherwise Java's default."""
    try:
        with open(path, "rb") as file:
            return "PEM" if _PEM in file.read(1 << 16) else "not PEM"
    except OSError:
        return "PEM"  # the next step reports that it is unreadable


def _host_name(config: dict[str, Any]) -> dict[str, bool]:
    algorithm = config.pop(_HOST_NAME, None)
    if algorithm is None:
        return {}
    if algorithm.strip().lower() not in ("", "https"):
        raise ValueError(f"{_HOST_NAME}: expected https, or nothing for no check of host names, not {algorithm!r}")
    return {"ssl_check_hostname": bool(algorithm.strip())}
