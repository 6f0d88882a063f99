"""What a consumer's machines do with the answers of brokers, on the model of a cluster."""

from __future__ import annotations

import pytest

import kafkacodec as kc
from kafkacodec.client.consuming.fetcher import Fetcher
from kafkacodec.client.consuming.looking import Looking
from kafkacodec.client.consuming.offset_lookup import OffsetLookup
from kafkacodec.client.consuming.positions import PartitionState, Position
from kafkacodec.client.consuming.reset_policy import ResetPolicy, reset_policy
from kafkacodec.client.consuming.subscription import AllPartitions
from kafkacodec.client.consuming.validation import Validation
from kafkacodec.errors import (
    BrokerError,
    CrcMismatch,
    LimitExceeded,
    LocalProtocolError,
    LogTruncated,
    RemoteProtocolError,
    UnsupportedVersion,
)
from tests.reference.model_broker import ModelCluster
from tests.reference.model_consumer import ModelConsumer

FETCH, LIST_OFFSETS, EPOCHS = 1, 2, 23


def put(model, *values, partition=0, **options):
    records = [(None, value) for value in values]
    appended = model.logs["t", partition].append(kc.encode(records, **options), model.leaders["t", partition].epoch)
    assert appended.code == 0
    return appended.base


def consumer(model, *numbers, **options):
    made = ModelConsumer(model, **{"auto_offset_reset": "earliest", **options})
    made.assign(*(("t", number) for number in numbers or [0]))
    return made


def fetches(model):
    return [request for _, request, _ in model.requests if request.api_key == FETCH]


@pytest.mark.parametrize("version", range(4, 19))
def test_every_version_of_fetch(version):
    model = ModelCluster(2, {"t": 2}, versions={FETCH: range(4, version + 1)})
    for number in range(6):
        put(model, b"a%d" % number, b"b", partition=number % 2)
    read = consumer(model, 0, 1)
    assert sorted(read.read_all()) == [(p, o) for p in range(2) for o in range(6)]
    assert read.state().position.offset == 6
    put(model, b"later")
    assert read.read_all() == [(0, 6)]


def test_a_session_sends_what_changed():
    model = ModelCluster(1, {"t": 3})
    read = consumer(model, 0, 1, 2)
    put(model, b"a", partition=1)
    assert read.read_all(1200) == [(1, 0)]
    first, second, third = fetches(model)[:3]
    assert first.session_epoch == 0
    assert [len(t.partitions) for t in first.topics] == [3]
    assert second.session_id == third.session_id != 0
    assert (second.session_epoch, third.session_epoch) == (1, 2)
    assert [[p.partition for p in t.partitions] for t in second.topics] == [[1]]
    assert third.topics == []
    read.positions.pause(("t", 2))
    read.read_all(600)
    assert [t.partitions for t in fetches(model)[-1].forgotten_topics_data or []] in ([[2]], [])
    assert any(t.partitions == [2] for request in fetches(model) for t in request.forgotten_topics_data)
    read.positions.resume(("t", 2))
    put(model, b"c", partition=2)
    assert read.read_all() == [(2, 0)]


@pytest.mark.parametrize("lost", ["session", "limit"])
def test_a_lost_session_is_made_again(lost):
    model = ModelCluster(1, {"t": 1})
    if lost == "limit":
        model.sessions.limit = 0
    read = consumer(model)
    put(model, b"a")
    assert read.read_all(1000) == [(0, 0)]
    model.sessions.lose(1)
    put(model, b"b")
    assert read.read_all(1500) == [(0, 1)]
    assert fetches(model)[-1].session_epoch == (0 if lost == "limit" else 1) or lost == "session"


