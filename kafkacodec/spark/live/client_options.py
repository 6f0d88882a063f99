"""From Spark's options that start with ``kafka.`` to the options of a client."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any, Final

from kafkacodec.client.options import ClientSettings, option_defaults, options_from_config
from kafkacodec.client.security.java_config import java_security_options
from kafkacodec.datatypes import fields
from kafkacodec.net.tls import client_context
from kafkacodec.spark.errors import OptionError

__all__ = ["SERVERS", "client_options", "is_client_option", "named_options", "shared_options"]

logger = logging.getLogger("kafkacodec.spark")

_PREFIX: Final = "kafka."

SERVERS: Final = f"{_PREFIX}bootstrap.servers"
"""The option with the addresses of brokers."""

_BINARY: Final = "keys and values are binary columns; use functions on them"
_INLINE: Final = "put the PEM text into a file, and set ssl.truststore.location or ssl.keystore.location"
_OPENSSL: Final = "the system's OpenSSL decides about versions and ciphers of TLS; remove the option"
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
    """Whether a Spark option is one of the client, which starts with ``kafka.``."""
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
        raise OptionError(f"{SERVERS}: missing; set it to host:port of at least one broker")
    _leave_out(config)
    try:
        found = java_security_options(config)
        if config.get("security.protocol", "").startswith("SASL"):
            config.setdefault("sasl.mechanism", "GSSAPI")  # Java's default
        found |= options_from_config(config, option_defaults(settings))
    except TypeError as error:  # unknown option 'x'; did you mean 'y'?
        name, _, hint = str(error).removeprefix("unknown option ").partition("; ")
        hint = hint.replace("mean '", f"mean '{_PREFIX}")
        raise OptionError(f"{_PREFIX}{name.strip(chr(39))}: unknown option; {hint}") from None
    except ValueError as error:
        raise OptionError(f"{_PREFIX}{error}") from None
    try:
        client_context(settings(**found))
    except (TypeError, ValueError) as error:
        raise OptionError(named_options(str(error), settings)) from None
    return found


def shared_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that clients of all kinds have."""
    shared = {option.name for option in fields(ClientSettings)}
    return {name: value for name, value in options.items() if name in shared}


def _leave_out(config: dict[str, str]) -> None:
    """Remove options without effect, and log their names in one line."""
    names = sorted(config.keys() & _NO_EFFECT)
    for name in names:
        del config[name]
    if names:
        logger.info("options without effect: %s", ", ".join(_PREFIX + name for name in names))


def named_options(message: str, settings: type[ClientSettings]) -> str:
    """An error of the client with options as Spark's user names them."""
    names = sorted((option.name for option in fields(settings)), key=len, reverse=True)
    pattern = re.compile(rf"\b({'|'.join(names)})\b")
    return pattern.sub(lambda match: _PREFIX + _JAVA_NAMES.get(match[1], match[1].replace("_", ".")), message)
