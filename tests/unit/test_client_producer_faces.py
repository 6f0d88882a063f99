"""What producers refuse at the call, without a broker: closed ones, after a fork, in another loop, wrong options."""

from __future__ import annotations

import asyncio
import datetime
import os
import random
import signal
import threading
import time

import numpy as np
import pyarrow as pa
import pytest

import kafkacodec as kc
from kafkacodec.client.core.metadata import Partition, Topic
from kafkacodec.errors import ClientClosed, DeadlineExceeded, EncodeError, LocalProtocolError, QueueFull
from tests.patience import SOON

NOBODY = "127.0.0.1:1"


def knowing(producer, topic="t"):
    """The producer, as if metadata had named a topic whose leader cannot be reached."""
    face = getattr(producer, "_face", producer)
    face._network.cluster.topics[topic] = Topic(topic, partitions={0: Partition(0, None)})
    face._network.cluster.generation += 1
    return producer


def unreached(**options):
    """A producer that knows a topic, and reaches no broker for as long as any test runs."""
    return knowing(kc.client.Producer(NOBODY, **{"bootstrap_timeout_ms": 600_000} | options))


def test_a_blocking_producer_that_is_closed():
    before = threading.active_count()
    with unreached() as producer:
        delivery = producer.send("t", b"v")
        producer.close(0)
        producer.close()
    assert threading.active_count() == before
    with pytest.raises(ClientClosed, match="closed before the record was acknowledged"):
        delivery.result(0)
    for call in (lambda: producer.send("t", b"v"), producer.flush, lambda: producer.send_columns(None, topic="t")):
        with pytest.raises(ClientClosed, match="is closed"):
            call()


def test_closing_in_a_callback_of_a_delivery():
    before = threading.active_count()
    producer = unreached(delivery_timeout_ms=50, linger_ms=0)
    called, late = threading.Event(), []

    def close(delivery):
        late.append(producer.send("t", b"queued in the callback"))
        producer.close()
        producer.close()
        with pytest.raises(ClientClosed):
            producer.send("t", b"after close")
        called.set()

    first = producer.send("t", b"v")
    first.add_done_callback(close)
    with pytest.raises(DeadlineExceeded):
        first.result()
    assert called.wait(SOON)
    with pytest.raises(DeadlineExceeded):  # it was tried until its time was over
        late[0].result(SOON)
    producer.close()
    assert threading.active_count() == before


def test_closing_in_a_signal_handler_while_the_program_closes():
    before = threading.active_count()
    producer = unreached(delivery_timeout_ms=200, linger_ms=0)
    producer.send("t", b"v").add_done_callback(lambda d: signal.raise_signal(signal.SIGUSR1))
    handler = signal.signal(signal.SIGUSR1, lambda *_: producer.close())
    try:
        producer.close()  # the handler runs in this thread, while it waits
    finally:
        signal.signal(signal.SIGUSR1, handler)
    assert threading.active_count() == before


def test_closing_while_another_thread_is_in_send():
    def serializer(value):
        thread = threading.Thread(target=producer.close, args=(0,))
        thread.start()
        thread.join()
        return value

    with unreached(value_serializer=serializer) as producer, pytest.raises(ClientClosed):
        producer.send("t", b"v")


def test_an_asyncio_producer_that_is_left_open_says_what_is_lost(caplog):
    async def main():
        producer = kc.client.aio.Producer(NOBODY)
        await producer.start()
        for _ in range(3):
            await knowing(producer).send("t", b"v")

    with pytest.warns(ResourceWarning, match="Producer: 127.0.0.1:1, open> was not closed"):
        asyncio.run(main())
    assert "the producer was closed before brokers acknowledged all records: 3 are not" in caplog.messages


def test_a_signal_handler_cannot_wait_for_the_send_that_it_interrupted():
    with unreached() as producer:
        delivery = producer.send("t", b"v")
        calls = (producer.close, producer.flush, lambda: producer.send("t", b"w"), lambda: producer.partitions_for("t"))
        with producer._queues.lock:  # as if the signal came while it was held
            for call in calls:
                with pytest.raises(LocalProtocolError, match="a signal handler interrupted send"):
                    call()
        assert not delivery.done()
        producer.close(0)


def test_a_producer_that_cannot_start_leaves_no_thread():
    before = threading.active_count()
    for _ in range(3):
        with pytest.raises(ValueError, match="ssl_cafile"):
            kc.client.Producer(NOBODY, security_protocol="SSL", ssl_cafile="/nonexistent")
    assert threading.active_count() == before