@pytest.mark.parametrize("policy", ["earliest", "latest", "none"])
def test_offset_out_of_range(policy):
    model = ModelCluster(1, {"t": 1})
    for _ in range(10):
        put(model, b"x")
    read = consumer(model)
    assert len(read.read_all(500)) == 10
    read = consumer(model, auto_offset_reset=policy)
    if policy == "none":
        with pytest.raises(kc.KafkaCodecError, match='t-0: no committed offset, and auto_offset_reset is "none"'):
            read.read_all(500)
    read.positions.seek(("t", 0), Position(2))
    model.logs["t", 0].delete_before(5)
    read.network.poll()
    if policy == "none":
        for _ in range(2):  # until the user does something about it
            with pytest.raises(BrokerError, match="t-0: the broker does not have offset 2") as caught:
                read.read_all(2000)
            assert caught.value.code == 1
        read.positions.seek(("t", 0), Position(6))
        assert read.read_all(2000) == [(0, o) for o in range(6, 10)]
        return
    expected = [(0, o) for o in range(5, 10)] if policy == "earliest" else []
    assert read.read_all(2000) == expected
    put(model, b"new")
    assert read.read_all(2000) == [(0, 10)]


@pytest.mark.parametrize("version", [12, 18])
def test_leader_epochs_begin_again_with_a_topic_that_is_made_again(version):
    model = ModelCluster(2, {"t": 1}, versions={FETCH: range(4, version + 1)})
    for _ in range(3):
        model.move_leader("t", 0, 1)
    put(model, b"old")
    read = consumer(model)
    assert read.read_all(1000) == [(0, 0)]
    model.delete("t")
    model.create("t")
    put(model, b"new", b"newer")
    query = read.lookup.ask({("t", 0): -1})
    read.network.run(3000, until=lambda: query.done)
    assert query.found[("t", 0)].offset == 2
    assert read.read_all(5000) == [(0, 0), (0, 1)]


@pytest.mark.parametrize("version", [12, 18])
def test_a_fetch_finds_out_that_leader_epochs_began_again(version):
    model = ModelCluster(2, {"t": 1}, versions={FETCH: range(4, version + 1)})
    for _ in range(3):
        model.move_leader("t", 0, 1)
    put(model, b"old")
    read = consumer(model)
    assert read.read_all(1000) == [(0, 0)]
    model.delete("t")
    model.create("t")
    put(model, b"new", b"newer")
    assert read.read_all(5000) == [(0, 0), (0, 1)]


def test_positions_that_are_never_in_range():
    model = ModelCluster(1, {"t": 1})
    put(model, b"x")
    read = consumer(model)
    model.fail("Fetch", 1, times=20)
    assert read.read_all(5000) == []
    assert 3 < len(fetches(model)) < 12
    assert read.read_all(30_000) == [(0, 0)]


def test_positions_by_time():
    model = ModelCluster(1, {"t": 1})
    model.now = 10 * 3_600_000.0
    records = [kc.Record(0, hour * 3_600_000, 0, None, b"x", ()) for hour in range(10)]
    for record in records:
        assert model.logs["t", 0].append(kc.encode([record]), 0).code == 0
    read = consumer(model, auto_offset_reset="by_duration:PT2H30M")
    assert read.read_all() == [(0, 8), (0, 9)]
    read = consumer(model, auto_offset_reset="by_duration:PT0.5S")  # nothing is as late: the end
    put(model, b"after")
    read.network.run(10)
    query = read.lookup.ask({("t", 0): 5 * 3_600_000, ("t", 1): -1})
    read.network.run(600)  # a fetch may wait for records before
    assert query.found == {("t", 0): (5, 5 * 3_600_000, 0)}
    assert query.left == {("t", 1)}  # there is no such partition
    assert not query.done


@pytest.mark.parametrize("age_hours", [0, 3])
def test_a_record_that_comes_while_the_end_is_looked_up(age_hours):
    model = ModelCluster(1, {"t": 1})
    model.now = 10 * 3_600_000.0
    put(model, b"without a timestamp")
    read = consumer(model, auto_offset_reset="by_duration:PT1H")
    assert read.network.run(1000, until=lambda: read.state().sought == -1)
    record = kc.Record(0, int(model.now) - age_hours * 3_600_000, 0, None, b"x", ())
    assert model.logs["t", 0].append(kc.encode([record]), 0).code == 0
    assert read.read_all(1000) == [(0, 1)] * (not age_hours)
    assert read.state().position.offset == 2


def test_old_brokers_have_no_offsets_by_time():
    model = ModelCluster(1, {"t": 1}, versions={LIST_OFFSETS: range(1)})
    put(model, b"a", b"b")
    read = consumer(model)
    assert read.read_all() == [(0, 0), (0, 1)]
    query = read.lookup.ask({("t", 0): 5})
    read.network.run(200)
    assert isinstance(query.error, UnsupportedVersion)


