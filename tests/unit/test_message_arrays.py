"""Arrays of structs are made on first access; users and errors cannot tell them from lists made at once."""

import copy
import gc
import pickle
import random
import sys
import weakref

import pytest

import kafkacodec as kc
from kafkacodec import messages
from kafkacodec.messages import _struct
from tests.message_values import damage
from tests.protocol_vectors import bodies, vectors

Metadata = messages.MetadataResponse
Topic = Metadata.MetadataResponseTopic
Partition = Metadata.MetadataResponsePartition
Fetch = messages.FetchResponse
MANY = 40  # more items than are made at once


@pytest.fixture(autouse=True, params=["kept", "not kept"])
def memory(request):
    """Both ways to get the memory of an object: from a dead one, and from CPython."""
    _struct.keep_memory(*([] if request.param == "kept" else [0]))
    yield
    _struct.keep_memory()


def example():
    topics = [
        Topic(name=f"topic-{i}", partitions=[Partition(partition_index=n, replica_nodes=[1, 2, n]) for n in range(i)])
        for i in range(MANY)
    ]
    return Metadata(controller_id=7, topics=topics)


def at_once(cls, body, version):
    """What is decoded from bytes that may change, and so leaves nothing for later."""
    made, end = cls.decode_prefix(bytearray(body), version)
    assert end == len(body)
    return made


BODY = example().encode(9)


def test_an_array_is_a_list():
    decoded = Metadata.decode(BODY, 9)
    topics = decoded.topics
    assert type(topics) is list
    assert decoded.topics is topics
    assert [topic.name for topic in topics] == [f"topic-{i}" for i in range(MANY)]
    assert type(topics[30].partitions) is list
    assert topics[30].partitions[-1] == Partition(partition_index=29, replica_nodes=[1, 2, 29])


@pytest.mark.parametrize("made_from", [bytes, memoryview, bytearray, lambda body: memoryview(b"xx" + body)[2:]])
def test_whatever_the_bytes_are_in(made_from):
    assert Metadata.decode(made_from(BODY), 9) == example()


def test_every_use_sees_the_items():
    assert Metadata.decode(BODY, 9) == example()
    assert example() == Metadata.decode(BODY, 9)
    assert Metadata.decode(BODY, 9) == Metadata.decode(BODY, 9)
    assert Metadata.decode(BODY, 9) != Metadata(controller_id=7)
    assert repr(Metadata.decode(BODY, 9)) == repr(example())
    assert Metadata.decode(BODY, 9).to_dict() == example().to_dict()
    assert pickle.loads(pickle.dumps(Metadata.decode(BODY, 9))) == example()
    assert copy.deepcopy(Metadata.decode(BODY, 9)) == example()
    decoded = Metadata.decode(BODY, 9)
    assert copy.copy(decoded).topics is decoded.topics
    assert Metadata.decode(BODY, 9).encode(9) == BODY
    assert Metadata.decode(BODY, 9).encode(5) == example().encode(5)


def test_what_is_changed_is_encoded():
    decoded = Metadata.decode(BODY, 9)
    del decoded.topics[5:]
    decoded.topics[3].partitions.append(Partition(partition_index=99))
    expected = example()
    expected.topics = expected.topics[:5]
    expected.topics[3].partitions.append(Partition(partition_index=99))
    assert decoded == expected
    assert decoded.encode(9) == expected.encode(9)
    decoded = Metadata.decode(BODY, 9)
    decoded.topics = []
    assert decoded.encode(9) == Metadata(controller_id=7).encode(9)


def test_an_array_outlives_its_message_and_the_bytes():
    body = bytearray(BODY)
    decoded = Metadata.decode(body, 9)
    body[:] = bytes(len(body))  # BufferError, if it were still held
    topics = decoded.topics
    del decoded, body
    gc.collect()
    assert topics == example().topics


def test_records_in_an_array_are_views_of_the_bytes():
    partitions = [Fetch.PartitionData(partition_index=i, records=b"r%d" % i) for i in range(MANY)]
    body = Fetch(
        responses=[Fetch.FetchableTopicResponse(topic=f"t{i}", partitions=partitions) for i in range(9)]
    ).encode(12)
    for decoded in (Fetch.decode(body, 12), Fetch.decode(bytearray(body), 12)):
        records = decoded.responses[8].partitions[39].records
        assert isinstance(records, memoryview)
        assert records == b"r39"
    assert Fetch.decode(body, 12).responses[0].partitions[0].records.obj is body


def test_the_version_lacks_an_array_that_was_decoded():
    """Encoding in another version asks whether a field holds its default, accessed or not."""
    request = messages.FetchRequest(
        forgotten_topics_data=[messages.FetchRequest.ForgottenTopic(topic=f"t{i}") for i in range(MANY)]
    )
    decoded = messages.FetchRequest.decode(request.encode(12), 12)
    with pytest.raises(kc.EncodeError) as caught:
        decoded.encode(4)
    assert caught.value.path == "forgotten_topics_data"


