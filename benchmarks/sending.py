"""Records that a producer gets one by one or in small tables, without a broker: what `send` and `send_columns` cost the
application's thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

CALLS = 1000
TABLES, ROWS = 100, 10
HEADERS = [("trace", b"0123456789abcdef"), ("kind", b"test")]
VALUE, KEY, TEXT = b"v" * 100, b"k000000001", "v" * 100
# Each as an application writes it: arguments in a dict would cost more than what is measured.
RECORDS: dict[str, Callable[[Any], object]] = {
    "value": lambda client: client.send("t", VALUE),
    "key and value": lambda client: client.send("t", VALUE, key=KEY),
    "text": lambda client: client.send("t", TEXT, key="k000000001"),
    "two headers": lambda client: client.send("t", VALUE, headers=HEADERS),
}


def tables() -> Callable[[], object]:
    """A function that sends so many tables of a few rows."""
    import pyarrow as pa

    rows = [pa.table({"key": [KEY] * ROWS, "value": [VALUE] * ROWS}) for _ in range(TABLES)]

    def send(client: Any) -> None:
        client.send("t", VALUE)
        for table in rows:
            client.send_columns(table, topic="t")

    return calls(send, 1)


def callbacks() -> Callable[[], object]:
    """A function that sends so many records, and has a function called for each."""

    def known(delivery: Any) -> None:
        pass

    return calls(lambda client: client.send("t", VALUE, key=KEY).add_done_callback(known), delivers=True)


def calls(send: Callable[[Any], object], count: int = CALLS, *, delivers: bool = False) -> Callable[[], object]:
    """A function that calls `send` so often. Batches are of the default size, and dropped, after an acknowledgement if
    one is asked for."""
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

        def _check_transaction(self) -> None:
            pass

        def _add_rows(self, rows: Any, _: object) -> Any:
            while not rows.add():
                key, value = rows.pair()
                rows.took(self._send("t", value, key, (), None, None))
            return rows.finish()

    client = Client()
    client._queues = model.queues

    def run() -> None:
        for _ in range(count):
            send(client)
        for batch in [*model.queues.pending] if delivers else ():
            batch.resolve(0, -1, None)
        model.sender.discard(ClientClosed("dropped"))

    return run
