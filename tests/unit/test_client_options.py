"""Options of clients: wrong types and values, and those that other clients have."""

from __future__ import annotations

import re
import struct
import uuid
from pathlib import Path

import confluent_kafka
import pytest

import kafkacodec as kc
from kafkacodec.client.consuming.settings import ConsumerSettings
from kafkacodec.client.options import ClientSettings, option_defaults
from kafkacodec.client.producing.settings import ProducerSettings
from kafkacodec.client.security.java_config import config_options
from tests.patience import eventually

NOBODY = "127.0.0.1:1"


@pytest.mark.parametrize(
    ("servers", "reason"),
    [
        (9092, "must be text or a list, not int"),
        (b"localhost:9092", "must be text or a list, not bytes"),
        (("localhost", 9092), "9092 is not text with host:port"),
        ([b"localhost:9092"], "b'localhost:9092' is not text"),
        ({"bootstrap.servers": "localhost:9092"}, r"not a dict: from_config\(\) takes one"),  # as confluent-kafka
    ],
)
def test_wrong_servers(servers, reason):
    with pytest.raises(TypeError, match=f"bootstrap_servers.*{reason}"):
        kc.client.Producer(servers)


@pytest.mark.parametrize(
    ("settings", "options", "error", "reason"),
    [
        # Text would count as true.
        (ConsumerSettings, {"enable_auto_commit": "false"}, TypeError, "must be True or False, not 'false'"),
        (ConsumerSettings, {"check_crcs": "no"}, TypeError, "must be True or False"),
        (ClientSettings, {"ssl_check_hostname": "false"}, TypeError, "must be True or False"),
        (ClientSettings, {"allow_auto_create_topics": 0}, TypeError, "must be True or False"),
        (ProducerSettings, {"enable_idempotence": "false"}, TypeError, "must be True or False"),
        (ClientSettings, {"client_id": 5}, TypeError, "must be text, not int"),
        (ClientSettings, {"client_rack": b"a"}, TypeError, "must be text, not bytes"),
        (ConsumerSettings, {"group_id": 5}, TypeError, "must be text, not int"),
        (ConsumerSettings, {"group_id": ""}, ValueError, "is empty"),
        (ProducerSettings, {"transactional_id": 5}, TypeError, "must be text, not int"),
        (ClientSettings, {"broker_version_fallback": (0, 9)}, TypeError, "must be text, not tuple"),
        (ClientSettings, {"ssl_cafile": 5}, TypeError, "must be the path of a file, not int"),
        (ProducerSettings, {"acks": [1]}, ValueError, "must be 'all'"),
        (ProducerSettings, {"compression_level": 3}, ValueError, "compression_level: none has no levels"),
        (ProducerSettings, {"compression_type": "gzip", "compression_level": 10}, ValueError, "compression_level: the"),
        (
            ConsumerSettings,
            {"group_id": "g", "heartbeat_interval_ms": 45_000},  # Java refuses it too
            ValueError,
            "must be less than session_timeout_ms, but they are 45000 and 45000",
        ),
    ],
)
def test_wrong_values(settings, options, error, reason):
    with pytest.raises(error, match=reason):
        settings(bootstrap_servers=NOBODY, **options)


@pytest.mark.parametrize(
    ("options", "error", "reason"),
    [
        ({"ssl_keyfile": "key.pem"}, ValueError, "ssl_keyfile needs ssl_certfile"),
        ({"ssl_context": 5}, TypeError, "ssl_context must be an ssl.SSLContext, not int"),
    ],
)
def test_wrong_options_of_tls(options, error, reason):
    with pytest.raises(error, match=reason):
        ClientSettings(bootstrap_servers=NOBODY, security_protocol="SSL", **options)


@pytest.mark.parametrize("settings", [ClientSettings, ProducerSettings, ConsumerSettings])
def test_settings_are_values(settings):
    one, same = settings(bootstrap_servers="a", client_id="x"), settings(bootstrap_servers=["a:9092"], client_id="x")
    assert one == same
    assert hash(one) == hash(same)
    assert one != settings(bootstrap_servers="a", client_id="y")
    assert one != 5
    assert ClientSettings(bootstrap_servers="a") != ProducerSettings(bootstrap_servers="a")
    assert repr(one).startswith(f"{settings.__name__}(bootstrap_servers=('a:9092',), client_id='x', client_rack=None, ")
    assert "password" not in repr(one)
    with pytest.raises(AttributeError):
        one.client_id = "z"


def test_files_may_be_paths():
    settings = ClientSettings(bootstrap_servers=NOBODY, security_protocol="SSL", ssl_cafile=Path("ca.pem"))
    assert settings.ssl_cafile == Path("ca.pem")


def test_a_wrong_assignor_is_refused_without_a_group_too():
    with pytest.raises(ValueError, match="did you mean 'cooperative-sticky'"):
        kc.client.aio.Consumer(bootstrap_servers=NOBODY, partition_assignment_strategy="cooperative")