def test_a_broker_without_a_common_version():
    model = ModelCluster(1, {"t": 1}, versions={FETCH: range(100, 101)})
    read = consumer(model)
    for _ in range(2):
        with pytest.raises(UnsupportedVersion, match="Fetch"):
            read.read_all(5000)


@pytest.mark.parametrize("code", [3, 5, 6, 9, 56, 74, 75, 78, 100, 103, -1])
def test_errors_that_pass(code):
    model = ModelCluster(3, {"t": 1})
    read = consumer(model)
    put(model, b"a")
    model.fail("Fetch", code, times=2)
    model.fail("ListOffsets", code if code > 0 else 7, times=2)
    assert read.read_all(5000) == [(0, 0)]
    assert len(fetches(model)) < 30


@pytest.mark.parametrize("code", [2, 29, 87])
def test_errors_that_do_not_pass(code):
    model = ModelCluster(1, {"t": 1})
    read = consumer(model)
    put(model, b"a")
    assert read.read_all(600) == [(0, 0)]
    model.fail("Fetch", code, times=3)
    for _ in range(3):
        with pytest.raises(BrokerError, match="t-0 at offset 1") as caught:
            read.read_all(5000)
        assert caught.value.code == code
    put(model, b"b")
    assert read.read_all(5000) == [(0, 1)]


def test_a_new_leader_is_taken_from_the_answer():
    model = ModelCluster(2, {"t": 1})
    read = consumer(model)
    put(model, b"a")
    assert read.read_all(300) == [(0, 0)]
    asked = sum(request.api_key == 3 for _, request, _ in model.requests)
    model.move_leader("t", 0)
    put(model, b"b")
    read.network.advance(500)
    assert read.read_all(400) == [(0, 1)]
    assert sum(request.api_key == 3 for _, request, _ in model.requests) == asked


@pytest.mark.parametrize("policy", ["earliest", "none"])
def test_truncation_is_found(policy):
    model = ModelCluster(2, {"t": 1})
    read = consumer(model)
    for _ in range(6):
        put(model, b"x")
    assert len(read.read_all(500)) == 6
    if policy == "none":
        read.positions.policy = ResetPolicy(None)
    model.lose("t", 0, 3)
    for value in (b"3", b"4"):
        put(model, value)
    if policy == "none":
        with pytest.raises(LogTruncated, match="differs from offset 3 on") as caught:
            read.read_all(3000)
        assert caught.value.divergent_offset == 3
        read.positions.seek(("t", 0), Position(3))
    assert read.read_all(3000) == [(0, 3), (0, 4)]


@pytest.mark.parametrize("mode", ["columns", "getmany", "iterate"])
def test_a_position_inside_a_part_of_several_epochs_has_one(mode):
    model = ModelCluster(2, {"t": 1})
    for _ in range(3):
        put(model, b"a", b"b")
        put(model, b"c")
        model.move_leader("t", 0)
    read = consumer(model)
    read.wait()
    epochs = []
    for _ in range(9):
        if mode == "columns":
            assert len(read.reader.columns(1)) == 1
        elif mode == "getmany":
            assert read.reader.records_by_partition(1)
        else:
            next(read.reader.iterated())
        read.reader.update_position()
        epochs.append(read.state().position.leader_epoch)
    assert epochs == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    read.positions.seek(("t", 0), Position(0))
    read.state().end = 5  # as `assign_ranges` has it
    assert read.read_all() == [(0, o) for o in range(5)]
    assert read.state().position == Position(5, 1)


@pytest.mark.parametrize(("offset", "expected"), [(3, [3, 4, 5]), (6, []), (7, [0, 1, 2, 3, 4, 5])])
def test_a_committed_epoch_that_the_partition_never_had(offset, expected, caplog):
    """As after a cluster was restored, a group was copied, or a topic was made again."""
    model = ModelCluster(2, {"t": 1})
    for _ in range(6):
        put(model, b"x")
    read = ModelConsumer(model, auto_offset_reset="earliest")
    read.network.cluster.want({"t"})
    read.positions.assign([("t", 0)], committed=True)
    read.positions.set_committed(("t", 0), Position(offset, 50))
    assert read.read_all(3000) == [(0, o) for o in expected]
    assert ["never had leader epoch 50" in text for text in caplog.messages] == [True, False][: 1 + (offset == 7)]


