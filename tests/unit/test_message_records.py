"""Records in decoded messages: memoryviews of the input, made on access."""

import copy
import gc
import pickle

import pytest

import kafkacodec as kc
from tests.leaks import assert_no_leak

Produce = kc.messages.ProduceRequest
Part = Produce.PartitionProduceData


def request(*records):
    parts = [Part(index=i, records=item) for i, item in enumerate(records)]
    return Produce(acks=1, topic_data=[Produce.TopicProduceData(name="t", partition_data=parts)])


def parts_of(data, version=9):
    return Produce.decode(data, version).topic_data[0].partition_data


BODY = request(b"abc", b"", None, b"defgh").encode(9)


def test_what_is_looked_at_is_a_view_and_stays_the_same():
    parts = parts_of(BODY)
    first = parts[0].records
    assert isinstance(first, memoryview)
    assert first.obj is BODY
    assert first.readonly
    assert (first.format, first.itemsize, first.ndim, first.contiguous) == ("B", 1, 1, True)
    assert parts[0].records is first
    assert [part.records for part in parts] == [b"abc", b"", None, b"defgh"]


def test_a_view_outlives_its_message():
    records = parts_of(bytes(BODY))[3].records
    gc.collect()
    assert bytes(records) == b"defgh"


@pytest.mark.parametrize("version", [3, 9])
def test_encoding_needs_no_look(version):
    message = request(b"abc", b"", None, b"d" * 5000)
    decoded = Produce.decode(message.encode(version), version)
    assert decoded.encode(version) == message.encode(version)
    assert decoded == message
    assert decoded.encode(version) == message.encode(version)


def test_all_that_reads_a_struct_sees_the_view():
    original = request(b"abc", b"")
    for use in (copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))):
        assert use(parts_of(BODY)[0]) == Part(records=b"abc")
        assert use(Produce.decode(original.encode(9), 9)) == original
    assert parts_of(BODY)[0] == parts_of(BODY)[0]
    assert parts_of(BODY)[0] != parts_of(BODY)[3]
    assert repr(parts_of(BODY)[3]) == repr(Part(index=3, records=b"defgh"))
    assert parts_of(BODY)[0].to_dict() == {"index": 0, "records": b"abc"}


def test_the_input_may_be_a_view_that_is_released_or_changed():
    data = bytearray(BODY)
    with memoryview(data) as view:
        parts = parts_of(view)
    data[BODY.index(b"defgh")] = ord("D")
    assert [part.records for part in parts] == [b"abc", b"", None, b"Defgh"]
    with pytest.raises(BufferError):
        data.append(0)
    del parts
    data.append(0)


def test_records_may_be_set_before_they_were_looked_at():
    message = Produce.decode(BODY, 9)
    message.topic_data[0].partition_data[0].records = b"new"
    message.topic_data[0].partition_data[3].records = None
    assert message == request(b"new", b"", None, None)
    assert Produce.decode(message.encode(9), 9) == message


def test_a_released_view_cannot_be_encoded():
    message = Produce.decode(BODY, 9)
    message.topic_data[0].partition_data[0].records.release()
    with pytest.raises(kc.EncodeError, match="expected bytes") as caught:
        message.encode(9)
    assert caught.value.path == "topic_data[0].partition_data[0].records"
    assert message.topic_data[0].partition_data[3].records == b"defgh"


def test_no_references_are_lost():
    data = bytearray(BODY)

    def work():
        for i in range(300):
            parts = parts_of(data)
            assert parts[i % 4].index == i % 4
            if i % 3:
                assert parts[3].records == b"defgh"
            with pytest.raises(kc.DecodeError):
                parts_of(data[: i % len(data)])

    assert_no_leak(work)
    data.append(0)
