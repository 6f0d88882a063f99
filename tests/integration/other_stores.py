"""Logs in stores besides moto's S3: VersityGW's S3, fake-gcs-server and Azurite, each against the same log on disk.

`make object-stores` installs these servers in .cache/stores and runs this.
"""

import base64
import hashlib
import hmac
import http.client
import json
import os
import socket
import subprocess
import time
import urllib.request
from email.utils import formatdate
from pathlib import Path
from urllib.parse import quote

import boto3
import pytest

import kafkacodec as kc
from kafkacodec.log.opening import identity_of, open_file
from kafkacodec.log.sample import sample as take_sample
from tests.integration.kafka_jvm import free_port

SERVERS = Path(".cache/stores").resolve()
BUCKET = "logs"
AZURITE_ACCOUNT = "devstoreaccount1"
"""The account of Azurite, of which the documentation tells the key too; it has no port but this one."""
AZURITE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
AZURITE_PORT = 10000


def request(method, url, data=None, **headers):
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    with urllib.request.urlopen(urllib.request.Request(url, data, names, method=method)) as answer:
        return answer.read()


class Versity:
    """S3 on a directory."""

    def __init__(self, directory):
        self.port = free_port()
        (directory / BUCKET).mkdir()
        self.command = [SERVERS / "versitygw", "--quiet", "--port", f"127.0.0.1:{self.port}", "posix", directory]
        self.url = f"s3://{BUCKET}"
        self.environment = {
            "ROOT_ACCESS_KEY_ID": "someone",
            "ROOT_SECRET_ACCESS_KEY": "a-secret-word",
            "AWS_ACCESS_KEY_ID": "someone",
            "AWS_SECRET_ACCESS_KEY": "a-secret-word",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_REGION": "us-east-1",
        }

    def create(self):
        """The bucket is there."""

    def put(self, key, data):
        place = self.environment["AWS_ENDPOINT_URL"]
        keys = {"aws_access_key_id": "someone", "aws_secret_access_key": "a-secret-word"}
        boto3.client("s3", endpoint_url=place, region_name="us-east-1", **keys).put_object(
            Bucket=BUCKET, Key=key, Body=data
        )


class Google:
    """Google Cloud Storage's interface, in memory."""

    def __init__(self, directory):
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        account = {"gcs_base_url": self.address, "disable_oauth": True}
        account |= {"client_email": "", "private_key": "", "private_key_id": ""}
        (directory / "account.json").write_text(json.dumps(account))
        place = ["-host", "127.0.0.1", "-port", str(self.port), "-public-host", f"127.0.0.1:{self.port}"]
        self.command = [SERVERS / "fake-gcs-server", "-scheme", "http", "-backend", "memory", *place]
        self.url = f"gs://{BUCKET}"
        self.environment = {"GOOGLE_SERVICE_ACCOUNT": str(directory / "account.json")}

    def create(self):
        name = json.dumps({"name": BUCKET}).encode()
        request("POST", f"{self.address}/storage/v1/b?project=p", name, Content_Type="application/json")

    def put(self, key, data):
        url = f"{self.address}/upload/storage/v1/b/{BUCKET}/o?uploadType=media&name={quote(key, safe='')}"
        request("POST", url, data, Content_Type="application/octet-stream")