def test_old_metadata_makes_no_committed_epoch_unknown(caplog):
    model = ModelCluster(2, {"t": 1})
    put(model, b"a", b"b")
    read = ModelConsumer(model, auto_offset_reset="earliest")
    read.network.cluster.want({"t"})
    read.network.run(100)
    old = model.leaders["t", 0].leader
    model.move_leader("t", 0, 3 - old)
    put(model, b"c", b"d")
    read.positions.assign([("t", 0)], committed=True)
    read.positions.set_committed(("t", 0), Position(3, 1))
    assert read.read_all(3000) == [(0, 3)]
    assert not [text for text in caplog.messages if "never had leader epoch" in text]


def test_a_broker_that_cannot_validate():
    model = ModelCluster(2, {"t": 1}, versions={EPOCHS: range(2)})
    read = consumer(model)
    put(model, b"x")
    assert read.read_all(500) == [(0, 0)]
    model.move_leader("t", 0)
    put(model, b"y")
    assert read.read_all(3000) == [(0, 1)]


def test_a_near_replica():
    model = ModelCluster(2, {"t": 1})
    model.read_replicas["t", 0] = 2
    put(model, b"x")
    read = consumer(model, client_rack="here")
    assert read.read_all(500) == [(0, 0)]
    assert {node for node, request, _ in model.requests if request.api_key == FETCH} == {1, 2}
    assert read.state().preferred == 2
    model.stop(2)
    read.network.stop(2)
    put(model, b"y")
    del model.read_replicas["t", 0]
    assert read.read_all(3000) == [(0, 1)]
    assert read.state().preferred is None


def test_a_near_replica_that_metadata_does_not_have():
    model = ModelCluster(2, {"t": 1})
    model.read_replicas["t", 0] = 7
    put(model, b"x")
    read = consumer(model, client_rack="here")
    assert read.read_all(5000) == []
    assert len(fetches(model)) < 20
    del model.read_replicas["t", 0]
    assert read.read_all(3000) == [(0, 0)]


@pytest.mark.parametrize("code", [70, 71, 100, 103, 106, -1, 31])
def test_a_broker_that_refuses_all_fetches(code):
    model = ModelCluster(1, {"t": 1})
    read = consumer(model)
    put(model, b"x")
    assert read.read_all(600) == [(0, 0)]
    before = len(fetches(model))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(model.sessions, "of", lambda *asked: (code, 0, None))
        if code == 31:
            with pytest.raises(BrokerError, match="t-0: CLUSTER_AUTHORIZATION_FAILED"):
                read.read_all(5000)
        else:
            assert read.read_all(5000) == []
            assert 3 < len(fetches(model)) - before < 20
    put(model, b"x")
    assert read.read_all(5000) == [(0, 1)]


@pytest.mark.parametrize("kind", ["fetcher", "lookup"])
def test_a_broker_whose_answers_are_nonsense(monkeypatch, kind):
    nonsense = RemoteProtocolError("broker h:1: unexpected correlation id 7")
    for bad, wanted in ((2, [(0, 0)]), (3, None)):
        model = ModelCluster(1, {"t": 1})
        put(model, b"x")
        read = ModelConsumer(model, auto_offset_reset="earliest")
        machine = getattr(read, kind)
        taken, left = machine.answered, [nonsense] * bad

        def answered(send, answer, now, machine=machine, taken=taken, left=left):
            if left:
                machine.failed(send, left.pop(), now)
            else:
                taken(send, answer, now)

        monkeypatch.setattr(machine, "answered", answered)
        read.assign(("t", 0))
        if wanted is None:
            with pytest.raises(RemoteProtocolError, match="unexpected correlation id 7"):
                read.read_all(5000)
        else:
            assert read.read_all(5000) == wanted
    assert read.read_all(5000) == [(0, 0)]


