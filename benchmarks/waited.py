"""A record that one thread sends and waits for, without a loop: what the client costs beside the system's calls."""

from __future__ import annotations

import select
import socket
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

NODE, VERSION = 1, 11
FRAME_BYTES = 4096
NUMBER_AT, ANSWER_NUMBER_AT = 8, 4  # of the correlation id


def waiting() -> Callable[[], object] | None:
    """A function that sends a record by a way past the loop, has the other end of a socket answer, and waits for it.
    None where loops sleep in something else."""
    if not hasattr(select, "epoll"):
        return None
    from kafkacodec import messages
    from kafkacodec.client.core.calls import Answer
    from kafkacodec.client.core.metrics import Metrics
    from kafkacodec.client.producing.shortcuts import shortcuts_of
    from kafkacodec.protocol.frames import encode_response
    from tests.model_producer import ModelCluster

    model = ModelCluster(1)
    delivery = model.produce(b"first", 0)
    while not delivery.done():
        model.poll()
        model.answer(NODE)
    here, there = socket.socketpair()
    epoll = select.epoll()
    epoll.register(here, select.EPOLLIN)
    line: Any = SimpleNamespace(
        number=NODE, fd=here.fileno(), epoll=epoll.fileno(), node=SimpleNamespace(), network=SimpleNamespace(),
        connection=SimpleNamespace(next_correlation_id=0, client_id="kafkacodec"), is_over=False,
        look=lambda _: setattr(line, "is_free", True), kept=(here, epoll),
    )  # fmt: skip

    def unexpected(*_: object) -> None:
        raise AssertionError("the loop sleeps")

    shortcuts = shortcuts_of(
        model.queues, model.cluster, model.identity, Metrics(),
        adopt=unexpected, line=lambda _: line, ring=unexpected, limit_ms=1000,
    )  # fmt: skip
    request, response = messages.ProduceRequest, messages.ProduceResponse
    part = response.PartitionProduceResponse(index=0, base_offset=7)
    message = response(responses=[response.TopicProduceResponse(name="t", partition_responses=[part])])
    entry = request.TopicProduceData(name="t", partition_data=[request.PartitionProduceData(index=0)])
    asked, frame = request(acks=-1, timeout_ms=1000, topic_data=[entry]), encode_response(message, VERSION, 0)
    queue: Any = model.queues.topics["t"].queues[0]
    shortcuts.offer(queue, Answer(message, VERSION, NODE, SimpleNamespace(nbytes=len(frame)), asked), 0.0)
    shortcuts.shortcut.fall_asleep(0.0)
    received = memoryview(bytearray(FRAME_BYTES))
    answer = bytearray(frame)

    def one() -> object:
        sent = model.produce(b"v" * 100, 0)
        there.recv_into(received)
        answer[ANSWER_NUMBER_AT : ANSWER_NUMBER_AT + 4] = received[NUMBER_AT : NUMBER_AT + 4]
        there.send(answer)
        return sent.result(1)

    return one
