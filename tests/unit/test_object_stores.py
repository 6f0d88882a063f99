"""Logs in an object store (moto's S3 on this machine) against the same logs on disk."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

import kafkacodec as kc
from kafkacodec.cli.app import application
from kafkacodec.log.opening import identity_of, open_file
from kafkacodec.log.opening.patterns import matches_of
from kafkacodec.log.partitions.inside import identity_of_log
from kafkacodec.log.sample import sample as take_sample
from kafkacodec.log.segments.walk import LARGEST_WINDOW
from kafkacodec.log.storage import objects, stores
from kafkacodec.log.storage.access import ENVIRONMENT, S3Access
from tests.object_server import BUCKET, Server, client, upload
from tests.patience import SOON

pytestmark = pytest.mark.slow  # the server takes more than a few seconds of processor time


@pytest.fixture(scope="module")
def server():
    found = Server()
    yield found
    found.server.shutdown()


@pytest.fixture(autouse=True)
def _environment(server, monkeypatch):
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "someone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret-word")
    monkeypatch.setenv("AWS_REGION", "us-east-1")


@pytest.fixture(scope="module")
def s3(server):
    return client(server)


@pytest.fixture(scope="module")
def sample(s3, tmp_path_factory):
    local = tmp_path_factory.mktemp("sample") / "log"
    take_sample(local)
    return str(local), upload(s3, local, "sample")


@pytest.fixture(scope="module")
def damaged(s3, tmp_path_factory):
    local = tmp_path_factory.mktemp("damaged") / "log"
    take_sample(local, damaged=True)
    return str(local), upload(s3, local, "damaged")


@pytest.fixture(scope="module")
def large(s3, tmp_path_factory):
    """A segment of about 24 MiB with an offset index, so that it has several windows."""
    local = tmp_path_factory.mktemp("large") / "t-0"
    with kc.log.LogWriter(local.parent, "t", 0, sync=False) as writer:
        for first in range(0, 24_000, 160):
            records = [(b"key", os.urandom(1024)) for _ in range(160)]
            writer.write_batches(kc.encode(records, base_offset=first, batch_bytes=16 << 10))
    return str(local), upload(s3, local, "large/t-0")


def rows(log, **options):
    """Offsets, keys, values and the reasons of problems."""
    found = [[], [], [], []]
    for chunk in log.read(**options):
        found[0] += chunk["offset"].tolist()
        found[1] += list(chunk["key"])
        found[2] += list(chunk["value"])
        found[3] += [problem.exception.reason for problem in chunk.problems]
    return found


def both(sample):
    return [kc.log.LogDirectory(path) for path in sample]


def test_a_log_directory_reads_as_on_disk(sample):
    local, remote = both(sample)
    assert remote.topics == local.topics
    assert remote.log_start_offsets == local.log_start_offsets
    for topic in local.topics:
        for here, there in zip(local.partitions(topic), remote.partitions(topic), strict=True):
            assert (rows(there, on_error="skip")) == (rows(here, on_error="skip"))
            assert [s.base_offset for s in there.segments] == [s.base_offset for s in here.segments]
            assert (there.start_offset(), there.end_offset()) == (here.start_offset(), here.end_offset())
            assert there.last_stable_offset() == here.last_stable_offset()
            assert there.size_in_bytes == here.size_in_bytes


def test_damage_is_reported_as_on_disk(damaged):
    local, remote = (log.verify() for log in both(damaged))
    assert local.findings
    assert [(f.kind, f.position, f.text.replace(*damaged[::-1])) for f in remote.findings] == [
        (f.kind, f.position, f.text) for f in local.findings
    ]
    local, remote = both(damaged)
    for topic in local.topics:
        for here, there in zip(local.partitions(topic), remote.partitions(topic), strict=True):
            found = rows(there, on_error="skip")
            assert found == (rows(here, on_error="skip"))


def test_a_segment_of_several_windows_reads_as_on_disk(large, server):
    local, remote = (kc.log.Partition(path) for path in large)
    assert local.size_in_bytes > 5 * LARGEST_WINDOW > objects.PART_BYTES
    server.sent.clear()
    assert (rows(remote, threads=2)) == (rows(local))
    assert sum(server.sent.values()) < 1.05 * local.size_in_bytes
    scanned = [log.segments[0].scan()["last_offset"].tolist() for log in (local, remote)]
    assert scanned[0] == scanned[1]


def test_one_per_cent_of_the_offsets_needs_little_more_than_its_bytes(large, server):
    remote = kc.log.Partition(large[1])
    server.sent.clear()
    found = rows(remote, start_offset=12_000, end_offset=12_240)
    assert found[0] == list(range(12_000, 12_240))
    assert sum(server.sent.values()) < 0.03 * 24_000 * 1024


def test_offsets_and_times_are_looked_up_as_on_disk(large):
    local, remote = (kc.log.Partition(path) for path in large)
    assert remote.ranges(max_bytes=1 << 20)[3].start_position == local.ranges(max_bytes=1 << 20)[3].start_position
    segment, other = local.segments[0], remote.segments[0]
    assert other.position_of_offset(20_001) == segment.position_of_offset(20_001)
    assert other.last_offset() == segment.last_offset() == 23_999
    assert remote.index_problems == []


def test_damage_inside_a_window_loses_the_same_records(large, s3, tmp_path):
    data = bytearray(Path(kc.log.Partition(large[0]).segments[0].path).read_bytes())
    data[9_000_000:9_000_100] = b"\xff" * 100
    data[17_000_000:17_050_000] = b"\xff" * 50_000
    (tmp_path / "t-0").mkdir()
    name = "00000000000000000000.log"
    (tmp_path / "t-0" / name).write_bytes(data)
    there = upload(s3, tmp_path, "torn") + f"/t-0/{name}"
    read = [(rows(kc.log.Segment(path), on_error="skip")) for path in (tmp_path / "t-0" / name, there)]
    assert len(read[0][3]) >= 2
    assert read[1] == read[0]


def test_a_listing_tells_the_sizes_of_its_objects(s3, server, tmp_path):
    for number in range(40):
        s3.put_object(Bucket=BUCKET, Key=f"listed/t-0/{number * 100:020}.log", Body=bytes(number + 1))
    server.requests.clear()
    log = kc.log.Partition(f"s3://{BUCKET}/listed/t-0")
    assert log.size_in_bytes == sum(range(41))
    assert server.requests == {"GET": 1, "HEAD": 1}  # the listing, and a checkpoint that is not there
    last = f"{log.path}/{3900:020}.log"
    assert identity_of(last) == open_file(last).identity


def test_a_replaced_object_is_noticed(large, s3):
    copied = {"Bucket": BUCKET, "Key": "large/t-0/00000000000000000000.log"}
    s3.copy_object(CopySource=copied, Bucket=BUCKET, Key="replaced/t-0/00000000000000000000.log")
    with open_file(f"s3://{BUCKET}/replaced/t-0/00000000000000000000.log") as file:
        file.view(0, 100)
        s3.put_object(Bucket=BUCKET, Key="replaced/t-0/00000000000000000000.log", Body=bytes(file.size))
        with pytest.raises(OSError, match="replaced while it was read"):
            file.view(100, 200)


def test_memory_of_what_was_read_is_released(large):
    with open_file(kc.log.Partition(large[1]).segments[0].path) as file:
        first = file.read(0, 1 << 20)
        file.view(1 << 20, 2 << 20)
        file.drop_before(1 << 20)
        assert not any(file.view(2 << 20, 3 << 20)[: 1 << 20])
        assert file.read(0, 1 << 20) == first


@pytest.mark.parametrize(
    ("url", "error", "text"),
    [
        (f"s3://{BUCKET}/none/00000000000000000000.log", FileNotFoundError, "No such file"),
        ("s3://no-such-bucket/t-0/00000000000000000000.log", FileNotFoundError, "No such file|no such bucket"),
        ("s3://", ValueError, "has a bucket"),
        ("ftp://host/t-0/00000000000000000000.log", ValueError, "unknown scheme 'ftp'"),
    ],
)
def test_what_is_missing_is_named(url, error, text):
    with pytest.raises(error, match=text) as caught:
        list(kc.log.Segment(url).read())
    assert url in str(caught.value)


def test_an_empty_prefix_and_a_missing_bucket_are_no_log():
    with pytest.raises(FileNotFoundError):
        kc.log.LogDirectory(f"s3://{BUCKET}/nothing-here")
    with pytest.raises(FileNotFoundError):
        kc.log.LogDirectory("s3://no-such-bucket/logs")


def test_writing_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="can only be read"):
        kc.log.LogWriter(f"s3://{BUCKET}/new", "t", 0)
    assert not list(tmp_path.iterdir())


def test_following_is_refused(sample):
    with pytest.raises(ValueError, match="cannot be followed"):
        kc.log.Follower(kc.log.LogDirectory(sample[1]).partition("orders", 0))
    result = run_command("dump", "--follow", sample[1])
    assert result.exit_code == 2
    assert "--follow does not support logs in object stores" in result.output


@pytest.mark.parametrize(("url", "text"), [("ftp://host/logs", "unknown scheme 'ftp'"), ("s3://", "has a bucket")])
def test_commands_say_what_is_wrong_with_a_url(url, text):
    result = run_command("topics", url)
    assert result.exit_code == 2
    assert text in result.output


def test_wrong_credentials_are_refused_without_showing_them(sample, monkeypatch):
    monkeypatch.setattr("moto.settings.INITIAL_NO_AUTH_ACTION_COUNT", 0.0)
    monkeypatch.setattr("moto.core.responses.ActionAuthenticatorMixin.request_count", 1)
    with pytest.raises(PermissionError, match="refused access") as caught:
        list(kc.log.Segment(f"{sample[1]}/orders-0/00000000000000000000.log").read())
    assert "a-secret-word" not in str(caught.value)
    assert "someone" not in str(caught.value)


@pytest.mark.parametrize(
    "command",
    [
        ["topics", "--json"],
        ["scan", "--json"],
        ["dump", "--json", "--topic", "orders"],
        ["verify", "--json"],
        ["convert", "--format", "csv", "--output", "-", "--topic", "orders"],
    ],
)
def test_commands_take_urls(sample, command):
    name, *options = command
    here, there = (run_command(name, path, *options) for path in sample)
    assert here.exit_code == there.exit_code == 0, there.output
    assert there.stdout.replace(sample[1], sample[0]) == here.stdout
    assert here.stdout


def run_command(*arguments):
    return CliRunner().invoke(application, [*arguments])


def test_tiered_storage_is_read_in_chunks(s3, server, monkeypatch):
    data = Path(__file__).parents[1] / "data" / "tiered"
    monkeypatch.setenv("KAFKACODEC_TIERED_KEYS", str(data / "private-key.pem"))
    here = kc.log.LogDirectory(data / "zstd-aes")
    there = kc.log.LogDirectory(upload(s3, data / "zstd-aes", "kafka/tiered"))
    assert there.topics == ["orders", "payments"]
    for topic in there.topics:
        local, remote = (log.partition(topic, 0) for log in (here, there))
        assert rows(remote) == rows(local)
        assert rows(remote, isolation_level="read_committed") == rows(local, isolation_level="read_committed")
        assert identity_of_log(remote) == identity_of_log(local)
        assert remote.verify().findings == []
    found = kc.log.uploads(remote.path)
    assert [u[1:] for u in found] == [u[1:] for u in kc.log.uploads(local.path)]
    server.sent.clear()
    with open_file(found[1].path) as file:
        file.read(2000, 100)
    [sent] = [size for path, size in server.sent.items() if path.endswith(".log")]
    assert 0 < sent < found[1].stored_bytes / 2


@pytest.mark.parametrize(
    ("code", "error", "text"),
    [
        ("ExpiredToken", PermissionError, "the credentials have expired; get new ones"),
        ("InvalidAccessKeyId", PermissionError, "the object store refused access; check the credentials"),
        (
            "SlowDownPlease",
            OSError,
            "did not answer as expected (SlowDownPlease); check its address and the credentials",
        ),
    ],
)
def test_what_the_store_refuses_is_said_in_one_sentence(sample, server, code, error, text):
    server.refusal = code
    try:
        with pytest.raises(error, match=re.escape(text)) as caught:
            kc.log.LogDirectory(sample[1])
    finally:
        server.refusal = None
    assert sample[1] in str(caught.value)
    assert "a-secret-word" not in str(caught.value)


def test_a_wrong_address_is_noticed_within_seconds(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
    begin = time.monotonic()
    with pytest.raises(OSError, match="check its address and the credentials"):
        kc.log.LogDirectory(f"s3://{BUCKET}/sample")
    assert time.monotonic() - begin < SOON


def in_child(action):
    """What an action said in a forked process: the text of its error or of its result; None if it took too long."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(10)
        try:
            said = str(action())
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with open(reading, encoding="utf-8") as answer:
        return answer.read() or None


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_says_that_it_cannot_read_and_its_parent_goes_on(sample):
    path = f"{sample[1]}/orders-0/00000000000000000000.log"
    with open_file(path) as file:
        file.view(0, 100)
        for action in (lambda: kc.log.Segment(path).last_offset(), lambda: file.read(0, 100)):
            said = in_child(action)
            assert said is not None
            assert said.startswith("KafkaCodecError: this process was forked after")
        assert file.read(100, 200)
    assert kc.log.Segment(path).last_offset() is not None


