"""The producer of the rewrite, whose `send` always returns at once."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from kafkacodec.client.aio import Producer as Sender
from kafkacodec.client.checks import seconds
from kafkacodec.client.lifecycle import owned
from kafkacodec.client.producing._delivery import Delivery
from kafkacodec.client.producing.outcome import RecordMetadata
from kafkacodec.datatypes import NamedTuple
from kafkacodec.dialects.threads import ThreadClient
from kafkacodec.errors import ClientClosed, DeadlineExceeded, KafkaCodecError, LocalProtocolError, QueueFull
from kafkacodec.shown import counted, repr_of

__all__ = ["KafkaMessage", "Producer", "SendResponse"]

_MESSAGE_BYTES: Final = 500  # of memory for a message that waits, beyond its texts

Outcome: TypeAlias = "concurrent.futures.Future[RecordMetadata]"


class KafkaMessage(NamedTuple):
    """A message to send.

    Attributes:
        topic: its topic.
        key, message: bytes, text (as UTF-8) or None; or values for the producer's serializers.
    """

    topic: str
    key: Any
    message: Any


class SendResponse:
    """The outcome of messages that were sent together.

    Waiting in the producer's own thread, which would wait for itself, raises LocalProtocolError.
    """

    def __init__(self, outcomes: Sequence[Outcome], loop: asyncio.AbstractEventLoop) -> None:
        self._outcomes, self._loop = list(outcomes), loop
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        known = sum(one.done() for one in self._outcomes)
        return repr_of(self, f"{known} of {counted(len(self._outcomes), 'message')} known")

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the outcome of all messages; False if it took longer than `timeout` seconds."""
        left = seconds("timeout", timeout)
        if any(not outcome.done() for outcome in self._outcomes):
            if _runs_here(self._loop):
                raise LocalProtocolError("a callback of the producer would wait for the producer: use another thread")
            _, waiting = concurrent.futures.wait(self._outcomes, left)
            return not waiting
        return True

    def get_offset(self) -> int | None:
        """Return the offset of the last message, once it is known; None if it was not delivered."""
        return self.get_offsets()[-1]

    def get_offsets(self) -> list[int | None]:
        """The offset of each message, as `get_offset`."""
        self.wait()
        return [one.result().offset if one.exception() is None else None for one in self._outcomes]

    def get_error(self) -> BaseException | None:
        """Return the first error of a message; None if all were delivered. Waits until it is known."""
        self.wait()
        errors = (one.exception() for one in self._outcomes)
        return next((error for error in errors if error is not None), None)

    def on_completion(self, function: Callable[[], object]) -> None:
        """Call a function when the outcome of all messages is known, in the producer's thread, or here if it is known
        already.
        """
        left = len(self._outcomes)

        def done(_: object) -> None:
            nonlocal left
            with self._lock:
                left -= 1
                is_last = left == 0
            if is_last:
                function()

        for outcome in self._outcomes:
            outcome.add_done_callback(done)


class _Waiting(NamedTuple):
    """A message that the sender has not taken yet."""

    message: KafkaMessage
    outcome: Outcome
    size: int


