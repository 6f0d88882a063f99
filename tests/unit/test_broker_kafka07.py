"""Kafka 0.7 at a listener of the broker: what a real 0.7.2 does with the same requests, over a socket."""

from __future__ import annotations

import gzip
import socket
import struct
import threading

import pytest

import kafkacodec as kc
from kafkacodec.dialects import kafka07
from kafkacodec.errors import INVALID_TOPIC_EXCEPTION
from tests.broker_wire import wire_to
from tests.kafka07_session import (
    Client,
    fetch,
    fetch_part,
    frame,
    message,
    multi_fetch,
    multi_produce,
    offsets,
    produce,
    produce_part,
    string,
    wrapper,
)

M = message(b"abc")
BAD = message(b"abc", crc=1)
LARGE = message(bytes(1_000_001))


def repr_size(data):
    return f"{len(data)} bytes"


@pytest.fixture(scope="module")
def broker():
    config = {"num.partitions": 2, "topic.partition.count.map": "one:1,three:3,odd", "log.file.size": 100}
    with kc.broker.serve(listen="kafka07://127.0.0.1:0", config=config) as found:
        yield found


@pytest.fixture
def client(broker):
    with Client(broker.listeners[0]) as found:
        yield found


@pytest.fixture
def topic(request):
    return f"t{abs(hash(request.node.name))}"


def files(broker, topic, partition=0):
    from pathlib import Path

    found = Path(broker.data).glob(f"{topic}-{partition}/*")
    return {path.name: path.read_bytes() for path in found}


def first(broker, topic, partition=0):
    return files(broker, topic, partition).get(f"{0:020}.kafka")


# Connections


def test_fifty_requests_in_one_write_are_answered_in_order(client, topic):
    client.send(produce(topic, 0, M, M), *(fetch(topic, 0, at, 1) for at in range(26) for _ in (0, 1)))
    assert [client.frame() for _ in range(52)] == [b"\0\0" + (M + M)[at : at + 1] for at in range(26) for _ in (0, 1)]


def test_a_request_may_come_byte_after_byte_and_be_followed_by_the_end(client, topic):
    for byte in produce(topic, 0, M) + fetch(topic, 0, 0):
        client.send(bytes([byte]))
    client.socket.shutdown(socket.SHUT_WR)
    assert client.frame() == b"\0\0" + M
    assert client.is_closed()


def test_what_was_before_a_bad_request_is_carried_out_and_what_is_behind_it_is_not(broker, client, topic):
    with Client(broker.listeners[0]) as other:
        client.send(produce(topic, 0, M), fetch(topic, 0, 0), produce(topic, 0, BAD), produce(topic, 0, M))
        assert client.frame() == b"\0\0" + M
        assert client.is_closed()
        assert other.read(topic) == M


@pytest.mark.parametrize("end", ["close", "reset"])
def test_a_produce_that_is_followed_by_the_end_is_appended(broker, topic, end):
    with Client(broker.listeners[0]) as gone, Client(broker.listeners[0]) as other:
        if end == "reset":
            gone.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        gone.send(produce(topic, 0, M))
        gone.close()
        while not other.read(topic):
            pass


@pytest.mark.parametrize(
    "data",
    [
        struct.pack(">i", 0),
        struct.pack(">i", -1),
        struct.pack(">i", (100 << 20) + 1),
        frame(5, b""),
        frame(-1, b""),
        frame(1, string("t") + struct.pack(">iq", 0, 0)),
        frame(0, string("t") + struct.pack(">i", 0)),
        frame(1, struct.pack(">hiqi", -1, 0, 0, 9)),
        frame(1, b""),
        multi_fetch(fetch_part("t", 0, 0), count=2),
        multi_fetch(count=-1),
        multi_produce(produce_part("never", 0, M), count=2),
        multi_produce(produce_part("never", 0, M), count=-1),
        produce("never", 0, M, size=len(M) + 1),
        produce("never", 0, M, size=-1),
        produce("never", 2, M),
        produce("never", -2, M),
        produce("one", 1, M),
        offsets("t", 2, -1, 1),
        offsets("a/b", 0, -1, 1),
        produce("", 0, M),
        produce("..", 0, M),
        produce("a/b", 0, M),
        produce("a\x00b", 0, M),
        produce("x" * 256, 0, M),
        produce(b"a\xff", 0, M),
    ],
    ids=repr_size,
)
def test_what_is_closed_without_an_answer(broker, client, data):
    client.send(data)
    assert client.is_closed()
    assert not files(broker, "never")


