"""Options of the format `kafkabroker` that start with `kafka.`: what becomes of them, and what is refused."""

import pytest

from kafkacodec.client.consuming.settings import ConsumerSettings
from kafkacodec.client.producing.settings import ProducerSettings
from kafkacodec.spark.errors import OptionError
from kafkacodec.spark.live.client_options import client_options, shared_options
from kafkacodec.spark.live.read_options import parse_broker_options
from tests.certificates import Authority

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
KERBEROS = "com.sun.security.auth.module.Krb5LoginModule"
LOGIN = {"kafka.security.protocol": "SASL_PLAINTEXT", "kafka.sasl.mechanism": "PLAIN"}


def parse(settings=ConsumerSettings, **options):
    given = {name.replace("_", "."): value for name, value in options.items()}
    return client_options({"kafka.bootstrap.servers": "one:9092,two", **given}, settings)


def test_dotted_names_and_types():
    found = client_options(
        {"KAFKA.Bootstrap.Servers": "one:9092", "kafka.fetch.min.bytes": "5", "kafka.check.crcs": "FALSE"},
        ConsumerSettings,
    )
    assert found == {"bootstrap_servers": "one:9092", "fetch_min_bytes": 5, "check_crcs": False}


def test_the_limit_of_decompressed_bytes():
    assert parse(kafka_max_decompressed_bytes="300000000")["max_decompressed_bytes"] == 300_000_000
    with pytest.raises(OptionError, match=r"kafka\.max\.decompressed\.bytes"):
        parse(kafka_max_decompressed_bytes="0")


def test_other_options_are_not_the_clients():
    assert client_options({"subscribe": "a", "kafka.bootstrap.servers": "b"}, ConsumerSettings) == {
        "bootstrap_servers": "b"
    }


def test_shared_options():
    assert shared_options(parse(kafka_fetch_min_bytes="5", kafka_client_id="me")) == {
        "bootstrap_servers": "one:9092,two",
        "client_id": "me",
    }


def test_what_makes_no_difference_is_left_out():
    assert parse(kafka_group_id="g", kafka_metric_reporters="x.Y").keys() == {"bootstrap_servers"}


@pytest.mark.parametrize(
    ("config", "user", "password"),
    [
        (f'{PLAIN} required username="alice" password="s;e=c r\\"e\\\\t";', "alice", 's;e=c r"e\\t'),
        (f"{SCRAM} REQUIRED username='al ice' password=secret ;\n", "al ice", "secret"),
        (f'{PLAIN}\n  required\n  username="alice"\n  password="="\n  user_bob=";";', "alice", "="),
        (f'{SCRAM} required username="ü" password="" tokenauth="false";', "ü", ""),
    ],
)
def test_jaas_users(config, user, password):
    found = client_options(
        {"kafka.bootstrap.servers": "a", **LOGIN, "kafka.sasl.jaas.config": config}, ConsumerSettings
    )
    assert (found["sasl_plain_username"], found["sasl_plain_password"]) == (user, password)


def test_jaas_of_a_delegation_token():
    config = f'{SCRAM} required username="id" password="aG1hYw==" tokenauth="true";'
    login = {"kafka.security.protocol": "SASL_SSL", "kafka.sasl.mechanism": "SCRAM-SHA-256"}
    found = client_options(
        {"kafka.bootstrap.servers": "a", **login, "kafka.sasl.jaas.config": config}, ConsumerSettings
    )
    assert (found["sasl_plain_username"], found["sasl_plain_password"]) == ("id", "aG1hYw==")
    assert found["sasl_scram_tokenauth"] is True


