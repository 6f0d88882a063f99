"""Schemas from a registry's REST API and from its topic."""

from __future__ import annotations

import json
import pickle
import socket
import uuid

import pytest

import kafkacodec as kc
from tests.registry_server import serving

ADDRESS = {"type": "record", "name": "org.Address", "fields": [{"name": "city", "type": "string"}]}
PERSON = {"type": "record", "name": "org.Person", "fields": [{"name": "home", "type": "org.Address"}]}
REFERENCE = {"name": "org.Address", "subject": "address", "version": 1}
GUID = uuid.uuid4()
VALUE = b"\x04Hi"
WANT = {"home": {"city": "Hi"}}
ANSWERS = {
    "/schemas/ids/7": {"schema": json.dumps(PERSON), "references": [REFERENCE]},
    f"/schemas/guids/{GUID}": {"schema": json.dumps(PERSON), "references": [REFERENCE]},
    "/subjects/address/versions/1": {"subject": "address", "version": 1, "id": 3, "schema": json.dumps(ADDRESS)},
}
FRAMED = b"\x00\x00\x00\x00\x07" + VALUE


def test_schemas_and_their_references_are_asked_for_once():
    with serving(ANSWERS) as server:
        decoder = kc.values.ValueDecoder(kc.values.Registry(server.url))
        for _ in range(3):
            assert decoder.decode([FRAMED]).values.to_pylist() == [WANT]
        assert [path for path, _ in server.requests] == ["/schemas/ids/7", "/subjects/address/versions/1"]
        assert kc.values.decode([b"\x01" + GUID.bytes + VALUE], server.url).values.to_pylist() == [WANT]


def test_confluents_client_reads_the_same_answers():
    """What this server answers is what a registry does, as far as Confluent's client can tell."""
    client = pytest.importorskip("confluent_kafka.schema_registry").SchemaRegistryClient
    with serving(ANSWERS) as server:
        found = client({"url": server.url}).get_schema(7)
    assert json.loads(found.schema_str) == PERSON
    assert [(r.name, r.subject, r.version) for r in found.references] == [("org.Address", "address", 1)]


def test_missing_schemas_are_rows_with_errors_and_may_appear_later():
    with serving({}) as server:
        decoder = kc.values.ValueDecoder(server.url, on_error="null")
        assert decoder.decode([FRAMED]).errors.to_pylist() == [f"there is no schema 7 in {server.url}"]
        server.answers.update(ANSWERS)
        assert decoder.decode([FRAMED]).values.to_pylist() == [WANT]


