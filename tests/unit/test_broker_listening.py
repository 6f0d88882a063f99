"""URLs of listeners: what is read from them, and what is refused with a reason."""

from __future__ import annotations

import pytest

from kafkacodec.broker.dialects.kafka07_registration import _own_address
from kafkacodec.broker.listening import listener_urls


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("kafka://127.0.0.1:0", ("kafka", "127.0.0.1", 0)),
        ("KAFKA://LocalHost", ("kafka", "localhost", 9092)),
        ("kafka+sasl+tls://[::1]:9093", ("kafka+sasl+tls", "::1", 9093)),
        ("line://h:", ("line", "h", 9094)),
        ("rewrite://h:65535", ("rewrite", "h", 65535)),
    ],
)
def test_the_parts_of_a_url(text, url):
    assert listener_urls(text) == [url]
    assert listener_urls([text, text]) == [url, url]


@pytest.mark.parametrize("port", ["65536", "99999999999", "x", "-1", "1 ", "1:2", "１"])
def test_a_wrong_port_is_refused(port):
    with pytest.raises(ValueError, match=f"^listen: 'kafka://h:{port}' has no valid port$"):
        listener_urls(f"kafka://h:{port}")


@pytest.mark.parametrize(
    "text",
    ["", "h:9092", "http://h:1", "kafka://", "kafka://:1", "kafka://u@h:1", "kafka://h/p", "kafka://h:1/", "kafka://h?q",
     "kafka://h#f", "kafka://[::1", "kafka://a b:1", " kafka://h"],
)  # fmt: skip
def test_what_is_no_url_of_a_listener_is_refused(text):
    with pytest.raises(ValueError, match=r"^listen: .* is not kafka://HOST:PORT or "):
        listener_urls(text)


def test_a_machine_whose_name_has_no_address_needs_one_for_zookeeper(monkeypatch):
    monkeypatch.setattr("socket.gethostname", lambda: "nohost.invalid")
    with pytest.raises(OSError, match=r"name of this machine, nohost\.invalid, has no address: set hostname in config"):
        _own_address()