def test_a_size_is_refused_before_its_bytes_come_and_those_before_it_are_answered(client, topic):
    client.send(produce(topic, 0, M), fetch(topic, 0, 0), struct.pack(">i", -5))
    assert client.frame() == b"\0\0" + M
    assert client.is_closed()


def test_bytes_after_the_last_field_are_ignored(client, topic):
    client.send(frame(0, produce_part(topic, 0, M) + b"more"))
    client.send(multi_produce(produce_part(topic, 0, M), produce_part(topic, 0, M), count=1))
    assert client.ask(frame(1, fetch_part(topic, 0, 0) + b"more")) == b"\0\0" + M + M
    answer = client.ask(multi_fetch(fetch_part(topic, 0, 0, 5), fetch_part(topic, 0, 0), count=1))
    assert answer == b"\0\0" + struct.pack(">ih", 7, 0) + M[:5]


def test_multi_requests_of_no_parts(client):
    client.send(multi_produce())
    assert client.ask(multi_fetch()) == b"\0\0"


def test_the_order_of_checks(client, topic):
    client.send(produce(topic, 0, M))
    asked = [
        (fetch("a/b", 7, -5, 9), -1),
        (fetch(topic, 7, -5, 9), 3),
        (fetch(topic, -1, -5, 9), 3),
        (fetch(topic, 1, -5, 9), 0),
        (fetch(topic, 0, -5, 9), 1),
        (fetch(b"a\xff", 0, 0, 9), -1),
        (fetch("x" * 256, 0, 0, 9), -1),
    ]
    assert [client.code(request) for request, _ in asked] == [code for _, code in asked]


def test_a_multifetch_has_a_code_for_each_part(client, topic):
    client.send(produce(topic, 0, M))
    parts = fetch_part(topic, 0, 0), fetch_part(topic, 2, 0), fetch_part("a/b", 0, 0), fetch_part(topic, 0, 99)
    answer = client.ask(multi_fetch(*parts))
    assert answer == b"\0\0" + struct.pack(">ih", 2 + len(M), 0) + M + b"".join(
        struct.pack(">ih", 2, code) for code in (3, -1, 1)
    )


@pytest.mark.parametrize("name", ["a-b-7", "a.b", "a b", "a:b", "a,b", "é", "x" * 250])
def test_names_that_are_legal(broker, client, name):
    client.send(produce(name, 0, M))
    assert client.read(name) == M
    assert first(broker, name) == M


def test_no_more_of_a_request_than_it_says_is_taken_for_the_set(broker, client, topic):
    client.send(produce(topic, 0, M, M, size=len(M)))
    assert client.read(topic) == M


# Produce


@pytest.mark.parametrize(
    "bad",
    [
        M + BAD,
        wrapper(M, BAD),
        wrapper(wrapper(wrapper(BAD))),
        message(b"abc", magic=2),
        message(b"abc", attributes=3),
        message(b"not gzip", attributes=1),
        wrapper(message(b"abc", attributes=3)),
        M[:9],
        M[:4],
        M + bytes(4),
        bytes(4),
        struct.pack(">i", 4) + bytes(4),
        struct.pack(">ib", 5, 1) + bytes(4),
        M + struct.pack(">i", -1) + bytes(9),
        wrapper(M[:9]),
        wrapper(bytes(8)),
        message(gzip.compress(gzip.compress(M, mtime=0), mtime=0), attributes=1),
        BAD + LARGE,
    ],
    ids=repr_size,
)
def test_a_bad_set_closes_and_nothing_of_it_is_appended(broker, client, topic, bad):
    client.send(produce(topic, 0, bad))
    assert client.is_closed()
    assert files(broker, topic) == {f"{0:020}.kafka": b""}


