"""From Spark's options that start with ``kafka.`` to the options of a client."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from kafkacodec.client.options import ClientSettings, option_defaults, options_from_config
from kafkacodec.client.security.tls import client_context
from kafkacodec.spark.broker.jaas import jaas_options
from kafkacodec.spark.errors import OptionError

__all__ = ["client_options", "is_client_option", "shared_options"]

logger = logging.getLogger("kafkacodec.spark")

_PREFIX: Final = "kafka."
_PEM: Final = b"-----BEGIN"

_BINARY: Final = "keys and values are binary columns; use functions on them"
_INLINE: Final = "give the PEM text as a file, by ssl.truststore.location or ssl.keystore.location"
_OPENSSL: Final = "versions and ciphers of TLS are those that the system's OpenSSL allows; remove the option"
_CODE: Final = "Java classes cannot be used; remove the option"

# What would change what is read or how safely, and cannot be had. Spark's own source refuses the first block too.
_REFUSED: Final[Mapping[str, str]] = {
    "auto.offset.reset": "Spark keeps the offsets; use startingOffsets",
    "key.deserializer": _BINARY,
    "value.deserializer": _BINARY,
    "key.serializer": _BINARY,
    "value.serializer": _BINARY,
    "enable.auto.commit": "no offsets are committed to Kafka; Spark keeps them",
    "interceptor.classes": _CODE,
    "ssl.truststore.certificates": _INLINE,
    "ssl.keystore.certificate.chain": _INLINE,
    "ssl.keystore.key": _INLINE,
    "ssl.protocol": _OPENSSL,
    "ssl.enabled.protocols": _OPENSSL,
    "ssl.cipher.suites": _OPENSSL,
    "ssl.engine.factory.class": _CODE,
    "sasl.client.callback.handler.class": _CODE,
    "sasl.login.callback.handler.class": _CODE,
    "sasl.login.class": _CODE,
    "security.providers": _CODE,
}

# Settings of Java's client that make no difference here, to what is read or how safely.
_NO_EFFECT: Final = frozenset(
    {
        "group.id",  # no group is joined, and no offset is committed
        "auto.include.jmx.reporter",
        "client.dns.lookup",
        "enable.metrics.push",
        "exclude.internal.topics",
        "metadata.recovery.rebootstrap.trigger.ms",
        "metadata.recovery.strategy",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        "receive.buffer.bytes",
        "sasl.kerberos.kinit.cmd",
        "sasl.kerberos.min.time.before.relogin",
        "sasl.kerberos.ticket.renew.jitter",
        "sasl.kerberos.ticket.renew.window.factor",
        "send.buffer.bytes",
        "socket.connection.setup.timeout.max.ms",
        "ssl.keymanager.algorithm",
        "ssl.provider",
        "ssl.secure.random.implementation",
        "ssl.trustmanager.algorithm",
    }
)

# Java's name of a file -> the client's option, the name of its type, the name of its password.
_STORES: Final = {
    "ssl.truststore.location": ("ssl_cafile", "ssl.truststore.type", "ssl.truststore.password"),
    "ssl.keystore.location": ("ssl_certfile", "ssl.keystore.type", "ssl.keystore.password"),
}

# The client's option -> Java's name, for errors; the others only have dots for underscores.
_JAVA_NAMES: Final = {
    "ssl_cafile": "ssl.truststore.location",
    "ssl_certfile": "ssl.keystore.location",
    "ssl_password": "ssl.key.password",
    "ssl_check_hostname": "ssl.endpoint.identification.algorithm",
    "sasl_plain_username": "sasl.jaas.config (username)",
    "sasl_plain_password": "sasl.jaas.config (password)",
}


def is_client_option(option: str) -> bool:
    """Whether an option of Spark's is one of the client: it starts with ``kafka.``."""
    return option.lower().startswith(_PREFIX)