@pytest.mark.parametrize(
    ("option", "hint"),
    [
        ("consumer_timeout_ms", r"pass a timeout to columns\(\) or getmany\(\)"),
        ("api_version", "versions are detected"),
        ("topics", "pass topics without a name"),
        ("group_idd", "did you mean 'group_id'"),
    ],
)
def test_options_of_other_clients(option, hint):
    for client in (kc.client.Consumer, kc.client.aio.Consumer):
        with pytest.raises(TypeError, match=f"unknown option '{option}'; {hint}"):
            client("orders", bootstrap_servers=NOBODY, **{option: 1})


CONSUMER = option_defaults(ConsumerSettings)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("security.protocol", "sasl_ssl", {"security_protocol": "SASL_SSL"}),  # as librdkafka's documentation has it
        ("group.protocol", "CONSUMER", {"group_protocol": "consumer"}),  # Java's values have any case
        ("auto.offset.reset", "smallest", {"auto_offset_reset": "earliest"}),
        ("auto.offset.reset", "end", {"auto_offset_reset": "latest"}),
        ("auto.offset.reset", "error", {"auto_offset_reset": "none"}),
        ("auto.offset.reset", "by_duration:PT1H", {"auto_offset_reset": "by_duration:PT1H"}),
    ],
)
def test_values_of_other_clients(name, value, expected):
    assert config_options({name: value}, CONSUMER) == expected


def test_librdkafkas_name_of_javas_partitioner():
    producer = kc.client.Producer.from_config({"bootstrap.servers": NOBODY, "partitioner": "murmur2_random"})
    producer.close()
    with pytest.raises(TypeError, match="'fnv1a' is none of murmur2_random, consistent_random; or give a function"):
        kc.client.Producer.from_config({"bootstrap.servers": NOBODY, "partitioner": "fnv1a"})


JAVA = "org.apache.kafka.common.serialization"


@pytest.mark.parametrize(
    ("name", "value", "data"),  # as the documentation of Java's DataOutput has them
    [
        ("String", "grün", b"gr\xc3\xbcn"),
        ("Short", -2, b"\xff\xfe"),
        ("Integer", 258, b"\x00\x00\x01\x02"),
        ("Long", -1, b"\xff" * 8),
        ("Float", 1.0, b"\x3f\x80\x00\x00"),
        ("Double", -2.0, b"\xc0" + bytes(7)),
        ("UUID", uuid.UUID(int=1), b"00000000-0000-0000-0000-000000000001"),
    ],
)
def test_javas_serializers_name_functions_that_do_the_same(name, value, data):
    functions = []
    for kind, client in (("serializer", kc.client.Producer), ("deserializer", kc.client.Consumer)):
        config = {"bootstrap.servers": NOBODY, f"value.{kind}": f"{JAVA}.{name}{kind.capitalize()}"}
        with pytest.raises(
            TypeError, match=f"^value.{kind} must be callable, not the name of a Java class; "
        ) as caught:
            client.from_config(config)
        functions.append(eval(str(caught.value).partition("; give ")[2], {"struct": struct, "uuid": uuid}))
    assert (functions[0](value), functions[0](None), functions[1](data)) == (data, None, value)


@pytest.mark.parametrize(
    ("option", "name", "reason"),
    [
        ("key.serializer", f"{JAVA}.ByteArraySerializer", "leave it out"),
        ("value.serializer", "io.confluent.kafka.serializers.KafkaAvroSerializer", r"kc\.values\.Encoder\(url"),
        ("value.serializer", "com.example.OrderSerializer", "classes are not loaded by name"),
        ("value.serializer", f"{JAVA}.StringDeserializer", "classes are not loaded by name"),
    ],
)
def test_what_replaces_javas_other_classes(option, name, reason):
    with pytest.raises(TypeError, match=reason):
        kc.client.Producer.from_config({"bootstrap.servers": NOBODY, option: name})


def test_librdkafkas_partitioner_chooses_as_librdkafka_does():
    keys = [b"", *(f"key-{number}".encode() * (number % 5 + 1) for number in range(200)), bytes(range(256))]

    def partitions(topic):
        with kc.client.Consumer(topic, bootstrap_servers=server, auto_offset_reset="earliest") as consumer:
            found = {}
            eventually(lambda: found.update((r.key, r.partition) for r in read(consumer)) or len(found) == len(keys))
            return {key: found[key] for key in keys if key}  # an empty one goes anywhere

    def read(consumer):
        return [record for records in consumer.getmany(0.1).values() for record in records]

    with kc.broker.serve(topics={"ours": 7, "theirs": 7}) as broker:
        server = broker.bootstrap_servers
        config = {"bootstrap.servers": server, "partitioner": "consistent_random"}
        with kc.client.Producer.from_config(config) as producer:
            for key in keys:
                producer.send("ours", b"", key=key)
        theirs = confluent_kafka.Producer(config)
        for key in keys:
            theirs.produce("theirs", b"", key)
        assert theirs.flush(60) == 0
        assert partitions("ours") == partitions("theirs")


