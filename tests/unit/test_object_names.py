"""Names of objects, their listings, and settings of stores: any that can be used, and an error for others."""

import errno

import pytest

import kafkacodec as kc
from kafkacodec.log.opening import entries, read_file
from kafkacodec.log.storage import stores
from tests.hostile_store import HostileStore, use


@pytest.fixture(scope="module")
def server():
    found = HostileStore()
    yield found
    found.close()


@pytest.fixture(autouse=True)
def store(server, monkeypatch):
    use(server, monkeypatch, retries=1)
    yield server
    stores._bucket.cache_clear()


@pytest.mark.parametrize(
    "name", ["a b", "a%20b", "100%", "%41", "a+b", "ü", "a#b", "a?b", "a&b", "<x>", "[x]", "q\"'", "~", "...", "a\\b"]
)
def test_any_name_is_listed_and_read(store, name):
    store.objects = {f"p/{name}/x": b"inside", f"p/{name}.x": b"beside"}
    assert {(entry.name, entry.is_dir()) for entry in entries("s3://bucket/p")} == {(name, True), (f"{name}.x", False)}
    [inner] = entries(f"s3://bucket/p/{name}")
    assert read_file(inner.path, 10) == b"inside"
    assert read_file(f"s3://bucket/p/{name}.x", 10) == b"beside"


def test_a_marker_of_a_directory_is_no_segment(store):
    store.objects = {"p/": b"", "p/t-0/": b"", f"p/t-0/{0:020}.log": kc.encode([(b"k", b"v")])}
    log = kc.log.LogDirectory("s3://bucket/p/")
    assert log.topics == ["t"]
    assert log.partition("t", 0).count() == 1


@pytest.mark.parametrize("key", ["p//x", "p/./x", "p/a\tb"])
def test_a_key_that_is_no_path_is_named_as_the_reason(store, key):
    store.objects[key] = b""
    with pytest.raises(OSError, match="a name here cannot be read") as caught:
        entries("s3://bucket/p")
    assert (caught.value.errno, caught.value.filename) == (errno.EINVAL, "s3://bucket/p")


def test_a_url_with_dots_is_an_error_of_the_url():
    with pytest.raises(OSError, match="a name here cannot be read") as caught:
        kc.log.LogDirectory("s3://bucket/logs/../other")
    assert caught.value.filename == "s3://bucket/logs/../other"


def test_a_listing_has_all_pages_or_is_an_error(store):
    store.objects = {f"p/{number:03}": b"x" for number in range(50)} | {f"p/d{number}/x": b"" for number in range(50)}
    store.page = 7
    assert len(entries("s3://bucket/p")) == 100
    store.fault = lambda request: "continuation-token" in request.query and request.refuse(403, "AccessDenied")
    with pytest.raises(PermissionError):
        entries("s3://bucket/p")


@pytest.mark.parametrize(
    ("url", "name", "value"),
    [
        ("az://container/x", "AZURE_STORAGE_ACCOUNT_KEY", "a-secret-word"),
        ("gs://bucket/x", "GOOGLE_SERVICE_ACCOUNT_KEY", "{a-secret-word"),
        ("s3://bucket/x", "AWS_S3_EXPRESS", "a-secret-word"),
        ("s3://bucket/x", "AWS_SESSION_TOKEN", "a-secret-word\n"),
        ("s3://bucket/x", "AWS_ENDPOINT_URL", "a-secret-word and spaces"),
        ("s3://two words/x", "AWS_REGION", "us-east-1"),
    ],
)
def test_settings_that_cannot_be_used_are_an_error_that_names_the_url(monkeypatch, url, name, value):
    monkeypatch.setenv(name, value)
    with pytest.raises(OSError, match=r"settings|check its address") as caught:
        entries(url)
    assert caught.value.filename == url
    assert "a-secret-word" not in str(caught.value)
