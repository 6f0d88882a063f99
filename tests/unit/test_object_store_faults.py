"""Object stores that fail or lie: a read gives the object's bytes or an error that names it, never others."""

import errno
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from datetime import timedelta

import pytest

import kafkacodec as kc
from kafkacodec.log.opening import open_file, read_file
from kafkacodec.log.segments import walk
from kafkacodec.log.storage import stores
from kafkacodec.spark.reading.tasks import read_ranges
from tests.hostile_store import HostileStore, strong, use
from tests.patience import SOON, eventually

URL = "s3://bucket/t-0/x.log"
DATA = bytes(range(256)) * 800


@pytest.fixture(scope="module")
def server():
    found = HostileStore()
    yield found
    found.close()


@pytest.fixture(autouse=True)
def store(server, monkeypatch):
    """The store with one object; requests are made twice at most."""
    use(server, monkeypatch, retries=1)
    server.objects["t-0/x.log"] = DATA
    yield server
    stores._bucket.cache_clear()


@pytest.fixture
def impatient(monkeypatch):
    """Requests are made once, and given up after two seconds of silence."""
    monkeypatch.setattr(stores, "_RETRIES", 0)
    monkeypatch.setattr(stores, "_SILENCE", timedelta(seconds=2))


def read(start=1000, end=150_000):
    with open_file(URL) as file:
        return file.read(start, end - start)


def on_get(*answers):
    """A fault that gives these answers to the requests for bytes, one after the other; the last one for ever."""
    left = list(answers)

    def fault(request):
        if request.command == "HEAD" or not request.key:
            return None
        answer = left.pop(0) if len(left) > 1 else left[0]
        return None if answer is None else answer(request)

    return fault


def slice_of(request, start=0, end=0):
    first, last = request.span
    return request.store.objects[request.key][first + start : last + end]


@pytest.mark.parametrize(
    "answer",
    [
        lambda r: r.send(200, r.store.headers(r.key), DATA),
        lambda r: r.send_part((r.span[0], r.span[0] + 100), slice_of(r)[:100]),
        lambda r: r.send_part(r.span, slice_of(r)[:100]),
        lambda r: r.send_part(r.span, slice_of(r, 0, 100)),
        lambda r: r.send_part((r.span[0] + 5, r.span[1] + 5), slice_of(r, 5, 5)),
        lambda r: r.send(206, r.store.headers(r.key), slice_of(r)),
        lambda r: r.send(204, {}),
        lambda r: r.break_off(),
        lambda r: r.break_off(50_000),
    ],
    ids=["no range", "less", "short", "long", "other range", "no content-range", "nothing", "reset", "half and reset"],
)
def test_an_answer_that_is_not_what_was_asked_for_is_an_error(store, answer):
    store.fault = on_get(answer)
    with pytest.raises(OSError, match="object store") as caught:
        read()
    assert (caught.value.errno, caught.value.filename) == (errno.EIO, URL)


@pytest.mark.parametrize(
    ("status", "code", "number"),
    [
        (400, "ExpiredToken", errno.EACCES),
        (401, "", errno.EACCES),
        (403, "AccessDenied", errno.EACCES),
        (403, "", errno.EACCES),
        (404, "NoSuchKey", errno.ENOENT),
        (412, "PreconditionFailed", errno.ESTALE),
        (416, "InvalidRange", errno.ESTALE),
        (429, "SlowDown", errno.EIO),
        (500, "InternalError", errno.EIO),
        (503, "SlowDown", errno.EIO),
    ],
)
def test_an_error_of_the_store_says_what_it_means(store, status, code, number):
    store.fault = on_get(lambda request: request.refuse(status, code))
    with pytest.raises(OSError) as caught:
        read()
    assert (caught.value.errno, caught.value.filename) == (number, URL)
    assert "a-secret-word" not in str(caught.value)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_passes_is_tried_again(store, status):
    store.fault = on_get(lambda request: request.refuse(status, "SlowDown"), None)
    assert read() == DATA[1000:150_000]


