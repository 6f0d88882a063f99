"""What a broker and clients load before they do something: tests wait for it in each process, users in each command."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import kafkacodec as kc

NEEDLESS = {"pyarrow", "pandas", "kafkacodec.client", "kafkacodec.log.partitions", "kafkacodec.log.checking",
            "kafkacodec.log.order", "kafkacodec.dialects", "kafkacodec.spark"}  # fmt: skip
ONLY_FOR_COLUMNS = {"numpy", "pyarrow", "ctypes", "cramjam", "zstandard", "lz4", "isal"}
# Of a client: what is loaded when transactions, groups, tables, SASL, or dotted option names are used.
ONLY_WHEN_USED = {"kafkacodec.client.producing.transactions", "kafkacodec.client.aio.tables",
                  "kafkacodec.client.aio.consumer_group", "kafkacodec.client.groups.membership",
                  "kafkacodec.assignment.assignors", "kafkacodec.records.encode", "kafkacodec.net.sasl",
                  "kafkacodec.client.security.java_config", "kafkacodec.client.admin"}  # fmt: skip
COMPILES = {"dataclasses"}  # code for each class, at import: `kafkacodec.datatypes` does not
NOT_FOR_A_RECORD = COMPILES | ONLY_FOR_COLUMNS | {"datetime", "json", "pathlib", "tempfile", "urllib.parse"}
BEGIN = "import sys, kafkacodec as kc\n"
END = """
assert not kc.errors._known, "classes of error codes are made, all of them"
print(*sys.modules)"""
SERVE = """
with kc.broker.serve(topics={"t": 1}) as kafka:
    pass
"""
SEND = """
with kc.client.Producer(sys.argv[1]) as producer:
    producer.send("t", b"value", key=b"key", headers=[("h", b"1")])
"""
READ = """
with kc.client.Consumer("t", bootstrap_servers=sys.argv[1], auto_offset_reset="earliest") as consumer:
    assert next(iter(consumer)).value == b"value"
"""
PRODUCE = """
from kafkacodec.cli.app import application
options = ["--format", "lines", "-K", ":", "-H", "h=1", "-b", sys.argv[1]]
application.main(["produce", *options, "t", sys.argv[2]], standalone_mode=False)
"""
MADE = """
from kafkacodec.messages.registry import _tables
made = {name for names in _tables.values() for name in names}
assert "MetadataRequest" in made and "OffsetFetchRequest" not in made, made
"""
TABLE = """
table = kc.decode(kc.encode([(b"key", b"value")] * 1000))
assert table.to_arrow().num_rows == 1000
with kc.client.Producer(sys.argv[1]) as producer:
    for data in (table, table.to_arrow(), table.to_pyarrow().select(["key", "value"])):
        producer.send_columns(data, topic="t").result()
"""
CONSUME = """
from kafkacodec.cli.app import application
application.main(["consume", "-n", "1", "-b", sys.argv[1], "t"], standalone_mode=False)
"""


def loaded_by(script, *arguments):
    """The modules of a process after a script, without those of packages that are installed for development."""
    command = [sys.executable, "-S", "-c", BEGIN + script + END, *arguments]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True, env=environment)
    return set(run.stdout.splitlines()[-1].split())


@pytest.fixture(scope="module")
def broker():
    with kc.broker.serve(topics={"t": 1}) as kafka, kc.client.Producer(kafka.bootstrap_servers) as producer:
        producer.send("t", b"value").result()
        yield kafka


def test_a_broker_does_not_load_what_reads_damaged_logs_nor_clients_nor_arrow():
    loaded = loaded_by(SERVE)
    assert "kafkacodec.broker.serving" in loaded
    assert not loaded & (NEEDLESS | COMPILES | {"pathlib", "urllib.parse"})


def test_a_broker_starts_and_stops_without_numpy_and_codecs():
    assert not loaded_by(SERVE) & ONLY_FOR_COLUMNS


@pytest.mark.parametrize("script", [SEND, READ, CONSUME], ids=["send", "read", "consume"])
def test_a_record_is_sent_and_read_without_numpy_and_codecs(broker, script):
    loaded = loaded_by(script, broker.bootstrap_servers)
    assert "kafkacodec.client.driver.network" in loaded
    assert not loaded & (ONLY_FOR_COLUMNS | COMPILES)


@pytest.mark.parametrize("script", [SEND, READ], ids=["send", "read"])
def test_a_client_loads_what_it_uses(broker, script):
    assert not loaded_by(script, broker.bootstrap_servers) & (ONLY_WHEN_USED | NOT_FOR_A_RECORD)


@pytest.mark.parametrize("script", [SEND, READ], ids=["send", "read"])
def test_a_client_compiles_the_messages_that_it_sends_and_no_others(broker, script):
    loaded_by(script + MADE, broker.bootstrap_servers)


def test_lines_are_sent_without_numpy_and_codecs(broker, tmp_path):
    (tmp_path / "some.txt").write_text("k:v\n" * 5)
    loaded = loaded_by(PRODUCE, broker.bootstrap_servers, str(tmp_path / "some.txt"))
    assert "kafkacodec.client.blocking.producer" in loaded
    assert not loaded & ONLY_FOR_COLUMNS


def test_consume_loads_the_part_of_the_admin_client_that_it_uses(broker):
    loaded = loaded_by(CONSUME, broker.bootstrap_servers)
    assert "kafkacodec.client.admin.offsets" in loaded
    assert not loaded & {"kafkacodec.client.aio.admin", "kafkacodec.client.admin.acls", "hashlib"}


def test_a_producer_does_not_load_what_records_are_read_with(broker):
    assert "kafkacodec.records.decode" not in loaded_by(SEND, broker.bootstrap_servers)


def test_a_producer_does_not_load_what_consumers_are_made_of(broker):
    assert not {name for name in loaded_by(SEND, broker.bootstrap_servers) if ".consuming" in name or ".groups" in name}


def test_a_broker_takes_and_gives_a_record_without_numpy():
    script = SERVE.replace("    pass\n", "    sys.argv[1:] = [kafka.bootstrap_servers]\n" + indented(SEND + READ))
    assert not loaded_by(script) & ONLY_FOR_COLUMNS


def test_a_table_is_sent_without_pandas(broker):
    pytest.importorskip("pandas")
    loaded = loaded_by(TABLE, broker.bootstrap_servers)
    assert "pyarrow" in loaded
    assert "pandas" not in loaded  # 0.3 s: pyarrow.table and pyarrow.array import it


def indented(script):
    return "".join(f"    {line}\n" for line in script.splitlines())
