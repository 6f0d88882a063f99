"""Commands and admin calls with brokers that want TLS and a login."""

from __future__ import annotations

import base64
import io
import json
import re
import time

import pytest

from kafkacodec import errors
from kafkacodec.client import Admin
from tests.integration.secure_kafka import PASSWORDS, SecureBroker
from tests.patience import eventually

pytestmark = [pytest.mark.java, pytest.mark.slow]


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    made = SecureBroker(tmp_path_factory.mktemp("secure"))
    made.start()
    yield made
    made.kill()


@pytest.fixture
def command(capsys, monkeypatch, broker):
    """Run the command with a listener and standard input; gives exit code, standard output and standard error."""
    from kafkacodec.cli.__main__ import run

    def call(listener, *arguments, stdin=b""):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = run([*map(str, arguments), "-b", broker.at(listener)])
        out, said = capsys.readouterr()
        return code, out, re.sub(r"^.*: waiting for broker .*\n", "", said, flags=re.M)  # on a busy machine

    return call


def options(**pairs):
    return [word for name, value in pairs.items() for word in ("-X", f"{name.replace('_', '.')}={value}")]


def check(command, listener, topic, given):
    """Write a record, find it, and list the topic, with the same options."""
    assert command(listener, "produce", topic, *given, stdin=b"hello")[::2] == (0, f"{topic}: 1 record\n")
    assert command(listener, "consume", topic, "-e", "-f", "%s", *given) == (0, "hello", "")
    code, out, _ = command(listener, "topics", "--topic", topic, "--json", *given)
    assert (code, json.loads(out)["topic"]) == (0, topic)


def test_tls(command, broker):
    given = options(security_protocol="SSL", ssl_ca_location=broker.authority.certificate)
    check(command, "TLS", "of-tls", given)


@pytest.mark.parametrize("user", PASSWORDS)
@pytest.mark.parametrize(("listener", "protocol"), [("SASL", "SASL_PLAINTEXT"), ("SASLTLS", "SASL_SSL")])
def test_scram_by_the_file_of_a_java_client(command, broker, tmp_path, listener, protocol, user):
    config = tmp_path / "client.properties"
    login = f'org.apache.kafka.common.security.scram.ScramLoginModule required username="{user}" \\\n'
    tls = f"ssl.ca.location={broker.authority.certificate}\n" if protocol == "SASL_SSL" else ""
    config.write_text(
        f"security.protocol={protocol}\nsasl.mechanism=SCRAM-SHA-256\n"
        f'sasl.jaas.config={login}  password="{PASSWORDS[user]}";\n'
        f"{tls}",
        encoding="utf-8",
    )
    check(command, listener, f"of-{user}-{listener}", ["-F", config])


@pytest.mark.parametrize("arguments", [["consume", "t", "-e"], ["produce", "t"], ["topics"], ["groups"]])
def test_a_wrong_password(command, arguments):
    given = options(
        security_protocol="SASL_PLAINTEXT", sasl_mechanism="SCRAM-SHA-512", sasl_username="alice", sasl_password="oops"
    )
    began = time.monotonic()
    code, out, err = command("SASL", *arguments, *given, stdin=b"x")
    assert time.monotonic() - began < 30
    lines = ["t: 0 records went out"] if arguments[0] == "produce" else []
    assert (code, out, err.splitlines()[:-1]) == (1, "", lines)
    assert "uthentication" in err
    assert "oops" not in err


def test_an_unknown_authority(command):
    code, out, err = command("TLS", "topics", *options(security_protocol="SSL"))
    assert (code, out, len(err.splitlines())) == (1, "", 1)
    assert "certificate" in err


def scram(broker, user):
    login = {"sasl_plain_username": user, "sasl_plain_password": PASSWORDS[user]}
    return Admin(broker.at("SASL"), security_protocol="SASL_PLAINTEXT", sasl_mechanism="SCRAM-SHA-256", **login)


def test_delegation_tokens(broker):
    with scram(broker, "alice") as alice, scram(broker, "bob") as bob:
        token = alice.create_delegation_token(renewers="User:bob", max_lifetime_ms=3_600_000)
        assert (token.owner, token.requester, token.renewers) == ("User:alice", "User:alice", ["User:bob"])
        assert token.max_timestamp - token.issue_timestamp == 3_600_000
        assert repr(token.hmac) not in repr(token)
        eventually(lambda: token in alice.describe_delegation_tokens())
        assert token in alice.describe_delegation_tokens("User:alice")
        assert alice.describe_delegation_tokens("User:carol") == []
        assert bob.renew_delegation_token(token.hmac, period_ms=60_000) < token.expiry_timestamp
        with pytest.raises(errors.BrokerError, match="DELEGATION_TOKEN_NOT_FOUND"):
            bob.renew_delegation_token(b"unknown")
        ends = alice.expire_delegation_token(token.hmac, period_ms=30_000)
        eventually(lambda: [found.expiry_timestamp for found in alice.describe_delegation_tokens()] == [ends])
        alice.expire_delegation_token(token.hmac)
        eventually(lambda: alice.describe_delegation_tokens() == [])


def test_logging_in_by_a_delegation_token(broker, command, tmp_path):
    """The token's owner is who is logged in; by the file of a Java client, too."""
    with scram(broker, "alice") as alice:
        token = alice.create_delegation_token(max_lifetime_ms=3_600_000)
        eventually(lambda: token in alice.describe_delegation_tokens())
    hmac = base64.b64encode(token.hmac).decode()
    login = {"sasl_mechanism": "SCRAM-SHA-512", "sasl_plain_username": token.token_id, "sasl_plain_password": hmac}
    options = {"security_protocol": "SASL_PLAINTEXT", **login}
    with (
        Admin(broker.at("SASL"), **options, sasl_scram_tokenauth=True) as by_token,
        pytest.raises(errors.BrokerError, match="DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"),
    ):
        by_token.create_delegation_token()
    with Admin(broker.at("SASL"), **options) as as_user, pytest.raises(errors.AuthenticationFailed):
        as_user.list_topics()
    with pytest.raises(ValueError, match="needs a sasl_mechanism of SCRAM"):
        Admin(broker.at("SASL"), **{**options, "sasl_mechanism": "PLAIN"}, sasl_scram_tokenauth=True)
    config = tmp_path / "client.properties"
    config.write_text(
        f"security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-256\n"
        f"ssl.truststore.type=PEM\nssl.truststore.location={broker.authority.certificate}\n"
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\\n"
        f'  username="{token.token_id}" password="{hmac}" tokenauth="true";\n'
    )
    check(command, "SASLTLS", "of-token", ["-F", config])


def test_files_of_java_that_cannot_be_read(command, tmp_path):
    config = tmp_path / "client.properties"
    config.write_text(f"security.protocol=SSL\nssl.truststore.location={__file__}\nssl.truststore.type=JKS\n")
    code, out, err = command("TLS", "topics", "-F", config)
    assert (code, out) == (2, "")
    assert "is JKS, and only PEM files are read; convert it" in " ".join(err.split())


def test_tokens_need_a_login(broker):
    with Admin(broker.server) as anonymous, pytest.raises(errors.BrokerError, match="REQUEST_NOT_ALLOWED"):
        anonymous.create_delegation_token()