class _Queues:
    """Messages for the sender, in its event loop: a queue for each topic.

    So a topic with unknown partitions holds up no other topic, and no caller.

    Args:
        sender: of `kafkacodec.client`, in the same event loop.
        memory: the maximum of waiting bytes.
    """

    def __init__(self, sender: Sender, memory: int) -> None:
        self._sender, self._memory = sender, memory
        self._topics: dict[str, deque[_Waiting]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._given: deque[_Waiting] = deque()  # by other threads
        self._room = threading.Condition()
        self._bytes = 0
        self._closed = False

    def give(self, waiting: _Waiting, most_seconds: float | None) -> bool:
        """Queue a message, from any thread; return whether to wake the loop. Raises QueueFull, ClientClosed."""
        with self._room:
            if not self._room.wait_for(lambda: self._closed or self._bytes < self._memory, most_seconds):
                raise QueueFull(f"{self._bytes} bytes wait to be sent, buffer_memory is {self._memory}")
            if self._closed:
                raise ClientClosed("the producer is closed")
            self._bytes += waiting.size
            self._given.append(waiting)
            return len(self._given) == 1

    def close(self) -> None:
        """Accept no more messages."""
        with self._room:
            self._closed = True
            self._room.notify_all()

    def take(self) -> None:
        """Take queued messages."""
        while self._given:
            waiting = self._given.popleft()
            queue = self._topics.get(waiting.message.topic)
            if queue is None:
                queue = self._topics[waiting.message.topic] = deque()
                task = asyncio.get_running_loop().create_task(self._sent(waiting.message.topic, queue))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            queue.append(waiting)

    async def empty(self) -> None:
        """Wait until the sender has everything."""
        self.take()
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _sent(self, topic: str, queue: deque[_Waiting]) -> None:
        try:
            while queue:
                begun_with = len(queue)
                message, outcome, _ = queue[0]
                try:
                    delivery = await self._sender.send(topic, message.message, key=message.key)
                except DeadlineExceeded as error:  # the partitions are still not known: all have waited for that
                    for _ in range(begun_with):
                        self._done(queue).set_exception(error)
                except Exception as error:  # also of a serializer
                    self._done(queue).set_exception(error)
                else:
                    self._done(queue)
                    delivery.add_done_callback(partial(_resolve, outcome))
        finally:
            while queue:  # the loop ends
                self._done(queue).set_exception(ClientClosed("the producer was closed before the message was sent"))
            del self._topics[topic]

    def _done(self, queue: deque[_Waiting]) -> Outcome:
        """The outcome of the first message, which waits no longer."""
        waiting = queue.popleft()
        with self._room:
            self._bytes -= waiting.size
            self._room.notify_all()
        return waiting.outcome


class Producer(ThreadClient):
    """Sends messages to Kafka's brokers, by the producer of `kafkacodec.client`; a context manager.

    with rewrite.Producer({"bootstrap.servers": "localhost:9092"}) as producer:
        response = producer.send(rewrite.KafkaMessage("orders", b"key", b"message"))
        print(response.get_offset(), response.get_error())

    Args:
        config: as of `kafkacodec.client.Producer.from_config`, such as ``acks`` and ``compression.type``.
        **options: of `kafkacodec.client.ProducerSettings`, by keyword: serializers, for instance.

    Raises:
        ValueError, TypeError: a name or value is wrong.
    """

    def __init__(self, config: Mapping[str, Any], **options: Any) -> None:
        sender = owned(Sender.from_config(config, **options))
        settings = sender._settings
        self._begin(sender, "kafkacodec rewrite producer")
        self._queues = _Queues(sender, settings.buffer_memory)
        self._patience = settings.max_block_ms / 1000

    def send(self, *messages: KafkaMessage) -> SendResponse:
        """Queue messages and return at once; the producer's thread collects them to batches and sends them.

        It waits only while ``buffer.memory`` is full, up to ``max.block.ms``. The result has the error of a message
        that cannot be sent, for instance if its topic is not known within ``max.block.ms``.

        Raises:
            ValueError: no message.
            ClientClosed: the producer is closed.
        """
        if not messages:
            raise ValueError("send() needs a message")
        self._thread.check()
        patience = 0.0 if _runs_here(self._thread.loop) else self._patience
        outcomes: list[Outcome] = []
        for message in messages:
            outcome: Outcome = concurrent.futures.Future()
            outcome.set_running_or_notify_cancel()  # it cannot be cancelled
            outcomes.append(outcome)
            size = _MESSAGE_BYTES + sum(len(part) for part in message[1:] if isinstance(part, bytes | str))
            try:
                if self._queues.give(_Waiting(KafkaMessage(*message), outcome, size), patience):
                    self._thread.soon(self._queues.take)
            except KafkaCodecError as error:
                outcome.set_exception(error)
        return SendResponse(outcomes, self._thread.loop)

    def flush(self, timeout: float | None = None) -> None:
        """Wait for the outcome of all messages. Raises DeadlineExceeded."""
        self._thread.run(lambda: self._flushed(seconds("timeout", timeout)))

    def close(self) -> None:
        """Send waiting messages, and close all connections."""
        self._queues.close()
        self._thread.end(self._ended)

    async def _flushed(self, timeout: float | None) -> None:
        try:
            async with asyncio.timeout(timeout):
                await self._queues.empty()
                await self._face.flush()
        except TimeoutError:
            raise DeadlineExceeded(f"not everything was acknowledged within {timeout} s") from None

    async def _ended(self) -> None:
        await self._queues.empty()
        await self._face.close()


def _resolve(outcome: Outcome, delivery: Delivery) -> None:
    error = delivery.error
    if error is None:
        outcome.set_result(delivery.result())
    else:
        outcome.set_exception(error)


def _runs_here(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether an event loop calls this."""
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False
