"""GSSAPI with a real key distribution center: brokers with tokens in requests, without headers, and before all else."""

from __future__ import annotations

import contextlib
import os
import shutil

import pytest

from kafkacodec import messages
from kafkacodec.client.driver.network import Network
from kafkacodec.client.options import ClientSettings
from kafkacodec.errors import AuthenticationFailed
from tests.integration.kafka_jvm import Broker, Server, free_port
from tests.integration.kerberos import PROGRAMS, REALM, Realm
from tests.integration.old_kafka import OldBroker

pytest.importorskip("gssapi")
_MISSING = [name for name in PROGRAMS if shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") is None]
pytestmark = [
    pytest.mark.java,
    pytest.mark.slow,
    pytest.mark.skipif(bool(_MISSING), reason=f"needs {', '.join(_MISSING)}"),
]


@pytest.fixture(scope="module")
def realm(tmp_path_factory):
    made = Realm(tmp_path_factory.mktemp("realm"))
    made.start()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in made.environment.items():
            patch.setenv(name, value)
        made.log_in("alice", made.add("alice"))
        yield made
    made.stop()


@contextlib.contextmanager
def kerberized(directory, realm, release) -> Server:
    """A broker with one listener for clients that wants GSSAPI."""
    keys = realm.add(f"kafka/localhost-{release}")
    login = directory / "jaas.conf"
    login.write_text(
        "KafkaServer { com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true "
        f'keyTab="{keys}" principal="kafka/localhost-{release}@{REALM}"; }};\n'
    )
    port, other = free_port(), free_port()
    settings = {"sasl.enabled.mechanisms": "GSSAPI", "sasl.kerberos.service.name": "kafka"}
    listeners = [f"PLAINTEXT://127.0.0.1:{other}", f"SASL_PLAINTEXT://127.0.0.1:{port}"]
    if release == "jars":
        broker: Server = KerberizedBroker(directory, listeners, settings)
    else:
        broker = OldBroker(directory, release, listeners=",".join(listeners), **settings)
    broker.server = f"127.0.0.1:{port}"
    with pytest.MonkeyPatch.context() as patch:
        options = [
            f"-Djava.security.auth.login.config={login}",
            f"-Djava.security.krb5.conf={realm.config}",
            "-Dzookeeper.sasl.client=false",
            "--add-exports=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
        ]
        patch.setenv("JAVA_TOOL_OPTIONS", " ".join(options))
        broker.start()
    try:
        yield broker
    finally:
        broker.kill()


class KerberizedBroker(Broker):
    """A KRaft broker with these listeners."""

    def __init__(self, directory, listeners, settings):
        self._listeners = listeners
        protocols = "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT"
        super().__init__(directory, **{"listener.security.protocol.map": protocols}, **settings)

    def listeners(self):
        return self._listeners


async def ask(server, domain):
    options = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "GSSAPI", "sasl_kerberos_domain_name": domain}
    network = Network(ClientSettings(bootstrap_servers=server, **options))
    try:
        return await network.call(messages.MetadataRequest(topics=[]), timeout_ms=15_000)
    finally:
        await network.close()


@pytest.mark.parametrize("release", ["jars", "0.10.2", "0.9.0"])
async def test_tickets(tmp_path, realm, release, monkeypatch):
    with kerberized(tmp_path, realm, release) as broker:
        assert await ask(broker.server, f"localhost-{release}") is not None
        with pytest.raises(AuthenticationFailed, match=r"GSSAPI: .*Server .*not found in Kerberos database"):
            await ask(broker.server, "elsewhere")
        monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path}/none")
        with pytest.raises(AuthenticationFailed, match=r"GSSAPI: .*No Kerberos credentials available"):
            await ask(broker.server, f"localhost-{release}")
