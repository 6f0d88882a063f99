"""Message classes as Python objects: construction, defaults, equality, copies, errors."""

import copy
import pickle
import sys
import threading
import uuid

import pytest

import kafkacodec as kc
from kafkacodec import errors
from kafkacodec.messages import registry
from kafkacodec.messages.classes import build

Metadata = kc.messages.MetadataResponse
Topic = Metadata.MetadataResponseTopic
Partition = Metadata.MetadataResponsePartition


def example():
    return Metadata(
        brokers=[Metadata.MetadataResponseBroker(node_id=1, host="broker", port=9092)],
        topics=[Topic(name="orders", partitions=[Partition(leader_id=1, replica_nodes=[1, 2])])],
    )


def test_defaults_are_those_of_the_table():
    message = Metadata()
    assert message.controller_id == -1
    assert message.cluster_id is None
    assert message.topics == []
    assert message.cluster_authorized_operations == -(2**31)
    assert Topic().topic_id == uuid.UUID(int=0)


def test_mutable_defaults_are_not_shared():
    Metadata().topics.append(Topic())
    assert Metadata().topics == []
    fetched = kc.messages.FetchResponse.PartitionData()
    fetched.current_leader.leader_id = 5
    assert kc.messages.FetchResponse.PartitionData().current_leader.leader_id == -1


def test_a_default_that_was_never_looked_at_equals_one_that_was():
    one, other = kc.messages.FetchResponse.PartitionData(), kc.messages.FetchResponse.PartitionData()
    assert one.snapshot_id.epoch == -1
    assert one == other


def test_equality_copies_and_pickle():
    message = example()
    assert message == example()
    assert message != Metadata()
    assert message != "MetadataResponse()"
    shallow, deep, stored = copy.copy(message), copy.deepcopy(message), pickle.loads(pickle.dumps(message))
    assert shallow == deep == stored == message
    assert shallow.topics is message.topics
    assert deep.topics is not message.topics
    with pytest.raises(TypeError):
        hash(message)


def test_repr_shows_what_differs_from_the_defaults():
    assert repr(Topic(name="orders")) == "MetadataResponse.MetadataResponseTopic(name='orders')"


def test_pickle_copies_records_out_of_the_input():
    request = kc.messages.ProduceRequest(
        topic_data=[
            kc.messages.ProduceRequest.TopicProduceData(
                name="t", partition_data=[kc.messages.ProduceRequest.PartitionProduceData(records=b"abc")]
            )
        ]
    )
    decoded = kc.messages.ProduceRequest.decode(request.encode(9), 9)
    records = decoded.topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    assert records == b"abc"
    assert pickle.loads(pickle.dumps(decoded)) == request == decoded


def test_unknown_keyword_is_a_type_error():
    with pytest.raises(TypeError, match="no field 'topic'"):
        Metadata(topic=1)  # type: ignore[call-arg]


def test_dicts_and_back():
    message = example()
    message.unknown_tagged_fields[9] = b"kept"
    as_dict = message.to_dict()
    assert as_dict["topics"][0]["partitions"][0]["replica_nodes"] == [1, 2]
    assert Metadata.from_dict(as_dict) == message
    with pytest.raises(kc.EncodeError, match=r"topics\[0\]\.nmae"):
        Metadata.from_dict({"topics": [{"nmae": "x"}]})
    with pytest.raises(kc.EncodeError, match="topics: expected a list"):
        Metadata.from_dict({"topics": 5})


def test_generated_classes_cannot_be_subclassed():
    with pytest.raises(TypeError):
        type("Mine", (Metadata,), {})


@pytest.mark.parametrize("value", ["1", 2**31, -(2**31) - 1, 1.0, None, True])
def test_wrong_values_name_their_path(value):
    message = example()
    message.topics[0].partitions[0].leader_id = value
    with pytest.raises(kc.EncodeError) as caught:
        message.encode(9)
    assert caught.value.path == "topics[0].partitions[0].leader_id"


@pytest.mark.parametrize("value", [3, None, {"name": "t"}, kc.messages.MetadataRequest.MetadataRequestTopic()])
def test_the_class_of_a_struct_is_named(value):
    with pytest.raises(kc.EncodeError, match=r"^topics\[1\]: expected a MetadataResponse.MetadataResponseTopic, got"):
        Metadata(topics=[Topic(), value]).encode(9)


def test_unknown_tagged_fields_are_not_dropped_by_versions_that_have_none():
    message = example()
    message.topics[0].partitions[0].unknown_tagged_fields = {9: b"kept"}
    assert Metadata.decode(message.encode(9), 9) == message
    with pytest.raises(kc.EncodeError, match="has no tagged fields") as caught:
        message.encode(8)
    assert caught.value.path == "topics[0].partitions[0].unknown_tagged_fields"
    message.topics[0].partitions[0].unknown_tagged_fields.clear()
    message.encode(8)


@pytest.mark.parametrize("tags", [{1: "text"}, {-1: b""}, {"1": b""}, {2**31 - 1: b""}])
def test_wrong_unknown_tagged_fields(tags):
    with pytest.raises(kc.EncodeError) as caught:
        Metadata(topics=[Topic(unknown_tagged_fields=tags)]).encode(9)
    assert caught.value.path == "topics[0].unknown_tagged_fields"


def test_docstrings_list_the_fields():
    assert kc.messages.FetchRequest.__doc__.startswith("FetchRequest, key 1, versions 0-18, flexible 12+.\n")
    assert "    cluster_id (string): 12+, null in 12+, tag 0, default null\n" in kc.messages.FetchRequest.__doc__
    assert "    replica_id (int32): 0-14, default -1\n" in kc.messages.FetchRequest.__doc__
    assert "    partitions ([]FetchPartition): 0+" in kc.messages.FetchRequest.FetchTopic.__doc__


