"""Logs of Kafka 0.7 become logs of later formats with the command, and back; on the files of real brokers."""

from __future__ import annotations

import base64
import gzip
import io
import struct
import sys
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kafkacodec as kc
from kafkacodec.cli.__main__ import BAD_INPUT, DONE, WRONG_USAGE, run
from kafkacodec.dialects import kafka07
from tests.corpus import ROOT as CORPUS
from tests.dialect_vectors import ROOT, rows
from tests.kafka07_session import Client
from tests.patience import eventually

SEGMENTS = ROOT / "kafka07" / "segments"
MESSAGES = [entry for entry in rows("kafka07/segments/index") if entry.get("topic") and not entry["error"]]
LOGS = sorted({(entry["broker_id"], entry["topic"], entry["partition"]) for entry in MESSAGES})
WITHOUT_CONTAINERS = [("short", 0), ("t", 0), ("orders-bad", 1)]


def unpacked(attributes: int | None, payload: bytes) -> Iterator[bytes]:
    """The messages in one that Kafka's reader found."""
    if not (attributes or 0) & 3:
        yield payload
        return
    data = gzip.decompress(payload) if (attributes or 0) & 3 == 1 else unframed(payload)
    while data:
        (size,) = struct.unpack(">i", data[:4])
        if len(data) < 4 + size:  # a partial one at the end is nothing
            break
        magic = data[4]
        body = data[4 : 4 + size]
        yield from unpacked(body[1] if magic else None, body[6 if magic else 5 :])
        data = data[4 + size :]


def unframed(data: bytes) -> bytes:
    """What a Snappy block has, or snappy-java's stream of them."""
    import cramjam

    if not data.startswith(b"\x82SNAPPY\0"):
        return bytes(cramjam.snappy.decompress_raw(data))
    out, at = b"", 16
    while at < len(data):
        (size,) = struct.unpack(">i", data[at : at + 4])
        out += bytes(cramjam.snappy.decompress_raw(data[at + 4 : at + 4 + size]))
        at += 4 + size
    return out


def stored(broker: int, topic: str, partition: int) -> list[bytes]:
    """The values of a log, by what Kafka's reader found in its segments."""
    return [
        value
        for entry in MESSAGES
        if (entry["broker_id"], entry["topic"], entry["partition"]) == (broker, topic, partition)
        for message in entry["entries"]
        for value in unpacked(message["attributes"], base64.b64decode(message["payload"]))
    ]