def test_a_process_forked_before_the_first_read_reads(sample):
    program = (
        "import os, sys, kafkacodec as kc\n"
        "from kafkacodec.log.storage import objects\n"
        "child = os.fork()\n"
        f"assert kc.log.Segment('{sample[1]}/orders-0/00000000000000000000.log').last_offset() is not None\n"
        "assert not child or os.waitpid(child, 0)[1] == 0\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=SOON)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {}),
        ({"access.key": "a", "secret.key": "b"}, {}),
        ({"endpoint": "http://h:1/", "path.style.access": "true"}, {"endpoint": "http://h:1"}),
        ({"endpoint": "h:1", "connection.ssl.enabled": "false"}, {"endpoint": "http://h:1"}),
        ({"endpoint": "h", "path.style.access": "false"}, {"endpoint": "https://logs.h", "virtual": True}),
        ({"endpoint": "http://10.0.0.1:9", "path.style.access": "false"}, {"endpoint": "http://10.0.0.1:9"}),
        ({"endpoint.region": "r", "bucket.logs.endpoint.region": "s", "bucket.x.session.token": "t"}, {"region": "s"}),
    ],
)
def test_settings_mean_what_they_mean_to_s3a(given, expected):
    access = S3Access.of(given)
    found = access.client_options(BUCKET)
    in_host = found.pop("virtual_hosted_style_request", False)
    assert found == {name: value for name, value in expected.items() if name != "virtual"}
    assert in_host == expected.get("virtual", False)
    assert repr(access) == "S3Access()"


