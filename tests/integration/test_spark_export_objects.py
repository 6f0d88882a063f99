"""`kafkacodec.spark.export` to Iceberg and Delta tables in an object store (moto's S3), and in HDFS."""

from __future__ import annotations

import os
from collections import namedtuple
from types import SimpleNamespace

import pytest
from deltalake import DeltaTable
from pyspark.errors import PythonException

import kafkacodec as kc
from kafkacodec.errors import KafkaCodecError
from kafkacodec.spark.exporting import job
from tests.integration.test_spark_export import append
from tests.object_server import BUCKET, in_own_process

pytestmark = pytest.mark.spark

Place = namedtuple("Place", "format target options source read prefix")


@pytest.fixture(scope="module")
def store():
    with in_own_process() as found:
        yield found


@pytest.fixture(scope="module")
def server(store):
    return SimpleNamespace(url=store[0])


@pytest.fixture(scope="module")
def s3(store):
    return store[1]


@pytest.fixture(params=["iceberg", "delta"])
def place(request, s3, server, tmp_path, monkeypatch):
    """An empty place for a table. Iceberg's catalog tells how S3 is reached, for Delta the options of the source."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    prefix = f"{tmp_path.name}/{request.param}"
    if request.param == "delta":
        names = {"access.key": "x", "secret.key": "y", "endpoint": server.url, "endpoint.region": "us-east-1"}
        url = f"s3://{BUCKET}/{prefix}"
        options = {"access_key_id": "x", "secret_access_key": "y", "endpoint": server.url, "region": "us-east-1"}
        yield Place(
            "delta",
            url.replace("s3:", "s3a:"),
            {},
            {f"fs.s3a.{name}": value for name, value in names.items()},
            lambda: DeltaTable(url, storage_options={**options, "allow_http": "true"}).to_pyarrow_table(),
            prefix,
        )
        return
    from pyiceberg.catalog.sql import SqlCatalog  # slow to import

    catalog = SqlCatalog(
        "test",
        **{
            "uri": f"sqlite:///{tmp_path}/catalog.db",
            "warehouse": f"s3://{BUCKET}/{prefix}",
            "s3.endpoint": server.url,
            "s3.access-key-id": "x",
            "s3.secret-access-key": "y",
            "s3.region": "us-east-1",
        },
    )
    yield Place(
        "iceberg",
        "kafka.records",
        {"catalog": catalog},
        {},
        lambda: catalog.load_table("kafka.records").scan().to_arrow(),
        prefix,
    )
    catalog.close()


def export(spark, log, place, **source):
    given = {"path": str(log), **place.source, **source}
    return kc.spark.export(spark, given, place.target, format=place.format, **place.options)


def values(place):
    table = place.read().sort_by([("partition", "ascending"), ("offset", "ascending")])
    return table["value"].to_pylist()


def files(s3, place):
    """The names of the Parquet files in the store."""
    found = s3.list_objects_v2(Bucket=BUCKET, Prefix=place.prefix).get("Contents", [])
    return sorted(name for entry in found if (name := entry["Key"]).endswith(".parquet"))


def test_the_next_run_goes_on_where_the_last_one_ended(spark, s3, place, tmp_path):
    log = tmp_path / "log"
    append(log, 0, 300)
    first = export(spark, log, place, maxPartitionBytes="1000")
    assert first.rows == 300
    append(log, 300, 100)
    second = export(spark, log, place)
    assert (second.rows, export(spark, log, place).run) == (100, None)
    assert values(place) == [b"%d" % n for n in range(400)]
    named = [f"/{report.run}/{file.path}" for report in (first, second) for file in report.files]
    assert len(named) == len(set(named)) == len(files(s3, place))
    assert all(any(name.endswith(end) for name in files(s3, place)) for end in named)


def test_of_two_runs_at_a_time_one_fails_and_leaves_nothing(spark, s3, place, tmp_path, monkeypatch):
    log = tmp_path / "log"
    append(log, 0, 50)
    export(spark, log, place)
    append(log, 50, 100)
    run = job._run

    def after_another(*arguments):
        monkeypatch.setattr(job, "_run", run)
        export(spark, log, place)
        return run(*arguments)

    monkeypatch.setattr(job, "_run", after_another)
    with pytest.raises(KafkaCodecError, match=r"another commit to .* was made during this export"):
        export(spark, log, place)
    assert values(place) == [b"%d" % n for n in range(150)]
    assert len(files(s3, place)) == 2


def test_what_a_failed_run_has_written_is_no_part_of_the_table(spark, s3, place, tmp_path):
    log = tmp_path / "log"
    append(log, 0, 100)
    export(spark, log, place)
    append(log, 100, 100)
    append(log, 200, 100)
    segment = max((log / "orders-0").glob("*.log"))
    data = bytearray(segment.read_bytes())
    data[-50] ^= 1  # in the last batch
    segment.write_bytes(data)
    with pytest.raises(PythonException, match="CRC"):
        export(spark, log, place, maxPartitionBytes="1000")
    assert values(place) == [b"%d" % n for n in range(100)]
    assert len(files(s3, place)) <= 2  # one may be of a task that was still running
    report = export(spark, log, place, mode="PERMISSIVE", maxPartitionBytes="1000")
    assert report.problems
    intact = kc.log.Partition(log / "orders-0").to_arrow(on_error="skip", problems=[])
    assert 200 < len(intact) < 300
    assert values(place) == intact["value"].to_pylist()


def test_attempts_that_failed_leave_nothing_in_a_run_that_succeeds(spark, s3, place, tmp_path, monkeypatch):
    log = tmp_path / "log"
    append(log, 0, 100)
    run = job._run

    def with_another_attempt(session, task):
        task.write(0)
        return run(session, task)

    monkeypatch.setattr(job, "_run", with_another_attempt)
    export(spark, log, place)
    assert len(files(s3, place)) == 1
    assert values(place) == [b"%d" % n for n in range(100)]


@pytest.mark.parametrize(
    ("target", "format", "error", "text"),
    [
        ("s3://logs/a", "parquet", kc.spark.OptionError, "an object store cannot publish a directory at once"),
        ("s3://nowhere/a", "delta", FileNotFoundError, "there is no such bucket: 's3://nowhere/a'"),
        ("ftp://host/a", "delta", kc.spark.OptionError, "ftp://host/a is not a local path"),
    ],
)
def test_where_an_export_cannot_go(spark, s3, server, tmp_path, monkeypatch, target, format, error, text):
    for name, value in {"ENDPOINT_URL": server.url, "ACCESS_KEY_ID": "x", "SECRET_ACCESS_KEY": "y"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    append(tmp_path / "log", 0, 10)
    with pytest.raises(error, match=text):
        kc.spark.export(spark, tmp_path / "log", target, format=format)


def test_a_directory_that_is_no_table_is_refused(spark, s3, place, tmp_path):
    if place.format == "iceberg":
        return  # its catalog says where tables are
    s3.put_object(Bucket=BUCKET, Key=f"{place.prefix}/something", Body=b"else")
    append(tmp_path / "log", 0, 10)
    with pytest.raises(kc.spark.OptionError, match="is not empty and is not a Delta table"):
        export(spark, tmp_path / "log", place)