def test_a_batch_larger_than_the_limits():
    for version in (4, 18):
        model = ModelCluster(1, {"t": 2}, versions={FETCH: range(4, version + 1)})
        put(model, b"x" * 5000)
        put(model, b"y" * 9000, partition=1)
        read = consumer(model, 0, 1, max_partition_fetch_bytes=100, fetch_max_bytes=200)
        assert sorted(read.read_all()) == [(0, 0), (1, 0)]


def test_room_for_what_is_fetched_ahead():
    model = ModelCluster(1, {"t": 1})
    for _ in range(100):
        put(model, b"x" * 10_000)
    read = consumer(model, max_partition_fetch_bytes=30_000, fetch_max_bytes=30_000, prefetch_bytes=70_000)
    most = 0

    def look():
        nonlocal most
        most = max(most, read.fetcher.kept_bytes)
        return False

    read.network.run(5000, until=look)
    assert 30_000 < most <= 70_000
    assert read.read_all() == [(0, o) for o in range(100)]
    assert read.fetcher.kept_bytes == 0


def test_a_refused_topic_does_not_keep_others_from_their_positions():
    model = ModelCluster(1, {"t": 1, "u": 1})
    model.refusals["u"] = 29
    read = ModelConsumer(model, auto_offset_reset="earliest")
    read.assign(("u", 0), ("t", 0))
    read.network.run(1000)
    assert read.state().position == Position(0)
    for _ in range(2):
        with pytest.raises(BrokerError, match="topic 'u': TOPIC_AUTHORIZATION_FAILED"):
            read.read_all(1000)
    del model.refusals["u"]  # the next error is the last one
    with pytest.raises(BrokerError, match="topic 'u': TOPIC_AUTHORIZATION_FAILED"):
        read.read_all(1000)
    read.network.run(200)
    with pytest.raises(BrokerError, match="topic 'u': TOPIC_AUTHORIZATION_FAILED"):
        read.reader.columns()
    assert read.read_all(1000) == []
    assert read.state(topic="u").position == Position(0)


def test_room_for_what_is_fetched_ahead_while_brokers_come():
    model = ModelCluster(3, {"t": 3})
    for partition in range(3):
        for _ in range(100):
            put(model, b"x" * 1000, partition=partition)
    read = consumer(model, 0, max_partition_fetch_bytes=5000, fetch_max_bytes=50_000, prefetch_bytes=20_000)
    for numbers in ([0], [0, 1], [0, 1, 2]):
        read.assign(*(("t", number) for number in numbers))
        read.network.run(3000)
        assert 10_000 < read.fetcher.kept_bytes <= 20_000
    assert sorted(read.read_all(60_000)) == [(p, o) for p in range(3) for o in range(100)]
    assert read.fetcher.kept_bytes == 0


@pytest.mark.parametrize("mode", ["columns", "getmany", "iterate"])
def test_damage_in_the_middle(mode):
    model = ModelCluster(1, {"t": 2})
    log = model.logs["t", 0]
    for number in range(6):
        put(model, b"v%d" % number, b"w")
    stored = log.batches[3]
    log.batches[3] = stored._replace(data=stored.data[:-3] + b"\xff" + stored.data[-2:])
    read = consumer(model)
    read.positions.seek(("t", 0), Position(0))
    for _ in range(2):
        found, error = until_error(read, mode)
        assert isinstance(error, CrcMismatch)
        assert str(error).startswith("t-0: batch at offset 6: ")
        assert "seek('t', 0, 8) skips the batch" in str(error)
        # Only the first time: the second one starts at the damage.
        assert found in ([0, 1, 2, 3, 4, 5], [])
        assert read.state().position.offset == 6
    read.positions.seek(("t", 0), Position(8))
    read.wait()
    assert offsets_of(read, mode) == [8, 9, 10, 11]


def until_error(read, mode):
    found = []
    while True:
        read.wait()
        try:
            found += offsets_of(read, mode)
        except kc.KafkaCodecError as error:
            return found, error


def offsets_of(read, mode):
    if mode == "columns":
        table = read.reader.columns()
        return [] if table is None else table["offset"].tolist()
    if mode == "getmany":
        return [record.offset for records in read.reader.records_by_partition(100).values() for record in records]
    records = read.reader.iterated()
    return [] if records is None else [record.offset for record in records]


