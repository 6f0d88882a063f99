"""The options of all clients: names, defaults, checks, and the dotted names of Java and librdkafka."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, TypedDict, get_args

from kafkacodec.arguments import one_of, require_int, require_text
from kafkacodec.client.core.foreign_options import PARTITIONERS, unknown_options
from kafkacodec.client.core.old_brokers import baseline_of
from kafkacodec.datatypes import MISSING, dataclass, field, fields, replace
from kafkacodec.net.addresses import address_text, addresses
from kafkacodec.net.settings import SaslMechanism, SecurityProtocol
from kafkacodec.protocol.frames import MAX_FRAME_SIZE

if TYPE_CHECKING:
    import ssl

__all__ = [
    "WORDS",
    "ClientOptions",
    "ClientSettings",
    "option_defaults",
    "options_from_config",
]

WORDS: Final[ContextVar[Mapping[str, str] | None]] = ContextVar("WORDS", default=None)
"""What the user calls options whose names he does not know, while settings are made."""

_MOST_MS = 2**31 - 1
_TLS_OPTIONS = ("ssl_context", "ssl_cafile", "ssl_certfile", "ssl_keyfile")
_USER = ("sasl_plain_username", "sasl_plain_password")
_CREDENTIALS: Final[Mapping[str, tuple[str, ...]]] = {
    "PLAIN": _USER,
    "SCRAM-SHA-256": _USER,
    "SCRAM-SHA-512": _USER,
    "OAUTHBEARER": ("sasl_oauth_token_provider",),
}


class ClientOptions(TypedDict, total=False):
    """Options of every client; `ClientSettings` documents them."""

    client_id: str
    client_rack: str | None
    request_timeout_ms: int
    default_api_timeout_ms: int
    metadata_max_age_ms: int
    metadata_max_idle_ms: int
    connections_max_idle_ms: int
    socket_connection_setup_timeout_ms: int
    bootstrap_timeout_ms: int
    reconnect_backoff_ms: int
    reconnect_backoff_max_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    receive_message_max_bytes: int
    max_in_flight_requests_per_connection: int
    broker_version_fallback: str | None
    allow_auto_create_topics: bool
    security_protocol: SecurityProtocol
    ssl_context: ssl.SSLContext | None
    ssl_cafile: str | os.PathLike[str] | None
    ssl_certfile: str | os.PathLike[str] | None
    ssl_keyfile: str | os.PathLike[str] | None
    ssl_password: str | None
    ssl_check_hostname: bool
    sasl_mechanism: SaslMechanism | None
    sasl_plain_username: str | None
    sasl_plain_password: str | None
    sasl_scram_tokenauth: bool
    sasl_oauth_token_provider: Callable[[], Any] | None
    sasl_kerberos_service_name: str
    sasl_kerberos_domain_name: str | None


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ClientSettings:
    """The checked options of a client. Times are in ms.

    Args:
        bootstrap_servers: ``host:port`` of some brokers, separated by commas or as a list; the default port is 9092.
            IPv6 addresses are in brackets. The security protocol may stand before an address, as in
            ``SSL://host:9093``.
        client_id: the name by which brokers log this client and apply quotas.
        client_rack: where the client runs, to fetch from followers that are near (KIP-392).
        request_timeout_ms: the time limit for the answer to one request.
        default_api_timeout_ms: the time limit for a call including its retries.
        metadata_max_age_ms: metadata older than this is refreshed.
        metadata_max_idle_ms: topics that have not been used for this long are forgotten, except those of a
            subscription or assignment.
        connections_max_idle_ms: connections unused for longer are closed.
        socket_connection_setup_timeout_ms: the time limit for connecting, TLS and SASL. The addresses of a host are
            tried in order, starting the next attempt when one has failed or has not answered for 250 ms.
        bootstrap_timeout_ms: how long a client that has not reached any broker yet retries while all bootstrap servers
            refuse connections, close them without an answer or have unknown host names; then every call fails.
        reconnect_backoff_ms, reconnect_backoff_max_ms: the first and the longest wait before a broker is tried again.
        retry_backoff_ms, retry_backoff_max_ms: the first and the longest wait before a request is tried again.
        receive_message_max_bytes: the largest accepted response in bytes. No more is allocated for one.
        max_in_flight_requests_per_connection: the maximum number of unanswered requests on a connection.
        broker_version_fallback: the version of brokers without ApiVersions (before 0.10), such as ``"0.9.0"``.
            Default: detected.
        allow_auto_create_topics: whether brokers may create topics when this client first sends to them, subscribes to
            them or is assigned them: by default only a producer's. A topic deleted later is created again only if
            something is sent to it.
        security_protocol: ``"PLAINTEXT"``, ``"SSL"``, ``"SASL_PLAINTEXT"`` or ``"SASL_SSL"``.
        ssl_context: replaces the other TLS options.
        ssl_cafile, ssl_certfile, ssl_keyfile, ssl_password: PEM files of authorities, the client's certificate and its
            key, and the password of the key.
        ssl_check_hostname: whether the broker's certificate must have its host name.
        sasl_mechanism: ``"PLAIN"``, ``"SCRAM-SHA-256"``, ``"SCRAM-SHA-512"``, ``"OAUTHBEARER"`` or ``"GSSAPI"``.
        sasl_plain_username, sasl_plain_password: the user name and password for PLAIN and SCRAM.
        sasl_scram_tokenauth: whether user name and password are the id and the HMAC, in base64, of a delegation token
            (KIP-48); for SCRAM.
        sasl_oauth_token_provider: called without arguments for each token: returns the token, or a pair of the token
            and a dict of extensions; may be a coroutine function.
        sasl_kerberos_service_name, sasl_kerberos_domain_name: the broker's principal for GSSAPI; the domain name
            replaces the host.

    Raises:
        TypeError, ValueError: an option has a wrong type or value.
    """

    bootstrap_servers: str | Iterable[str]
    client_id: str = "kafkacodec"
    client_rack: str | None = None
    request_timeout_ms: int = 30_000
    default_api_timeout_ms: int = 60_000
    metadata_max_age_ms: int = 300_000
    metadata_max_idle_ms: int = 300_000
    connections_max_idle_ms: int = 540_000
    socket_connection_setup_timeout_ms: int = 10_000
    bootstrap_timeout_ms: int = 3_000
    reconnect_backoff_ms: int = 50
    reconnect_backoff_max_ms: int = 1000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1000
    receive_message_max_bytes: int = MAX_FRAME_SIZE
    max_in_flight_requests_per_connection: int = 5
    broker_version_fallback: str | None = None
    allow_auto_create_topics: bool = False
    security_protocol: SecurityProtocol = "PLAINTEXT"
    ssl_context: ssl.SSLContext | None = field(default=None, repr=False)
    ssl_cafile: str | os.PathLike[str] | None = None
    ssl_certfile: str | os.PathLike[str] | None = None
    ssl_keyfile: str | os.PathLike[str] | None = None
    ssl_password: str | None = field(default=None, repr=False)
    ssl_check_hostname: bool = True
    sasl_mechanism: SaslMechanism | None = None
    sasl_plain_username: str | None = None
    sasl_plain_password: str | None = field(default=None, repr=False)
    sasl_scram_tokenauth: bool = False
    sasl_oauth_token_provider: Callable[[], Any] | None = field(default=None, repr=False)
    sasl_kerberos_service_name: str = "kafka"
    sasl_kerberos_domain_name: str | None = None

    words: ClassVar[Mapping[str, str]] = {}

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", WORDS.get() or {})
        one_of("security_protocol", self.security_protocol, get_args(SecurityProtocol))
        object.__setattr__(self, "bootstrap_servers", _servers(self.bootstrap_servers, self.security_protocol))
        for option in fields(self):
            _check_type(option.name, str(option.type), getattr(self, option.name))
        if self.sasl_mechanism is not None:
            one_of("sasl_mechanism", self.sasl_mechanism, get_args(SaslMechanism))
        if self.security_protocol.startswith("SASL") != (self.sasl_mechanism is not None):
            raise ValueError(
                "sasl_mechanism and a security_protocol of SASL_PLAINTEXT or SASL_SSL go together; "
                f"they are {self.sasl_mechanism!r} and {self.security_protocol!r}"
            )
        self._check_credentials()
        if self.broker_version_fallback is not None:
            baseline_of(self.broker_version_fallback)

    def but(self, **changes: Any) -> Self:
        """These settings with other values of some options."""
        changed = replace(self, **changes)
        object.__setattr__(changed, "words", self.words)
        return changed

    # What dataclass would compile for each class and each of its many fields, which takes longer than sending a record.

    def __repr__(self) -> str:
        shown = (f"{option.name}={getattr(self, option.name)!r}" for option in fields(self) if option.repr)
        return f"{type(self).__qualname__}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        return self._values() == other._values() if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._values())

    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, option.name) for option in fields(self))

    def _check_tls(self) -> None:
        """Refuse TLS files without TLS, as their user expects encryption, and a key without a certificate."""
        given = [name for name in _TLS_OPTIONS if getattr(self, name) is not None]
        if given and not self.security_protocol.endswith("SSL"):
            raise ValueError(
                f"{given[0]} is given, but security_protocol is {self.security_protocol!r}: "
                "set it to 'SSL' or 'SASL_SSL' to use TLS"
            )
        if self.ssl_context is not None and not hasattr(self.ssl_context, "wrap_bio"):
            raise TypeError(f"ssl_context must be an ssl.SSLContext, not {type(self.ssl_context).__name__}")
        if self.ssl_keyfile is not None and self.ssl_certfile is None:
            raise ValueError("ssl_keyfile needs ssl_certfile, the certificate of the key")

    def _check_credentials(self) -> None:
        for name in ("sasl_plain_username", "sasl_plain_password", "ssl_password"):
            value = getattr(self, name)
            if value is not None and any("\ud800" <= c <= "\udfff" for c in value):
                raise ValueError(f"{name} has a lone surrogate, which is not valid UTF-8")
        missing = [name for name in _CREDENTIALS.get(self.sasl_mechanism or "", ()) if getattr(self, name) is None]
        if missing:
            raise ValueError(f"sasl_mechanism {self.sasl_mechanism!r} needs {' and '.join(missing)}")
        if self.sasl_scram_tokenauth and not (self.sasl_mechanism or "").startswith("SCRAM"):
            raise ValueError(
                f"sasl_scram_tokenauth needs a sasl_mechanism of SCRAM, but that is {self.sasl_mechanism!r}"
            )
        self._check_tls()
        provider = self.sasl_oauth_token_provider
        if provider is not None and not callable(provider):
            raise TypeError(f"sasl_oauth_token_provider must be a function, not {type(provider).__name__}")


_NAMES_SENT: Final = ("_id", "_rack", "_assignor")  # the ends of names of options whose text is sent to brokers
_MOST_TEXT_BYTES: Final = 2**15 - 1


def _check_type(name: str, kind: str, value: Any) -> None:
    """Check a value against its option's type, given as text; classes check the rest. Raises TypeError, ValueError.

    Text is not accepted as a bool: "false" would be true.
    """
    if value is None and kind.endswith(" | None"):
        return
    kind = kind.removesuffix(" | None")
    if kind == "bool" and not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, not {value!r}")
    if kind == "str":
        require_text(name, value)
        if name.endswith(_NAMES_SENT) and (size := len(value.encode(errors="replace"))) > _MOST_TEXT_BYTES:
            raise ValueError(f"{name} is too long: {size:,} bytes, but Kafka's texts have at most {_MOST_TEXT_BYTES:,}")
    if kind.startswith("str | os.PathLike") and not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"{name} must be the path of a file, not {type(value).__name__}")
    if name.endswith("_ms"):
        require_int(name, value, 0, _MOST_MS)
    elif name.endswith(("_bytes", "_connection")):
        require_int(name, value, 1, _MOST_MS)


def _servers(given: Any, protocol: str) -> tuple[str, ...]:
    if isinstance(given, Mapping):
        raise TypeError(
            "bootstrap_servers must be text or a list, not a dict: from_config() takes one with all options"
        )
    return tuple(map(address_text, addresses(given, protocol=protocol)))


# Names of Java and librdkafka that differ from the option's name with dots.
_ALIASES: Final[Mapping[str, str]] = {
    "metadata.broker.list": "bootstrap_servers",
    "sasl.mechanisms": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "ssl.ca.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.key.location": "ssl_keyfile",
    "ssl.key.password": "ssl_password",
    "max.in.flight": "max_in_flight_requests_per_connection",
    "queue.buffering.max.ms": "linger_ms",
    "request.required.acks": "acks",
    "compression.codec": "compression_type",
    "message.timeout.ms": "delivery_timeout_ms",
    "message.max.bytes": "max_request_size",
    "message.send.max.retries": "retries",
    "topic.metadata.refresh.interval.ms": "metadata_max_age_ms",
    "socket.timeout.ms": "request_timeout_ms",
    "fetch.wait.max.ms": "fetch_max_wait_ms",
    "fetch.message.max.bytes": "max_partition_fetch_bytes",
}

# Values of Java and librdkafka, in lower case, that are called differently here.
_VALUES: Final[Mapping[str, Mapping[str, Any]]] = {
    "group_protocol": {"classic": "classic", "consumer": "consumer"},
    "auto_offset_reset": {
        **dict.fromkeys(("smallest", "beginning"), "earliest"),
        **dict.fromkeys(("largest", "end"), "latest"),
        "error": "none",
    },
    "partitioner": PARTITIONERS,
}


_OF_TYPE: Final[Mapping[str, Any]] = {"int | None": 0, "bool | None": True}


def option_defaults(settings: type[ClientSettings]) -> dict[str, Any]:
    """A value of each option of a settings class that has its type, for `options_from_config`: mostly the default."""
    return {
        option.name: _OF_TYPE.get(str(option.type), None if option.default is MISSING else option.default)
        for option in fields(settings)
    }


def names_in_configs(options: Collection[str]) -> dict[str, str]:
    """The names that options have in configurations, and the options; those of librdkafka are last."""
    dotted = {name.replace("_", "."): name for name in options}
    return {**dotted, **{alias: name for alias, name in _ALIASES.items() if name in options}}


def options_from_config(config: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a configuration with dotted names, for ``from_config``.

    Args:
        config: values by name, such as ``{"bootstrap.servers": "localhost:9092"}``. Text is converted to the type of
            the option: numbers, ``true`` and ``false``. Option names without dots are accepted too.
        options: a value of each option by name, which determines its type: `option_defaults`.

    Raises:
        TypeError: names are unknown; the error says of each what replaces it, or which one was probably meant.
        ValueError: a text is not of the option's type.
    """
    known = names_in_configs(options)
    wrong = [key for key in config if known.get(key, key) not in options]
    if wrong:
        raise unknown_options(wrong, known)
    given = [(key, known.get(key, key), value) for key, value in config.items()]
    return {name: _typed(key, _here(name, value), options[name]) for key, name, value in given}


def _here(name: str, value: Any) -> Any:
    """The name used here for a value of another client."""
    if name == "partitioner" and isinstance(value, str) and value not in PARTITIONERS:
        raise TypeError(f"partitioner: {value!r} is none of {', '.join(PARTITIONERS)}; or give a function")
    return _VALUES[name].get(value.lower(), value) if name in _VALUES and isinstance(value, str) else value


def _typed(key: str, value: Any, default: Any) -> Any:
    """Convert a text to the type of the default."""
    if not isinstance(value, str):
        return value
    if isinstance(default, bool):
        if value.lower() not in ("true", "false"):
            raise ValueError(f"{key} must be true or false, not {value!r}")
        return value.lower() == "true"
    if isinstance(default, int):
        try:
            return int(value)
        except ValueError:
            raise ValueError(f"{key} must be a whole number, not {value!r}") from None
    return value