class Azure:
    """Azure Blob Storage's interface, in memory."""

    def __init__(self, directory):
        self.port = AZURITE_PORT
        program = SERVERS / "node_modules/.bin/azurite-blob"
        self.command = [program, "--blobPort", str(self.port), "--inMemoryPersistence", "--skipApiVersionCheck"]
        self.url = f"az://{BUCKET}"
        self.environment = {"AZURE_STORAGE_USE_EMULATOR": "true"}

    def create(self):
        assert self.send(f"{BUCKET}?restype=container", "restype:container", b"") == 201

    def put(self, key, data):
        assert self.send(quote(f"{BUCKET}/{key}"), "", data, **{"x-ms-blob-type": "BlockBlob"}) == 201

    def send(self, path, parameters, data, **headers):
        """PUT with a signature by the shared key."""
        headers |= {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
        named = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
        resource = f"/{AZURITE_ACCOUNT}/{AZURITE_ACCOUNT}/{path.partition('?')[0]}"
        signed = f"PUT\n\n\n{len(data) or ''}" + "\n" * 9 + named + resource + (f"\n{parameters}" if parameters else "")
        digest = hmac.new(base64.b64decode(AZURITE_KEY), signed.encode(), hashlib.sha256).digest()
        headers["Authorization"] = f"SharedKey {AZURITE_ACCOUNT}:{base64.b64encode(digest).decode()}"
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("PUT", f"/{AZURITE_ACCOUNT}/{path}", data, headers)
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer.status


@pytest.fixture(scope="module", params=[Versity, Google, Azure])
def store(request, tmp_path_factory):
    found = request.param(tmp_path_factory.mktemp("store"))
    environment = {**os.environ, **found.environment}
    with open(tmp_path_factory.mktemp("log") / "server.log", "wb") as log:
        process = subprocess.Popen(found.command, stdout=log, stderr=log, env=environment)
    try:
        for _ in range(300):
            assert process.poll() is None, Path(log.name).read_text()
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", found.port)) == 0:
                    break
            time.sleep(0.1)
        found.create()
        yield found
    finally:
        process.terminate()
        process.wait()


@pytest.fixture(autouse=True)
def _environment(store, monkeypatch):
    for name in [name for name in os.environ if name.startswith(("AWS_", "GOOGLE_", "AZURE_"))]:
        monkeypatch.delenv(name)
    for name, value in store.environment.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def sample(store, tmp_path):
    local = tmp_path / "log"
    take_sample(local, damaged=True)
    for path in local.rglob("*"):
        if path.is_file():
            store.put(f"sample/{path.relative_to(local)}", path.read_bytes())
    return kc.log.LogDirectory(local), kc.log.LogDirectory(f"{store.url}/sample")


def rows(log, **options):
    columns = ("topic", "partition", "offset", "key", "value")
    return log.to_arrow(on_error="skip", problems=[], **options).select(columns).to_pylist()


def test_a_log_reads_as_on_disk(sample):
    local, remote = sample
    assert remote.topics == local.topics
    for name in local.topics:
        assert rows(remote.topic(name)) == rows(local.topic(name))
    some = {"start_offset": 100, "end_offset": 200}
    assert rows(remote.topic("orders"), **some) == rows(local.topic("orders"), **some)
    here, there = local.verify(), remote.verify()
    assert [(f.kind, f.position) for f in there.findings] == [(f.kind, f.position) for f in here.findings]
    assert here.findings


def test_a_range_asks_for_a_part_of_an_object(store):
    data = os.urandom(3_000_000)
    store.put("some/object", data)
    with open_file(f"{store.url}/some/object") as file:
        assert (file.size, file.read(2_000_000, 1000)) == (len(data), data[2_000_000:2_001_000])
        store.put("some/object", data[::-1])
        with pytest.raises(OSError, match="the object was replaced while it was read"):
            file.read(0, 1000)


@pytest.mark.parametrize("path", ["nothing", "some/00000000000000000099.log"])
def test_what_is_not_there_is_missing(store, path):
    with pytest.raises(FileNotFoundError, match=path):
        open_file(f"{store.url}/{path}")
    with pytest.raises(FileNotFoundError, match=path):
        kc.log.LogDirectory(f"{store.url}/{path}")


def test_a_listing_tells_what_a_request_tells(store):
    store.put("listed/t-0/00000000000000000000.log", bytes(1000))
    (segment,) = kc.log.Partition(f"{store.url}/listed/t-0").segments
    assert identity_of(segment.path) == open_file(segment.path).identity
