"""Clients whose brokers answer with well-formed messages of random content: only documented errors, and no hang.

The answers use the names, ids and numbers of the requests often enough to get far into the clients' decisions.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import random
import uuid
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import kafkacodec as kc
from kafkacodec.client.core.calls import Answer, prepared
from kafkacodec.client.driver import network as network_module
from kafkacodec.client.driver.node import Flight
from kafkacodec.errors import CODES, ConnectionFailed, KafkaCodecError, RemoteProtocolError
from kafkacodec.messages import APIS, by_key
from kafkacodec.net.frames import Frame
from kafkacodec.protocol import decode_response, encode_response, supported_ranges
from tests.message_values import Values
from tests.patience import SOON

SECONDS = float(os.environ.get("KAFKACODEC_LIES", "0.4"))
IDS = [uuid.UUID(int=n) for n in range(1, 4)]
BATCH = kc.encode([(b"k", b"v"), (None, b"w")])
CODES_SEEN = sorted(CODES)


class Lies(Values):
    """Messages whose fields have values that a client expects, more often than not."""

    def string(self) -> str:
        return self.rnd.choice(("t", "t", "t", "g", "127.0.0.1", "m-1", "range", "consumer", super().string()))

    def uuid(self) -> uuid.UUID:
        return self.rnd.choice((*IDS, super().uuid()))

    def integer(self, kind: str) -> int:
        if self.rnd.random() < 0.05:
            return super().integer(kind)
        return self.rnd.choice((0, 0, 0, 1, 1, 2, 3) if kind[0] == "u" else (0, 0, 0, 1, 1, 2, 3, -1))

    def records(self) -> Any:
        return self.rnd.choice((BATCH, BATCH, BATCH * 3, BATCH[:40], b"", self.bytes()))

    def single(self, cls: Any, field: Any, depth: int) -> Any:
        if field.attribute.endswith("error_code"):
            return 0 if self.rnd.random() < 0.7 else self.rnd.choice(CODES_SEEN)
        if field.attribute == "throttle_time_ms":
            return 0
        if field.attribute.endswith("interval_ms") or field.attribute.endswith("lifetime_ms"):
            return self.rnd.choice((1, 50, -1, 2**31 - 1))
        return super().single(cls, field, depth)


class LyingTraffic:
    """Stands for connections: each request gets a made-up answer, or fails."""

    seed = 0

    def __init__(
        self, settings: Any, cluster: Any, metrics: Any, *, clock: Any, runs: Any, landed: Any, wake: Any
    ) -> None:
        self._landed, self._wake = landed, wake
        self._rnd = random.Random(LyingTraffic.seed)
        self._closed = False

    def submit(self, send: Any, machine: Any, now: float) -> Flight:
        wait_ms = 1000 if send.timeout_ms is None else send.timeout_ms
        flight = Flight(send, machine, wait_ms, now + wait_ms)
        asyncio.get_running_loop().call_later(self._rnd.choice((0, 0.001)), self._answer, flight)
        return flight

    def write(self, flight: Flight, now: float) -> bool:
        return True

    def step(self, now: float) -> None:
        pass

    def next_deadline(self, now: float) -> float:
        return math.inf

    async def close(self, reason: Exception) -> None:
        self._closed = True

    def _answer(self, flight: Flight) -> None:
        if not self._closed:
            self._landed(flight, self._outcome(flight))
            self._wake()

    def _outcome(self, flight: Flight) -> Answer | Exception:
        if self._rnd.random() < 0.05:
            return ConnectionFailed("lost", sent=self._rnd.random() < 0.5)
        try:
            request, version = prepared(flight.send.request, supported_ranges())
        except (KafkaCodecError, ValueError) as error:
            return error
        key: Any = request.api_key
        data = encode_response(Lies(by_key(key)[1], version, self._rnd).message(), version, 0)
        try:
            _, message = decode_response(data, key, version)
        except kc.DecodeError as error:  # ApiVersions with error 35 is read in version 0
            return RemoteProtocolError(str(error))
        return Answer(message, version, 1, Frame(memoryview(data)), request)


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[BaseException]]:
    """What machines raised that they must not raise; it has to be empty in the end."""
    found: list[BaseException] = []
    end = network_module.Network._break

    def noted(self: Any, machine: Any, error: Exception) -> None:
        if not isinstance(error, KafkaCodecError):
            found.append(error)
        end(self, machine, error)

    monkeypatch.setattr(network_module, "Traffic", LyingTraffic)
    monkeypatch.setattr(network_module.Network, "_break", noted)
    yield found
    for error in found:
        raise error


OPTIONS: dict[str, Any] = {
    "bootstrap_servers": "127.0.0.1:1",
    "retry_backoff_ms": 1,
    "retry_backoff_max_ms": 2,
    "default_api_timeout_ms": 100,
    "request_timeout_ms": 100,
}


async def for_a_while(step: Any) -> None:
    """Repeat something that may fail as documented."""
    loop = asyncio.get_running_loop()
    end = loop.time() + SECONDS
    while loop.time() < end:
        with contextlib.suppress(KafkaCodecError, kc.ItemErrors):
            await asyncio.wait_for(step(), SOON)
        await asyncio.sleep(0)


SEEDS = range(int(os.environ.get("KAFKACODEC_LIARS", "3")))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("protocol", ["none", "classic", "consumer"])
async def test_consumers(seed: int, protocol: str, faults: list[BaseException]) -> None:
    LyingTraffic.seed = seed
    group: dict[str, Any] = {} if protocol == "none" else {"group_id": "g", "group_protocol": protocol}
    soon = {} if protocol == "consumer" else {"heartbeat_interval_ms": 5}
    consumer = kc.client.aio.Consumer("t", auto_offset_reset="earliest", **soon, **group, **OPTIONS)

    async def step() -> None:
        await consumer.getmany(0.05)
        await consumer.end_offsets([("t", 0)])
        if group:
            await consumer.commit()
            await consumer.committed("t", 0)

    await for_a_while(step)
    with contextlib.suppress(KafkaCodecError):
        await asyncio.wait_for(consumer.close(), SOON)


@pytest.mark.parametrize("seed", SEEDS)
async def test_share_consumers(seed: int, faults: list[BaseException]) -> None:
    LyingTraffic.seed = seed
    consumer = kc.client.aio.ShareConsumer("t", group_id="g", **OPTIONS)

    async def step() -> None:
        await consumer.getmany(0.05)
        await consumer.commit(0.05)

    await for_a_while(step)
    await asyncio.wait_for(consumer.close(), SOON)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("transactional_id", [None, "x"])
async def test_producers(seed: int, transactional_id: str | None, faults: list[BaseException]) -> None:
    LyingTraffic.seed = seed
    producer = kc.client.aio.Producer(
        transactional_id=transactional_id, max_block_ms=100, delivery_timeout_ms=200, linger_ms=1, **OPTIONS
    )
    table = pa.table({"key": [b"a", b"b", None], "value": [b"1", b"2", b"3"]})

    async def step() -> None:
        if transactional_id:
            async with producer.transaction():
                await producer.send("t", b"v")
        else:
            await producer.send("t", b"v", key=b"k")
            await producer.send_columns(table, topic="t")
        await producer.flush(0.05)

    await for_a_while(step)
    await asyncio.wait_for(producer.close(0.1), SOON)


ADMIN_CALLS: dict[str, tuple[Any, ...]] = {
    "list_topics": (),
    "describe_topics": (["t"],),
    "create_topics": ([("t")],),
    "delete_topics": (["t"],),
    "describe_configs": ([("topic", "t")],),
    "list_groups": (),
    "describe_groups": (["g"],),
    "delete_groups": (["g"],),
    "list_group_offsets": ("g",),
    "list_offsets": ({("t", 0): "latest"},),
    "delete_records": ({("t", 0): 1},),
    "describe_acls": (),
    "describe_producers": ([("t", 0)],),
    "list_transactions": (),
    "describe_transactions": (["x"],),
    "describe_client_quotas": (),
    "describe_user_scram_credentials": (),
    "describe_features": (),
    "describe_metadata_quorum": (),
    "describe_log_dirs": (),
    "list_partition_reassignments": (),
    "describe_cluster": (),
}


@pytest.mark.parametrize("name", ADMIN_CALLS)
async def test_admin_clients(name: str, faults: list[BaseException]) -> None:
    for seed in SEEDS:
        LyingTraffic.seed = seed
        admin = kc.client.aio.Admin(**OPTIONS)
        for _ in range(5):
            with contextlib.suppress(KafkaCodecError, kc.ItemErrors):
                await asyncio.wait_for(getattr(admin, name)(*ADMIN_CALLS[name]), SOON)
        await admin.close()


def test_answers_are_made_for_every_api() -> None:
    rnd = random.Random(1)
    for api in APIS.values():
        version = api.valid_versions[-1]
        data = encode_response(Lies(api.response, version, rnd).message(), version, 0)
        assert decode_response(data, api.key, version)[1] is not None