def test_too_large_a_message_appends_nothing_and_keeps_the_connection(broker, client, topic):
    client.send(
        multi_produce(produce_part(topic, 0, M + LARGE), produce_part(topic, 1, M)), produce(topic, 0, LARGE + BAD)
    )
    assert client.read(topic, 0) == b""
    assert client.read(topic, 1) == M
    assert files(broker, topic) == {f"{0:020}.kafka": b""}


def test_the_limit_counts_outer_payloads_only(client, topic):
    whole = message(bytes(1_000_000))
    client.send(produce(topic, 0, whole), produce(topic, 1, wrapper(LARGE)))
    assert len(client.read(topic, 0, size=2_000_000)) == len(whole)
    assert client.read(topic, 1) == wrapper(LARGE)


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (M + b"\0\0\0", M),
        (M + M[:9], M),
        (b"\0\0\0", b""),
        (b"", b""),
        (message(b"abc", magic=0) + M, message(b"abc", magic=0) + M),
        (message(b"abc", attributes=0xFC), message(b"abc", attributes=0xFC)),
        (wrapper(), wrapper()),
        (wrapper(M + M[:9]), wrapper(M + M[:9])),
        (wrapper(wrapper(wrapper(M))), wrapper(wrapper(wrapper(M)))),
        (message(b""), message(b"")),
    ],
    ids=repr_size,
)
def test_what_is_kept_of_a_set(broker, client, topic, sent, kept):
    client.send(produce(topic, 0, sent))
    assert client.code(fetch(topic, 0, 0)) == 0
    assert first(broker, topic) == kept


def test_only_the_folder_of_the_partition_is_made(broker, client):
    client.send(produce("three", 1, M))
    assert client.read("three", 1) == M
    assert [bool(files(broker, "three", p)) for p in range(3)] == [False, True, False]