def test_an_api_that_is_not_known():
    with pytest.raises(KeyError, match="unknown API key 999"):
        kc.messages.by_key(999)


def test_versions_that_equal_a_number_are_that_number():
    cls = kc.messages.HeartbeatRequest
    with pytest.raises(kc.Truncated, match="HeartbeatRequest v1 "):
        cls.decode(b"", True)


def test_a_uuid_that_was_never_filled_is_refused():
    hollow = uuid.UUID.__new__(uuid.UUID)
    with pytest.raises(kc.EncodeError, match="expected a uuid"):
        Metadata(topics=[Topic(topic_id=hollow, name="t")]).encode(12)


def test_a_set_field_that_the_version_lacks():
    partition = kc.messages.FetchRequest.FetchPartition(last_fetched_epoch=3)
    topic = kc.messages.FetchRequest.FetchTopic(topic="t", partitions=[partition])
    with pytest.raises(kc.EncodeError) as caught:
        kc.messages.FetchRequest(topics=[topic]).encode(11)
    assert caught.value.path == "topics[0].partitions[0].last_fetched_epoch"
    # An ignorable one is dropped.
    assert kc.messages.MetadataResponse(throttle_time_ms=5).encode(0) == Metadata().encode(0)


def test_versions_outside_the_range():
    with pytest.raises(kc.UnsupportedVersion):
        Metadata().encode(99)
    with pytest.raises(kc.UnsupportedVersion):
        Metadata.decode(b"", -1)


def test_decode_errors_name_position_and_path():
    body = example().encode(9)
    with pytest.raises(kc.DecodeError, match="unexpected bytes after the message") as caught:
        Metadata.decode(body + b"\0", 9)
    assert caught.value.position == len(body)
    for size in range(len(body)):
        with pytest.raises(kc.DecodeError) as caught:
            Metadata.decode(body[:size], 9)
        assert caught.value.position <= size
    with pytest.raises(kc.Truncated) as caught:
        Metadata.decode(body[:-7], 9)
    assert caught.value.path == "topics[0].topic_authorized_operations"


def test_tags_that_could_not_be_written_back_are_refused():
    front = kc.messages.ApiVersionsRequest().encode(3)[:-1]
    last = front + bytes.fromhex("01 feffffff07 02 aabb")
    assert kc.messages.ApiVersionsRequest.decode(last, 3).encode(3) == last
    for tag in ("ffffffff07", "8080808008", "ffffffff0f"):
        with pytest.raises(kc.LimitExceeded, match="a tag: ") as caught:
            kc.messages.ApiVersionsRequest.decode(front + bytes.fromhex(f"01 {tag} 02 aabb"), 3)
        assert caught.value.position == len(front) + 7


def test_input_is_given_back():
    data = bytearray(example().encode(9))
    decoded = Metadata.decode(data, 9)
    data.append(0)  # raises BufferError if a view still exists
    assert decoded == example()


def test_own_tables():
    classes = build(
        """
        data Ping versions=0
          Name string 0+
          Parts [int16]int64 0+
          Hosts []Host 0+
            Port uint16 0+
        """.replace("\n        ", "\n"),
        __name__,
    )
    ping = classes["Ping"](name="a", parts=[1], hosts=[classes["Ping"].Host(port=65535)])  # type: ignore[attr-defined]
    raw = bytes.fromhex("0001 61 0001 0000000000000001 00000001 ffff")
    assert ping.encode(0) == raw
    assert classes["Ping"].decode(raw, 0) == ping


def test_a_tagged_struct_is_written_where_it_differs_from_its_default():
    Fetch = kc.messages.FetchResponse
    partition = Fetch.PartitionData()
    response = Fetch(responses=[Fetch.FetchableTopicResponse(partitions=[partition])])
    absent = response.encode(12)
    assert partition.current_leader == Fetch.LeaderIdAndEpoch()
    assert response.encode(12) == absent
    partition.current_leader = Fetch.LeaderIdAndEpoch(leader_id=-1)
    partition.current_leader.unknown_tagged_fields = {}
    assert response.encode(12) == absent
    partition.current_leader.leader_epoch = 2**20
    assert Fetch.decode(response.encode(12), 12) == response
    partition.current_leader.leader_epoch = -1
    partition.current_leader.unknown_tagged_fields = {7: b"kept"}
    assert Fetch.decode(response.encode(12), 12) == response
    partition.current_leader.unknown_tagged_fields.clear()
    assert response.encode(12) == absent


@pytest.mark.parametrize("name", ["FetchRequest", "JoinGroupRequest", "ProduceRequest", "CreateTopicsRequest"])
def test_threads_that_need_a_class_first_get_the_same(name, monkeypatch):
    monkeypatch.setattr(registry, "_classes", {})
    monkeypatch.setattr(registry, "_tables", {}, raising=False)
    assert len(set(in_threads(lambda: registry.message_class(name)))) == 1


def test_threads_that_need_an_error_first_get_the_same_class(monkeypatch):
    monkeypatch.setattr(errors, "_known", {}, raising=False)
    assert len(set(in_threads(lambda: errors.error(6)))) == 1


def in_threads(call):
    """What a call returns in each of some threads that begin at the same time."""
    barrier, found, interval = threading.Barrier(4), [], sys.getswitchinterval()

    def run():
        barrier.wait()
        found.append(call())

    threads = [threading.Thread(target=run) for _ in range(4)]
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert len(found) == 4
    return found
