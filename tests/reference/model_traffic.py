"""Connections to the model of a cluster in real time, in the place of the driver's: for the faces of clients.

@pytest.fixture
def model(monkeypatch):
    with modelled(monkeypatch, ModelCluster(1, {"t": 1})) as model:
        yield model

Consumer(bootstrap_servers="node1:9091")   # reads from the model
"""

from __future__ import annotations

import asyncio
import math
from functools import partial
from typing import Any

from kafkacodec import messages
from kafkacodec.client.core.calls import ANY, Answer, prepared
from kafkacodec.client.driver import network as network_module
from kafkacodec.client.driver.node import Flight
from kafkacodec.errors import ConnectionFailed, KafkaCodecError
from kafkacodec.messages.keys import OFFSET_COMMIT, OFFSET_FETCH
from kafkacodec.net.frames import Frame
from kafkacodec.protocol import decode_response, encode_response
from tests.reference.model_broker import ModelCluster

__all__ = ["SERVER", "modelled"]

SERVER = "node1:9091"
_LOOK_MS = 5.0  # how late a waiting fetch notices that records came


def modelled(monkeypatch: Any, model: ModelCluster) -> ModelCluster:
    """Let the clients of this test talk to a model, whose attribute `committed` gets the offsets of groups."""
    model.committed = {}  # type: ignore[attr-defined]
    monkeypatch.setattr(network_module, "Traffic", partial(ModelTraffic, model))
    return model


class ModelTraffic:
    """As `kafkacodec.client.driver.traffic.Traffic`: each broker that is alive answers at once."""

    def __init__(
        self,
        model: ModelCluster,
        settings: Any,
        cluster: Any,
        metrics: Any,
        *,
        clock: Any,
        runs: Any,
        landed: Any,
        wake: Any,
    ) -> None:
        self._model, self._cluster, self._landed, self._wake = model, cluster, landed, wake
        self._versions = model.versions | {OFFSET_COMMIT: range(8, 9), OFFSET_FETCH: range(7, 8)}
        self._loop = asyncio.get_running_loop()
        self._started: float | None = None
        self._unrouted: list[Flight] = []
        self._flights: set[Flight] = set()
        self._request_ms = settings.request_timeout_ms

    def submit(self, send: Any, machine: Any, now: float) -> Flight:
        wait_ms = self._request_ms if send.timeout_ms is None else send.timeout_ms
        flight = Flight(send, machine, wait_ms, now + wait_ms)
        self._flights.add(flight)
        self._route(flight)
        return flight

    def write(self, flight: Flight, now: float) -> bool:
        return False  # a step lets the model go on

    def _route(self, flight: Flight) -> None:
        place = flight.send.to
        node = next(iter(sorted(self._model.alive))) if place is ANY else self._cluster.node_of(place)
        if node is None and not isinstance(place, int):
            self._unrouted.append(flight)
        elif node not in self._model.alive:
            self._loop.call_soon(self._land, flight, ConnectionFailed(f"broker {node} refuses connections"))
        else:
            try:
                request, version = prepared(flight.send.request, self._versions)
            except KafkaCodecError as error:
                self._loop.call_soon(self._land, flight, error)
                return
            reply = partial(self._reply, flight, request, version, node)
            if request.api_key in (OFFSET_COMMIT, OFFSET_FETCH):
                reply((_commit if request.api_key == OFFSET_COMMIT else _fetch)(self._model.committed, request))  # type: ignore[attr-defined]
            else:
                self._model.receive(node, request, version, reply)

    def _reply(self, flight: Flight, request: Any, version: int, node: int, response: Any) -> None:
        data = encode_response(response, version, 0)
        _, message = decode_response(data, request.api_key, version)
        answer = Answer(message, version, node, Frame(memoryview(data)), request)
        self._loop.call_soon_threadsafe(self._land, flight, answer)

    def _land(self, flight: Flight, outcome: Answer | Exception) -> None:
        if not flight.over:
            flight.over = True
            self._flights.discard(flight)
            self._landed(flight, outcome)

    def step(self, now: float) -> None:
        waiting, self._unrouted = self._unrouted, []
        for flight in waiting:
            self._route(flight)
        self._started = now if self._started is None else self._started
        self._model.advance(max(now - self._started - self._model.now, 0))

    def next_deadline(self, now: float) -> float:
        return now + _LOOK_MS if self._flights else math.inf

    async def close(self, reason: Exception) -> None:
        for flight in list(self._flights):
            self._land(flight, reason)


def _commit(committed: dict[tuple[str, int], int], request: Any) -> Any:
    kind = messages.OffsetCommitResponse
    response = kind()
    for topic in request.topics:
        parts = []
        for part in topic.partitions:
            committed[topic.name, part.partition_index] = part.committed_offset
            parts.append(kind.OffsetCommitResponsePartition(partition_index=part.partition_index))
        response.topics.append(kind.OffsetCommitResponseTopic(name=topic.name, partitions=parts))
    return response


def _fetch(committed: dict[tuple[str, int], int], request: Any) -> Any:
    kind = messages.OffsetFetchResponse
    response = kind()
    for topic in request.topics:
        parts = [
            kind.OffsetFetchResponsePartition(
                partition_index=number, committed_offset=committed.get((topic.name, number), -1), metadata=""
            )
            for number in topic.partition_indexes
        ]
        response.topics.append(kind.OffsetFetchResponseTopic(name=topic.name, partitions=parts))
    return response
