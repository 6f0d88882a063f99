"""Logs in HDFS (a name node and a data node on this machine) against the same logs on disk."""

import errno
import os
import socket
import time
from mmap import PAGESIZE

import pytest
from click.testing import CliRunner
from deltalake import DeltaTable

import kafkacodec as kc
from kafkacodec.cli.app import application
from kafkacodec.log.opening import open_file
from kafkacodec.log.sample import sample as take_sample
from kafkacodec.log.storage import hdfs
from tests.integration.hadoop import BLOCK, Hdfs
from tests.integration.kafka_jvm import free_port

pytestmark = pytest.mark.java


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    found = Hdfs(tmp_path_factory.mktemp("hdfs"))
    yield found
    found.stop()


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    for name in [name for name in os.environ if name.startswith("HADOOP_")]:
        monkeypatch.delenv(name)


@pytest.fixture(scope="module")
def sample(store, tmp_path_factory):
    local = tmp_path_factory.mktemp("sample") / "log"
    take_sample(local, damaged=True)
    return str(local), store.upload(local, "/backups/a log")


def rows(log, **options):
    columns = ("topic", "partition", "offset", "key", "value")
    return log.to_arrow(on_error="skip", problems=[], **options).select(columns).to_pylist()


def test_a_log_directory_reads_as_on_disk(sample):
    local, remote = map(kc.log.LogDirectory, sample)
    assert remote.topics == local.topics
    for name in local.topics:
        assert rows(remote.topic(name)) == rows(local.topic(name)) != []
    some = {"start_offset": 100, "end_offset": 200}
    assert rows(remote.topic("orders"), **some) == rows(local.topic("orders"), **some)
    here, there = local.verify(), remote.verify()
    assert [(f.kind, f.position) for f in there.findings] == [(f.kind, f.position) for f in here.findings] != []


def test_a_segment_of_many_blocks_reads_as_on_disk(store, tmp_path):
    with kc.log.LogWriter(tmp_path, "t", 0, sync=False) as writer:
        for first in range(0, 24_000, 160):
            records = [(b"key", os.urandom(1024)) for _ in range(160)]
            writer.write_batches(kc.encode(records, base_offset=first, batch_bytes=16 << 10))
    local, remote = kc.log.Partition(tmp_path / "t-0"), kc.log.Partition(store.upload(tmp_path / "t-0", "/large/t-0"))
    assert remote.size_in_bytes == local.size_in_bytes > 20 * BLOCK
    assert remote.to_arrow() == local.to_arrow()
    some = {"start_offset": 12_000, "end_offset": 12_240}
    assert remote.to_arrow(**some) == local.to_arrow(**some)


def test_bytes_of_a_replaced_file_are_those_of_the_old_one_or_none(store):
    data = os.urandom(3 * BLOCK)
    store.put("/some/file", data)

    def read_until_the_blocks_are_gone(file):
        """The data node is told to delete them after some seconds."""
        for position in range(60):
            assert file.read(position * PAGESIZE, 1000) == data[position * PAGESIZE :][:1000]
            file.drop_before((position + 1) * PAGESIZE)
            time.sleep(0.5)

    with open_file(f"{store.url}/some/file") as file:
        store.put("/some/file", data[::-1])
        with pytest.raises(OSError, match="was replaced while it was read") as caught:
            read_until_the_blocks_are_gone(file)
    assert caught.value.filename == f"{store.url}/some/file"
    assert caught.value.errno == errno.ESTALE


@pytest.mark.parametrize(
    ("path", "error", "text"),
    [
        ("/nothing", FileNotFoundError, "No such file or directory: '.*/nothing'"),
        ("/backups", IsADirectoryError, "Is a directory: '.*/backups'"),
    ],
)
def test_what_cannot_be_opened(store, sample, path, error, text):
    with pytest.raises(error, match=text):
        open_file(store.url + path)


def test_what_is_no_directory(store, sample):
    for path, error in (("/nothing", FileNotFoundError), ("/ready", NotADirectoryError)):
        with pytest.raises(error, match=path):
            kc.log.LogDirectory(store.url + path)


def test_a_user_without_permission_is_refused(store, monkeypatch):
    store.put("/private/file", b"secret")
    store.client.set_permission("/private", 0o700)
    monkeypatch.setenv("HADOOP_USER_NAME", "somebody")
    for use in (open_file, kc.log.LogDirectory):
        with pytest.raises(PermissionError, match="HDFS refused access; check the user and the file's permissions"):
            use(f"{store.url}/private/file")


def test_the_configuration_names_the_default_and_the_addresses(store, sample, monkeypatch):
    with pytest.raises(OSError, match="names no host with a port; add it, or set HADOOP_CONF_DIR"):
        kc.log.LogDirectory("hdfs:///backups/a log")
    monkeypatch.setenv("HADOOP_CONF_DIR", str(store.settings))
    assert kc.log.LogDirectory("hdfs:///backups/a log").topics == kc.log.LogDirectory(sample[1]).topics
    with open_file("hdfs:///ready") as file:
        assert file.read(0, 10) == b"yes"


def test_a_closed_port_is_noticed_within_seconds():
    start = time.monotonic()
    with pytest.raises(OSError, match=r"did not answer as expected \(Connection refused") as caught:
        open_file(f"hdfs://127.0.0.1:{free_port()}/file")
    assert caught.value.filename is not None
    assert time.monotonic() - start < 30


def test_a_server_that_does_not_answer_is_given_up(monkeypatch):
    monkeypatch.setattr(hdfs, "_TIMEOUT", 1.0)
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(OSError, match="HDFS did not answer within 1 seconds; check its address"),
    ):
        open_file(f"hdfs://127.0.0.1:{silent.getsockname()[1]}/file")


@pytest.mark.parametrize("command", [["topics"], ["dump", "--topic", "orders", "--limit", "3"], ["stats"]])
def test_commands_take_urls(sample, command):
    local, remote = (CliRunner().invoke(application, [command[0], path, *command[1:]]) for path in sample)
    assert (remote.exit_code, remote.output.replace(sample[1], sample[0])) == (local.exit_code, local.output)


def test_spark_reads_as_on_disk(spark, sample):
    kc.spark.register(spark)

    def read(path):
        frame = spark.read.format("kafkalog").options(mode="PERMISSIVE", maxPartitionBytes="10000").load(path)
        return sorted(map(tuple, frame.select("topic", "partition", "offset", "key", "value").collect()))

    local, remote = sample
    assert read(remote) == read(local) != []
    assert read(remote.replace("/backups/", "/back*/")) == read(local)


def test_spark_exports_to_a_delta_table(spark, store, sample):
    expected = kc.log.LogDirectory(sample[0]).topic("payments").to_arrow()
    source = {"path": sample[1], "subscribe": "payments"}
    report = kc.spark.export(spark, source, f"{store.url}/tables/payments", format="delta")
    assert report.rows == expected.num_rows > 0
    table = DeltaTable(f"{store.url}/tables/payments").to_pyarrow_table()
    order = [("partition", "ascending"), ("offset", "ascending")]
    assert table.sort_by(order)["value"].to_pylist() == expected.sort_by(order)["value"].to_pylist()
    assert kc.spark.export(spark, source, f"{store.url}/tables/payments", format="delta").run is None
