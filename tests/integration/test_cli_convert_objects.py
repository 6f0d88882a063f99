"""``kafkacodec convert`` of logs in an object store (moto's S3), to files and tables, without Spark."""

from __future__ import annotations

import os

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import kafkacodec as kc
from tests.integration.test_spark_export import files
from tests.object_server import BUCKET, in_own_process, upload

pytestmark = pytest.mark.slow  # the server takes more than a few seconds of processor time

COUNT = 768


@pytest.fixture(scope="module")
def store():
    with in_own_process() as (url, s3):
        yield url, s3, upload(s3, kc.sample().path, "sample")


@pytest.fixture
def source(store, monkeypatch):
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ENDPOINT_URL", store[0])
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "y")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    return store[2]


def offsets(table):
    return sorted(zip(*(table[name].to_pylist() for name in ("topic", "partition", "offset")), strict=True))


@pytest.fixture(scope="module")
def expected():
    table = kc.sample().select().to_arrow(columns=["topic", "partition", "offset"])
    assert len(table) == COUNT
    return offsets(table)


def test_a_file(kafkacodec, source, expected, tmp_path):
    assert kafkacodec("convert", source, "-o", tmp_path / "out.parquet")[0] == 0
    assert offsets(pq.read_table(tmp_path / "out.parquet")) == expected


def test_a_directory_of_files(kafkacodec, source, expected, tmp_path):
    command = ("convert", source, "-o", tmp_path / "out", "--partition-by", "date")
    assert kafkacodec(*command)[2].startswith(f"{tmp_path}/out: {COUNT} records of 5 partitions in ")
    found = [row for file in files(tmp_path / "out") for row in offsets(pq.read_table(file, partitioning=None))]
    assert sorted(found) == expected
    assert kafkacodec(*command)[2].startswith(f"{tmp_path}/out: nothing new\n")


def test_a_delta_table_in_the_store(kafkacodec, store, source, expected, tmp_path):
    target = f"s3://{BUCKET}/{tmp_path.name}/delta"
    command = ("convert", source, "-o", target, "--partition-by", "topic", "--format", "delta")
    assert kafkacodec(*command)[2].startswith(f"{target}: {COUNT} records of 5 partitions in 5 files (")
    assert kafkacodec(*command)[2].startswith(f"{target}: nothing new\n")
    options = {"endpoint": store[0], "access_key_id": "x", "secret_access_key": "y", "region": "us-east-1"}
    table = DeltaTable(target, storage_options={**options, "allow_http": "true"})
    assert offsets(table.to_pyarrow_table()) == expected


def test_what_is_not_written_to_a_store(kafkacodec, source):
    code, _, err = kafkacodec("convert", source, "-o", f"s3://{BUCKET}/out.parquet")
    assert (code, "a file is written to this machine; convert --partition-by with" in err) == (2, True)
    code, _, err = kafkacodec("convert", source, "-o", f"s3://{BUCKET}/out", "--partition-by", "topic")
    assert (code, "use format iceberg or delta, or a local directory" in err) == (2, True)
