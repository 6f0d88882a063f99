"""The habits of kcat's users in ``kafkacodec consume``, ``produce`` and ``groups``."""

from __future__ import annotations

import io
import json

import pytest

import kafkacodec as kc
from kafkacodec.cli.__main__ import BAD_INPUT, DONE, WRONG_USAGE, run


@pytest.fixture(scope="module")
def server():
    with kc.broker.serve(topics={"orders": 1, "ordinary": 1, "returns": 1}) as broker:
        with kc.client.Producer(broker.bootstrap_servers) as producer:
            producer.send("orders", b"value", key=b"key", headers=[("a", b"1"), ("b", None)], timestamp=1000)
            producer.send("orders", b"\xff", timestamp=2000)
            producer.send("ordinary", None, key=b"key", timestamp=3000)
        yield broker.bootstrap_servers


@pytest.fixture
def command(capsys, monkeypatch, server):
    def call(*arguments, stdin=b""):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = run([*map(str, arguments), "-b", server])
        found = capsys.readouterr()
        return code, found.out, found.err

    return call


def test_json_with_the_names_of_kcat(command):
    code, out, _ = command("consume", "-t", "orders", "-e", "--kcat-json")
    assert code == DONE
    place = {"topic": "orders", "partition": 0}
    assert [json.loads(line) for line in out.splitlines()] == [
        {**place, "offset": 0, "tstype": "create", "ts": 1000, "headers": ["a", "1", "b", None], "key": "key",
         "payload": "value"},
        {**place, "offset": 1, "tstype": "create", "ts": 2000, "key": None, "payload": {"base64": "/w=="}},
    ]  # fmt: skip
    assert command("consume", "orders", "-e", "--kcat-json", "-J")[0] == WRONG_USAGE


def test_patterns_without_a_group(command):
    _, out, _ = command("consume", "^ord", "-e", "--json")
    assert {json.loads(line)["topic"] for line in out.splitlines()} == {"orders", "ordinary"}
    _, out, _ = command("consume", "-t", "^ers$|^ret", "-t", "ordinary", "-e", "--json", "-q")
    assert {json.loads(line)["topic"] for line in out.splitlines()} == {"ordinary"}
    code, _, err = command("consume", "^nothing", "-e")
    assert (code, err) == (BAD_INPUT, "kafkacodec: error: no topic matches ^nothing\n")
    assert command("consume", "^(", "-e")[0] == WRONG_USAGE
    assert command("consume", "-e")[0] == WRONG_USAGE


def test_the_topic_as_an_option_of_produce(command, tmp_path):
    lines = tmp_path / "lines.txt"
    lines.write_bytes(b"one\ntwo\n")
    assert command("produce", "-t", "returns", lines, "--format", "lines") == (DONE, "", "returns: 2 records\n")
    assert command("produce", "-t", "returns", "-K", ":", stdin=b"k:three\n")[0] == DONE
    _, out, _ = command("consume", "returns", "-e", "-f", "%k=%s\n")
    assert out.splitlines() == ["=one", "=two", "k=three"]
    assert command("produce")[0] == WRONG_USAGE
    assert command("produce", "-t", "returns", tmp_path / "missing")[0] == WRONG_USAGE


def test_some_groups(command, server):
    with kc.client.Admin(server) as admin:
        for group in ("billing", "shipping"):
            admin.alter_group_offsets(group, {("orders", 0): 1})
    _, out, _ = command("groups", "-g", "bill*", "--json")
    assert [json.loads(line)["group"] for line in out.splitlines()] == ["billing"]
    code, _, err = command("groups", "-g", "biling")
    assert (code, err) == (BAD_INPUT, "kafkacodec: error: no group 'biling'; did you mean 'billing'?\n")
