"""The line protocol V1 at a listener of the broker, beside Kafka's: the examples of its text, over a socket."""

from __future__ import annotations

import os
import socket
from contextlib import closing, contextmanager
from datetime import timedelta

import pytest

import kafkacodec as kc


class Client:
    """A connection that sends and receives lines."""

    def __init__(self, listener):
        host, port = listener.partition("://")[2].rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)))
        self._file = self._socket.makefile("rwb")

    def send(self, *lines):
        self._file.write("".join(f"{line}\n" for line in lines).encode())
        self._file.flush()

    def receive(self):
        return self._file.readline().decode().removesuffix("\n")

    def ask(self, line):
        self.send(line)
        return self.receive()

    def stop_sending(self):
        self._socket.shutdown(socket.SHUT_WR)

    def close(self):
        self._file.close()
        self._socket.close()


@contextmanager
def serving(data=None, **options):
    listen = ("line://127.0.0.1:0", "kafka://127.0.0.1:0")
    with (
        kc.broker.serve(data, listen=listen, **options) as broker,
        closing(Client(broker.listeners[0])) as client,
    ):
        yield broker, client


def test_the_examples_of_the_text():
    with serving() as (_, client):
        assert client.ask("V1|42|PRODUCE|orders user1:created") == "V1|42|OK|partition=0 offset=0 hw=1"
        assert client.ask("V1|43|PRODUCE|orders user1:created acks=all") == "V1|43|OK|partition=0 offset=1 hw=2"
        assert client.ask("V1|99|PING|") == "V1|99|OK"
        assert client.ask("V1|1|CONSUME|orders 0 1") == "V1|1|OK|messages=1:created hw=2"
        assert client.ask("V1|2|CONSUME|orders 0 2") == "V1|2|OK|messages= hw=2"
        assert client.ask("not a request").startswith("V1|0|ERR|BAD_REQUEST|")
        assert client.ask("V1|3|NOTHING|").startswith("V1|3|ERR|UNKNOWN_COMMAND|")


@pytest.mark.parametrize("clock", ["manual", "running"])
def test_records_and_sessions_follow_the_brokers_clock(clock):
    with serving(clock=clock) as (broker, client):
        broker.advance(100_000)
        client.ask("V1|1|PRODUCE|orders k:v")
        broker.write("orders", [(None, b"w")])
        first, second = broker.records("orders")["timestamp"].tolist()
        assert abs(second - first) < timedelta(days=1)
        assert client.ask("V1|2|JOIN|g orders c") == "V1|2|OK|generation=1 assigned=[0]"
        broker.advance(5)
        assert client.ask("V1|3|HEARTBEAT|g orders c 1") == "V1|3|OK|heartbeat=ok"
        broker.advance(11)
        assert client.ask("V1|4|HEARTBEAT|g orders c 1").startswith("V1|4|ERR|")


@pytest.mark.parametrize("flush", ["system", "always"])
def test_a_client_that_stops_sending_gets_its_answers(flush):
    """As from a shell: what goes to the disk is answered later than the end is seen."""
    with serving(flush=flush, topics=["orders"]) as (broker, _):
        client = Client(broker.listeners[0])
        client.send("V1|1|PRODUCE|orders k:v", "V1|2|JOIN|g orders c", "V1|3|PING|")
        client.stop_sending()
        found = {client.receive() for _ in range(3)}
        assert found == {
            "V1|1|OK|partition=0 offset=0 hw=1", "V1|2|OK|generation=1 assigned=[0]", "V1|3|OK"
        }  # fmt: skip
        assert client.receive() == ""
        client.close()


def test_what_is_produced_is_read_by_kafkas_clients_and_back():
    with serving(topics={"orders": 1}) as (broker, client):
        client.send(*(f"V1|{i}|PRODUCE|orders key{i}:value{i}" for i in range(200)))
        assert [client.receive() for _ in range(200)][-1] == "V1|199|OK|partition=0 offset=199 hw=200"
        assert bytes(broker.records("orders")["value"][199]) == b"value199"
        broker.write("orders", [kc.Record(0, 1_000, 0, None, b"from-Kafka", ())])
        assert client.ask("V1|1|CONSUME|orders 0 200") == "V1|1|OK|messages=200:from-Kafka hw=201"
        assert broker.bootstrap_servers == broker.listeners[1].partition("://")[2]


@pytest.mark.parametrize("value", [b"two words", b"a|b", b"line\n", b"\xff"])
def test_a_record_that_a_line_cannot_have_is_named(value):
    with serving(topics={"orders": 1}) as (broker, client):
        broker.write(
            "orders", [kc.Record(i, 1_000, 0, None, text, ()) for i, text in enumerate([b"good", value, b"last"])]
        )
        assert client.ask("V1|1|CONSUME|orders 0 0") == "V1|1|OK|messages=0:good hw=3"
        assert client.ask("V1|2|CONSUME|orders 0 1").startswith("V1|2|ERR|BAD_REQUEST|the record at offset 1 ")
        assert client.ask("V1|3|CONSUME|orders 0 2") == "V1|3|OK|messages=2:last hw=3"


def test_offsets_without_records_are_passed_over():
    with serving(topics={"orders": 1}) as (broker, client):
        data = kc.encode(
            [kc.Record(offset, 1_000, 0, None, b"v", ()) for offset in (0, 5_000)], first_offset=0, last_offset=5_000
        )
        broker._thread.run(lambda: broker._serving.append("orders", 0, data))
        assert client.ask("V1|1|CONSUME|orders 0 1") == "V1|1|OK|messages=5000:v hw=5001"


