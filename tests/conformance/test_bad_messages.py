"""Damaged bodies: what Kafka's reader rejects is rejected; where it is lenient, see docs/protocol/leniency.md."""

import re
from collections import defaultdict

import pytest

import kafkacodec as kc
from kafkacodec import messages
from tests.protocol_vectors import bodies, plain_json, same, vectors, without_absent

# Damage that Kafka's reader may accept, with the same result here.
ACCEPTED = {
    "bool": "any byte but 0 is true",
    "bool-ff": "any byte but 0 is true",
    "carray-overlong": "a varint may be longer than it need be",
    "cbytes-overlong": "a varint may be longer than it need be",
    "crecords-overlong": "a varint may be longer than it need be",
    "cstring-overlong": "a varint may be longer than it need be",
    "tags-count-overlong": "a varint may be longer than it need be",
}


def outcome(vector):
    cls = getattr(messages, vector["api"] + vector["kind"].capitalize())
    try:
        return cls.decode(bytes.fromhex(vector["hex"]), vector["version"])
    except kc.DecodeError as error:
        return error


def root_of(path):
    return path.split(".")[0].split("[")[0]


def tagged_fields(vector):
    cls = getattr(messages, vector["api"] + vector["kind"].capitalize())
    return {field.attribute for field in cls._spec.fields if field.tagged}


def java_accepts(vector):
    return [result for result in vector["java"].values() if "exception" not in result]


def test_what_kafka_refuses_is_refused():
    for vector in vectors("bad"):
        if not java_accepts(vector):
            result = outcome(vector)
            assert isinstance(result, kc.DecodeError), (vector["api"], vector["version"], vector["case"])
            assert 0 <= result.position <= len(vector["hex"]) // 2
            assert result.reason


def test_where_kafka_is_lenient():
    """Each kind of damage that Kafka's reader accepts is either always read in the same way or always rejected."""
    accepted, refused = defaultdict(int), defaultdict(int)
    for vector in vectors("bad"):
        lenient = java_accepts(vector)
        if not lenient:
            continue
        result = outcome(vector)
        kind = re.sub(r"-\d+$", "", vector["case"])
        if isinstance(result, kc.DecodeError):
            if kind in ACCEPTED:
                # The longer number contradicts the size of its tagged field.
                assert root_of(result.path) in tagged_fields(vector), vector["case"]
            else:
                refused[kind] += 1
            continue
        accepted[kind] += 1
        shown = next((r["json"] for r in lenient if "json" in r), {})
        values = result.to_dict()
        assert same(plain_json(shown, values), without_absent(values, shown)), vector["case"]
    assert set(accepted) == set(ACCEPTED)
    assert not set(accepted) & set(refused)


@pytest.mark.parametrize("kind", ["request", "response"])
@pytest.mark.parametrize("api", [api.name for api in messages.APIS.values()])
def test_truncation_at_every_byte(api, kind):
    """A truncated message raises a DecodeError with a position inside."""
    cls = getattr(messages, api + kind.capitalize())
    for vector in bodies(kind)[api]:
        if vector["case"] not in ("typical-1", "unknown-tags-1"):
            continue
        raw, version = bytes.fromhex(vector["hex"]), vector["version"]
        view = memoryview(raw)
        for size in range(0, len(raw), max(1, len(raw) // 64)):
            with pytest.raises(kc.DecodeError) as caught:
                cls.decode(view[:size], version)
            assert caught.value.position <= size
        with pytest.raises(kc.DecodeError, match="unexpected bytes after the message"):
            cls.decode(raw + b"\0", version)