def test_a_batch_that_no_response_can_hold():
    model = ModelCluster(1, {"t": 1})
    stored = model.logs["t", 0]
    put(model, b"x" * 100_000)
    stored.read = lambda offset, limit, until, whole_first: stored.batches[0].data[: 0 if offset else limit]
    model_has_whole = "tests.reference.model_partitions._has_whole_batch"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(model_has_whole, lambda records: True)
        read = consumer(model, max_partition_fetch_bytes=1000, receive_message_max_bytes=50_000)
        with pytest.raises(LimitExceeded, match=r"t-0: the batch at offset 0 has 1000\d\d bytes"):
            read.read_all()
        read = consumer(model, max_partition_fetch_bytes=1000)
        assert read.read_all(500) == [(0, 0)]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["columns", "getmany", "iterate"])
def test_a_batch_larger_than_the_limit_when_it_is_decompressed(mode):
    model = ModelCluster(1, {"t": 1})
    put(model, b"a")
    put(model, bytes(129 << 20), codec="zstd")
    put(model, b"b")
    read = consumer(model)
    found, caught = until_error(read, mode)
    assert found == [0]
    assert isinstance(caught, LimitExceeded)
    assert "raise max_decompressed_bytes (max.decompressed.bytes) to read it" in str(caught)
    assert "seek('t', 0, 2) skips the batch" in str(caught)
    assert str(caught).startswith("t-0: ")
    read = consumer(model, max_decompressed_bytes=130 << 20)
    assert read.read_all() == [(0, 0), (0, 1), (0, 2)]


def test_paused_partitions_give_nothing():
    model = ModelCluster(1, {"t": 2})
    for partition in range(2):
        put(model, *[b"x"] * 100, partition=partition)
    read = consumer(model, 0, 1)
    read.wait()
    read.positions.pause(("t", 0))
    read.network.poll()
    assert read.read_all(500) == [(1, o) for o in range(100)]
    read.positions.resume(("t", 0))
    assert read.read_all(500) == [(0, o) for o in range(100)]


def test_what_was_iterated_over_is_the_position():
    model = ModelCluster(1, {"t": 1})
    put(model, *[b"x"] * 10)
    read = consumer(model)
    read.wait()
    records = read.reader.iterated()
    assert next(records).offset == 0
    assert next(records).offset == 1
    read.reader.update_position()
    assert read.state().position.offset == 2
    assert read.state().processed.offset == 1  # the application works on it
    assert [r.offset for r in next(iter(read.reader.records_by_partition(3).values()))] == [2, 3, 4]
    assert next(read.reader.iterated()).offset == 5
    table = read.reader.columns()  # what the iterator has left is read again as columns
    assert table is None or table["offset"].tolist() == [6, 7, 8, 9]
    if table is None:
        assert read.read_all() == [(0, o) for o in range(6, 10)]
    assert list(records) == []


def test_seeking_ends_an_iteration():
    model = ModelCluster(1, {"t": 1})
    put(model, *[b"x"] * 10)
    read = consumer(model)
    read.wait()
    records = read.reader.iterated()
    assert next(records).offset == 0
    read.positions.seek(("t", 0), Position(7))
    assert list(records) == []
    read.wait()
    assert [record.offset for record in read.reader.iterated()] == [7, 8, 9]


def test_deserializers():
    def fails(data):
        if data == b"bad":
            raise KeyError("no such schema")
        return data.decode()

    model = ModelCluster(1, {"t": 1})
    put(model, b"a", b"b", b"bad", b"c")
    read = consumer(model, value_deserializer=fails)
    read.wait()
    (records,) = read.reader.records_by_partition(10).values()
    assert [record.value for record in records] == ["a", "b"]
    for _ in range(2):
        with pytest.raises(KeyError, match="no such schema") as caught:
            records_after(read)
        assert caught.value.__notes__ == ["t-0: the record at offset 2 was not deserialized"]
    read.positions.seek(("t", 0), Position(3))
    assert [record.value for record in records_after(read)] == ["c"]


def records_after(read):
    read.wait()
    return [record for records in read.reader.records_by_partition(10).values() for record in records]


