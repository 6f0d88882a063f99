"""``kafkacodec produce`` and ``consume`` with Kafka 0.7: one broker, and brokers and groups in ZooKeeper."""

from __future__ import annotations

import gzip
import io
import json
import sys

import pytest

import kafkacodec as kc
from kafkacodec.cli.__main__ import BAD_INPUT, DONE, WRONG_USAGE, run
from tests.integration.zookeeper import ZooKeeperServer
from tests.patience import eventually


@pytest.fixture
def command(capsys, monkeypatch):
    """Run the command with standard input; returns the exit code, standard output and standard error."""

    def command(*arguments, text=""):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        code = run(list(arguments))
        return code, *capsys.readouterr()

    return command


def values(output):
    return [row["value"] for row in map(json.loads, output.splitlines())]


def test_lines_go_to_a_broker_and_come_back(command):
    with kc.broker.serve(listen="kafka07://127.0.0.1:0", topics={"t": 2}) as broker:
        url = broker.listeners[0]
        code, _, notes = command("produce", "t", "-b", url, "-z", "gzip", text="a\nb\nc\n")
        assert (code, "3 messages" in notes) == (DONE, True)
        eventually(lambda: len(values(command("consume", "t", "-b", url, "-e", "--json")[1])) == 3)
        code, output, _ = command("consume", "t", "-b", url, "-e", "-J")
        assert (code, sorted(values(output))) == (DONE, ["a", "b", "c"])
        assert values(command("consume", "t", "-b", url, "-o", "end", "-e", "-J")[1]) == []
        assert len(values(command("consume", "t", "-b", url, "-n", "2", "-J")[1])) == 2
        code, output, _ = command("consume", "t", "-b", url, "-e", "-f", "%t %p %s\\n")
        assert sorted(line.split()[2] for line in output.splitlines()) == ["a", "b", "c"]
        for number in (0, 1):
            found = values(command("consume", "t", "-b", url, "-p", str(number), "-e", "-J")[1])
            assert set(found) <= {"a", "b", "c"}


@pytest.mark.parametrize("listen", ["kafka://127.0.0.1:0", "kafka07://127.0.0.1:0"])
def test_what_went_out_before_a_damaged_file_ends_is_told(command, tmp_path, listen):
    path = tmp_path / "lines.gz"
    path.write_bytes(gzip.compress(b"".join(b"%d\n" % number**9 for number in range(10_000)))[:-10_000])
    with kc.broker.serve(listen=listen, topics={"t": 1}) as broker:
        url = broker.listeners[0].removeprefix("kafka://")
        code, _, notes = command("produce", "t", "-b", url, str(path), "--format", "lines")
        sent = len(command("consume", "t", "-b", url, "-e", "-J")[1].splitlines())
    assert (code, sent > 0) == (BAD_INPUT, True)
    out = f"{sent:,} records went out" if listen.startswith("kafka:") else f"{sent:,} messages went out at most"
    assert notes == f"t: {out}\nkafkacodec: error: {path}: the gzip data end too early\n"


@pytest.mark.java
def test_a_group_goes_on_where_it_ended(command, tmp_path):
    zookeeper = ZooKeeperServer(tmp_path)
    zookeeper.start()
    try:
        config = {"zk.connect": zookeeper.server, "zk.sessiontimeout.ms": 30_000}
        with kc.broker.serve(listen="kafka07://127.0.0.1:0", config=config):
            url = f"kafka07+zookeeper://{zookeeper.server}"
            command("produce", "t", "-b", url, "-K", ":", text="k:a\nk:b\n")
            assert values(command("consume", "t", "-b", url, "-G", "g", "-n", "2", "-J")[1]) == ["a", "b"]
            command("produce", "t", "-b", url, text="c\n")
            assert values(command("consume", "t", "-b", url, "-G", "g", "-n", "1", "-J")[1]) == ["c"]
            assert values(command("consume", "t", "-b", url, "-G", "g", "-e", "-J")[1]) == []
    finally:
        zookeeper.stop()


@pytest.mark.parametrize(
    "arguments",
    [
        ("consume", "t", "-b", "kafka07://127.0.0.1:1", "-G", "g"),
        ("consume", "t", "-b", "kafka07+zookeeper://127.0.0.1:1"),
        ("consume", "t", "-b", "kafka07://127.0.0.1:1", "--start-time", "5"),
        ("consume", "t", "-b", "kafka07://127.0.0.1:1", "-o", "-5"),
        ("produce", "t", "-b", "kafka07://127.0.0.1:1", "-p", "1"),
        ("produce", "t", "-b", "kafka07://127.0.0.1:1", "-z", "zstd"),
        ("produce", "t", "-b", "kafka07://127.0.0.1:1", "--format", "csv"),
    ],
)
def test_options_that_do_not_apply(command, arguments):
    assert command(*arguments, text="a\n")[0] == WRONG_USAGE
