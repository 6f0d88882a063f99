"""Which objects hold the caller's buffer, and for how long."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import kafkacodec as kc
from kafkacodec import messages, protocol
from kafkacodec.dialects import kafka07
from kafkacodec.dialects.kafka07._decoder import Decoder as Kafka07Decoder
from kafkacodec.log.segments._resync import Resync
from kafkacodec.records._decoder import Decoder, record_columns
from tests.processes import run_python

DATA = kc.encode([(b"key", b"value")] * 3)
OLD = kafka07.encode_messages([b"payload"] * 3)


def damaged(data: bytes) -> bytearray:
    """The same with the last byte changed, which every checksum detects."""
    return bytearray(data[:-1] + bytes([data[-1] ^ 1]))


def fetch(data: bytearray) -> object:
    partition = messages.FetchResponse.PartitionData(partition_index=0, records=memoryview(data))
    topic = messages.FetchResponse.FetchableTopicResponse(topic="t", partitions=[partition])
    return protocol.fetch_to_columns(messages.FetchResponse(responses=[topic]))


FAULTS: dict[str, tuple[bytes, Callable[[bytearray], object]]] = {
    "decode": (DATA, kc.decode),
    "decode in threads": (DATA * 9, lambda data: kc.decode(data, threads=2)),
    "iter_columns": (DATA, lambda data: list(kc.iter_columns(data))),
    "iter_records": (DATA, lambda data: list(kc.iter_records(data))),
    "fetch_to_columns": (DATA, fetch),
    "kafka07.decode": (OLD, kafka07.decode),
    "kafka07.iter_columns": (OLD, lambda data: list(kafka07.iter_columns(data))),
}


@pytest.mark.parametrize("name", FAULTS)
def test_an_exception_that_is_kept_does_not_keep_the_bytes(name: str) -> None:
    good, call = FAULTS[name]
    data = damaged(good)
    with pytest.raises(kc.CrcMismatch) as caught:
        call(data)
    if name == "fetch_to_columns":  # the response itself holds a view, which the traceback keeps
        caught.value.with_traceback(None)
        del caught
    data.append(0)


FAULT_IN_A_CYCLE = """
import gc
from tests.unit.test_buffers import FAULTS, damaged

def fault(name):
    good, call = FAULTS[name]
    view = memoryview(damaged(good))
    try:
        call(view)
    except ValueError as error:
        kept = error  # in a cycle with the frame, whose locals have the view

gc.disable()
fault({name!r})
gc.collect()
"""


@pytest.mark.parametrize("name", FAULTS)
def test_the_collector_survives_a_fault_in_a_cycle(name: str) -> None:
    run(FAULT_IN_A_CYCLE.format(name=name))


HOLDER_IN_A_CYCLE = """
import gc
from kafkacodec.log.segments import _resync
from tests.unit.test_buffers import DATA, decoder, decoder07

class Node: pass

gc.disable()
for make in (decoder, decoder07, _resync.Resync):
    node = Node()
    node.view = memoryview(bytearray(DATA))
    node.holder = make(node.view)
    node.self = node
    del node
    gc.collect()
"""


def decoder(data: object) -> Decoder:
    return Decoder(
        data,  # type: ignore[arg-type]
        wanted=(1 << len(record_columns())) - 1,
        verify_crc=True,
        include_control=False,
        start_offset=0,
        end_offset=1 << 62,
        limit=1 << 20,
    )


def decoder07(data: object) -> Kafka07Decoder:
    return Kafka07Decoder(data, wanted=3, verify_crc=True, deep=True, initial_offset=0, limit=1 << 20)  # type: ignore[arg-type]


def test_the_collector_survives_what_holds_a_buffer() -> None:
    run(HOLDER_IN_A_CYCLE)


@pytest.mark.parametrize("make", [decoder, decoder07, Resync])
def test_a_holder_gives_its_bytes_back(make: Callable[[object], object]) -> None:
    data = bytearray(DATA)
    held = make(data)
    with pytest.raises(BufferError):
        data.append(0)
    del held
    data.append(0)


@pytest.mark.parametrize("make", [decoder, decoder07])
def test_a_closed_decoder_reads_nothing(make: Callable[[object], Decoder]) -> None:
    data = bytearray(DATA)
    with make(data) as closed:
        pass
    data.append(0)
    closed.close()
    for call in (lambda: closed.read(kc.RecordColumns, 1, 1), closed.skip):
        with pytest.raises(ValueError, match="closed"):
            call()


def run(code: str) -> None:
    """In a separate process, which must exit without an error."""
    done = run_python(code)
    assert (done.returncode, done.stderr) == (0, "")
