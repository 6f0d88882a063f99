"""``kafkacodec serve``: its line on a terminal, and options that are wrong."""

from __future__ import annotations

import click
import pytest

from kafkacodec.cli.app import application
from tests.terminal import on_a_terminal


def test_a_line_says_what_happens():
    command = ("serve", "--listen", "kafka://127.0.0.1:0", "--topic", "orders:3")
    code, shown = on_a_terminal(*command, kind="xterm", columns=100, until="requests/s")
    assert code == 0
    assert "0 connections, 1 topic; 0 requests/s, 0 B/s in, 0 B/s out" in shown


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--listen", "kafka+sasl+tls://127.0.0.1:0"], "kafka+sasl+tls:// needs --tls-cert"),
        (
            ["--user", "a:b", "--listen", "kafka+tls://127.0.0.1:0", "--tls-cert", __file__],
            "--user and --users are for",
        ),
        (["--tls-cert", __file__, "--listen", "kafka+sasl://127.0.0.1:0"], "--tls-cert is for kafka"),
        (["--tls-key", __file__], "--tls-key and --tls-client-ca need --tls-cert"),
        (["--read-only"], "--read-only needs --data"),
        (["--read-only", "--data", "a", "--topic", "b"], "leave out --topic"),
        (["--read-only", "--data", "a", "--brokers", "2"], "leave out --brokers"),
        (["--data", "a", "--data", "b"], "several --data need --read-only"),
    ],
)
def test_options_without_a_listener_that_they_are_for(arguments, says):
    with pytest.raises(click.UsageError, match=says.replace("+", "[+]")):
        application.main(["serve", *arguments], standalone_mode=False)


def test_a_directory_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError) as raised:
        application.main(["serve", "--read-only", "--data", str(tmp_path / "none")], standalone_mode=False)
    assert raised.value.filename == str(tmp_path / "none")