def test_records_that_come_together_are_a_batch_and_a_failing_disk_loses_none_in_silence(tmp_path):
    with serving(tmp_path, topics={"orders": 1}) as (broker, client):
        lines = [f"V1|{i}|PRODUCE|orders k:v{i}" for i in range(100)]
        client.send(*lines, "V1|x|PRODUCE|orders novalue", *lines)
        answers = [client.receive() for _ in range(201)]
        assert answers[99] == "V1|99|OK|partition=0 offset=99 hw=100"
        assert answers[100].startswith("V1|x|ERR|BAD_REQUEST|")
        assert answers[200] == "V1|99|OK|partition=0 offset=199 hw=200"
        assert len(kc.scan((tmp_path / "orders-0" / f"{0:020}.log").read_bytes())) < 100
        log = broker._serving._topics.partition("orders", 0)
        log.failed = True  # as after a flush that failed
        client.send(*lines)
        assert all("|ERR|STORAGE_ERROR|" in client.receive() for _ in lines)
        log.failed = False
        assert client.ask("V1|1|PRODUCE|orders k:v") == "V1|1|OK|partition=0 offset=200 hw=201"


def test_a_name_that_topics_cannot_have_is_refused():
    with serving() as (_, client):
        assert client.ask("V1|1|PRODUCE|not/one k:v").startswith("V1|1|ERR|BAD_REQUEST|")


def test_groups_offsets_and_records_survive(tmp_path):
    with serving(tmp_path) as (_, client):
        client.ask("V1|1|PRODUCE|orders user1:created")
        assert client.ask("V1|2|JOIN|billing orders c1") == "V1|2|OK|generation=1 assigned=[0]"
        assert client.ask("V1|3|COMMIT|billing orders c1 1 0 1") == "V1|3|OK|committed=true"
    assert {"groups.json", "offsets.json"} <= {path.name for path in tmp_path.iterdir()}
    with serving(tmp_path) as (_, client):
        assert client.ask("V1|4|OFFSET|billing orders 0") == "V1|4|OK|offset=1"
        assert client.ask("V1|5|SYNC|billing orders c1 1") == "V1|5|OK|generation=1 assigned=[0]"
        assert client.ask("V1|6|CONSUME|orders 0 0") == "V1|6|OK|messages=0:created hw=1"


def test_a_commit_that_the_disk_does_not_take_is_told(tmp_path):
    with serving(tmp_path) as (_, client):
        client.ask("V1|1|PRODUCE|orders user1:created")
        client.ask("V1|2|JOIN|billing orders c1")
        (tmp_path / "offsets.json").mkdir()  # cannot be replaced by a file
        for _ in range(2):
            assert client.ask("V1|3|COMMIT|billing orders c1 1 0 1").startswith("V1|3|ERR|STORAGE_ERROR|")
            assert client.ask("V1|4|OFFSET|billing orders 0").startswith("V1|4|ERR|STORAGE_ERROR|")
            assert client.ask("V1|5|CONSUME|orders 0 0") == "V1|5|OK|messages=0:created hw=1"
        (tmp_path / "offsets.json").rmdir()
        assert client.ask("V1|6|OFFSET|billing orders 0") == "V1|6|OK|offset=1"
    with serving(tmp_path) as (_, client):
        assert client.ask("V1|7|OFFSET|billing orders 0") == "V1|7|OK|offset=1"


def test_commits_that_come_together_are_written_together(tmp_path, monkeypatch):
    written = []
    real = os.replace
    monkeypatch.setattr(os, "replace", lambda *paths: (written.append(str(paths[1])), real(*paths)))
    with serving(tmp_path) as (_, client):
        client.ask("V1|1|PRODUCE|orders user1:created")
        joins = [f"V1|{number}|JOIN|g{number} orders m" for number in range(200)]
        client.send(*joins)
        assert all(client.receive().endswith("OK|generation=1 assigned=[0]") for _ in joins)
        client.send(*(f"V1|{number}|COMMIT|g{number} orders m 1 0 1" for number in range(200)))
        assert all(client.receive().endswith("OK|committed=true") for _ in joins)
        assert len([path for path in written if path.endswith("offsets.json")]) < 20


def test_records_are_on_the_disk_when_that_is_asked(tmp_path, monkeypatch):
    synced = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.append(os.readlink(f"/proc/self/fd/{fd}")), real(fd))[1])
    with serving(tmp_path, flush="always") as (_, client):
        assert client.ask("V1|1|PRODUCE|orders user1:created") == "V1|1|OK|partition=0 offset=0 hw=1"
        assert any(path.endswith("orders-0/00000000000000000000.log") for path in synced)


def test_a_disk_that_fails_is_told_to_who_waits(tmp_path, monkeypatch):
    def failing(fd):
        if os.readlink(f"/proc/self/fd/{fd}").endswith("orders-0/00000000000000000000.log"):
            raise OSError(5, "Input/output error")

    with serving(tmp_path, flush="always", topics={"orders": 1}) as (_, client):
        monkeypatch.setattr(os, "fsync", failing)
        assert client.ask("V1|1|PRODUCE|orders user1:created").startswith("V1|1|ERR|STORAGE_ERROR|")
        monkeypatch.undo()


@pytest.mark.parametrize("options", [{"brokers": 2}, {"read_only": True}])
def test_it_is_one_broker_that_writes(tmp_path, options):
    with pytest.raises(ValueError, match="line:// needs a single broker"):
        kc.broker.serve(tmp_path, listen="line://127.0.0.1:0", **options)