def client_options(options: Mapping[str, str], settings: type[ClientSettings]) -> dict[str, Any]:
    """The keyword options of a client from all options of Spark that start with ``kafka.``.

    Names are those of Java's client, and its own with dots. Values of the result can be pickled.

    Args:
        options: Spark's; those without the prefix are ignored here.
        settings: the client's kind: `ConsumerSettings` or `ProducerSettings`.

    Raises:
        OptionError: an option is unknown, malformed or not possible, or ``kafka.bootstrap.servers`` is missing; a file
            cannot be read. The message starts with the name of the option.
    """
    config = {name.lower()[len(_PREFIX) :]: value for name, value in options.items() if is_client_option(name)}
    for name in config:
        if name in _REFUSED:
            raise OptionError(f"{_PREFIX}{name}: {_REFUSED[name]}")
    if not config.get("bootstrap.servers", "").strip():
        raise OptionError("kafka.bootstrap.servers: missing; give host:port of at least one broker")
    _leave_out(config)
    if "security.protocol" in config:
        config["security.protocol"] = config["security.protocol"].strip().upper()
    found = {**_files(config), **_host_name(config), **_login(config)}
    try:
        found |= options_from_config(config, option_defaults(settings))
    except TypeError as error:  # unknown option 'x'; did you mean 'y'?
        name, _, hint = str(error).removeprefix("unknown option ").partition("; ")
        raise OptionError(f"{_PREFIX}{name.strip(chr(39))}: unknown option; {hint}") from None
    except ValueError as error:
        raise OptionError(f"{_PREFIX}{error}") from None
    try:
        client_context(settings(**found))
    except (TypeError, ValueError) as error:
        raise OptionError(_named(str(error), settings)) from None
    return found


def shared_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Those of a client's options that clients of all kinds have."""
    shared = {option.name for option in fields(ClientSettings)}
    return {name: value for name, value in options.items() if name in shared}


def _leave_out(config: dict[str, str]) -> None:
    """Remove what makes no difference, and log its names in one line."""
    names = sorted(config.keys() & _NO_EFFECT)
    for name in names:
        del config[name]
    if names:
        logger.info("options without effect: %s", ", ".join(_PREFIX + name for name in names))


def _files(config: dict[str, str]) -> dict[str, str]:
    """The files of Java's stores, which must be PEM."""
    found = {}
    for location, (option, kind, password) in _STORES.items():
        given, type_ = config.pop(location, None), config.pop(kind, None)
        if given is None:
            continue
        form = type_.upper() if type_ else _guessed_type(given)
        if form != "PEM":
            raise OptionError(
                f"{_PREFIX}{location}: {given} is {form}, and only PEM files are read; convert it with "
                f"`keytool -importkeystore -deststoretype PKCS12` and `openssl pkcs12 -nodes`"
            )
        if password in config:
            raise OptionError(f"{_PREFIX}{password}: PEM files have none; that of a key is kafka.ssl.key.password")
        if not os.path.isfile(given):
            raise OptionError(f"{_PREFIX}{location}: {given} is not a file on the driver; executors need it there too")
        found[option] = given
    return found


def _guessed_type(path: str) -> str:
    """Java's type of a store where none is given: by its first bytes, else Java's default."""
    try:
        with open(path, "rb") as file:
            return "PEM" if _PEM in file.read(1 << 16) else "not PEM"
    except OSError:
        return "PEM"  # that it cannot be read is found next


def _host_name(config: dict[str, str]) -> dict[str, bool]:
    name = "ssl.endpoint.identification.algorithm"
    algorithm = config.pop(name, None)
    if algorithm is None:
        return {}
    if algorithm.strip().lower() not in ("", "https"):
        raise OptionError(f"{_PREFIX}{name}: expected https, or nothing for no check of host names, not {algorithm!r}")
    return {"ssl_check_hostname": bool(algorithm.strip())}


def _login(config: dict[str, str]) -> dict[str, Any]:
    text = config.pop("sasl.jaas.config", None)
    found = {} if text is None else jaas_options(text)
    if config.get("security.protocol", "").startswith("SASL") and "sasl.mechanism" not in config:
        found["sasl_mechanism"] = "GSSAPI"  # Java's default
    return found


def _named(message: str, settings: type[ClientSettings]) -> str:
    """An error of the client with the names that Spark's user gave."""
    names = sorted((option.name for option in fields(settings)), key=len, reverse=True)
    pattern = re.compile(rf"\b({'|'.join(names)})\b")
    return pattern.sub(lambda match: _PREFIX + _JAVA_NAMES.get(match[1], match[1].replace("_", ".")), message)
