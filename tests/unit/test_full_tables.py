"""A full table: an error that says what to do, or the rows that fit and a problem for the rest; never a hang."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest

import kafkacodec as kc
from kafkacodec import messages
from kafkacodec.dialects import kafka07
from kafkacodec.protocol import fetch_to_columns
from kafkacodec.records import blobs, decoder, plan, reading

BATCHES = b"".join(kc.encode([(None, b"x")] * 10, base_offset=10 * i) for i in range(4))
BATCH_SIZE = len(BATCHES) // 4
LIMIT = 25


def check_full_tables() -> None:
    """In a separate process, since it may hang."""
    plan.TABLE_ROWS = reading.TABLE_ROWS = decoder.TABLE_ROWS = blobs.TABLE_ROWS = LIMIT  # type: ignore[attr-defined]
    for columns in (None, []):
        for threads in (1, 3):
            with pytest.raises(kc.LimitExceeded, match=f"{LIMIT} rows or more; use iter_columns"):
                kc.decode(BATCHES, columns=columns, threads=threads)
            for on_error in ("stop", "skip"):
                table = kc.decode(BATCHES, columns=columns, threads=threads, on_error=on_error)
                (problem,) = table.problems
                assert (len(table), table.consumed) == (LIMIT, 2 * BATCH_SIZE)
                assert (problem.position, problem.size_in_bytes) == (2 * BATCH_SIZE, 2 * BATCH_SIZE)
                assert isinstance(problem.exception, kc.LimitExceeded)
    check_columns_of_blobs()
    check_fetched()
    check_kafka07()
    assert len(kc.decode(BATCHES[: 2 * BATCH_SIZE])) == 20
    assert sum(map(len, kc.iter_columns(BATCHES))) == 40


def check_columns_of_blobs() -> None:
    column = pa.array([BATCHES[: 2 * BATCH_SIZE], BATCHES[2 * BATCH_SIZE :], BATCHES])
    with pytest.raises(kc.LimitExceeded, match=f"row 1: .*{LIMIT} rows or more"):
        kc.decode_batches(column)
    for on_error in ("stop", "skip"):
        table = kc.decode_batches(column, on_error=on_error)
        assert len(table) == LIMIT
        assert [(p.position, p.size_in_bytes) for p in table.problems] == [(0, 2 * BATCH_SIZE), (0, 4 * BATCH_SIZE)]


def check_fetched() -> None:
    response = messages.FetchResponse()
    topic = messages.FetchResponse.FetchableTopicResponse(topic="t")
    partition = messages.FetchResponse.PartitionData
    topic.partitions = [partition(partition_index=i, records=BATCHES[: 2 * BATCH_SIZE]) for i in range(3)]
    response.responses = [topic]
    with pytest.raises(kc.LimitExceeded, match=f"{LIMIT} rows or more"):
        fetch_to_columns(response)
    for on_error in ("stop", "skip"):
        table = fetch_to_columns(response, on_error=on_error)
        assert len(table) == LIMIT
        assert [(p.position, p.size_in_bytes) for p in table.problems] == [(0, 2 * BATCH_SIZE), (0, 2 * BATCH_SIZE)]


def check_kafka07() -> None:
    data = kafka07.encode_messages([b"x"] * 40)
    with pytest.raises(kc.LimitExceeded, match=f"{LIMIT} rows or more"):
        kafka07.decode(data)
    for on_error in ("stop", "skip"):
        table = kafka07.decode(data, on_error=on_error)
        assert len(table) == LIMIT
        assert [p.size_in_bytes for p in table.problems] == [15 * len(data) // 40]


@pytest.mark.slow
def test_full_tables() -> None:
    subprocess.run([sys.executable, __file__], timeout=100, check=True)


if __name__ == "__main__":
    check_full_tables()