def test_partition_minus_one_is_drawn_anew_for_each_part(client):
    client.send(*(multi_produce(*[produce_part("three", -1, M)] * 10) for _ in range(30)))
    sizes = [client.offsets("three", p, -1, 1)[0] // len(M) for p in range(3)]
    assert sum(sizes) in (300, 301)
    assert min(sizes) > 50  # seldom in 10^9 runs fewer


def test_a_multiproduce_goes_part_by_part(broker, client, topic):
    client.send(multi_produce(*(produce_part(topic, 0, data) for data in (M, BAD, M))))
    assert client.is_closed()
    assert first(broker, topic) == M


# Fetch and OFFSETS


def test_bytes_come_from_any_offset_up_to_the_size_and_the_end_of_the_segment(client, topic):
    text = message(bytes(range(91)))  # 101 bytes: the segment is full
    client.send(produce(topic, 0, text), produce(topic, 0, M))
    assert client.read(topic, 0, 3, 10) == text[3:13]
    assert client.read(topic, 0, 100) == text[100:]
    assert client.read(topic, 0, 101) == M
    assert client.read(topic, 0, 0, 0) == b""
    assert client.read(topic, 0, 114) == b""
    assert client.code(fetch(topic, 0, 115)) == 1
    assert client.code(fetch(topic, 0, 0, -1)) == 4  # a real one sends what nobody can read


def test_who_reads_late_gets_every_byte(client, topic):
    whole = message(bytes(range(250)) * 3600)
    client.send(produce(topic, 0, whole), *(fetch(topic, 0, at, 1 << 20) for at in range(40)))
    client.send(multi_fetch(*[fetch_part(topic, 0, 5)] * 9))
    for at in range(40):
        assert client.frame() == b"\0\0" + whole[at:]
    part = struct.pack(">ih", 2 + len(whole) - 5, 0) + whole[5:]
    assert client.frame() == b"\0\0" + part * 9


def test_offsets(client, topic):
    for _ in range(3):
        client.send(produce(topic, 0, message(bytes(91))))
    assert client.offsets(topic, 0, -1, 10) == [303, 202, 101, 0]
    assert client.offsets(topic, 0, -1, 2) == [303, 202]
    assert client.offsets(topic, 0, -2, 10) == [0]
    assert client.offsets(topic, 0, -1, 0) == client.offsets(topic, 0, -2, 0) == []
    assert client.offsets(topic, 0, -3, 10) == client.offsets(topic, 0, 0, 10) == []
    assert client.offsets(topic, 0, 1 << 60, 10) == [303, 202, 101, 0]
    client.send(produce(topic, 0))  # a set without bytes rolls too
    assert client.offsets(topic, 0, -1, 10) == [303, 202, 101, 0]
    assert client.offsets(topic, 0, -1, -1) is None


def test_offsets_by_time_are_of_files(broker, client, topic):
    import os

    for _ in range(3):
        client.send(produce(topic, 0, message(bytes(91))))
    client.read(topic)
    for start, seconds in ((0, 100), (101, 300), (202, 200)):
        os.utime(f"{broker.data}/{topic}-0/{start:020}.kafka", (seconds, seconds))
    assert client.offsets(topic, 0, 99_999, 10) == []
    assert client.offsets(topic, 0, 100_000, 10) == [0]
    assert client.offsets(topic, 0, 250_000, 10) == [202, 101, 0]
    assert client.offsets(topic, 0, 300_000, 1) == [202]


def test_offsets_of_what_has_no_log(client):
    assert [client.offsets("none", 0, time, count) for time, count in ((-1, 1), (-1, 0), (-2, -3), (5, 1))] == [
        [0],
        [0],
        [0],
        [],
    ]
    assert client.code(fetch("none", 1, -7)) == 0


# Files


def test_a_segment_ends_one_set_above_its_size(broker, client, topic):
    full = message(bytes(90))  # exactly 100 bytes
    client.send(produce(topic, 0, full), produce(topic, 0, M), produce(topic, 0, M))
    assert client.offsets(topic, 0, -1, 9) == [126, 113, 0]
    assert files(broker, topic) == {f"{0:020}.kafka": full + M, f"{113:020}.kafka": M}


def test_what_was_written_is_read_by_the_other_tools(broker, client, topic):
    client.send(produce(topic, 0, kafka07.encode_messages([b"a", b"b"], codec="gzip"), M))
    client.read(topic)
    (columns,) = kc.log.LogDirectory(broker.data).read(topic, 0)
    assert columns.to_pyarrow().column("value").to_pylist() == [b"a", b"b", b"abc"]


def serving(data, **options):
    return kc.broker.serve(data, listen="kafka07://127.0.0.1:0", **options)


def test_a_torn_end_is_cut_at_the_next_start_but_not_after_a_clean_stop(tmp_path):
    path = tmp_path / "t-0" / "0.kafka"  # any number is a name
    path.parent.mkdir()
    for torn in (M[:9], BAD + M, b"\0\0\0\4abcd", message(b"x", magic=9), bytes(20)):
        path.write_bytes(M + torn)
        with serving(tmp_path) as broker, Client(broker.listeners[0]) as client:
            assert client.read("t") == M
        assert (tmp_path / ".kafka_cleanshutdown").exists()
        path.write_bytes(M + BAD)
        with serving(tmp_path) as broker, Client(broker.listeners[0]) as client:
            assert client.read("t") == M + BAD
            assert not (tmp_path / ".kafka_cleanshutdown").exists()
        (tmp_path / ".kafka_cleanshutdown").unlink()


def test_only_the_last_segment_is_recovered_and_codec_three_stays(tmp_path):
    odd = message(b"x", attributes=3) + wrapper(BAD)
    for start, data in ((0, BAD), (len(BAD), odd)):
        (tmp_path / "t-0").mkdir(exist_ok=True)
        (tmp_path / "t-0" / f"{start:020}.kafka").write_bytes(data)
    (tmp_path / "t-0" / "other").write_bytes(b"left alone")
    with serving(tmp_path) as broker, Client(broker.listeners[0]) as client:
        assert client.read("t") == BAD
        assert client.read("t", 0, len(BAD)) == odd
        assert client.offsets("t", 0, -1, 9) == [len(BAD) + len(odd), len(BAD), 0]
    assert (tmp_path / "t-0" / "other").exists()


@pytest.mark.parametrize("names", [["nodash"], ["t-x"], ["-3"]])
def test_folders_of_no_partition_keep_it_from_starting(tmp_path, names):
    for name in names:
        (tmp_path / name).mkdir()
    with pytest.raises(OSError, match="partition"):
        serving(tmp_path)


@pytest.mark.parametrize("second", [f"{12:020}.kafka", "x.kafka"])
def test_segments_that_do_not_join_keep_it_from_starting(tmp_path, second):
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / f"{0:020}.kafka").write_bytes(M)
    (tmp_path / "t-0" / second).write_bytes(M)
    with pytest.raises(OSError, match="kafka"):
        serving(tmp_path)