def test_tagged_arrays():
    nodes = [Fetch.NodeEndpoint(node_id=i, host=f"host-{i}", port=i) for i in range(MANY)]
    body = Fetch(node_endpoints=nodes).encode(16)
    decoded = Fetch.decode(body, 16)
    assert decoded.encode(16) == body
    assert decoded.node_endpoints == nodes


def faults(cls, body, version):
    found = []
    for decode in (cls.decode, at_once):
        arguments = (body, version) if decode == cls.decode else (cls, body, version)
        try:
            found.append(decode(*arguments))
        except kc.DecodeError as error:
            found.append((type(error), str(error), error.position, error.path))
        except AssertionError:
            found.append("bytes left over")
    return found


def test_faults_are_found_when_the_message_is_decoded():
    """The same ones, with place and path, as where every item is made."""
    cases = 0
    for vector in vectors("bad"):
        cls = getattr(messages, vector["api"] + vector["kind"].capitalize())
        later, now = faults(cls, bytes.fromhex(vector["hex"]), vector["version"])
        if now != "bytes left over":
            assert later == now
            cases += isinstance(now, tuple)
    assert cases > 500


def test_damage_in_an_array():
    rnd = random.Random(7)
    partitions = [Fetch.PartitionData(partition_index=i, records=b"r" * i, aborted_transactions=None) for i in range(6)]
    topics = [Fetch.FetchableTopicResponse(topic="t\u00e9" * i, partitions=partitions) for i in range(6)]
    for cls, version, body in (
        (Fetch, 12, Fetch(responses=topics).encode(12)),
        (Metadata, 9, BODY[:3000]),
        (Metadata, 9, BODY),
    ):
        for _ in range(400):
            later, now = faults(cls, damage(body, rnd), version)
            if now == "bytes left over":
                assert "unexpected bytes after the message" in later[1]
            else:
                assert later == now


def test_all_bodies_read_twice():
    for name, found in bodies("request").items():
        for vector in found[:3]:
            cls = getattr(messages, name.split(" ")[0], None) or getattr(messages, vector["api"] + "Request")
            body = bytes.fromhex(vector["hex"])
            assert cls.decode(body, vector["version"]) == at_once(cls, body, vector["version"])


def test_the_collector_is_left_as_it_was():
    for enabled in (True, False):
        (gc.enable if enabled else gc.disable)()
        try:
            assert len(Metadata.decode(BODY, 9).topics) == MANY
            assert gc.isenabled() == enabled
        finally:
            gc.enable()


class Witness:
    """Can be referenced weakly."""


@pytest.mark.parametrize("make", [example, lambda: Metadata.decode(BODY, 9)])
def test_cycles_are_collected(make):
    decoded, witness = make(), Witness()
    gone = weakref.ref(witness)
    decoded.topics.append(decoded)
    decoded.topics[0].name = witness
    decoded.unknown_tagged_fields = {1: decoded}
    del decoded, witness
    gc.collect()
    assert gone() is None


@pytest.mark.slow
def test_memory_of_dead_objects_is_used_again_and_given_back():
    def made():
        before = sys.getallocatedblocks()
        decoded = [Metadata.decode(BODY, 9).topics for _ in range(20)]
        assert decoded[0] == decoded[-1]
        del decoded
        gc.collect()
        return sys.getallocatedblocks() - before

    def is_given_back():
        """At one of several times: threads of other tests allocate, and free, at any time."""
        made()
        return any(made() < 500 for _ in range(5))  # of the 65,000 that are made

    assert is_given_back()
    _struct.keep_memory(0)
    assert is_given_back()


def read_and_dropped(name, message, version):
    decoded = type(message).decode(message.encode(version), version)
    for topic in getattr(decoded, name):
        assert len(topic.partitions)


def test_the_objects_of_a_large_message_make_room_for_those_of_others(request):
    """Otherwise they stay, and CPython makes those of other messages, at less than half of the rate."""
    if not _struct.MOST_KEPT or request.node.callspec.params["memory"] != "kept":
        pytest.skip("no dead objects are kept")
    read_and_dropped("topics", Metadata(topics=[Topic(partitions=[Partition()] * 50_000)]), 9)
    full = _struct.kept()
    assert full > _struct.MOST_KEPT / 2
    Commit = messages.OffsetCommitRequest
    partitions = [Commit.OffsetCommitRequestPartition()] * 100
    read_and_dropped("topics", Commit(topics=[Commit.OffsetCommitRequestTopic(partitions=partitions)]), 7)
    assert _struct.kept() < full / 2
