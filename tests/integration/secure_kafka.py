"""A broker with listeners of all kinds of TLS and SASL."""

from __future__ import annotations

from pathlib import Path

from tests.certificates import Authority
from tests.integration.kafka_jvm import Broker, free_port

__all__ = ["PASSWORDS", "AuthorizingBroker", "SecureBroker"]

MECHANISMS = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER"
# SASLprep would make "fi" of the ligature and a space of the no-break space; Kafka takes passwords as they are.
PASSWORDS = {"alice": "alice's secret", "bob": "ﬁn\N{NO-BREAK SPACE}ü"}

_JAAS = "org.apache.kafka.common.security"
_MODULES = {
    "plain": f'{_JAAS}.plain.PlainLoginModule required user_alice="{PASSWORDS["alice"]}";',
    "scram-sha-256": f"{_JAAS}.scram.ScramLoginModule required;",
    "scram-sha-512": f"{_JAAS}.scram.ScramLoginModule required;",
    "oauthbearer": f'{_JAAS}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";',
}
# The protocol of each listener, and its own settings.
_LISTENERS: dict[str, tuple[str, dict[str, str]]] = {
    "TLS": ("SSL", {}),
    "MUTUAL": ("SSL", {"ssl.client.auth": "required"}),
    "EXPIRED": ("SSL", {}),
    "ELSEWHERE": ("SSL", {}),
    "SASL": ("SASL_PLAINTEXT", {}),
    "SASLTLS": ("SASL_SSL", {}),
    "PLAINONLY": ("SASL_PLAINTEXT", {"sasl.enabled.mechanisms": "PLAIN"}),
    "BRIEF": ("SASL_PLAINTEXT", {"connections.max.reauth.ms": "2000"}),
}


class SecureBroker(Broker):
    """Several listeners on one broker: `at` gives host and port by name.

    TLS; MUTUAL wants a client certificate; EXPIRED and ELSEWHERE have a certificate that has expired or is for another
    host; SASL, SASLTLS; PLAINONLY has one mechanism; BRIEF has sessions of two seconds.

    Attributes:
        authority: of all its certificates, and of the clients that MUTUAL accepts.
    """

    def __init__(self, directory: Path, release: str = "jars") -> None:
        self.authority = Authority(directory)
        self.ports = {name: free_port() for name in _LISTENERS}
        good = self.authority.issue("broker", "localhost", "127.0.0.1")
        keys = {
            "EXPIRED": self.authority.issue("expired", "localhost", "127.0.0.1", days=-1),
            "ELSEWHERE": self.authority.issue("elsewhere", "kafka.example"),
        }
        settings = {}
        for name, (protocol, own) in _LISTENERS.items():
            prefix = f"listener.name.{name.lower()}."
            if protocol.endswith("SSL"):
                settings[f"{prefix}ssl.keystore.location"] = str(keys.get(name, good).both)
            if protocol.startswith("SASL"):
                settings[f"{prefix}sasl.enabled.mechanisms"] = MECHANISMS
                settings |= {f"{prefix}{key}.sasl.jaas.config": module for key, module in _MODULES.items()}
            settings |= {f"{prefix}{key}": value for key, value in own.items()}
        super().__init__(
            directory,
            release,
            [
                f'SCRAM-SHA-{size}=[name={user},password="{password}"]'
                for size in (256, 512)
                for user, password in PASSWORDS.items()
            ],
            **{"ssl.keystore.type": "PEM", "ssl.truststore.type": "PEM"},
            **{"ssl.truststore.location": str(self.authority.certificate)},
            **{"listener.security.protocol.map": self._protocols()},
            **{"delegation.token.secret.key": "of all brokers"},
            **settings,
        )

    def at(self, listener: str) -> str:
        """Host and port of a listener."""
        return f"127.0.0.1:{self.ports[listener]}"

    def _protocols(self) -> str:
        own = (f"{name}:{protocol}" for name, (protocol, _) in _LISTENERS.items())
        return ",".join(["PLAINTEXT:PLAINTEXT", "CONTROLLER:PLAINTEXT", *own])

    def listeners(self) -> list[str]:
        """The one without security is that of brokers among themselves."""
        return [*super().listeners(), *(f"{name}://{self.at(name)}" for name in _LISTENERS)]


class AuthorizingBroker(Broker):
    """A broker with the StandardAuthorizer, at which a super user logs in by PLAIN and others by SCRAM.

    Attributes:
        sasl: host and port of the listener for both.
    """

    def __init__(self, directory: Path, admin: tuple[str, str], release: str = "newest") -> None:
        self.sasl = f"127.0.0.1:{free_port()}"
        name, password = admin
        prefix = "listener.name.sasl."
        settings = {
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT",
            f"{prefix}sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            f"{prefix}plain.sasl.jaas.config": f'{_JAAS}.plain.PlainLoginModule required user_{name}="{password}";',
            f"{prefix}scram-sha-256.sasl.jaas.config": _MODULES["scram-sha-256"],
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"User:{name};User:ANONYMOUS",  # the broker itself is the latter
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "share.coordinator.state.topic.num.partitions": "1",
        }
        super().__init__(directory, release, **settings)

    def listeners(self) -> list[str]:
        """The one without security is that of the broker itself."""
        return [*super().listeners(), f"SASL://{self.sasl}"]
