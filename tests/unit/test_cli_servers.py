"""Options of clients on the command line and in files, and where `consume` starts."""

from __future__ import annotations

import importlib

import click
import pytest
from click.testing import CliRunner

from kafkacodec.cli.app import COMMANDS, application
from kafkacodec.cli.options.properties import read_properties
from kafkacodec.cli.options.servers import Servers
from kafkacodec.cli.rows.consume_range import Start, parse_start
from kafkacodec.client.aio.admin import AdminSettings
from kafkacodec.client.producing.settings import ProducerSettings


def test_properties_as_java_writes_them():
    text = r"""
# comment
! comment
bootstrap.servers = a:1,\
    b:2
  acks=all
ssl.key.password = a=b # c
empty=
"""
    assert read_properties(text) == {
        "bootstrap.servers": "a:1,b:2",
        "acks": "all",
        "ssl.key.password": "a=b # c",
        "empty": "",
    }


@pytest.mark.parametrize("login", ["scram.ScramLoginModule", "plain.PlainLoginModule"])
def test_user_and_password_of_jaas(login, tmp_path):
    text = (
        f"sasl.jaas.config=org.apache.kafka.common.security.{login} required \\\n"
        '  username="alice" \\\n  password="se\\"cret;=";\n'
    )
    file = tmp_path / "client.properties"
    file.write_text(f"{text}security.protocol=sasl_ssl\nsasl.mechanism=SCRAM-SHA-256\n")
    found = servers(bootstrap="a:1", config=str(file)).options(ProducerSettings)
    assert (found["sasl_plain_username"], found["sasl_plain_password"]) == ("alice", 'se"cret;=')
    assert found["security_protocol"] == "SASL_SSL"


def test_a_line_that_is_no_property():
    with pytest.raises(ValueError, match="line 2: not name=value"):
        read_properties("a=b\nnothing\n")
    with pytest.raises(ValueError, match="line 2: ends with a backslash, but no line follows"):
        read_properties("a=b\nc=d\\")


def test_what_does_not_end_a_line_or_continue_it():
    """No property is lost after a password that ends with two backslashes, nor a part of one with a form feed."""
    text = "ssl.key.password=ab\\\\\r\nsecurity.protocol=SSL\rp=a\x0cq=\u2028c"
    assert read_properties(text) == {
        "ssl.key.password": "ab\\\\",
        "security.protocol": "SSL",
        "p": "a\x0cq=\u2028c",
    }


def servers(*properties, bootstrap=None, config=None):
    return Servers(bootstrap, config, properties)


def test_options_of_the_line_go_before_those_of_the_file(tmp_path):
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=file:1\nlinger.ms=7\nacks=1\ngroup.id=g\n")
    found = servers("linger.ms=9", bootstrap="line:2", config=str(file)).options(ProducerSettings, {"acks": "all"})
    assert found == {"bootstrap_servers": "line:2", "linger_ms": 9, "acks": "all"}
    assert servers(config=str(file)).options(AdminSettings) == {"bootstrap_servers": "file:1"}


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (servers(), "Missing option '-b'"),
        (servers("linger", bootstrap="a:1"), "-X linger: not NAME=VALUE"),
        (servers("linger.mss=1", bootstrap="a:1"), "did you mean 'linger.ms'"),
        (servers("linger.ms=x", bootstrap="a:1"), "linger.ms must be a whole number"),
        (servers(bootstrap="a:b"), "'a:b' is not host:port"),
        (servers(bootstrap="[::1"), r"'\[::1' is not host:port"),
        (servers("security.protocol=SASL_SSL", bootstrap="a:1"), "sasl_mechanism"),
    ],
)
def test_wrong_options(given, reason):
    with pytest.raises(click.UsageError, match=reason):
        given.options(ProducerSettings)


def test_wrong_files(tmp_path):
    file = tmp_path / "client.properties"
    file.write_text("no property")
    with pytest.raises(click.UsageError, match=r"client\.properties: line 1"):
        servers(config=str(file)).options(AdminSettings)
    file.write_text("linger.mss=1")
    with pytest.raises(click.UsageError, match=r"unknown option 'linger\.mss'"):
        servers(config=str(file)).options(AdminSettings)


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("beginning", Start("earliest")),
        ("end", Start("latest")),
        ("17", Start(offset=17)),
        ("-5", Start(before_end=5)),
        ("s@1700000000000", Start(1_700_000_000_000)),
    ],
)
def test_starts(text, start):
    assert parse_start(text) == start


@pytest.mark.parametrize("text", ["", "middle", "1.5", "s@", "--5", "+5", "9" * 30])
def test_what_is_no_start(text):
    with pytest.raises(ValueError, match=r"none of beginning|neither milliseconds"):
        parse_start(text)


COMMON = {"bootstrap", "config", "properties", "as_json", "full", "help"}
OUTPUT = {"path", "kind", "compression", "csv_safe", "force"}
OF_BROKERS = {
    "groups": {"names"},
    "offsets": {"groups"},
    "lag": {"groups", "topics", "isolation_level"},
    "topics": {"topics", "numbers", "by_partition"},
}
REFUSED: dict[str, dict[str, str | None]] = {
    "groups": {"--on-error": "skip"},
    "offsets": {"--on-error": "skip"},
    "lag": {"--on-error": "raise"},
    "topics": {"--tiered-key": "key.pem", "--records": None, "--sort": "latest"},
}


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_options_of_files_are_refused_with_brokers(name):
    for option, value in REFUSED[name].items():
        given = [name, "-b", "127.0.0.1:1", option, *([] if value is None else [value])]
        found = CliRunner().invoke(application, given)
        assert found.exit_code == 2, found.output
        assert option in found.output
        assert "files" in found.output


@pytest.mark.parametrize("name", sorted(OF_BROKERS))
def test_every_option_of_a_command_that_may_ask_brokers_is_used_or_refused(name):
    """A new option is put into one of the tables above, after a look at what it does with brokers."""
    known = COMMON | OUTPUT | OF_BROKERS[name]
    for parameter in command(name).params:
        used = parameter.name in known or set(parameter.opts) & set(REFUSED[name])
        assert used or isinstance(parameter, click.Argument), f"{name} {parameter.opts}"


def test_commands_that_may_ask_brokers():
    names = {name for name in COMMANDS if any(p.name == "bootstrap" for p in command(name).params)}
    assert names == {*OF_BROKERS, "consume", "produce"}


def command(name):
    return importlib.import_module(f"kafkacodec.cli.commands.{name}").__dict__[name]