def test_a_body_that_breaks_off_is_continued_where_it_ended(store):
    store.fault = on_get(lambda request: request.break_off(50_000), None)
    assert read() == DATA[1000:150_000]
    assert [span for _, _, span in store.asked[1:]] == [(1000, 150_000), (51_000, 150_000)]


def test_an_object_that_is_replaced_during_a_body_is_noticed(store):
    def replace(request):
        request.break_off(50_000)
        store.objects[request.key] = bytes(len(DATA))
        return True

    store.fault = on_get(replace, None)
    with pytest.raises(OSError, match="replaced while it was read"):
        read()


@pytest.mark.parametrize(
    "tag", [lambda data: None, lambda data: f"W/{strong(data)}", lambda data: '""', lambda data: ""]
)
@pytest.mark.parametrize("change", ["bytes", "time"])
def test_an_object_without_a_strong_tag_is_known_by_its_size_and_time(store, tag, change):
    store.tag = tag
    assert read() == DATA[1000:150_000]
    with open_file(URL) as file:
        file.read(0, 10)
        if change == "bytes":
            store.objects["t-0/x.log"] = DATA[::-1] + b"more"
        else:
            store.objects["t-0/x.log"] = DATA[::-1]
            store.changed["t-0/x.log"] = 1_700_000_001
        with pytest.raises(OSError, match="replaced while it was read"):
            file.read(10, 10)


