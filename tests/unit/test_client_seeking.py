"""Seeks wait for no fetch of another position, and fetches wait at an end only when there is nothing to read."""

from __future__ import annotations

import asyncio

import pytest

import kafkacodec as kc
from kafkacodec import messages
from kafkacodec.client.consuming.positions import Position
from kafkacodec.client.consuming.reset_policy import EARLIEST, LATEST
from kafkacodec.client.core.calls import Send
from kafkacodec.errors import ConnectionFailed
from tests.reference.model_broker import ModelCluster
from tests.reference.model_consumer import ModelConsumer
from tests.unit.test_client_network import SmallBroker, network

FETCH = 1


def consumer(partitions=1, records=10, **options):
    """A consumer of `t`, each of whose records is a batch, and its model."""
    model = ModelCluster(1, {"t": partitions})
    for number in range(partitions):
        for n in range(records):
            model.logs["t", number].append(kc.encode([(None, b"%d" % n)]), 0)
    read = ModelConsumer(model, auto_offset_reset="earliest", **options)
    read.assign(*(("t", number) for number in range(partitions)))
    return read, model


def fetches(model):
    return [request for _, request, _ in model.requests if request.api_key == FETCH]


def seek(read, offset, partition=0):
    """Seek and read one record; how long that takes, in ms."""
    begin = read.network.now
    read.positions.seek(("t", partition), Position(offset))
    read.network.poll()
    while ("t", partition) not in (records := read.reader.records_by_partition(1)):  # others may be left from before
        assert read.network.now - begin < 1000
        if not records:
            read.wait(100)
    assert [(r.partition, r.offset) for r in records["t", partition]] == [(partition, offset)]
    return read.network.now - begin


@pytest.mark.parametrize("pause", [0, 1, 7, 30, 600])
@pytest.mark.parametrize("to_the_end", [False, True])
@pytest.mark.parametrize("partitions", [1, 3])
def test_a_seek_waits_for_no_other_fetch(pause, to_the_end, partitions):
    read, _ = consumer(partitions)
    read.read_all(700)
    for n in range(30):
        assert seek(read, 9 - n % 4, n % partitions) == 0
        if to_the_end:
            while read.reader.columns() is not None:
                pass
        read.network.run(pause)


@pytest.mark.parametrize("timestamp", [EARLIEST, LATEST, 1])
def test_looking_for_a_position_waits_for_no_fetch(timestamp):
    read, _ = consumer()
    read.read_all(700)
    state = read.state()
    for _ in range(20):
        begin = read.network.now
        read.positions.look_up(state, timestamp)
        read.network.poll()
        read.network.run(1000, until=lambda: state.position is not None)
        assert read.network.now == begin
        read.read_all(3)


def test_no_fetch_waits_while_there_is_something_to_read():
    read, model = consumer()
    read.network.run(2000)
    before = len(fetches(model))
    assert [r.offset for r in read.reader.records_by_partition(9)["t", 0]] == list(range(9))
    read.network.run(2000)
    assert len(fetches(model)) == before
    assert read.reader.records_by_partition(9)
    read.network.run(5)
    assert len(fetches(model)) == before  # the user may seek next
    read.network.run(10)
    assert len(fetches(model)) == before + 1


def test_who_asks_for_more_waits_no_longer_than_the_broker():
    read, model = consumer()
    read.read_all(700)
    model.logs["t", 0].append(kc.encode([(None, b"new")]), 0)
    model.advance(0)
    begin = read.network.now
    read.wait(1000)
    assert read.network.now == begin
    assert read.reader.columns()["offset"].tolist() == [10]


def test_fetches_beside_each_other_come_together_again():
    read, model = consumer(3)
    read.read_all(700)
    seek(read, 9)
    read.read_all(1000)
    before = len(fetches(model))
    assert read.read_all(5000) == []
    asked = fetches(model)[before:]
    assert len(asked) <= 11  # one for each 500 ms, in a session
    assert {request.max_wait_ms for request in asked} == {500}
    assert all(request.session_epoch > 0 for request in asked)


def test_partitions_at_their_ends_are_fetched_while_others_have_a_lot():
    read, model = consumer(2, max_partition_fetch_bytes=200, fetch_max_bytes=400, prefetch_bytes=1000)
    state = read.state(1)
    read.positions.seek(("t", 1), Position(10))
    for _ in range(300):
        model.logs["t", 0].append(kc.encode([(None, b"old")]), 0)
    read.network.run(1000)
    model.logs["t", 1].append(kc.encode([(None, b"new")]), 0)
    for _ in range(30):
        read.reader.records_by_partition(5)
        read.network.run(1)
    assert state.position.offset == 11
    assert read.state(0).position.offset < 200


def test_the_first_fetch_after_a_seek_is_small():
    read, model = consumer(records=400)
    read.read_all(700)
    before = len(fetches(model))
    seek(read, 3)
    read.read_all(100)
    first, *_ = fetches(model)[before:]
    assert first.topics[0].partitions[0].partition_max_bytes == 128 << 10
    read.positions.seek(("t", 0), Position(400))
    read.network.run(1100)
    assert fetches(model)[-1].max_bytes == 32 << 20


class _Requests:
    """A machine that sends what it is given."""

    def __init__(self):
        self.sends, self.landed = [], []

    def poll(self, now):
        sends, self.sends = self.sends, []
        return sends

    def next_deadline(self):
        return None

    def answered(self, send, answer, now):
        self.landed.append((send, answer))

    def failed(self, send, error, now):
        self.landed.append((send, error))


async def test_nothing_is_written_behind_what_is_held_back():
    async with SmallBroker(silent=[FETCH]) as broker:
        client = network(broker.address)
        await client.call(messages.MetadataRequest(topics=[]))
        machine = _Requests()
        client.add(machine)
        held = [Send(1, messages.FetchRequest(), holds=True) for _ in range(3)]
        quick = Send(1, messages.MetadataRequest(topics=[]))

        async def sent(send, fetches, landed):
            machine.sends.append(send)
            client.wake()
            while len(machine.landed) < landed or sum(key == FETCH for key, _ in broker.requests) < fetches:
                await asyncio.sleep(0.001)

        await sent(held[0], 1, 0)
        await sent(quick, 1, 1)
        await sent(held[1], 2, 1)
        await sent(held[2], 3, 1)
        connections = broker.connections
        held[1].given_up = True
        await sent(Send(1, messages.MetadataRequest(topics=[])), 3, 3)
        assert broker.connections == connections + 1
        assert [send for send, _ in machine.landed[:2]] == [quick, held[1]]
        assert isinstance(machine.landed[1][1], ConnectionFailed)
        assert not isinstance(machine.landed[2][1], Exception)
        await client.close()


@pytest.mark.parametrize("offset", [11, 2**62, 2**63 - 1])
def test_a_seek_beyond_the_end_starts_as_the_policy_says(offset):
    read, _ = consumer()
    read.read_all(700)
    read.positions.seek(("t", 0), Position(offset))
    assert not read.positions.read
    read.network.poll()
    read.wait(1000)
    assert [r.offset for r in read.reader.records_by_partition(1)["t", 0]] == [0]
