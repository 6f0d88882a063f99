"""What errors of the command advise: options that it has, by its names for them, and what is meant."""

from __future__ import annotations

import shutil

import pytest

import kafkacodec as kc
from kafkacodec.cli.__main__ import BAD_INPUT, DONE, WRONG_USAGE


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A recovered log, in which nothing says why offsets are missing."""
    place = tmp_path_factory.mktemp("advice")
    kc.log.recover(kc.sample(place / "bad", damaged=True).path, place / "saved")
    return place / "saved"


@pytest.mark.parametrize("command", [("dump",), ("convert", "--format", "csv", "-o", "-"), ("stats",), ("scan",)])
def test_commands_with_an_option_for_gaps_name_it(kafkacodec, saved, command):
    code, out, err = kafkacodec(*command, saved, "--topic", "orders")
    assert code == BAD_INPUT
    assert "whether this is compaction or loss; --gaps accept ignores gaps" in out + err
    assert "gaps='accept'" not in out + err


@pytest.mark.parametrize("command", ["topics", "verify", "lag"])
def test_commands_without_one_do_not(kafkacodec, saved, command):
    _, out, err = kafkacodec(command, saved)
    assert "gaps='accept'" not in out + err
    if command in ("topics", "verify"):
        assert "whether this is compaction or loss" in out + err
        assert "--gaps" not in out + err


def test_errors_of_exports_name_the_commands_options(kafkacodec, tmp_path):
    page = tmp_path / "page.html"
    page.write_text("a")
    code, _, err = kafkacodec("convert", kc.sample().path, "-o", page, "--partition-by", "topic")
    assert (code, err.splitlines()[-1]) == (WRONG_USAGE, f"Error: -o: {page} is not a directory")


def test_only_the_given_options_match_nothing(kafkacodec):
    log = kc.sample().path
    code, _, err = kafkacodec("convert", log, "--partition", "7", "-o", "-", "--format", "csv")
    assert (code, err) == (BAD_INPUT, f"kafkacodec: error: {log}: no partition matches --partition; there are 0 to 2\n")
    _, _, err = kafkacodec("dump", log, "--partition", "7", "--topic", "orders")
    assert err.endswith("no partition matches --topic and --partition; there are 0 to 2\n")


def test_a_partition_that_is_not_there_is_named(kafkacodec):
    log = kc.sample().path
    code, out, err = kafkacodec("dump", log, "--topic", "orders", "--partition", "0", "--partition", "7")
    assert (code, out, err) == (BAD_INPUT, "", f"kafkacodec: error: {log}: no partition 7; there are 0 to 2\n")


def test_globs_that_match_nothing_are_named(kafkacodec):
    log = kc.sample().path
    code, out, err = kafkacodec("topics", log, "--topic", "ord*", "--topic", "nosuch*")
    assert (code, err) == (DONE, f"kafkacodec: warning: {log}: no topic matches 'nosuch*'\n")
    assert "orders" in out
    assert kafkacodec("dump", log, "--topic", "ORDERS")[2].endswith("no topic 'ORDERS'; did you mean 'orders'?\n")


def test_a_topic_that_no_group_reads(kafkacodec):
    _, _, err = kafkacodec("lag", kc.sample().path, "--topic", "payments")
    assert err.endswith("no committed offsets of topic 'payments'; topics with committed offsets are orders\n")


def test_a_file_of_something_else_is_no_segment(kafkacodec, tmp_path):
    path = tmp_path / "passwd"
    path.write_text("root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n")
    for command in ("dump",), ("convert", "-o", "-", "--format", "csv"):
        code, _, err = kafkacodec(*command, path)
        assert (code, "not a log segment" in err) == (BAD_INPUT, True), err


def test_values_that_are_not_json_name_the_option(kafkacodec, tmp_path):
    with kc.log.LogWriter(tmp_path / "log", "mixed", 0, sync=False) as writer:
        writer.write([(None, b'{"a": 1}'), (None, b"no json")])
    command = ("convert", tmp_path / "log", "--values", "json", "-o", tmp_path / "o.parquet")
    code, _, err = kafkacodec(*command)
    assert (code, err.endswith("; --on-value-error null makes such values null\n")) == (BAD_INPUT, True), err
    assert kafkacodec(*command, "--on-value-error", "null")[0] == DONE


def test_standard_output_has_no_tables_of_exports(kafkacodec):
    _, _, err = kafkacodec("convert", kc.sample().path, "-o", "-")
    assert "standard output names no known format" in err
    assert "iceberg" not in err


def test_copies_are_verified_by_path(kafkacodec, tmp_path):
    for name in "ab":
        kc.sample(tmp_path / name, damaged=True)
    shutil.rmtree(tmp_path / "a" / "orders-0")
    for checkpoint in (tmp_path / "a").glob("*checkpoint"):  # they name it: it would be a loss
        checkpoint.unlink()
    code, out, _ = kafkacodec("verify", tmp_path, "--topic", "orders", "--full")
    assert code == BAD_INPUT
    one, two = (f"{tmp_path}/{name}/orders-" for name in "ab")
    names = [f"{one}1", f"{one}2", "orders-0", f"{two}1", f"{two}2"]
    assert [line.split()[0] for line in out.splitlines()[1:6]] == names
    assert ", 0 intact, " in out.splitlines()[-1]
    assert " damaged, " in out.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("topics", "localhost:9092"), "localhost:9092 is no path; for a broker: --bootstrap localhost:9092"),
        (("lag", "localhost:9092"), "localhost:9092 is no path; for a broker: --bootstrap localhost:9092"),
        (("groups", "kafka://a.b:1"), "kafka://a.b:1 is no path; for a broker: --bootstrap a.b:1"),
        (("dump", "a:1"), "a:1 is no path; for a broker: kafkacodec consume TOPIC --bootstrap a:1"),
        (("serve", "--port", "9092"), "No such option '--port'; use --listen kafka://127.0.0.1:9092"),
        (("consume", "t", "--from-beginning"), "'--from-beginning'; not needed: it starts at the beginning"),
        (("topics", "--broker-list", "a:1"), "No such option '--broker-list'; use --bootstrap HOST:PORT"),
        (("consume", "t", "-u"), "No such option '-u'; not needed: output is flushed"),
        (("consume", "-C"), "No such option '-C'; not needed: kafkacodec consume does that"),
        (("produce", "-P", "-b", "a:1", "-t", "x"), "'-P'; not needed: kafkacodec produce does that"),
        (("produce", "-C", "-b", "a:1", "-t", "x"), "'-C'; use kafkacodec consume -b HOST:PORT TOPIC"),
        (("-P", "-b", "a:1", "-t", "x"), "'-P'; use kafkacodec produce -b HOST:PORT TOPIC"),
        (("-C", "-b", "a:1", "-t", "x"), "'-C'; use kafkacodec consume -b HOST:PORT TOPIC"),
        (("-L", "-b", "a:1"), "'-L'; use kafkacodec topics -b HOST:PORT --partitions"),
        (("-Q", "-b", "a:1"), "'-Q'; use kafkacodec consume -b HOST:PORT TOPIC --start-time TIME"),
        (("-G", "g", "t"), "'-G'; use kafkacodec consume -b HOST:PORT -G GROUP TOPIC"),
        (("-b", "a:1", "-C", "-t", "x"), "a command comes first, such as: kafkacodec consume -b HOST:PORT TOPIC"),
        (("topics", "-L", "-b", "a:1"), "'-L'; not needed: kafkacodec topics does that"),
        (("dump", ".", "orders"), "Path 'orders' does not exist. For a topic: --topic orders"),
        (("report", ".", "-o", "r.pdf"), "-o r.pdf: the page is HTML, not pdf"),
        (
            ("admin", "groups", "reset-offsets", "g", "-b", "a:1", "--by-duration", "1x"),
            "Error: --by-duration is '1x', which is no duration such as 1h, 1d12h or PT1H",
        ),
        (("dump", "--broker-list", "a:1"), "No such option '--broker-list'"),
        (("dump", ".", "-n", "ten"), "Invalid value for '-n' / '--limit': 'ten' is not a valid integer."),
        (("dump", ".", "-n", "-1"), "-1 is not in the range x>=0."),
        (("produce", __file__, "-b", "a:1"), f"{__file__} is a file: name the topic first, as in: produce TOPIC"),
    ],
)
def test_what_other_tools_take_is_said(kafkacodec, arguments, said):
    code, out, err = kafkacodec(*arguments)
    assert (code, out) == (WRONG_USAGE, "")
    assert said in err.splitlines()[-1]


@pytest.mark.parametrize("command", ["dump", "topics", "verify", "recover"])
def test_a_similar_path_is_named(tmp_path, kafkacodec, monkeypatch, command):
    kc.sample(tmp_path / "logs")
    monkeypatch.chdir(tmp_path)
    code, _, err = kafkacodec(command, "logs/ordrs-0", *(["out"] if command == "recover" else []))
    assert code == 2
    assert err.endswith("Path 'logs/ordrs-0' does not exist; did you mean 'logs/orders-0'?\n")
