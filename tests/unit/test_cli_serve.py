"""``kafkacodec serve``: its line on a terminal, and options that are wrong."""

from __future__ import annotations

import logging
import os

import click
import pytest

import kafkacodec as kc
from kafkacodec.cli.app import application
from kafkacodec.cli.warnings import show_warnings
from kafkacodec.log.sample import sample
from tests.terminal import on_a_terminal


@pytest.fixture(autouse=True)
def as_before(monkeypatch):
    """The command prints what the package logs from then on; other tests look for it elsewhere."""
    log = logging.getLogger("kafkacodec")
    monkeypatch.setattr(log, "handlers", [])
    monkeypatch.setattr(log, "propagate", True)


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
        (["--topic", "t:0"], "'t:0' is not NAME or NAME:PARTITIONS, with at least 1"),
        (["--topic", "t:x"], "'t:x' is not NAME or NAME:PARTITIONS"),
    ],
)
def test_options_without_a_listener_that_they_are_for(arguments, says):
    with pytest.raises(click.UsageError, match=says.replace("+", "[+]")):
        application.main(["serve", *arguments], standalone_mode=False)


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("node.id=3", "config node.id: pass node_id, or --broker-id"),
        ("broker.id=3", "config broker.id: pass node_id, or --broker-id"),
        ("log.dirs=/tmp/x", "config log.dirs: .*: pass data, or --data"),
        ("listeners=PLAINTEXT://:9092", "config listeners: listeners are URLs: pass listen, or --listen"),
        ("advertised.listeners=PLAINTEXT://h:9092", "config advertised.listeners: leave it out: each client is told"),
        ("process.roles=broker", "config process.roles: leave it out"),
        ("offsets.topic.replication.factor=1", "leave it out: internal topics have default.replication.factor"),
        ("ssl.keystore.location=x", "config ssl.keystore.location: listen at kafka.tls://"),
    ],
)
def test_settings_that_have_another_place_here_say_which(setting, says):
    with pytest.raises(click.UsageError, match=says):
        application.main(["serve", "--config", setting], standalone_mode=False)


@pytest.mark.parametrize(("word", "command"), [("broker", "serve"), ("Server", "serve"), ("consumer", "consume")])
def test_words_of_other_tools_name_the_command(word, command):
    with pytest.raises(click.UsageError, match=f"No such command '{word}'; use: kafkacodec {command}"):
        application.main([word], standalone_mode=False)


def test_warnings_and_faults_of_the_broker_are_lines_of_the_command(capsys):
    show_warnings()
    logging.getLogger("kafkacodec.broker").warning("kafka://0.0.0.0:0 is not loopback")
    try:
        raise RuntimeError("a fault")
    except RuntimeError:
        logging.getLogger("kafkacodec.broker").exception("the service failed")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "kafkacodec: warning: kafka://0.0.0.0:0 is not loopback"
    assert lines[1:3] == ["kafkacodec: error: the service failed", "Traceback (most recent call last):"]
    assert lines[-1] == "RuntimeError: a fault"


def test_a_host_that_is_not_there_is_named():
    url = "kafka://nohost.invalid:0"
    with pytest.raises(OSError, match=r"the host nohost\.invalid has no address: ") as raised:
        application.main(["serve", "--listen", url], standalone_mode=False)
    assert raised.value.filename == url


def test_topics_need_a_partition():
    with pytest.raises(ValueError, match="topics: the partitions of 'a' is 0; it must be at least 1"):
        kc.broker.serve(topics={"a": 0})


def test_the_directory_of_a_partition_is_refused_untouched(tmp_path):
    directory = tmp_path / "logs"
    sample(directory)
    before = sorted(os.listdir(directory / "orders-0"))
    for options in ({}, {"read_only": True}):
        with pytest.raises(OSError, match=f"is the directory of a partition: give its parent, {directory}"):
            kc.broker.serve(directory / "orders-0", **options)
    assert sorted(os.listdir(directory / "orders-0")) == before


def test_files_are_no_directories(tmp_path):
    (tmp_path / "lines.txt").touch()
    for call in (kc.broker.serve, sample):
        with pytest.raises(NotADirectoryError, match="is a file, not a directory"):
            call(tmp_path / "lines.txt")


def test_a_directory_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError) as raised:
        application.main(["serve", "--read-only", "--data", str(tmp_path / "none")], standalone_mode=False)
    assert raised.value.filename == str(tmp_path / "none")


def test_the_number_of_brokers_limits_the_replication_factor():
    with pytest.raises(ValueError, match=r"default\.replication\.factor: the number of brokers is 1"):
        kc.broker.serve(config={"default.replication.factor": 3})
    with kc.broker.serve() as kafka, kc.client.Admin(kafka.bootstrap_servers) as admin:
        with pytest.raises(kc.errors.ItemErrors) as raised:
            admin.create_topics([kc.client.NewTopic("t", replication_factor=3)])
        assert "the replication factor must be 1 to 1, the number of brokers, or -1" in str(raised.value)