def test_memory_that_is_full_and_a_topic_that_is_not_known():
    with unreached(buffer_memory=1000, max_block_ms=50, delivery_timeout_ms=5000) as producer:
        for _ in range(9):
            producer.send("t", b"x" * 100)
        with pytest.raises(QueueFull, match=r"buffer_memory is 1000, for 0\.05 s"):
            producer.send("t", b"x")
        with pytest.raises(DeadlineExceeded, match=r"no metadata of topic .other. within 0\.05 s"):
            producer.send("other", b"x")
        with pytest.raises(DeadlineExceeded, match=r"acknowledged within 0\.01 s"):
            producer.flush(0.01)
        for name in ("", ".", "a/b", "x" * 250):
            with pytest.raises(ValueError, match="illegal topic"):
                producer.send(name, b"x")
        with pytest.raises(TypeError, match="must be text"):
            producer.send(5, b"x")
        producer.close(0)


def test_a_forked_process_gets_an_error_and_the_parent_goes_on():
    producer = unreached(max_block_ms=50)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            producer.send("t", b"v")
        except ClientClosed as error:
            os.write(writing, str(error).encode())
        producer.close()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        assert b"forked" in pipe.read()
    assert status == 0
    assert not producer.send("t", b"v").done()
    producer.close(0)


@pytest.mark.filterwarnings("ignore:.* was not closed:ResourceWarning")
@pytest.mark.usefixtures("left_open")
def test_another_event_loop():
    producer = kc.client.aio.Producer(NOBODY)

    async def use():
        await producer.start()
        return await knowing(producer).send("t", b"v")

    async def leave():
        producer._network._process = os.getpid()
        await producer.send("t", b"v")

    delivery = asyncio.run(use())
    with pytest.raises(ClientClosed, match="another event loop"):
        asyncio.run(leave())
    assert not delivery.done()


def test_waiting_for_a_result_in_the_loop_is_refused():
    async def main():
        async with kc.client.aio.Producer(NOBODY, delivery_timeout_ms=200) as producer:
            delivery = await knowing(producer).send("t", b"v")
            with pytest.raises(LocalProtocolError, match="await the delivery"):
                delivery.result()
            started = time.monotonic()
            with pytest.raises(DeadlineExceeded, match="the partition has no leader"):
                await delivery
            assert 0.1 < time.monotonic() - started < SOON
            with pytest.raises(DeadlineExceeded):
                delivery.result()
            with pytest.raises(LocalProtocolError, match="no transactional_id"):
                await producer.begin_transaction()

    asyncio.run(main())


def test_a_blocking_producer_is_waited_for_where_another_loop_runs():
    """As in a notebook, whose cells run in a loop."""

    async def cell():
        producer = unreached(delivery_timeout_ms=50)
        for delivery in (producer.send("t", b"v"), producer.send_columns(pa.table({"value": ["v"]}), topic="t")):
            with pytest.raises(DeadlineExceeded, match="the partition has no leader"):
                delivery.result(SOON)
        caught = []

        def wait(delivery):
            try:
                producer.send("t", b"w").result(SOON)
            except LocalProtocolError as error:
                caught.append(str(error))

        producer.send("t", b"v").add_done_callback(wait)
        producer.flush()
        producer.close(0)
        assert "await the delivery" in caught[0]

    asyncio.run(cell())


def test_configurations_with_dotted_names():
    config = {
        "bootstrap.servers": NOBODY,
        "acks": "1",
        "compression.type": "gzip",
        "compression.level": "3",
        "enable.idempotence": "false",
        "linger.ms": "7",
        "message.send.max.retries": "4",
        "ssl.key.password": "secret words",
    }
    producer = kc.client.aio.Producer.from_config(config, key_serializer=str.encode)
    settings = producer._settings
    assert (settings.required_acks, settings.compression_level, settings.enable_idempotence) == (1, 3, False)
    assert (settings.linger_ms, settings.retries, settings.key_serializer("a")) == (7, 4, b"a")
    assert "secret" not in repr(settings) + repr(producer)
    with pytest.raises(TypeError, match=r"did you mean 'linger.ms'"):
        kc.client.Producer.from_config({"bootstrap.servers": NOBODY, "linger.mss": "5"})
    with pytest.raises(TypeError, match="did you mean 'linger_ms'"):
        kc.client.Producer(NOBODY, linger=5)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="enable_idempotence"):
        kc.client.Producer(NOBODY, enable_idempotence="yes")


def test_a_loop_that_ended_while_it_waited_for_a_delivery():
    async def wait(delivery):
        await asyncio.wait_for(delivery, 0.01)

    with unreached() as producer:
        deliveries = [producer.send("t", b"v") for _ in range(2)]
        with pytest.raises(TimeoutError):
            asyncio.run(wait(deliveries[0]))
        producer.close(0)
    for delivery in deliveries:
        with pytest.raises(ClientClosed, match="closed before the record was acknowledged"):
            delivery.result(0)