BROKEN = {
    "no JSON": (b"<html>", "not JSON"),
    "no schema": ({"id": 7}, "not a schema"),
    "a list": ([[]], "not a schema"),
    "forbidden": ((401, {"message": "Unauthorized"}), "HTTP 401"),
    "always busy": ((503, b""), "HTTP 503"),
    "redirected": ((302, b"http://127.0.0.1:1/"), "HTTP 302"),
    "endless": (b"x" * (17 << 20), "more than 16777216 bytes"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_registry_that_does_not_answer_raises_for_any_on_error(name):
    answer, reason = BROKEN[name]
    with serving({"/schemas/ids/7": answer}) as server, pytest.raises(kc.RegistryError, match=reason):
        kc.values.decode([FRAMED], kc.values.Registry(server.url, retries=1), on_error="null")


def test_requests_are_repeated_and_waits_are_limited():
    with serving({**ANSWERS, "/schemas/ids/7": [(503, b""), (429, b""), ANSWERS["/schemas/ids/7"]]}) as server:
        assert kc.values.decode([FRAMED], server.url).values.to_pylist() == [WANT]
    silent = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{silent.getsockname()[1]}"
    with silent, pytest.raises(kc.RegistryError, match="timed out"):
        kc.values.decode([FRAMED], kc.values.Registry(url, timeout=0.2, retries=0))
    with pytest.raises(kc.RegistryError, match="refused"):
        kc.values.decode([FRAMED], kc.values.Registry(url, retries=0))


@pytest.mark.parametrize(
    ("options", "header"), [({"auth": ("me", "pass:word")}, "Basic bWU6cGFzczp3b3Jk"), ({"token": "abc"}, "Bearer abc")]
)
def test_credentials(options, header):
    with serving(ANSWERS) as server:
        registry = pickle.loads(pickle.dumps(kc.values.Registry(server.url, **options)))
        kc.values.decode([FRAMED], registry)
        assert {headers["Authorization"] for _, headers in server.requests} == {header}
        assert "pass" not in repr(registry)


@pytest.mark.parametrize("url", ["ftp://x", "http://", "http://me:secret@x"])
def test_wrong_urls(url):
    with pytest.raises(ValueError, match="url"):
        kc.values.Registry(url)


def test_apicurios_own_numbers():
    inner = "syntax = 'proto3'; package in; message Inner { string city = 1; }"
    outer = "// a comment\nsyntax = 'proto3'; import 'inner.proto'; message Outer { in.Inner home = 1; }"
    base = "/apis/registry/v3"
    answers = {
        f"{base}/ids/globalIds/7?returnArtifactType=true": outer.encode(),
        f"{base}/ids/globalIds/7/references": [
            {"groupId": "g", "artifactId": "inner", "version": "2", "name": "inner.proto"}
        ],
        f"{base}/groups/g/artifacts/inner/versions/2/content?returnArtifactType=true": inner.encode(),
        f"{base}/groups/g/artifacts/inner/versions/2/references": [],
    }
    answers[f"{base}/ids/globalIds/7/references"] = (
        200,
        json.dumps(answers[f"{base}/ids/globalIds/7/references"]).encode(),
    )
    answers[f"{base}/groups/g/artifacts/inner/versions/2/references"] = (200, b"[]")
    with serving(answers) as server:
        value = (0).to_bytes() + (7).to_bytes(8) + b"\x0a\x04\x0a\x02Hi"
        found = kc.values.decode([value], f"{server.url}{base}", framing="apicurio")
    assert found.values.to_pylist() == [WANT]


# --- the topic --------------------------------------------------------------------------------------------------------


def entry(subject, version, number, schema, **more):
    key = {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}
    value = {"subject": subject, "version": version, "id": number, "schema": schema, "deleted": False, **more}
    return json.dumps(key).encode(), json.dumps(value).encode()


RECORDS = [
    (b'{"keytype":"CONFIG","subject":null,"magic":0}', b'{"compatibilityLevel":"FULL"}'),
    (b'{"keytype":"NOOP","magic":0}', None),
    entry("address", 1, 3, json.dumps(ADDRESS)),
    entry("person-value", 1, 7, json.dumps(PERSON), references=[REFERENCE], guid=str(GUID)),
    entry("gone", 1, 9, json.dumps(ADDRESS), deleted=True),
    (entry("address", 1, 3, "")[0], None),
    (b'{"keytype":"DELETE_SUBJECT","subject":"gone","magic":0}', b'{"subject":"gone","version":1}'),
]


def test_topics():
    topic = kc.values.SchemaTopic(RECORDS)
    assert topic.problems == []
    assert repr(topic) == "<SchemaTopic: 3 versions of 3 subjects>"
    values = [FRAMED, b"\x01" + GUID.bytes + VALUE, b"\x00\x00\x00\x00\x09" + VALUE]
    assert [kc.values.decode([value], topic).values.to_pylist()[0] for value in values] == [WANT, WANT, {"city": "Hi"}]
    with pytest.raises(kc.SchemaNotFound, match="no schema 8 in the topic"):
        kc.values.decode([b"\x00\x00\x00\x00\x08"], topic)


def test_damaged_records_of_a_topic_are_listed():
    records = [
        (b"{", b"{}"),
        (b"[]", b"{}"),
        (RECORDS[2][0], b"5"),
        (RECORDS[2][0], b'{"id": "x", "schema": 5}'),
        entry("a", 1, 1, "", schemaType="XML"),
        *RECORDS,
    ]
    topic = kc.values.SchemaTopic(records)
    assert [problem.partition(":")[0] for problem in topic.problems] == [f"record {i}" for i in range(5)]
    assert len(topic) == 3


def test_the_topic_of_a_log_directory(tmp_path):
    (tmp_path / "_schemas-0").mkdir()
    (tmp_path / "_schemas-0" / f"{0:020}.log").write_bytes(kc.encode(RECORDS))
    assert kc.values.decode([FRAMED], kc.log.read_schemas(tmp_path)).values.to_pylist() == [WANT]
    with pytest.raises(FileNotFoundError, match="_other"):
        kc.log.read_schemas(tmp_path, topic="_other")


@pytest.mark.parametrize(
    ("schemas", "message"),
    [
        (ADDRESS, r"by number \(int\) or UUID, not by 'type'"),
        ({"7": json.dumps(ADDRESS)}, r"by number \(int\) or UUID, not by '7'"),
        ({7: ADDRESS}, "7 must be the text of a schema or a Schema, not dict"),
        (json.dumps(ADDRESS), r"given as kc.values.Schema\(text\)"),
        ([json.dumps(ADDRESS)], "expected a source, a path, a URL, a dict or a Schema, not list"),
    ],
)
def test_what_is_no_source_of_schemas_is_refused_by_what_would_be_one(schemas, message):
    with pytest.raises(TypeError, match=message):
        kc.values.decode([FRAMED], schemas)


def test_the_text_of_a_schema_is_text():
    with pytest.raises(TypeError, match="text of a schema must be str, not dict"):
        kc.values.Schema(ADDRESS)  # type: ignore[arg-type]


def test_a_column_is_shown_with_its_numbers_of_rows_and_errors():
    decoder = kc.values.ValueDecoder({7: json.dumps(ADDRESS)}, on_error="null")
    assert repr(decoder.decode([FRAMED[:-1]])) == "<DecodedValues: 1 row of struct<city: string>, 1 error>"
    assert repr(decoder.decode([FRAMED, FRAMED])) == "<DecodedValues: 2 rows of struct<city: string>, 0 errors>"


@pytest.mark.parametrize("source", [{7: '"int"'}, {7: kc.values.Schema('"int"')}])
def test_values_without_numbers_need_one_schema(source):
    with pytest.raises(
        ValueError, match=r"framing='none': values have no number of a schema; pass the one that all have"
    ):
        kc.values.decode([b"\2"], source, framing="none")
