"""Options of clients on the command line and in files, and where `consume` starts."""

from __future__ import annotations

import importlib

import click
import pytest
from click.testing import CliRunner

import kafkacodec as kc
from kafkacodec.cli.app import COMMANDS, application
from kafkacodec.cli.options.properties import read_properties
from kafkacodec.cli.options.servers import Servers
from kafkacodec.cli.rows.consume_range import Start, parse_start
from kafkacodec.client.aio.admin import AdminSettings
from kafkacodec.client.consuming.settings import ConsumerSettings
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
    found = servers("linger.ms=9", bootstrap="line:2", config=str(file)).options(
        ProducerSettings, {"acks": ("--acks", "all")}
    )
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
        (servers(bootstrap="a:1;b:2"), "'a:1;b:2' is not host:port; separate several with commas"),
        (servers(bootstrap="a:1 b:2"), "separate several with commas"),
        (servers(bootstrap="[::1"), r"'\[::1' is not host:port"),
        (servers("security.protocol=SASL_SSL", bootstrap="a:1"), "sasl.mechanism and a security.protocol of"),
    ],
)
def test_wrong_options(given, reason):
    with pytest.raises(click.UsageError, match=reason):
        given.options(ProducerSettings)


def test_values_are_text_also_of_options_without_a_default():
    given = servers("compression.type=zstd", "compression.level=3", "retries=4", "enable.idempotence=false")
    config = {"bootstrap.servers": "a:1", **dict(text.split("=") for text in given.properties)}
    found = Servers("a:1", None, given.properties).options(ProducerSettings)
    assert (found["compression_level"], found["retries"], found["enable_idempotence"]) == (3, 4, False)
    kc.client.Producer.from_config(config).close()


NOBODY = "127.0.0.1:1"


def ran(*arguments, **variables):
    return CliRunner(env=variables).invoke(application, list(arguments))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("consume t -X enable.auto.commit=false", "-X enable.auto.commit: with --group"),
        ("consume t -X group.id=g", "-X group.id: use --group"),
        ("consume t -X auto.offset.reset=latest", "-X auto.offset.reset: use --offset"),
        ("consume t -G g -o end -X auto.offset.reset=latest", "-X auto.offset.reset: --offset is given too"),
        ("consume t --isolation-level read_committed -X isolation.level=x", "--isolation-level is given too"),
        ("consume t -X isolation.level=nonsense", "isolation.level must be"),
        ("consume t -X bootstrap.servers=a:1", "--bootstrap is given too"),
        ("produce t -z zstd -X compression.type=nonsense", "-X compression.type: --codec is given too"),
        ("lag -X acks=1", "unknown option 'acks'; an option of producers"),
        ("topics -X group.id=g", "unknown option 'group.id'; an option of consumers"),
        ("admin topics list -X linger.ms=1", "unknown option 'linger.ms'; an option of producers"),
    ],
)
def test_no_option_of_a_client_is_without_effect(line, reason):
    found = ran(*line.split(), "-b", NOBODY)
    assert (found.exit_code, reason in found.output) == (2, True), found.output


def test_options_of_other_clients_in_a_file_have_no_effect_unless_they_are_about_trust(tmp_path, capsys):
    file = tmp_path / "client.properties"
    file.write_text("interceptor.classes=com.X\nkey.deserializer=Y\ndebug=all\nlinger.ms=5\nacks=1\n")
    with open(file, "a") as more:
        more.write("value.deserializer=org.apache.kafka.common.serialization.StringDeserializer\n")
    found = servers(bootstrap="a:1", config=str(file)).options(ConsumerSettings)
    assert found == {"bootstrap_servers": "a:1"}
    without = f"kafkacodec: warning: {file}: without effect here: interceptor.classes, key.deserializer, debug\n"
    assert capsys.readouterr().err == without
    for wrong in ("ssl.protocol=TLS", "sasl.client.callback.handler.class=Z", "lingr.ms=1"):
        file.write_text(wrong)
        with pytest.raises(click.UsageError, match=rf"^{file}: unknown option '{wrong.partition('=')[0]}'"):
            servers(bootstrap="a:1", config=str(file)).options(ConsumerSettings)


def test_options_of_a_file_that_a_command_decides_are_named(tmp_path, capsys):
    file = tmp_path / "client.properties"
    file.write_text("group.id=g\nisolation.level=read_committed\n")
    given = servers(bootstrap="a:1", config=str(file))
    found = given.options(ConsumerSettings, decided={"group_id": "use --group"})
    assert found == {"bootstrap_servers": "a:1", "isolation_level": "read_committed"}
    assert f"{file}: group.id does not apply: use --group" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["consume t -e", "produce t", "topics", "lag", "groups", "admin topics list"])
@pytest.mark.parametrize("option", ["ssl.ca.location", "ssl.certificate.location"])
@pytest.mark.parametrize("there", [False, True])
def test_wrong_files_of_certificates_are_wrong_usage(command, option, there, tmp_path):
    file = tmp_path / "file.pem"
    if there:
        file.write_text("no certificate")
    found = ran(*command.split(), "-b", NOBODY, "-X", "security.protocol=SSL", "-X", f"{option}={file}")
    assert (found.exit_code, str(file) in found.output) == (2, True), (found.output, found.exception)


def test_a_wrong_assignor_is_wrong_usage():
    with kc.broker.serve(topics=["t"]) as kafka:
        option = "partition.assignment.strategy=foo"
        found = ran("consume", "t", "-G", "g", "-b", kafka.bootstrap_servers, "-X", option)
    assert (found.exit_code, "partition_assignment_strategy" in found.output) == (2, True), found.output


@pytest.mark.parametrize("command", ["topics", "lag", "groups", "offsets"])
def test_brokers_of_files(command, tmp_path):
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=127.0.0.1:1\nbootstrap.timeout.ms=1\ndefault.api.timeout.ms=1\n")
    for found in (ran(command, "-F", str(file)), ran(command, KAFKACODEC_CONFIG=str(file))):
        assert isinstance(found.exception, kc.KafkaCodecError), found.output  # nobody answers
    named = ran(command, str(tmp_path), "-F", str(file))
    assert (named.exit_code, "--config and -X need --bootstrap" in named.output) == (2, True)
    file.write_text("client.id=me\n")
    missing = ran(command, "-F", str(file))
    assert (missing.exit_code, "bootstrap.servers among them" in missing.output) == (2, True)
    assert not isinstance(ran(command, str(tmp_path), KAFKACODEC_CONFIG=str(file)).exception, click.UsageError)


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
    "topics": {"--tiered-key": __file__, "--records": None, "--sort": "latest", "--gaps": "accept"},
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
