"""Every message in every version, decoded and encoded, compared with the bytes of Kafka's serializers."""

import base64
import hashlib
import json
from collections import defaultdict

import pytest

import kafkacodec as kc
from kafkacodec import messages, protocol
from tests.protocol_vectors import ROOT, bodies, plain_json, same, tagged_at, vectors, without_absent

APIS = [api.name for api in messages.APIS.values()]


def check(cls, vector):
    """Decode and encode one vector, compare the fields with Kafka's JSON, and encode from the JSON."""
    raw, version = bytes.fromhex(vector["hex"]), vector["version"]
    case = f"{cls.__name__} v{version} {vector['case']}"
    message = cls.decode(raw, version)
    assert message.encode(version) == raw, case
    values = message.to_dict()
    shown = without_absent(values, vector["json"])
    assert same(plain_json(vector["json"], values), shown), case
    tags = defaultdict(dict)
    for item in vector.get("unknownTaggedFields", ()):
        tags[item["path"]][item["tag"]] = base64.b64decode(item["data"])
    for path, expected in tags.items():
        assert tagged_at(message, path) == expected, case
    if not tags:
        assert cls.from_dict(shown).encode(version) == raw, case
    assert cls.from_dict(values) == message


@pytest.mark.parametrize("kind", ["request", "response"])
@pytest.mark.parametrize("api", APIS)
def test_bodies(api, kind):
    cls = getattr(messages, api + kind.capitalize())
    found = bodies(kind)[api]
    for vector in found:
        check(cls, vector)
    assert {vector["version"] for vector in found} == set(cls.valid_versions)
    assert {vector["key"] for vector in found} == {cls.api_key}


def test_there_are_vectors_for_all():
    assert set(bodies("request")) == set(bodies("response")) == set(APIS)
    manifest = json.loads((ROOT / "manifest.json").read_text())
    for name, facts in manifest["files"].items():
        assert hashlib.sha256((ROOT / name).read_bytes()).hexdigest() == facts["sha256"], name
        assert len(vectors(name.removesuffix(".jsonl.xz"))) == facts["lines"], name


def test_data_schemas():
    seen = set()
    for vector in vectors("data"):
        cls = getattr(messages, vector["schema"])
        check(cls, vector)
        seen.add(vector["schema"])
    assert seen == set(messages.message_names()) - {f"{api}{side}" for api in APIS for side in ("Request", "Response")}


def test_prefixed_data():
    """The prefix of a data schema in stored records."""
    prefixes = {
        "version": lambda v: v["version"].to_bytes(2, "big"),
        "type": lambda v: v["recordType"].to_bytes(2, "big"),
    }
    prefixes["metadata"] = lambda v: b"".join(kc.encode_uvarint(n) for n in (1, v["apiKey"], v["version"]))
    for vector in vectors("data"):
        if vector.get("prefix"):
            assert prefixes[vector["prefix"]](vector) + bytes.fromhex(vector["hex"]) == bytes.fromhex(
                vector["prefixed_hex"]
            )
            cls = getattr(messages, vector["schema"])
            assert cls.api_key in (None, vector.get("recordType", vector.get("apiKey")))


def test_request_frames():
    for vector in vectors("frames"):
        if vector["kind"] != "request":
            continue
        raw = bytes.fromhex(vector["hex"])
        header, message = protocol.decode_request(raw)
        shown = plain_json(vector["header"], header.to_dict())
        assert {key: header.to_dict()[key] for key in shown} == shown
        tags = {i["tag"]: base64.b64decode(i["data"]) for i in vector.get("headerUnknownTaggedFields", ())}
        assert header.unknown_tagged_fields == tags
        assert protocol.request_header_version(vector["key"], vector["version"]) == vector["headerVersion"]
        again = protocol.encode_request(
            message, vector["version"], header.correlation_id, header.client_id, header_tags=tags
        )
        assert again == raw, (vector["api"], vector["version"], vector["case"])


def test_response_frames():
    fallbacks = 0
    for vector in vectors("frames"):
        if vector["kind"] != "response":
            continue
        raw = bytes.fromhex(vector["hex"])
        header, message = protocol.decode_response(
            raw, vector["key"], vector.get("inReplyToVersion", vector["version"])
        )
        assert header.correlation_id == vector["header"]["correlationId"]
        tags = {i["tag"]: base64.b64decode(i["data"]) for i in vector.get("headerUnknownTaggedFields", ())}
        assert header.unknown_tagged_fields == tags
        assert protocol.response_header_version(vector["key"], vector["version"]) == vector["headerVersion"]
        again = protocol.encode_response(message, vector["version"], header.correlation_id, header_tags=tags)
        assert again == raw, (vector["api"], vector["version"], vector["case"])
        fallbacks += "inReplyToVersion" in vector
    assert fallbacks


def test_control_records():
    for vector in vectors("control"):
        kind = int.from_bytes(bytes.fromhex(vector["key_hex"])[2:4], "big")
        assert kind == vector["type"]
        cls = getattr(messages, vector["schema"])
        value = bytes.fromhex(vector["value_hex"])
        # EndTxnMarker is prefixed with its version; the other control values contain theirs.
        start = 2 if vector["schema"] == "EndTxnMarker" else 0
        message = cls.decode(value, vector["version"], start)
        assert value[:start] + message.encode(vector["version"]) == value
        values = message.to_dict()
        shown = without_absent(values, vector["json"])
        assert same(plain_json(vector["json"], values), shown)