def test_jaas_kerberos_and_the_default_mechanism():
    config = f'{KERBEROS} required useTicketCache=true serviceName="broker";'
    found = parse(kafka_security_protocol="sasl_plaintext", kafka_sasl_jaas_config=config)
    assert (found["sasl_mechanism"], found["sasl_kerberos_service_name"]) == ("GSSAPI", "broker")


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("", "expected a login module"),
        (f"{PLAIN} required username=alice password=secret", "expected a login module"),
        (f"{PLAIN} mandatory username=alice password=secret;", "expected a login module"),
        (f"{PLAIN} required username alice password secret;", "expected a login module"),
        (f"{PLAIN} required username=alice;", "PlainLoginModule needs password"),
        (f'{PLAIN} required username="alice password=secret;', "quote is not closed"),
        (f"{PLAIN} required username=a password=b; {SCRAM} required username=a password=b;", "several login modules"),
        (f"{KERBEROS} required useKeyTab=true keyTab=/k;", "KRB5_CLIENT_KTNAME"),
        ("x.OAuthBearerLoginModule required;", "needs a function"),
        ("x.OtherModule required password=secret;", "unknown login module"),
    ],
)
def test_jaas_refused(config, message):
    with pytest.raises(OptionError, match=message) as caught:
        parse(kafka_sasl_jaas_config=config)
    assert str(caught.value).startswith("kafka.sasl.jaas.config: ")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kafka.bootstrap.servers": " "}, "^kafka.bootstrap.servers: missing; set it to host:port"),
        ({"kafka.bootstrap.servers": "a:x"}, "^kafka.bootstrap.servers: 'a:x' is not host:port"),
        ({"kafka.fetch.min.byte": "1"}, "^kafka.fetch.min.byte: unknown option; did you mean 'kafka.fetch.min.bytes'"),
        ({"kafka.fetch.min.bytes": "many"}, "^kafka.fetch.min.bytes must be a whole number, not 'many'"),
        ({"kafka.fetch.min.bytes": "0"}, "^kafka.fetch.min.bytes must be from 1 to"),
        ({"kafka.isolation.level": "dirty"}, "^kafka.isolation.level must be 'read_uncommitted' or"),
        ({"kafka.auto.offset.reset": "latest"}, "^kafka.auto.offset.reset: .* use startingOffsets"),
        ({"kafka.enable.auto.commit": "true"}, "^kafka.enable.auto.commit: "),
        ({"kafka.key.deserializer": "x"}, "^kafka.key.deserializer: keys and values are binary"),
        ({"kafka.interceptor.classes": "x"}, "^kafka.interceptor.classes: Java classes"),
        ({"kafka.ssl.cipher.suites": "x"}, "^kafka.ssl.cipher.suites: .* OpenSSL"),
        ({"kafka.ssl.endpoint.identification.algorithm": "ldap"}, "expected https, or nothing"),
        ({"kafka.ssl.truststore.location": "/none", "kafka.ssl.truststore.type": "PEM"}, "/none is not a file"),
        ({"kafka.ssl.truststore.location": "/none", "kafka.ssl.truststore.type": "jks"}, "/none is JKS, and only PEM"),
        ({"kafka.ssl.keystore.location": __file__}, "is not PEM, and only PEM files are read; convert it"),
        ({"kafka.sasl.mechanism": "PLAIN"}, "^kafka.sasl.mechanism and a kafka.security.protocol of SASL"),
        (LOGIN, r"^kafka.sasl.mechanism 'PLAIN' needs kafka.sasl.jaas.config \(username\)"),
    ],
)
def test_refused(options, message):
    with pytest.raises(OptionError, match=message):
        client_options({"kafka.bootstrap.servers": "a", **options}, ConsumerSettings)


def test_servers_without_their_prefix():
    with pytest.raises(OptionError, match=r"^bootstrap\.servers: unknown .* mean kafka\.bootstrap\.servers\?"):
        parse_broker_options({"bootstrap.servers": "a:1", "subscribe": "orders"}, streaming=False)


def test_options_of_producers_only():
    assert parse(ProducerSettings, kafka_linger_ms="7")["linger_ms"] == 7
    with pytest.raises(OptionError, match=r"^kafka.linger.ms: unknown option"):
        parse(kafka_linger_ms="7")


def test_pem_files(tmp_path):
    authority = Authority(tmp_path)
    own = authority.issue("me", password="hidden")
    files = {
        "kafka.bootstrap.servers": "a",
        "kafka.security.protocol": "ssl",
        "kafka.ssl.truststore.location": str(authority.certificate),
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.keystore.location": str(own.both),
        "kafka.ssl.key.password": "hidden",
        "kafka.ssl.endpoint.identification.algorithm": "",
    }
    assert client_options(files, ConsumerSettings) == {
        "bootstrap_servers": "a",
        "security_protocol": "SSL",
        "ssl_cafile": str(authority.certificate),
        "ssl_certfile": str(own.both),
        "ssl_password": "hidden",
        "ssl_check_hostname": False,
    }
    with pytest.raises(OptionError, match=r"^kafka.ssl.keystore.location .*not valid PEM text"):
        client_options({**files, "kafka.ssl.key.password": "other"}, ConsumerSettings)
    with pytest.raises(OptionError, match=r"^kafka.ssl.keystore.password: PEM files have none"):
        client_options({**files, "kafka.ssl.keystore.password": "x"}, ConsumerSettings)


def test_no_secret_in_the_representation():
    given = {
        "kafka.bootstrap.servers": "localhost:9092",
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": f"{PLAIN} required username=alice password=hidden;",
        "subscribe": "orders",
    }
    options = parse_broker_options(given, streaming=False)
    assert "hidden" in str(options.client)
    assert "hidden" not in repr(options)
