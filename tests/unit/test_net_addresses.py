"""Bootstrap servers: what is an address, and what a text that is none is told to be."""

from __future__ import annotations

import pytest

from kafkacodec.client import ClientSettings, Consumer

TAKEN = [
    ("b", ["b:9092"]),
    (" b:1 , c:2,", ["b:1", "c:2"]),
    ("b:1,,c:2", ["b:1", "c:2"]),  # as Java's clients take it
    ("b:1,b:1", ["b:1"]),
    (["b:1", "c:2,d:3", ""], ["b:1", "c:2", "d:3"]),
    ("[::1]:1,[fe80::1%eth0]", ["[::1]:1", "[fe80::1%eth0]:9092"]),
    ("PLAINTEXT://b:1", ["b:1"]),
    ("my_broker-1.example:1", ["my_broker-1.example:1"]),
]

REFUSED = [
    ("http://broker:9092", "'http://broker:9092' is not host:port; leave out 'http://'"),
    ("kafka://b:9092,c:9092", "'kafka://b:9092' is not host:port; leave out 'kafka://'"),
    ("http://b:9092/api", "'http://b:9092/api' is not host:port; leave out 'http://' and '/api'"),
    ("b:9092/", "'b:9092/' is not host:port; leave out '/'"),
    ("zk:2181/kafka", "'zk:2181/kafka' is not host:port; leave out '/kafka'"),
    ("SSL://b:9093", "'SSL://b:9093' is not host:port; it names SSL, but security_protocol is 'PLAINTEXT'"),
    ("a:1;b:2", "'a:1;b:2' is not host:port; separate several with commas"),
    ("a:1 b:2", "'a:1 b:2' is not host:port; separate several with commas"),
    ("b\n:9092", "'b\\n:9092' is not host:port; separate several with commas"),
    ("b:99999", "'b:99999' is not host:port: a port is between 1 and 65535"),
    ("b:0", "'b:0' is not host:port: a port is between 1 and 65535"),
    ("b:", "'b:' is not host:port, such as localhost:9092"),
    (":9092", "':9092' is not host:port, such as localhost:9092"),
    ("user@b:9092", "'user@b:9092' is not host:port, such as localhost:9092"),
    ("b:9092?ssl=1", "'b:9092?ssl=1' is not host:port, such as localhost:9092"),
    ("[b]:9092", "'[b]:9092' is not host:port, such as localhost:9092"),
    ("::1", "put the IPv6 address of '::1' in brackets, such as [::1]:9092"),
]


@pytest.mark.parametrize(("given", "found"), TAKEN)
def test_what_is_taken(given, found):
    assert ClientSettings(bootstrap_servers=given).bootstrap_servers == tuple(found)


@pytest.mark.parametrize(("given", "text"), REFUSED)
def test_what_is_refused_at_once(given, text):
    with pytest.raises(ValueError) as caught:
        Consumer(bootstrap_servers=given)
    assert str(caught.value) == f"bootstrap_servers: {text}"


@pytest.mark.parametrize("given", ["", " ", ",", [], [""]])
def test_nothing(given):
    with pytest.raises(ValueError, match="bootstrap_servers is empty: pass host:port of at least one broker"):
        ClientSettings(bootstrap_servers=given)


def test_the_protocol_may_be_named():
    settings = ClientSettings(bootstrap_servers="SSL://b:9093,c", security_protocol="SSL")
    assert settings.bootstrap_servers == ("b:9093", "c:9092")
    with pytest.raises(ValueError, match=r"bootstrap.servers: .* names SASL_SSL, but security.protocol is 'SSL'"):
        Consumer.from_config({"bootstrap.servers": "SASL_SSL://b", "security.protocol": "ssl"})
