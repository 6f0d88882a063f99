"""The data source on logs in an object store (moto's S3), against the same logs on disk."""

from pathlib import Path

import pytest

import kafkacodec as kc
from kafkacodec.log.sample import sample as take_sample
from kafkacodec.spark import OptionError
from kafkacodec.spark.reading.options import parse_read_options
from tests.object_server import BUCKET, Server, client, upload

SECRETS = ("AKIAOPTION", "hidden-word", "AKIAHADOOP", "veiled-word")


@pytest.fixture(scope="module")
def server():
    found = Server()
    yield found
    found.server.shutdown()


@pytest.fixture(scope="module")
def s3(server):
    return client(server)


@pytest.fixture(scope="module")
def sample(s3, tmp_path_factory):
    local = tmp_path_factory.mktemp("sample") / "log"
    take_sample(local)
    return str(local), upload(s3, local, "sample")


@pytest.fixture
def access(server):
    """Options with which the server is reached."""
    return {
        "fs.s3a.access.key": "AKIAOPTION",
        "fs.s3a.secret.key": "hidden-word",
        "fs.s3a.endpoint": server.url,
        "fs.s3a.endpoint.region": "us-east-1",
    }


def rows(frame):
    return sorted(map(tuple, frame.select("topic", "partition", "offset", "key", "value", "timestamp").collect()))


def test_a_log_directory_reads_as_on_disk_with_credentials_of_the_options(spark, sample, server, access):
    kc.spark.register(spark)
    local, remote = sample
    expected = rows(spark.read.format("kafkalog").load(local))
    server.users.clear()
    url = remote.replace("s3:", "s3a:")
    frame = spark.read.format("kafkalog").options(**access, maxPartitionBytes="10000").load(url)
    assert rows(frame) == expected
    assert expected
    assert server.users == {"AKIAOPTION"}
    reader = spark.read.format("kafkalog").options(**access)
    reader = reader.options(assign='{"orders":[0]}', startingOffsets='{"orders":{"0":5}}')
    found = rows(reader.load(f"{remote[:-2]}*/orders-[01]"))
    assert found == [row for row in expected if row[:2] == ("orders", 0) and row[2] >= 5]
    explained = spark._jvm.PythonSQLUtils.explainString(frame._jdf.queryExecution(), "extended")
    assert not [word for word in SECRETS if word in explained + repr(parse_read_options({"path": url, **access}))]


def test_the_hadoop_configuration_tells_credentials_and_address(spark, sample, server):
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    given = {
        "access.key": "AKIAHADOOP",
        "secret.key": "veiled-word",
        "endpoint": server.url.removeprefix("http://"),
        "connection.ssl.enabled": "false",
        "path.style.access": "true",
        "endpoint.region": "us-east-1",
    }
    try:
        for name, value in given.items():
            hadoop.set(f"fs.s3a.{name}", value)
        kc.spark.register(spark)
        server.users.clear()
        frame = spark.read.format("kafkalog").load(f"{sample[1]}/orders-0")
        assert frame.count() == spark.read.format("kafkalog").load(f"{sample[0]}/orders-0").count() > 0
        assert server.users == {"AKIAHADOOP"}
        with pytest.raises(Exception, match="path: s3://no-such-bucket/x: No such file") as caught:
            spark.read.format("kafkalog").load("s3://no-such-bucket/x").count()
        assert not [word for word in SECRETS if word in str(caught.value)]
    finally:
        for name in given:
            hadoop.unset(f"fs.s3a.{name}")
        kc.spark.register(spark)


def test_a_stream_goes_on_where_it_ended(spark, sample, s3, access, tmp_path):
    kc.spark.register(spark)
    local = tmp_path / "t-0"
    with kc.log.LogWriter(tmp_path, "t", 0, sync=False) as writer:
        writer.write_batches(kc.encode([(None, b"a")] * 30))
    url = upload(s3, local, "stream/t-0").removesuffix("/t-0")

    def read():
        stream = spark.readStream.format("kafkalog").options(**access).load(url)
        sink = stream.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "check"))
        sink.trigger(availableNow=True).start(str(tmp_path / "found")).awaitTermination()
        return sorted(row.offset for row in spark.read.parquet(str(tmp_path / "found")).select("offset").collect())

    assert read() == list(range(30))
    with kc.log.LogWriter(tmp_path, "t", 0, sync=False, append=True) as writer:
        writer.write_batches(kc.encode([(None, b"b")] * 20, base_offset=30))
    upload(s3, local, "stream/t-0")
    assert read() == list(range(50))
    kept = b"".join(path.read_bytes() for path in Path(tmp_path, "check").rglob("*") if path.is_file())
    assert kept
    assert not [word for word in SECRETS if word.encode() in kept]


@pytest.mark.parametrize("view", ["batches", "problems", "lag", "configs"])
def test_views_are_those_on_disk(spark, sample, access, view):
    local, remote = sample
    reader = spark.read.format("kafkalog").option("view", view)
    expected = reader.load(local).drop("file", "directory").collect()
    assert reader.options(**access).load(remote).drop("file", "directory").collect() == expected
    assert expected or view == "problems"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"fs.s3a.access.key": "AKIAOPTION"}, "fs.s3a.access.key: goes with fs.s3a.secret.key"),
        ({"fs.s3a.path.style.access": "maybe"}, "fs.s3a.path.style.access: expected true or false"),
        ({"fs.s3a.acces.key": "AKIAOPTION"}, "did you mean fs.s3a.access.key"),
        ({"path": "ftp://host/logs"}, "ftp://host/logs is not a local path"),
    ],
)
def test_wrong_settings_are_refused(options, text):
    from kafkacodec.spark.reading.options import readable_path

    with pytest.raises(OptionError, match=text):
        readable_path(parse_read_options({"path": f"s3://{BUCKET}/x", **options}).paths[0])
