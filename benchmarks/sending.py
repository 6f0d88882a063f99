"""Records that a producer gets one by one, without a broker: what the call of `send` costs the application's thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

CALLS = 1000
HEADERS = [("trace", b"0123456789abcdef"), ("kind", b"test")]
VALUE, KEY, TEXT = b"v" * 100, b"k000000001", "v" * 100
# Each as an application writes it: arguments in a dict would cost more than what is measured.
RECORDS: dict[str, Callable[[Any], object]] = {
    "value": lambda client: client.send("t", VALUE),
    "key and value": lambda client: client.send("t", VALUE, key=KEY),
    "text": lambda client: client.send("t", TEXT, key="k000000001"),
    "two headers": lambda client: client.send("t", VALUE, headers=HEADERS),
}


def calls(send: Callable[[Any], object]) -> Callable[[], object]:
    """A function that sends so many records. Batches are of the default size, and dropped."""
    from kafkacodec.client.producing._appending import Sending
    from kafkacodec.errors import ClientClosed
    from tests.model_producer import ModelCluster

    model = ModelCluster(1, linger_ms=10**6)

    class Client(Sending):
        def _send(self, topic: str, value: Any, key: Any, headers: Any, partition: int | None, _: object) -> Any:
            own = model.queues.topic(topic)
            assert own is not None
            with model.queues.lock:
                delivery, _due = model.queues.append(own, partition, key, value, headers, 5)
                model.queues.make_ready(own)
            return delivery

    client = Client()
    client._queues = model.queues

    def run() -> None:
        for _ in range(CALLS):
            send(client)
        model.sender.discard(ClientClosed("dropped"))

    return run