def test_partitions_beyond_the_count_are_kept_and_refused(tmp_path):
    (tmp_path / "t-5").mkdir()
    (tmp_path / "t-5" / f"{0:020}.kafka").write_bytes(M)
    with serving(tmp_path, topics={"t": 2}) as broker, Client(broker.listeners[0]) as client:
        assert [client.code(fetch("t", p, 0)) for p in (0, 1, 2, 5)] == [0, 0, 3, 3]
    assert (tmp_path / "t-5" / f"{0:020}.kafka").read_bytes() == M


def test_what_is_not_flushed_is_in_the_file_and_seen_after_a_restart(tmp_path):
    config = {"log.flush.interval": 5, "log.default.flush.scheduler.interval.ms": 1_000_000}
    with serving(tmp_path, config=config) as broker, Client(broker.listeners[0]) as client:
        client.send(produce("t", 0, M))
        assert client.read("t") == b""
        assert first(broker, "t") == M
        assert client.code(fetch("t", 0, len(M))) == 1
        assert client.offsets("t", 0, -1, 5) == [0]
        client.send(produce("t", 0, wrapper(M, M, M, M)))  # four more: five
        assert client.read("t") == M + wrapper(M, M, M, M)
        client.send(produce("t", 0, message(b"last")))
    with serving(tmp_path, config=config) as broker, Client(broker.listeners[0]) as client:
        assert client.read("t").endswith(message(b"last"))


def test_time_flushes_too(tmp_path):
    config = {"log.flush.interval": 1000, "log.default.flush.scheduler.interval.ms": 20}
    with serving(tmp_path, config=config) as broker, Client(broker.listeners[0]) as client:
        client.send(produce("t", 0, M))
        while client.read("t") != M:
            pass


def test_rolling_flushes_the_old_segment(tmp_path):
    config = {
        "log.flush.interval": 1000,
        "log.default.flush.scheduler.interval.ms": 1_000_000,
        "topic.log.file.size": "t:10",
    }
    with serving(tmp_path, config=config) as broker, Client(broker.listeners[0]) as client:
        client.send(produce("t", 0, M), produce("t", 0, M))
        assert client.read("t") == M
        assert client.code(fetch("t", 0, len(M) + 1)) == 1


def test_records_are_seen_when_the_disk_has_them(tmp_path, monkeypatch):
    import os

    let_go = threading.Event()
    real = os.fsync

    def slow(fd):
        if os.readlink(f"/proc/self/fd/{fd}").endswith(".kafka"):
            let_go.wait(60)
        real(fd)

    monkeypatch.setattr(os, "fsync", slow)
    with serving(tmp_path, flush="always") as broker, Client(broker.listeners[0]) as client:
        client.send(produce("t", 0, M))
        with Client(broker.listeners[0]) as other:
            while first(broker, "t") != M:
                pass
            assert other.read("t") == b""
        let_go.set()
        assert client.read("t") == M


def test_what_a_connection_has_written_is_on_the_disk_before_it_reads_it(tmp_path, monkeypatch):
    import os

    let_go = threading.Event()
    real = os.fsync

    def slow(fd):
        if os.readlink(f"/proc/self/fd/{fd}").endswith(".kafka"):
            let_go.wait(60)
        real(fd)

    monkeypatch.setattr(os, "fsync", slow)
    config = {"num.partitions": 2}
    with serving(tmp_path, flush="always", config=config) as broker, Client(broker.listeners[0]) as client:
        parts = [produce_part("t", number, M) for number in (0, 1)]
        reads = [offsets("t", 0, -1, 1), multi_fetch(fetch_part("t", 0, 0), fetch_part("t", 1, 0))]
        client.send(multi_produce(*parts), fetch("t", 0, 0), *reads, produce("t", 0, M), fetch("none", 0, 0))
        while first(broker, "t") != M + M:  # what is behind the reads is carried out
            pass
        let_go.set()
        whole = struct.pack(">ih", 2 + len(M), 0) + M
        assert client.frame()[: 2 + len(M)] == b"\0\0" + M
        assert struct.unpack(">hiq", client.frame())[2] >= len(M)
        assert client.frame().endswith(whole)
        assert client.frame() == b"\0\0"


