"""The embedded broker in the event loop of its user."""

from __future__ import annotations

import asyncio
import gc
import socket
import warnings
from pathlib import Path

import pytest

from kafkacodec import client, errors
from kafkacodec.broker import aio


async def test_clients_of_the_same_loop_use_it():
    async with aio.serve(topics={"t": 2}) as kafka:
        async with client.aio.Producer(bootstrap_servers=kafka.bootstrap_servers) as producer:
            await (await producer.send("t", b"one", partition=1))
        assert await kafka.write("t", [(None, b"two")], partition=1) == 1
        assert (await kafka.records("t"))["value"].tolist() == [b"one", b"two"]
        with pytest.raises(errors.TopicAlreadyExistsError):
            await kafka.create_topic("t")
        with pytest.raises(KeyError):
            await kafka.records("no-such-topic")
        data = Path(kafka.data)
        assert data.exists()
        assert kafka.listeners == [f"kafka://{kafka.bootstrap_servers}"]
    assert not data.exists()
    await kafka.stop()


async def test_faults_are_asked_for_and_waited_for():
    async with aio.serve(topics=["t"]) as kafka:
        async with client.aio.Producer(bootstrap_servers=kafka.bootstrap_servers) as producer:
            async with await kafka.inject("Produce", "NOT_LEADER_OR_FOLLOWER", times=2) as injected:
                sent = await producer.send("t", b"x")
                await injected.wait(2)
                assert (await sent).offset == 0
            await kafka.pause()
            sent = await producer.send("t", b"y")
            await kafka.resume()
            assert (await sent).offset == 1
        async with await kafka.inject("Produce", close=True) as injected:
            with pytest.raises(TimeoutError):
                await injected.wait(timeout=0)


async def test_its_clock_is_put_forward():
    async with aio.serve(config={"retention.ms": 60_000}, clock="manual") as kafka:
        await kafka.write("t", [(None, b"old")])
        await kafka.advance(3_600)
        assert len(await kafka.records("t")) == 0


async def test_what_cannot_start_leaves_nothing(tmp_path):
    async with aio.serve(tmp_path) as kafka:
        for options in ({"data": tmp_path}, {"listen": kafka.listeners}):
            with pytest.raises(OSError):
                async with aio.serve(**options):
                    pass
        assert len(asyncio.all_tasks()) == 1
    with pytest.raises(ValueError, match="clock"):
        aio.serve(clock="broken")
    async with aio.serve(tmp_path) as again:
        assert again.data == str(tmp_path)


async def test_what_it_has_done_in_numbers():
    async with aio.serve(topics={"t": 3}) as kafka:
        before = await kafka.statistics()
        assert (before.connections, before.requests, before.topics, before.partitions) == (0, 0, 1, 3)
        async with client.aio.Producer(bootstrap_servers=kafka.bootstrap_servers) as producer:
            await (await producer.send("t", bytes(10_000)))
            now = await kafka.statistics()
            options = {"bootstrap_servers": kafka.bootstrap_servers, "group_id": "g", "auto_offset_reset": "earliest"}
            async with client.aio.Consumer("t", **options) as consumer:
                assert await consumer.getmany(timeout=60)
            grown = await kafka.statistics()
            assert grown.topics - grown.internal_topics == 1
            assert grown.internal_topics >= 1
        assert now.connections > 0
        assert now.requests >= 3  # versions, metadata, records
        assert now.received_bytes > 10_000
        assert 0 < now.sent_bytes < now.received_bytes


def test_one_that_is_not_stopped_ends_with_its_loop(tmp_path):
    async def leave():
        kafka = await aio.serve(tmp_path, topics={"t": 1}).__aenter__()
        async with client.aio.Producer(bootstrap_servers=kafka.bootstrap_servers) as producer:
            await (await producer.send("t", b"v"))
        return kafka.bootstrap_servers

    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        server = asyncio.run(leave())
        gc.collect()
    host, port = server.split(":")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)))
    assert (tmp_path / ".kafka_cleanshutdown").exists()