def test_all_wrong_names_are_told_at_once():
    config = {
        "bootstrap.servers": NOBODY,
        "queued.max.messages.kbytes": 1,
        "log_level": 7,
        "error_cb": print,
        "grup.id": "g",
        "something.else": 1,
    }
    with pytest.raises(TypeError) as caught:
        kc.client.Consumer.from_config(config)
    assert str(caught.value) == (
        "5 unknown options: "
        "'queued.max.messages.kbytes': prefetch_bytes limits the memory for records fetched ahead; "
        "'log_level': logs go to Python's logger 'kafkacodec.client': set its level; "
        "'error_cb': calls raise errors, and retries and slow calls are logged; "
        "'grup.id': did you mean 'group.id'?; "
        "'something.else': no option has a similar name, and the page on options lists them all"
    )
    with pytest.raises(TypeError, match=r"^2 unknown options: 'one': no option .*; 'acls': did you mean 'acks'"):
        kc.client.Producer(NOBODY, **{"one": 1, "acls": 2})


@pytest.mark.parametrize(
    ("config", "error", "reason"),
    [
        (None, TypeError, "must be a dict of values by name, not NoneType"),
        ([("bootstrap.servers", NOBODY)], TypeError, "must be a dict"),
        ({"fetch.max.wait.ms": "0.5"}, ValueError, "must be a whole number, not '0.5'"),
        ({"enable.auto.offset.store": "false"}, TypeError, "counts as processed when"),
        ({"sasl.jaas.config": "x"}, ValueError, "sasl.jaas.config: expected a login module"),
        ({"ssl.truststore.location": 5}, TypeError, "ssl.truststore.location must be text, not int"),
    ],
)
def test_wrong_configurations(config, error, reason):
    with pytest.raises(error, match=reason):
        config_options(config, CONSUMER)


@pytest.mark.parametrize("client", [kc.client.aio.Consumer, kc.client.aio.ShareConsumer])
def test_a_configuration_and_options(client):
    config = {"bootstrap.servers": NOBODY, "group.id": "billing"}
    made = client.from_config(config, "orders", value_deserializer=bytes.decode)
    assert made._settings.value_deserializer(b"x") == "x"


@pytest.mark.parametrize("face", [kc.client, kc.client.aio])
@pytest.mark.parametrize("kind", ["Producer", "Consumer", "ShareConsumer", "Admin", "KafkaConnection"])
def test_a_configuration_of_java(face, kind):
    config = {
        "bootstrap.servers": NOBODY,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": 'a.PlainLoginModule required username="u" password="p";',
        "ssl.endpoint.identification.algorithm": "",
    }
    if kind == "ShareConsumer":
        config["group.id"] = "g"
    client = getattr(face, kind).from_config(config)
    settings = getattr(client, "_face", client)._settings
    assert (settings.sasl_plain_username, settings.sasl_plain_password) == ("u", "p")
    assert settings.ssl_check_hostname is False
    if face is kc.client:
        client.close()


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"security.protocol": "SSL", "ssl.ca.location": "/none"}, "ssl.ca.location '/none': no such file"),
        ({"security.protocol": "SSL", "ssl_cafile": "/none"}, "ssl_cafile '/none': no such file"),
        (
            {"ssl.truststore.location": __file__, "ssl.truststore.type": "PEM"},
            "ssl.truststore.location is given, but sec",
        ),
        ({"security.protocol": "SSL", "ssl.key.location": "/none"}, "ssl.key.location needs ssl.certificate.location"),
        ({"sasl.mechanisms": "PLAIN"}, "sasl.mechanisms and a security.protocol of SASL_PLAINTEXT"),
        (
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"},
            "sasl.mechanism 'PLAIN' needs sasl.username and sasl.password",
        ),
        ({"message.timeout.ms": "-5"}, "message.timeout.ms must be from 0 to"),
        ({"request.required.acks": "7"}, "request.required.acks must be 'all', -1, 0 or 1"),
    ],
)
def test_errors_name_options_as_the_configuration_does(config, said):
    for client in (kc.client.Producer, kc.client.aio.Producer):
        with pytest.raises(ValueError, match=re.escape(said)):
            client.from_config({"bootstrap.servers": NOBODY, **config})


def test_errors_name_options_by_keyword_as_they_are():
    with pytest.raises(ValueError, match=r"^linger_ms must be from 0"):
        kc.client.Producer.from_config({"bootstrap.servers": NOBODY}, linger_ms=-1)
    with pytest.raises(ValueError, match=r"^linger_ms must be from 0"):
        kc.client.Producer.from_config({"bootstrap.servers": NOBODY, "linger_ms": -1})
