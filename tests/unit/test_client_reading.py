"""What the user of a consumer gets, and where it is then: nothing is lost or counted as given that was not."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest

import kafkacodec as kc
from kafkacodec.client.consuming import given, open_part, reading
from kafkacodec.client.consuming.positions import Position
from kafkacodec.errors import BrokerError, LocalProtocolError, NoOffset, error
from tests import interrupts
from tests.reference.model_broker import ModelCluster
from tests.reference.model_consumer import ModelConsumer

SMALL = {"max_partition_fetch_bytes": 150, "fetch_max_bytes": 600, "prefetch_bytes": 100_000}
READS = ["columns", "lists", "iteration"]


def put(model, *values, partition=0, **options):
    records = [(None, value) for value in values]
    appended = model.logs["t", partition].append(kc.encode(records, **options), model.leaders["t", partition].epoch)
    assert appended.code == 0


def consumer(model, *numbers, **options):
    made = ModelConsumer(model, **{"auto_offset_reset": "earliest", **options})
    made.assign(*(("t", number) for number in numbers or [0]))
    return made


def numbered(batches, *, partitions=1, **options):
    """A consumer that has fetched several parts of each partition, of three records in each batch."""
    model = ModelCluster(1, {"t": partitions})
    for number in range(batches):
        for partition in range(partitions):
            put(model, *(b"%d" % (number * 3 + n) for n in range(3)), partition=partition)
    read = consumer(model, *range(partitions), **SMALL, **options)
    read.network.run(2000)
    assert len(read.fetcher.ready) > 3 * partitions
    return read


def offsets(read, how, most=1000, found=None):
    """Partition and offset of what one read gives; added to `found` as they come."""
    found = [] if found is None else found
    if how == "columns":
        table = read.reader.columns(most)
        if table is not None:
            found += zip(table["partition"].tolist(), table["offset"].tolist(), strict=True)
    elif how == "lists":
        for records in read.reader.records_by_partition(most).values():
            found += [(record.partition, record.offset) for record in records]
    else:
        before = len(found)
        for record in read.reader.iterated() or ():
            found.append((record.partition, record.offset))
            if len(found) - before == most:
                break
        read.reader.update_position()
    return found


@pytest.mark.parametrize("other", ["columns", "lists"])
@pytest.mark.parametrize("late", [False, True])
def test_ways_to_read_are_mixed(other, late):
    read = numbered(20, late=late)
    found = []
    for how, most in zip(["iteration", other] * 200, [1, 2, 2, 4] * 100, strict=True):
        found += offsets(read, how, most)
        if len(found) >= 60:
            break
        if most == 4:
            read.wait()
    assert found == [(0, offset) for offset in range(60)]


@pytest.mark.parametrize("how", ["lists", "iteration"])
@pytest.mark.parametrize("late", [False, True])
def test_an_error_of_a_deserializer_comes_again(how, late):
    def fails_for_seven(data):
        if data == b"7":
            raise KeyError("no such schema")
        return data

    read = numbered(10, late=late, value_deserializer=fails_for_seven)
    found = []

    def read_on():
        while True:
            offsets(read, how, found=found)
            read.wait()

    for _ in range(3):
        with pytest.raises(KeyError, match="no such schema"):
            read_on()
        assert found == [(0, offset) for offset in range(7)]
    assert read.state().position.offset == read.state().processed.offset == 7


def test_tables_need_no_deserializer():
    def fails_for_two(data):
        if data == b"2":
            raise KeyError("no such schema")
        return data

    read = numbered(10, value_deserializer=fails_for_two)
    assert offsets(read, "iteration", 1) == [(0, 0)]  # 1 is at hand, and the error after it
    assert read.read_all() == [(0, offset) for offset in range(1, 30)]


def test_records_that_are_at_hand_come_before_a_truncation():
    model = ModelCluster(2, {"t": 1})
    for number in range(6):
        put(model, b"%d" % number)
    read = consumer(model)
    read.wait()
    records = read.reader.iterated()
    assert [next(records).offset, next(records).offset] == [0, 1]
    model.lose("t", 0, 4)
    put(model, b"new")
    read.network.run(3000)
    assert [record.offset for record in records] == [2, 3, 4, 5]
    assert read.read_all() == [(0, 4)]


def test_records_that_are_at_hand_come_before_a_reset():
    model = ModelCluster(1, {"t": 1})
    read = consumer(model, auto_offset_reset="latest")
    read.network.run(500)
    for number in range(6):
        put(model, b"%d" % number)
    read.wait()
    records = read.reader.iterated()
    assert next(records).offset == 0
    model.logs["t", 0].truncate(3)
    read.network.run(3000)
    assert [record.offset for record in records] == [1, 2, 3, 4, 5]
    assert read.read_all(1000) == []
    assert read.state().position.offset == 3


def test_all_is_processed_when_the_user_comes_back():
    read = numbered(4)
    state = read.state()
    records = read.reader.iterated()
    assert next(records).offset == 0
    read.reader.update_position()
    assert (state.processed.offset, state.position.offset) == (0, 1)
    assert offsets(read, "lists", 1) == [(0, 1)]
    read.reader.update_position()
    assert (state.processed.offset, state.position.offset) == (1, 2)
    assert offsets(read, "iteration", 1) == [(0, 2)]
    assert (state.processed.offset, state.position.offset) == (2, 3)
    assert next(read.reader.iterated()).offset == 3
    read.positions.pause(("t", 0))  # as before a revocation, which waits for this
    assert state.processed.offset == 3
    assert read.reader.iterated() is None
    assert state.processed == state.position == Position(4, 0)


def test_nothing_of_a_list_is_processed_before_more_is_asked_for():
    read = numbered(4)
    state = read.state()
    assert offsets(read, "iteration", 1) == [(0, 0)]
    assert offsets(read, "lists", 2) == [(0, 1), (0, 2)]
    read.reader.update_position()  # as a commit does meanwhile
    assert (state.processed.offset, state.position.offset) == (1, 3)
    assert offsets(read, "lists", 2) == [(0, 3), (0, 4)]
    assert (state.processed.offset, state.position.offset) == (3, 5)


@pytest.mark.parametrize("how", READS)
def test_what_has_no_records_is_processed(how):
    model = ModelCluster(1, {"t": 1})
    put(model, b"x", producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    read = consumer(model)
    read.wait()
    assert offsets(read, how) == [(0, 0)]
    assert offsets(read, how) == []
    model.logs["t", 0].append_marker(7, 0, commit=True, epoch=0)
    read.network.run(1000)
    assert read.reader.has_data
    assert offsets(read, how) == []
    assert read.state().processed == read.state().position == Position(2, 0)


@pytest.mark.parametrize("how", READS)
def test_a_pause_does_not_hide_that_there_is_no_position(how):
    read = consumer(ModelCluster(1, {"t": 1}), auto_offset_reset="none")
    read.positions.pause(("t", 0))
    read.positions.resume(("t", 0))
    for _ in range(2):
        with pytest.raises(NoOffset, match="t-0"):
            offsets(read, how)


@pytest.mark.parametrize("how", READS)
def test_an_error_is_not_kept_back_by_the_records_of_others(how):
    read = numbered(20, partitions=2)
    read.positions.pause(("t", 0))
    read.positions.fail(read.state(0), error(29)("denied"))
    with pytest.raises(BrokerError, match="denied"):
        offsets(read, how, 1)
    assert offsets(read, how, 1) == [(1, 0)]


@pytest.mark.parametrize("how", READS)
def test_an_error_that_comes_again_does_not_keep_back_records_of_others(how):
    model = ModelCluster(1, {"t": 2})
    for number in range(20):
        put(model, b"%d" % number, partition=1)
    read = consumer(model, 0, 1, auto_offset_reset="none", **SMALL)
    read.positions.seek(("t", 1), Position(0))
    read.network.run(1000)
    found, errors = [], 0
    while len(found) < 20 and errors < 50:
        try:
            offsets(read, how, 1, found)
        except NoOffset:
            errors += 1
        read.wait(0)
    assert found == [(1, offset) for offset in range(20)]
    assert errors > 10


def test_the_end_ends_an_iteration():
    read = numbered(4)
    records = read.reader.iterated()
    assert next(records).offset == 0
    read.reader.finish()
    assert list(records) == []
    assert read.state().position.offset == 1


def test_one_thread_reads_at_a_time():
    go_on, inside = threading.Event(), threading.Event()

    def waits(data):
        inside.set()
        assert go_on.wait(60)
        return data

    read = numbered(4, value_deserializer=waits)
    found = []
    thread = threading.Thread(target=lambda: found.extend(offsets(read, "lists", 3)))
    thread.start()
    assert inside.wait(60)
    for how in READS:
        with pytest.raises(LocalProtocolError, match="another thread is reading"):
            offsets(read, how)
    go_on.set()
    thread.join()
    assert found == [(0, 0), (0, 1), (0, 2)]
    assert offsets(read, "columns", 2) == [(0, 3), (0, 4)]


FILES = {reading.__file__, open_part.__file__, given.__file__}


class Interrupts(interrupts.Interrupts):
    def steps(self, frame, event):
        code = frame.f_code
        if code.co_filename not in FILES or code.co_name in ("_undo", "columns", "records_by_partition", "iterated"):
            return None
        if code.co_name == "_whole":
            return 0 if event == "call" else None  # the steps in it, not those around it
        return event == "line"


@pytest.mark.parametrize("how", READS)
@pytest.mark.parametrize("late", [False, True])
def test_an_interrupt_loses_nothing(how, late):
    # CPython 3.11 may leave the thread with the exception that was being handled when a trace function raised.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(interrupt_at_each_line, how, late).result()


def interrupt_at_each_line(how, late):
    for at in count(1, 3):
        read = numbered(5, partitions=2, late=late)
        found = offsets(read, "iteration", 1) + offsets(read, "lists", 1)
        positions = [read.state(number).position.offset for number in range(2)]
        interrupted = Interrupts(at)
        try:
            with interrupted:
                offsets(read, how, 7, found)
        except KeyboardInterrupt:
            if how != "iteration":
                assert [read.state(number).position.offset for number in range(2)] == positions
        if interrupted.left > 0:
            break
        for _ in range(12):
            found += offsets(read, "columns")
            read.wait(1000)
        assert sorted(found) == [(p, offset) for p in range(2) for offset in range(15)]
        for number in range(2):
            assert [o for p, o in found if p == number] == list(range(15))
        assert read.fetcher.kept_bytes == 0
        assert {read.state(number).kept for number in range(2)} == {0}
    assert at > 20