def test_a_disk_that_cannot_flush_keeps_no_reader_waiting(tmp_path, monkeypatch):
    import os

    real = os.fsync
    fails = True

    def failing(fd):
        if fails and os.readlink(f"/proc/self/fd/{fd}").endswith(".kafka"):
            raise OSError(5, "Input/output error")
        real(fd)

    monkeypatch.setattr(os, "fsync", failing)
    config = {"log.default.flush.scheduler.interval.ms": 20}
    with serving(tmp_path, flush="always", config=config) as broker, Client(broker.listeners[0]) as client:
        client.send(produce("t", 0, M))
        assert client.read("t") == b""
        fails = False
        while client.read("t") != M:
            pass


def test_a_disk_that_fails_closes_and_the_next_message_is_whole(tmp_path, monkeypatch):
    from kafkacodec.log.growing.disk import Disk

    real = Disk.write

    def failing(self, file, data, position):
        if file.path.endswith(".kafka"):
            real(self, file, data[:3], position)
            raise OSError(28, "No space left on device", file.path)
        real(self, file, data, position)

    with serving(tmp_path) as broker:
        with Client(broker.listeners[0]) as client:
            client.send(produce("t", 0, M))
            assert client.read("t") == M
            with monkeypatch.context() as patch:
                patch.setattr(Disk, "write", failing)
                client.send(produce("t", 0, M))
                assert client.is_closed()
        with Client(broker.listeners[0]) as client:
            client.send(produce("t", 0, message(b"next")))
            assert client.read("t") == M + message(b"next")


def test_names_are_of_one_protocol(tmp_path):
    listen = ("kafka07://127.0.0.1:0", "kafka://127.0.0.1:0")
    with kc.broker.serve(tmp_path, listen=listen, topics={"newer": 1}) as broker:
        with Client(broker.listeners[0]) as client:
            client.send(produce("older", 0, M))
            assert client.read("older") == M
            assert [client.code(fetch(name, 0, 0)) for name in ("newer", "__consumer_offsets")] == [-1, -1]
            client.send(produce("newer", 0, M))
            assert client.is_closed()
        with pytest.raises(kc.errors.BrokerError, match="already exists"):
            broker.create_topic("older")
        assert len(broker.records("newer")) == 0
        assert [bytes(value) for value in broker.records("older")["value"]] == [b"abc"]
        assert broker.write("newer", [kc.Record(0, None, 0, b"k", b"v", ())]) == 0


def values(*found):
    return [kc.Record(i, None, 0, None, value, ()) for i, value in enumerate(found)]


def test_the_handle_reads_and_writes_topics(tmp_path):
    config = {"num.partitions": 2, "log.file.size": 100, "max.message.size": 1000}
    listen = "kafka07://127.0.0.1:0"
    with kc.broker.serve(tmp_path, listen=listen, config=config) as broker, Client(broker.listeners[0]) as client:
        client.send(produce("t", 1, M * 30))
        assert client.read("t", 1) == M * 30
        assert broker.write("t", values(b"one", b"two"), partition=1) == 30 * len(M)
        assert broker.write("t", values(b"three"), partition=0) == 0
        assert client.read("t", 0) == message(b"three")
        found = broker.records("t")
        assert [bytes(value) for value in found["value"]] == [b"three", *[b"abc"] * 30, b"one", b"two"]
        assert [int(offset) for offset in found["offset"]][:3] == [0, 0, len(M)]
        assert found.column_names == kc.decode(b"", columns=None).column_names
        for call in (lambda: broker.records("nope"), lambda: broker.write("t", values(b"v"), partition=2)):
            with pytest.raises(KeyError):
                call()
        for record in (kc.Record(0, None, 0, b"k", b"v", ()), kc.Record(0, None, 0, None, None, ())):
            with pytest.raises(kc.EncodeError, match="neither key nor headers"):
                broker.write("t", [record])
        with pytest.raises(kc.EncodeError, match="exceeds 1,000"):
            broker.write("t", values(bytes(1001)))