@pytest.mark.parametrize(
    ("timestamp", "kind", "reason"),
    [
        (1_700_000_000.5, TypeError, "timestamp must be milliseconds, .* not float"),  # time.time(): seconds
        (True, TypeError, "timestamp must be an integer, not bool"),
        (datetime.timedelta(days=1), TypeError, "timestamp must be milliseconds, .* not timedelta"),
        (-1, ValueError, "timestamp must be from 0"),  # as Java's ProducerRecord
        (2**63, ValueError, "timestamp must be from 0"),
    ],
)
def test_wrong_timestamps_are_refused(timestamp, kind, reason):
    async def in_a_coroutine():
        producer = kc.client.aio.Producer(NOBODY)
        await producer.start()
        try:
            await knowing(producer).send("t", b"v", timestamp=timestamp)
        finally:
            await producer.close(0)

    with pytest.raises(kind, match=reason):
        asyncio.run(in_a_coroutine())
    with unreached() as producer:
        with pytest.raises(kind, match=reason):
            producer.send("t", b"v", timestamp=timestamp)
        assert producer.send("t", b"v", timestamp=np.int64(5)).timestamp == 5
        assert producer.send("t", b"v", timestamp=datetime.datetime(2026, 1, 1)).timestamp == 1_767_225_600_000
        producer.close(0)


def test_what_exceeds_max_request_size_is_refused_at_the_call():
    with unreached(max_request_size=1000) as producer:
        with pytest.raises(EncodeError, match="are allowed by max_request_size"):
            producer.send("t", b"v" * 1000)
        rows = pa.table({"value": [b"a", b"b" * 1000, b"c"]})
        with pytest.raises(
            EncodeError, match=r"^records\[1\]: the row takes 10\d\d bytes, 900 are allowed by max_requ"
        ):
            producer.send_columns(rows, topic="t")
        producer.close(0)
    with unreached(max_request_size=1000, compression_type="gzip") as producer:
        assert not producer.send_columns(rows, topic="t").done()
        noise = pa.table({"value": [random.Random(1).randbytes(1000)]})
        with pytest.raises(EncodeError, match="bytes, compressed, 900 are allowed"):
            producer.send_columns(noise, topic="t")
        producer.close(0)


MOST = 128 << 20


def test_a_compressed_record_that_no_consumer_would_read_by_default_is_refused_at_the_call():
    options = {"max_request_size": 2**30, "batch_size": 2**30, "buffer_memory": 2**40, "linger_ms": 600_000}
    options["bootstrap_timeout_ms"] = 600_000  # compressing takes longer than it is by default, on a busy machine
    large = bytes(MOST)
    rows = pa.table({"value": [b"a", large, b"c"]})
    with unreached(compression_type="lz4", **options) as producer:
        with pytest.raises(EncodeError, match="134217728 are allowed by the default of consumers' max_decompressed_b"):
            producer.send("t", large)
        reason = r"^records\[1\]: the row takes more than the 134217728 bytes that are allowed by the default of cons"
        with pytest.raises(EncodeError, match=reason):
            producer.send_columns(rows, topic="t")
        for _ in range(5):
            producer.send("t", large[: MOST // 4])
        batches = list(producer._queues.pending)
        assert all(batch.size <= MOST for batch in batches)
        assert sum(batch.count for batch in batches) == 6
        producer.close(0)
    with unreached(**options) as producer:  # uncompressed batches have other limits
        producer.send("t", large)
        producer.send_columns(rows, topic="t")
        producer.close(0)


@pytest.mark.parametrize(("timeout", "kind"), [("1", TypeError), (True, TypeError), (-1, ValueError)])
def test_wrong_times_are_refused_and_close_nothing(timeout, kind):
    with unreached() as producer:
        delivery = producer.send("t", b"v")
        for call in (producer.flush, producer.close, delivery.result):
            with pytest.raises(kind, match="timeout must "):
                call(timeout)
        assert not producer.send("t", b"w").done()
        producer.close(0)


WRONG_PARTITIONS = [
    (-1, ValueError, "partition must not be negative, not -1: leave it out to have one chosen"),
    ("1", TypeError, "partition must be an integer, not str"),
    (1.0, TypeError, "partition must be an integer, not float"),
    (True, TypeError, "partition must be an integer, not bool"),
    ([0], TypeError, "partition must be an integer, not list"),
]


@pytest.mark.parametrize("open_batch", [False, True])
@pytest.mark.parametrize(("partition", "kind", "said"), WRONG_PARTITIONS)
def test_a_wrong_partition_is_refused_without_asking_brokers(partition, kind, said, open_batch):
    with unreached() as producer:
        if open_batch:
            producer.send("t", b"v", partition=np.int64(0))
        with pytest.raises(kind, match=said):
            producer.send("t" if open_batch else "unknown", b"v", partition=partition)
        producer.close(0)


async def test_a_wrong_partition_is_refused_without_asking_brokers_in_a_loop():
    async with kc.client.aio.Producer(NOBODY, bootstrap_timeout_ms=600_000) as producer:
        for partition, kind, said in WRONG_PARTITIONS:
            with pytest.raises(kind, match=said):
                await producer.send("unknown", b"v", partition=partition)