def test_aborted_transactions_and_control_records():
    model = ModelCluster(1, {"t": 1})
    log = model.logs["t", 0]
    put(model, b"a", producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    put(model, b"plain")
    log.append_marker(7, 0, commit=False, epoch=0)
    put(model, b"b", producer_id=7, producer_epoch=0, base_sequence=1, is_transactional=True)
    log.append_marker(7, 0, commit=True, epoch=0)
    put(model, b"open", producer_id=8, producer_epoch=0, base_sequence=0, is_transactional=True)
    read = consumer(model, isolation_level="read_committed")
    assert read.read_all(800) == [(0, 1), (0, 3)]
    assert read.state().position.offset == 5  # after the marker, which no record shows
    assert consumer(model).read_all(800) == [(0, 0), (0, 1), (0, 3), (0, 5)]
    log.append_marker(8, 0, commit=False, epoch=0)
    assert read.read_all(800) == []
    assert read.state().position.offset == 7


def test_partitions_that_come_later_do_not_move_the_others():
    model = ModelCluster(1, {"t": 1})
    read = consumer(model)
    read.network.add(AllPartitions(read.network.cluster, read.positions, ["t"], assigned=lambda: None))
    put(model, b"a", b"b")
    assert read.read_all(1000) == [(0, 0), (0, 1)]
    model.add_partitions("t", 1)
    put(model, b"c", partition=1)
    read.network.cluster.refresh()
    assert read.read_all(3000) == [(1, 0)]
    assert read.state().position.offset == 2


def test_only_assigned_partitions_have_positions():
    read = consumer(ModelCluster(1, {"t": 2}))
    with pytest.raises(LocalProtocolError, match="t-1 is not assigned"):
        read.positions.seek(("t", 1), Position(0))
    with pytest.raises(LocalProtocolError, match="t-1 is not assigned"):
        read.positions.pause(("t", 1))


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("earliest", ResetPolicy(-2)),
        ("latest", ResetPolicy(-1)),
        ("none", ResetPolicy(None)),
        ("by_duration:PT1H", ResetPolicy(None, 3_600_000)),
        ("by_duration:P1DT2H3M4.5S", ResetPolicy(None, 93_784_500)),
        ("by_duration:P7D", ResetPolicy(None, 7 * 86_400_000)),
    ],
)
def test_reset_policies(text, policy):
    assert reset_policy(text) == policy
    assert policy.refuses == (text == "none")


@pytest.mark.parametrize(
    "text",
    ["first", "by_duration", "by_duration:", "by_duration:P", "by_duration:PT", "by_duration:-PT1H", "by_duration:1H"],
)
def test_policies_that_there_are_not(text):
    with pytest.raises(ValueError, match="auto_offset_reset"):
        reset_policy(text)


def test_idle_partitions_are_not_looked_at_one_by_one_after_every_answer(monkeypatch):
    count = 300
    model = ModelCluster(1, {"t": count})
    read = consumer(model, *range(count))
    read.read_all(3000)
    looked = []
    for owner, name in ((Looking, "source"), (Fetcher, "_wanted"), (Validation, "pending"), (OffsetLookup, "_new")):
        monkeypatch.setattr(owner, name, counted(getattr(owner, name), looked))
    before = len(fetches(model))
    read.read_all(20_000)
    assert len(fetches(model)) - before >= 30
    assert len(looked) < 3 * count
    looked.clear()
    put(model, b"later", partition=7)  # and what comes is read, with a look at its partition alone
    assert read.read_all(1000) == [(7, 0)]
    assert 0 < len(looked) < 30
    assert {args[1] for args in looked if isinstance(args[1], PartitionState)} == {read.positions.state(("t", 7))}
    read.positions.pause(("t", 7))
    put(model, b"paused", partition=7)
    assert read.read_all(1000) == []
    read.positions.resume(("t", 7))
    assert read.read_all(1000) == [(7, 1)]
    model.move_leader("t", 7)
    put(model, b"moved", partition=7)
    assert read.read_all(3000) == [(7, 2)]


def counted(method, calls):
    def call(*arguments):
        calls.append(arguments)
        return method(*arguments)

    return call