def test_what_the_handle_writes_is_seen_when_it_is_flushed(tmp_path):
    config = {"log.flush.interval": 3, "log.default.flush.interval.ms": 1_000_000}
    with kc.broker.serve(tmp_path, listen="kafka07://127.0.0.1:0", config=config, clock="manual") as broker:
        broker.write("t", values(b"one", b"two"))
        assert len(broker.records("t")) == 0
        broker.write("t", values(b"three"))
        assert len(broker.records("t")) == 3
    with kc.broker.serve(tmp_path, listen="kafka07://127.0.0.1:0", flush="always") as broker:
        broker.write("t", values(b"four"))
        assert [bytes(value) for value in broker.records("t")["value"]] == [b"one", b"two", b"three", b"four"]


def test_lines_and_kafka07_have_topics_of_their_own(tmp_path):
    listen = ("kafka07://127.0.0.1:0", "line://127.0.0.1:0")
    with kc.broker.serve(tmp_path, listen=listen) as broker, Client(broker.listeners[0]) as client:
        client.send(produce("older", 0, M))
        assert client.read("older") == M
        with Client(broker.listeners[1]) as lines, lines.socket.makefile("rwb") as file:
            file.write(b"V1|1|PRODUCE|older k:v\nV1|2|PRODUCE|newer k:v\n")
            file.flush()
            assert file.readline().startswith(b"V1|1|ERR|BAD_REQUEST|")
            assert file.readline() == b"V1|2|OK|partition=0 offset=0 hw=1\n"
        assert client.code(fetch("newer", 0, 0)) == -1
        assert client.read("older") == M


def test_a_broker_of_kafka07_alone_has_no_other_topics(broker):
    with pytest.raises(KeyError, match="there is no topic 'new'"):
        broker.records("new")
    with pytest.raises(kc.EncodeError, match="neither key nor headers"):
        broker.write("new", [kc.Record(0, None, 0, b"k", b"v", ())])
    with pytest.raises(KeyError, match="there is no topic 'new'"):
        broker.records("new")


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("topic.partition.count.map", "t:0", "greater"),
        ("log.flush.interval", 0, "from 1"),
        ("max.message.size", "much", "not a number"),
    ],
)
def test_wrong_properties(name, value, match):
    with pytest.raises(ValueError, match=match):
        serving(None, config={name: value})


@pytest.mark.parametrize("flush", ["system", "always"])
def test_a_client_that_stops_sending_gets_its_answers(flush):
    with kc.broker.serve(listen="kafka07://127.0.0.1:0", flush=flush) as broker, Client(broker.listeners[0]) as client:
        client.send(produce("t", 0, M), fetch("t", 0, 0), offsets("t", 0, -1, 1))
        client.socket.shutdown(socket.SHUT_WR)
        assert client.frame() == b"\0\0" + M
        assert client.frame() == struct.pack(">hiq", 0, 1, len(M))
        assert client.frame() is None


def test_later_clients_cannot_have_the_name_of_a_topic(tmp_path, caplog):
    """Its segments and those of a later topic would be in one directory, and only one of them could be read."""
    listen = ["kafka07://127.0.0.1:0", "kafka://127.0.0.1:0"]
    for listeners in (listen, listen[1:]):
        with kc.broker.serve(tmp_path, listen=listeners) as broker, wire_to(broker) as wire:
            if len(listeners) > 1:
                with Client(broker.listeners[0]) as client:
                    client.send(produce("orders", 0, M))
                    assert client.read("orders") == M
            for _ in range(2):
                answer = wire.ask("Metadata", 9, topics=[{"name": "orders"}], allow_auto_topic_creation=True)
                assert [row.error_code for row in answer.topics] == [INVALID_TOPIC_EXCEPTION]
            with pytest.raises(kc.BrokerError, match="Topic 'orders' already exists, in another protocol"):
                broker.create_topic("orders")
        assert [path.suffix for path in (tmp_path / "orders-0").iterdir()] == [".kafka"]
    assert "orders: not served, since topics of Kafka 0.7 need a kafka07:// listener" in caplog.text
    with kc.broker.serve(tmp_path, listen=listen[0]) as broker, Client(broker.listeners[0]) as client:
        assert client.read("orders") == M