def test_given_credentials_are_not_mixed_with_others(sample, server, monkeypatch):
    monkeypatch.setenv("AWS_SESSION_TOKEN", "stray")
    given = S3Access.of({"access.key": "given", "secret.key": "b"})
    configured = S3Access.of({"access.key": "c", "session.token": "t", "bucket.logs.access.key": "d", "endpoint": "e"})
    together = given.over(configured)
    assert together.client_options(BUCKET)["endpoint"] == "https://e"
    assert together.credentials(BUCKET) == {"access_key_id": "given", "secret_access_key": "b", "expires_at": None}
    assert S3Access().credentials(BUCKET) is None
    stores.use(given)
    server.tokens.clear()
    try:
        assert kc.log.LogDirectory(sample[1]).topics
    finally:
        stores.use(ENVIRONMENT)
    assert "given" in server.users
    assert server.tokens == {None}


def test_what_follows_a_pattern_must_exist(sample):
    base = sample[1].rpartition("/")[0]
    assert matches_of(f"{base}/samp*/orders-0") == [f"{sample[1]}/orders-0"]
    assert matches_of(f"{base}/samp*/nothing-0") == []
    assert matches_of(f"{base}/samp*/orders-0/nothing") == []
    assert len(matches_of(f"{base}/samp*/orders-?")) == len(kc.log.LogDirectory(sample[0]).partitions("orders"))
