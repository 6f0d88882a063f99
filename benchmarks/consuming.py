"""Records of a consumer one by one, without a broker: what a fetched part costs the application's thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable


def records_of(data: bytes) -> Callable[[], object]:
    """A function that makes a record of each in `data`, and drops it."""
    from kafkacodec.client.consuming.reading import OF_RECORDS, RECORD_ROWS
    from kafkacodec.client.consuming.record import ConsumerRecord
    from kafkacodec.records._record_rows import ConsumerRecords
    from kafkacodec.records.columns import RecordColumns
    from kafkacodec.records.plan import DEFAULT_MAX_BYTES, plan_of

    decoder = plan_of(columns=OF_RECORDS, place_columns=True).decoder(b"")

    def run() -> None:
        decoder.open(data)
        decoder.set_place("t", 0)
        while len(chunk := decoder.read(RecordColumns, RECORD_ROWS, DEFAULT_MAX_BYTES)):
            deque(ConsumerRecords(chunk, ConsumerRecord, "t", 0), maxlen=0)
        decoder.close()

    return run
