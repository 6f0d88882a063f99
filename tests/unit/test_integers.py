"""Numbers as arguments: numpy's integers are as good as Python's, and bools, floats and text are mistakes."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import kafkacodec as kc
from kafkacodec.spark.exporting.options import FileOptions
from tests.patience import SOON

DATA = kc.encode([(b"k", b"v")] * 3)
LOG = kc.sample()
PARTITION = LOG.partition("orders", 1)

OFFLINE: dict[str, Callable[[Any], object]] = {
    "LogDirectory.partition": lambda n: LOG.partition("orders", n),
    "Topic.partition": lambda n: LOG.topic("orders").partition(n),
    "Partition.read start_offset": lambda n: next(PARTITION.read(start_offset=n)),
    "Partition.read max_rows": lambda n: next(PARTITION.read(max_rows=n)),
    "Partition.read threads": lambda n: next(PARTITION.read(threads=n)),
    "Topic.head": lambda n: LOG.topic("orders").head(n),
    "decode end_offset": lambda n: kc.decode(DATA, end_offset=n),
    "encode base_offset": lambda n: kc.encode([(b"k", b"v")], base_offset=n),
    "encode batch_bytes": lambda n: kc.encode([(b"k", b"v")], batch_bytes=n),
    "columns by number": lambda n: kc.decode(DATA)[n],
    "columns.head": lambda n: kc.decode(DATA).head(n),
    "columns.take": lambda n: kc.decode(DATA).take([n]),
    "FileOptions": lambda n: FileOptions(row_group_rows=n),
}


def like(example: Any, value: int) -> Any:
    """A number of the same type as another one."""
    return type(example)(value)


def closed(servers: str, **options: Any) -> None:
    with kc.client.Producer(servers, **options):
        pass


@pytest.fixture(scope="module")
def online() -> Iterator[dict[str, Callable[[Any], object]]]:
    with (
        kc.broker.serve(topics={"orders": 3}) as broker,
        kc.client.Admin(broker.bootstrap_servers) as admin,
        kc.client.Producer(broker.bootstrap_servers) as producer,
    ):

        def new() -> str:
            broker.create_topic(name := f"t-{uuid.uuid4().hex[:8]}")
            return name

        yield {
            "serve node_id": lambda n: kc.broker.serve(node_id=n).stop(),
            "Broker.create_topic": lambda n: broker.create_topic(f"t-{uuid.uuid4().hex[:8]}", n),
            "Broker.write": lambda n: broker.write("orders", [(b"k", b"v")], partition=n),
            "Admin.create_partitions": lambda n: admin.create_partitions({new(): like(n, 2)}),
            "Admin.delete_records": lambda n: admin.delete_records({("orders", 2): like(n, 0)}),
            "Producer.send": lambda n: producer.send("orders", b"v", partition=n).result(SOON),
            "Producer acks": lambda n: closed(broker.bootstrap_servers, acks=n, enable_idempotence=False),
        }


def refuses(call: Callable[[Any], object]) -> None:
    for wrong in (True, np.bool_(True), 1.0):
        with pytest.raises((TypeError, ValueError), match=r"integer|number|expected|must be 'all'"):
            call(wrong)


@pytest.mark.parametrize("name", OFFLINE)
def test_integers(name: str) -> None:
    refuses(OFFLINE[name])
    for right in (1, np.int64(1), np.int32(1), np.uint8(1)):
        OFFLINE[name](right)


@pytest.mark.parametrize(
    "name",
    [
        "serve node_id", "Broker.create_topic", "Broker.write", "Admin.create_partitions", "Admin.delete_records",
        "Producer.send", "Producer acks",
    ],
)  # fmt: skip
def test_integers_of_clients_and_brokers(name: str, online: dict[str, Callable[[Any], object]]) -> None:
    refuses(online[name])
    for right in (1, np.int64(1), np.int32(1)):
        online[name](right)


def test_times_in_seconds() -> None:
    with kc.broker.serve(clock="manual") as broker:
        broker.advance(np.int64(1))
        broker.advance(0.5)
        for wrong in (True, "1", None):
            with pytest.raises(TypeError, match="seconds must be a number, not"):
                broker.advance(wrong)  # type: ignore[arg-type]


def test_a_mask_is_for_filter() -> None:
    with pytest.raises(TypeError, match=r"^the numbers of rows must be integers, not bool; filter takes a mask$"):
        kc.decode(DATA).take([True, False, True])
    with pytest.raises(TypeError, match=r"^the numbers of rows must be integers, not <U1$"):
        kc.decode(DATA).take(["1"])  # type: ignore[list-item]
    assert len(kc.decode(DATA).take([])) == 0
