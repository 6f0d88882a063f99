"""What clients send where Kafka's schemas have other defaults."""

import pytest

from kafkacodec import messages
from kafkacodec.protocol import client_request
from tests.protocol_vectors import vectors

# The API, the field, and the value that Kafka's own clients send (ListOffsetsRequest.CONSUMER_REPLICA_ID, acks=all).
CLIENTS = [
    (messages.ProduceRequest, "acks", -1),
    (messages.FetchRequest, "replica_id", -1),
    (messages.ListOffsetsRequest, "replica_id", -1),
    (messages.OffsetForLeaderEpochRequest, "replica_id", -1),
]


@pytest.mark.parametrize(("request_class", "field", "value"), CLIENTS)
def test_defaults_of_clients(request_class, field, value):
    made = client_request(request_class)
    assert getattr(made, field) == value
    setattr(made, field, getattr(request_class(), field))
    assert made == request_class()


def test_fields_that_are_given():
    assert client_request(messages.ProduceRequest, acks=0, timeout_ms=5) == messages.ProduceRequest(timeout_ms=5)
    topic = messages.ListOffsetsRequest.ListOffsetsTopic(name="t")
    made = client_request(messages.ListOffsetsRequest, topics=[topic])
    assert made.encode(1) == bytes.fromhex("ffffffff 00000001 0001 74 00000000")


def test_other_requests_have_the_defaults_of_the_schema():
    for api in messages.APIS.values():
        if api.request not in [request_class for request_class, _, _ in CLIENTS]:
            assert client_request(api.request) == api.request()


def test_the_defaults_of_the_classes_stay_those_of_kafka():
    found = 0
    for vector in vectors("requests"):
        cls = messages.by_key(vector["key"])[0]
        if vector["case"] == "default" and cls in [request_class for request_class, _, _ in CLIENTS]:
            assert cls().encode(vector["version"]).hex() == vector["hex"]
            found += 1
    assert found > 40


@pytest.mark.parametrize(
    "thing", [messages.ProduceResponse, messages.OffsetCommitKey, messages.RequestHeader, int, None]
)
def test_what_is_not_a_request(thing):
    with pytest.raises(TypeError, match="not the class of a request"):
        client_request(thing)


def test_unknown_fields():
    with pytest.raises(TypeError, match="ProduceRequest has no field 'ack'"):
        client_request(messages.ProduceRequest, ack=1)
