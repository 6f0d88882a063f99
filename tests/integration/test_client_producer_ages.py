"""A producer and brokers of older releases, 0.8.2 to 2.8: what they lack, and transactions."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import kafkacodec as kc
from kafkacodec.errors import EncodeError, UnsupportedVersion
from tests.integration.kafka_jars import OLD_RELEASES
from tests.integration.kafka_jvm import Server
from tests.patience import SOON

pytestmark = [
    pytest.mark.java,
    pytest.mark.slow,
    pytest.mark.parametrize("release", OLD_RELEASES, indirect=True, scope="session"),
]

# The format of each release's log: of what the broker writes without a setting.
MAGIC = {"0.8.2": 0, "0.9.0": 0, "0.10.2": 1}


def options(release: str) -> dict[str, Any]:
    """What tells a client that a broker has no ApiVersions."""
    return {"broker_version_fallback": f"{release}.0"} if release in ("0.8.2", "0.9.0") else {}


def test_what_a_release_lacks(server: Server, release: str, caplog: pytest.LogCaptureFixture) -> None:
    with kc.client.Producer(server.server, **options(release)) as producer:
        assert producer.send("lacks", b"v").result(SOON).offset == 0
    warned = [record for record in caplog.records if "idempotence" in record.message]
    assert len(warned) == (release in MAGIC)
    with kc.client.Producer(server.server, acks=1, **options(release)) as producer:
        delivery = producer.send("lacks", b"v", headers=[("h", b"x")])
        if release in MAGIC:
            with pytest.raises(EncodeError, match="headers"):
                delivery.result(SOON)
        else:
            assert delivery.result(SOON).offset == 1
    if release in MAGIC:
        with (
            kc.client.Producer(server.server, enable_idempotence=True, **options(release)) as producer,
            pytest.raises(UnsupportedVersion, match=r"0\.11"),
        ):
            producer.send("lacks", b"v").result(SOON)


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4"])
def test_large_compressed_batches_have_consecutive_offsets(server: Server, release: str, codec: str) -> None:
    topic, values = f"large-{codec}", [b"%020d" % n for n in range(10_000)]
    with kc.client.Producer(server.server, compression_type=codec, **options(release)) as producer:
        producer.send(topic, b"first").result(SOON)
        producer.send_columns(pa.table({"value": values}), topic=topic).result(SOON)
    read = kc.log.LogDirectory(server.logs).read(topic, 0)
    found = pa.Table.from_batches(columns.to_pyarrow().select(["offset", "value"]) for columns in read)
    assert found["offset"].to_pylist() == list(range(10_001))
    assert found["value"].to_pylist() == [b"first", *values]


def test_transactions(server: Server, release: str) -> None:
    producer = kc.client.Producer(server.server, transactional_id="tx", **options(release))
    if release in MAGIC:
        with producer, pytest.raises(UnsupportedVersion):
            producer.begin_transaction()
        return
    with producer:
        for n in range(3):
            with producer.transaction():
                producer.send("transactions", b"kept %d" % n, partition=0)
            producer.begin_transaction()
            producer.send("transactions", b"dropped", partition=0).result(SOON)
            producer.abort_transaction()
    read = kc.log.LogDirectory(server.logs).read("transactions", 0, isolation_level="read_committed")
    values = [value for columns in read for value in columns.to_pyarrow()["value"].to_pylist()]
    assert values == [b"kept 0", b"kept 1", b"kept 2"]