@pytest.fixture
def command(capsys, monkeypatch):
    """Run the command with standard input; returns the exit code, standard output and standard error."""

    def command(*arguments, text=""):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        code = run([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return command


@pytest.mark.parametrize("kind", ["parquet", "json"])
@pytest.mark.parametrize(("broker", "topic", "partition"), LOGS)
def test_a_log_becomes_one_of_a_later_format(command, tmp_path, broker, topic, partition, kind):
    table, log = tmp_path / f"table.{kind}", tmp_path / "log"
    assert command("convert", SEGMENTS / f"broker-{broker}" / f"{topic}-{partition}", "-o", table)[0] == DONE
    assert command("encode", table, "-o", log, "--topic", topic, "--partition", partition)[0] == DONE
    found = [record for chunk in kc.log.LogDirectory(log).read(topic, partition) for record in chunk]
    assert [bytes(record.value) for record in found] == stored(broker, topic, partition)
    assert [record.offset for record in found] == list(range(len(found)))
    assert {(record.key, record.timestamp, tuple(record.headers)) for record in found} <= {(None, None, ())}


@pytest.mark.parametrize(("topic", "partition"), WITHOUT_CONTAINERS)
def test_positions_may_be_kept_as_offsets(command, tmp_path, topic, partition):
    table, log = tmp_path / "table.parquet", tmp_path / "log"
    command("convert", SEGMENTS / "broker-0" / f"{topic}-{partition}", "-o", table)
    code, _, notes = command("encode", table, "-o", log, "--topic", topic, "--keep-offsets")
    assert (code, "1 partition" in notes) == (DONE, True)
    found = [record.offset for chunk in kc.log.LogDirectory(log).read(topic, 0) for record in chunk]
    wanted = [entry for entry in MESSAGES if (entry["broker_id"], entry["topic"]) == (0, topic)]
    assert found == [m["offset"] for entry in wanted if entry["partition"] == partition for m in entry["entries"]]


def test_messages_of_one_container_have_one_position(command, tmp_path):
    table, log = tmp_path / "table.parquet", tmp_path / "log"
    command("convert", SEGMENTS / "broker-0" / "rolling-0", "-o", table)
    code, _, notes = command("encode", table, "-o", log, "--topic", "rolling", "--keep-offsets")
    assert (code, "offsets must increase from one record to the next" in notes) == (BAD_INPUT, True)
    assert not log.exists() or not list(log.glob("rolling-0/*"))


@pytest.mark.parametrize("name", ["v0-0.8.2.2", "v1-0.10.2.2", "v2-2.8.2"])
def test_values_of_a_later_log_go_to_a_broker(command, name):
    """Texts by lines, other values from Python; nothing of a key, a time or a header is left."""
    log = kc.log.LogDirectory(CORPUS / "logs" / name)
    topic, partition = next((t, p.partition) for t in log.topics if "__" not in t for p in log.partitions(t))
    values = [record.value for chunk in log.read(topic, partition) for record in chunk]
    texts = [bytes(value) for value in values if value is not None and value.isascii() and b"\n" not in bytes(value)]
    assert texts
    with kc.broker.serve(listen="kafka07://127.0.0.1:0") as broker, Client(broker.listeners[0]) as client:
        lines = "".join(f"{value.decode()}\n" for value in texts)
        assert command("produce", "lines", "-b", broker.listeners[0], text=lines)[0] == DONE
        eventually(lambda: kafka07.decode(client.read("lines", size=50 << 20))["value"].tolist() == texts)
        server = broker.listeners[0].partition("://")[2]
        with kafka07.Producer(brokers=f"0:{server}", batch_messages=50) as producer:
            for value in values:
                if value is not None:
                    producer.send("all", value)
        kept = [bytes(value) for value in values if value is not None]
        eventually(lambda: kafka07.decode(client.read("all", size=50 << 20))["value"].tolist() == kept)


def test_a_log_comes_back_as_the_page_says(command, tmp_path):
    table, log = tmp_path / "rolling.parquet", tmp_path / "new"
    command("convert", SEGMENTS / "broker-0" / "rolling-0", "-o", table)
    command("encode", table, "-o", log, "--topic", "rolling")
    _, lines, _ = command("dump", log, "-f", r"%s\n")
    with kc.broker.serve(listen="kafka07://127.0.0.1:0") as broker, Client(broker.listeners[0]) as client:
        assert command("produce", "rolling", "-b", broker.listeners[0], text=lines)[0] == DONE
        eventually(lambda: kafka07.decode(client.read("rolling"))["value"].tolist() == stored(0, "rolling", 0))


def test_what_cannot_go_to_kafka07_is_told(command, tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("key,value\nk,v\n")
    code, _, notes = command("produce", "t", table, "-b", "kafka07://127.0.0.1:1")
    assert (code, "Kafka 0.7" in notes) == (WRONG_USAGE, True)
    with pytest.raises((TypeError, kc.EncodeError)), kafka07.Producer(brokers="0:127.0.0.1:1") as producer:
        producer.send("t", None)


# From a table to .kafka files


def table(path, values, keys=None):
    columns = {"value": pa.array(values, pa.binary())}
    pq.write_table(pa.table({**({} if keys is None else {"key": pa.array(keys, pa.binary())}), **columns}), path)
    return str(path)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy"])
def test_a_table_becomes_a_log_that_a_broker_serves(tmp_path, codec):
    values = [b"%d-%s" % (i, b"x" * (i % 50)) for i in range(5_000)] + [b"\x00\xff\n", b""]
    source = table(tmp_path / "t.parquet", values)
    options = ["--topic", "t", "--kafka07", "--codec", codec, "--segment-bytes", "20000", "--batch-bytes", "3000"]
    assert run(["encode", source, "-o", str(tmp_path / "log"), *options]) == DONE
    segments = sorted((tmp_path / "log" / "t-0").iterdir())
    assert {path.suffix for path in segments} == {".kafka"}
    assert len(segments) > 1
    ends = [int(path.stem) + path.stat().st_size for path in segments]
    assert ends[:-1] == [int(path.stem) for path in segments[1:]]
    found = [value for path in segments for value in kafka07.decode(path.read_bytes())["value"].tolist()]
    assert found == values
    with kc.broker.serve(tmp_path / "log", listen="kafka07://127.0.0.1:0") as broker:
        assert broker.records("t")["value"].tolist() == values
        assert broker.write("t", [kc.Record(0, None, 0, None, b"more", ())]) == ends[-1]


def test_keys_choose_partitions_and_go(tmp_path):
    source = table(tmp_path / "t.parquet", [b"%d" % i for i in range(100)], [b"k%d" % (i % 7) for i in range(100)])
    options = ["--topic", "t", "--kafka07", "--partitions", "3"]
    assert run(["encode", source, "-o", str(tmp_path / "log"), *options]) == DONE
    with kc.broker.serve(tmp_path / "log", listen="kafka07://127.0.0.1:0", config={"num.partitions": 3}) as broker:
        assert sorted(int(value) for value in broker.records("t")["value"].tolist()) == [*range(100)]


def test_what_kafka07_cannot_have_is_told(tmp_path, capsys):
    source = table(tmp_path / "t.parquet", [b"a", None])
    log = tmp_path / "log"
    given = ["encode", source, "-o", str(log), "--topic", "t", "--kafka07"]
    assert run(given) == BAD_INPUT
    assert "a null value" in capsys.readouterr().err
    assert [path.name for path in log.iterdir() if path.name != ".lock"] == []
    for wrong in (["--codec", "zstd"], ["--append"], ["--keep-offsets"], ["--codec", "gzip", "--level", "1"]):
        assert run([*given, *wrong]) == WRONG_USAGE
    good = table(tmp_path / "g.parquet", [b"a"])
    assert run(["encode", good, *given[2:]]) == DONE
    capsys.readouterr()
    assert run(["encode", good, *given[2:]]) != DONE
    assert "the partition exists" in capsys.readouterr().err
    assert kafka07.decode((log / "t-0" / f"{0:020}.kafka").read_bytes())["value"].tolist() == [b"a"]