@pytest.mark.usefixtures("impatient")
def test_a_slow_answer_is_awaited_while_bytes_arrive(store):
    """In all longer than the client waits for a byte."""

    def drip(request):
        data = slice_of(request)
        request.send_part(request.span, b"", len(data))
        for start in range(0, len(data), len(data) // 8):
            request.wfile.write(data[start : start + len(data) // 8])
            request.wfile.flush()
            time.sleep(0.3)
        return True

    store.fault = on_get(drip)
    assert read() == DATA[1000:150_000]
    assert len(store.asked) == 2


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("sent", [0, 50_000])
def test_a_server_that_falls_silent_is_given_up(store, sent):
    given_up = threading.Event()

    def stall(request):
        if sent:
            request.send_part(request.span, slice_of(request)[:sent], request.span[1] - request.span[0])
            request.wfile.flush()
        given_up.wait(SOON)
        request.close_connection = True
        return True

    store.fault = on_get(stall)
    begin = time.monotonic()
    with pytest.raises(OSError, match="did not answer as expected"):
        read()
    given_up.set()
    assert 2 <= time.monotonic() - begin < SOON


@pytest.mark.parametrize("size", [1 << 62, 1 << 63])
@pytest.mark.parametrize("action", [lambda: open_file(URL), lambda: read_file(URL, 1000)])
def test_a_size_that_cannot_be_is_an_error(store, size, action):
    store.fault = lambda request: request.command == "HEAD" and request.send(200, store.headers(request.key), b"", size)
    with pytest.raises(OSError, match="no address space") as caught:
        action()
    assert caught.value.filename == URL


def test_a_failed_read_leaves_no_cycle(store):
    """Memory of a segment would stay until the next collection."""
    store.fault = on_get(lambda request: request.refuse(403, "AccessDenied"))
    gc.disable()
    try:
        file = open_file(URL)
        gone = weakref.ref(file)
        with pytest.raises(PermissionError), file:
            file.view(0, 10)
        del file
        eventually(lambda: gone() is None)  # the thread may not have let go of it yet
    finally:
        gc.enable()


@pytest.mark.parametrize("gone", [0, 1, 2])
def test_a_segment_that_vanishes_after_planning_is_missing(store, gone):
    names = [f"t-0/{first:020}.log" for first in (0, 10, 20)]
    for number, name in enumerate(names):
        store.objects[name] = kc.encode([(b"k", b"v")] * 10, base_offset=10 * number)
    ranges = kc.log.Partition("s3://bucket/t-0").ranges()
    del store.objects[names[gone]]
    with pytest.raises(kc.MissingOffsets) as caught:
        list(ranges[gone].read())
    assert (caught.value.first_offset, caught.value.end_offset) == (10 * gone, 10 * gone + 10)


@pytest.mark.parametrize(
    "name", ["log-start-offset-checkpoint", "recovery-point-offset-checkpoint", "t-0/leader-epoch-checkpoint"]
)
def test_a_checkpoint_that_the_store_does_not_give_is_an_error(store, name):
    """It tells which records are deleted, where the log ends, and which log it is."""
    store.objects[f"t-0/{0:020}.log"] = kc.encode([(b"k", b"v")] * 10)
    store.objects["log-start-offset-checkpoint"] = b"0\n1\nt 0 4\n"
    assert kc.log.Partition("s3://bucket/t-0").count() == 6
    store.objects[name] = b"0\n0\n"
    stores._bucket.cache_clear()
    store.fault = lambda request: request.key == name and request.refuse(503, "SlowDown")
    with pytest.raises(OSError, match="did not answer") as caught:
        list(kc.log.Partition("s3://bucket/t-0").read())
    assert caught.value.filename == f"s3://bucket/{name}"


def test_a_small_object_that_is_replaced_between_two_requests_is_read_again(store):
    def replace(request):
        store.objects[request.key] = b"new"

    store.fault = on_get(replace, None)
    assert read_file(URL, len(DATA)) == b"new"


@pytest.mark.parametrize(("status", "code"), [(503, "SlowDown"), (403, "ExpiredToken"), (412, "PreconditionFailed")])
def test_permissive_tasks_of_spark_skip_no_object_that_is_not_given(store, status, code):
    store.objects[f"t-0/{0:020}.log"] = kc.encode([(b"k", b"v")] * 10)
    ranges = kc.log.Partition("s3://bucket/t-0").ranges()
    store.fault = on_get(lambda request: request.refuse(status, code))
    with pytest.raises(OSError) as caught:
        list(read_ranges(ranges, ["offset"], permissive=True, fail_on_data_loss=False))
    assert caught.value.filename == ranges[0].path


@pytest.mark.parametrize("silent", ["HEAD", "GET", "list"])
def test_control_c_ends_a_program_that_waits_for_a_silent_server(store, silent):
    waiting, ended = threading.Event(), threading.Event()

    def wait(request):
        if (request.command if request.key else "list") == silent:
            waiting.set()
            ended.wait(2 * SOON)

    store.fault = wait
    what = f"entries({URL.rpartition('/')[0]!r})" if silent == "list" else f"read_file({URL!r}, 1 << 20)"
    program = f"from kafkacodec.log.opening import entries, read_file\n{what}"
    process = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True)
    assert waiting.wait(SOON)
    time.sleep(0.05)  # until the program waits too
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=SOON)
    ended.set()
    assert said.rstrip().endswith("KeyboardInterrupt")


def test_what_is_read_ahead_is_bounded(store, monkeypatch):
    """As docs/object-stores.md says, with windows and requests that are 64 times smaller."""
    for name in ("LARGEST_WINDOW", "LARGEST_REQUEST", "AHEAD_BYTES"):
        monkeypatch.setattr(walk, name, getattr(walk, name) >> 6)
    store.objects["t-0/x.log"] = kc.encode([(b"k", os.urandom(1000))] * 8000, batch_bytes=16 << 10)
    size = len(store.objects["t-0/x.log"])
    store.tag = lambda data: '"always the same, and fast"'

    def asked():
        return max(span[1] for _, _, span in store.asked if span is not None)

    several = [kc.log.Segment(URL).read() for _ in range(2)]
    for chunk in next(zip(*several, strict=True)):
        assert asked() - chunk.consumed <= 32 << 20 >> 6
    several.clear()  # stops early
    time.sleep(0.1)
    assert asked() <= 32 << 20 >> 6
    most = max(asked() - chunk.consumed for chunk in kc.log.Segment(URL).read(max_rows=100))
    assert size > 80 << 20 >> 6 >= most > 48 << 20 >> 6
