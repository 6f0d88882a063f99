"""Frames, headers and negotiation."""

import pytest

import kafkacodec as kc
from kafkacodec import messages, protocol
from kafkacodec.messages import keys


def test_api_keys_by_name():
    assert (keys.PRODUCE, keys.FETCH, keys.API_VERSIONS, keys.STREAMS_GROUP_HEARTBEAT) == (0, 1, 18, 88)
    assert messages.keys is keys
    assert [value for value in vars(keys).values() if isinstance(value, int)] == list(messages.APIS)


def test_split_frames():
    one = protocol.encode_request(messages.HeartbeatRequest(group_id="g"), 4, 1, "me")
    two = protocol.encode_request(messages.ListGroupsRequest(), 0, 2, None)
    frames, rest = protocol.split_frames(one + two + one[:9])
    assert [bytes(frame) for frame in frames] == [one, two]
    assert rest == one[:9]
    frames, rest = protocol.split_frames(bytearray(b"\0\0\0"))
    assert frames == []
    assert rest == b"\0\0\0"


@pytest.mark.parametrize("cut", range(4, 30))
def test_split_frames_gives_no_part_of_a_frame(cut):
    frame = protocol.encode_request(messages.HeartbeatRequest(group_id="a group of some length"), 4, 1, "me")
    frames, rest = protocol.split_frames(frame[:cut])
    assert (frames, bytes(rest)) == ([], frame[:cut])


def test_frames_have_a_maximum_size():
    with pytest.raises(kc.LimitExceeded):
        protocol.split_frames((1001).to_bytes(4, "big"), max_size=1000)
    with pytest.raises(kc.DecodeError, match="-1"):
        protocol.split_frames(b"\xff\xff\xff\xff")


def test_client_id_may_be_null():
    frame = protocol.encode_request(messages.MetadataRequest(), 12, 7, None)
    header, message = protocol.decode_request(frame)
    assert header.client_id is None
    assert (header.correlation_id, header.request_api_key, header.request_api_version) == (7, 3, 12)
    assert message == messages.MetadataRequest()


@pytest.mark.parametrize(
    ("api_key", "version", "request_form", "response_form"),
    [
        (3, 8, 1, 0),
        (3, 9, 2, 1),
        (7, 0, 0, 0),
        (7, 1, 1, 0),
        (7, 3, 2, 1),
        (18, 0, 1, 0),
        (18, 3, 2, 0),
        (18, 99, 2, 0),
        (3, 99, 2, 1),
        (17, 99, 1, 0),
    ],
)
def test_header_versions(api_key, version, request_form, response_form):
    assert protocol.request_header_version(api_key, version) == request_form
    assert protocol.response_header_version(api_key, version) == response_form


def test_header_tags_are_kept():
    frame = protocol.encode_request(messages.MetadataRequest(), 12, 7, "me", header_tags={5: b"five"})
    header, _ = protocol.decode_request(frame)
    assert header.unknown_tagged_fields == {5: b"five"}


def test_wrong_frames():
    frame = protocol.encode_request(messages.MetadataRequest(), 12, 7, "me")
    for size in range(len(frame)):
        with pytest.raises(kc.DecodeError):
            protocol.decode_request(frame[:size])
    with pytest.raises(kc.DecodeError, match="unexpected 1 bytes after the frame"):
        protocol.decode_request(frame + b"\0")
    with pytest.raises(kc.DecodeError, match="unknown API key 999"):
        protocol.decode_request(frame[:4] + (999).to_bytes(2, "big") + frame[6:])
    with pytest.raises(kc.UnsupportedVersion):
        protocol.decode_request(frame[:6] + (99).to_bytes(2, "big") + frame[8:])
    with pytest.raises(kc.UnsupportedVersion):
        protocol.decode_response(frame, 999, 0)
    with pytest.raises(kc.UnsupportedVersion):
        protocol.encode_request(messages.MetadataRequest(), 99, 1)


def test_positions_count_from_the_start_of_the_frame():
    frame = protocol.encode_response(messages.HeartbeatResponse(), 0, 1)
    damaged = (len(frame) - 4 - 1).to_bytes(4, "big") + frame[4:-1]
    with pytest.raises(kc.Truncated) as caught:
        protocol.decode_response(damaged, 12, 0)
    assert (caught.value.position, caught.value.path) == (8, "error_code")


def test_requests_and_responses_are_distinguished():
    with pytest.raises(TypeError):
        protocol.encode_request(messages.MetadataResponse(), 1, 1)
    with pytest.raises(TypeError):
        protocol.encode_response(messages.MetadataRequest(), 1, 1)


def test_an_api_versions_answer_may_be_older_than_the_request():
    answer = protocol.api_versions_response({18: range(0, 3)}, error_code=35)
    frame = answer.encode_frame(0, messages.ResponseHeader(correlation_id=4).encode(0))
    header, message = protocol.decode_response(frame, 18, 4)
    assert isinstance(message, messages.ApiVersionsResponse)
    assert (header.correlation_id, message.error_code) == (4, 35)
    assert protocol.ranges_in(message) == {18: range(0, 3)}


def test_highest_common_version():
    assert protocol.highest_common(3, {3: range(0, 10)}) == 9
    assert protocol.highest_common(3, {3: range(5, 99)}) == 13
    assert protocol.highest_common(3, {3: range(0, 10)}, range(0, 5)) == 4
    for theirs in ({}, {3: range(50, 60)}, {3: range(0)}):
        with pytest.raises(kc.UnsupportedVersion, match="no common version"):
            protocol.highest_common(3, theirs)
