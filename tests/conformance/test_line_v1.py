"""The line protocol V1, compared with golden exchanges and invalid lines."""

from __future__ import annotations

from typing import Any

import pytest

from kafkacodec.dialects import line
from tests.dialect_vectors import names, rows

EXCHANGES = rows("line_v1/exchanges")
REQUESTS = [v for v in EXCHANGES if v["request_line"] is not None]
BAD_REQUESTS = [v for v in rows("line_v1/bad") if v["layer"] != "response"]
BAD_RESPONSES = [v for v in rows("line_v1/bad") if v["layer"] == "response"]


@pytest.mark.parametrize("vector", REQUESTS, ids=names(REQUESTS))
def test_requests_both_ways(vector: dict[str, Any]) -> None:
    want = vector["request"]
    request = line.parse_request(vector["request_line"])
    assert request == line.Request(want["correlation_id"], want["command"], want["args"])
    assert request.encode() == vector["request_line"]


@pytest.mark.parametrize("vector", EXCHANGES, ids=names(EXCHANGES))
def test_responses_both_ways(vector: dict[str, Any]) -> None:
    want = vector["response"]
    response = line.parse_response(vector["response_line"], vector["command"])
    assert response.correlation_id == want["correlation_id"]
    assert response.ok == (want["status"] == "OK")
    assert response.payload == want.get("payload")
    assert response.fields == want.get("fields", {})
    assert (response.code, response.message) == (want.get("code"), want.get("message"))
    assert response.encode() == vector["response_line"]


@pytest.mark.parametrize("vector", [v for v in EXCHANGES if v["response"].get("fields")], ids=lambda v: v["name"])
def test_payloads_are_made_from_fields(vector: dict[str, Any]) -> None:
    fields = vector["response"]["fields"]
    made = line.Response.success(vector["response"]["correlation_id"], vector["command"], fields)
    known = vector["response"]["payload"].split(" ")[: len(line.COMMANDS[vector["command"]].payload)]
    assert made.payload == " ".join(known)


@pytest.mark.parametrize("vector", BAD_REQUESTS, ids=names(BAD_REQUESTS))
def test_validation_rules(vector: dict[str, Any]) -> None:
    """Vectors marked as ambiguous have the results chosen here, except for PING."""
    if vector["name"] == "ping":
        assert "a broker that knows PING may answer OK" in vector["ambiguous"]
        return  # a known command: test_ping
    want = vector["expected"]
    if want["accepted"]:
        line.parse_request(vector["line"], replication_factor=vector["replication_factor"])
        return
    with pytest.raises(line.LineProtocolError) as caught:
        line.parse_request(vector["line"], replication_factor=vector["replication_factor"])
    assert (caught.value.code, caught.value.correlation_id) == (want["code"], want["correlation_id"])
    answered = line.Broker(
        line.MemoryStorage(), line.BrokerConfig(replication_factor=vector["replication_factor"])
    ).receive(vector["line"], 0)
    assert answered[0].line.startswith(vector["response_line_prefix"])


def test_ping() -> None:
    """The text's example of a command without arguments, answered without a payload."""
    (vector,) = (v for v in BAD_REQUESTS if v["name"] == "ping")
    request = line.parse_request(vector["line"])
    assert request == line.Request("99", "PING", {})
    assert request.encode() == vector["line"] == "V1|99|PING|"
    (reply,) = line.Broker(line.MemoryStorage()).receive(vector["line"], 0)
    assert reply.line == "V1|99|OK"
    assert line.parse_response(reply.line, "PING") == line.Response("99", True)
    with pytest.raises(line.LineProtocolError, match="PING takes 0 arguments, got 1"):
        line.parse_request("V1|99|PING|x")
    # The text's table of commands lacks it.
    commands = {name: shape for name, shape in line.COMMANDS.items() if name != "PING"}
    with pytest.raises(line.LineProtocolError) as caught:
        line.parse_request(vector["line"], commands=commands)
    assert caught.value.code == vector["expected"]["code"]


@pytest.mark.parametrize("vector", BAD_RESPONSES, ids=names(BAD_RESPONSES))
def test_bad_responses(vector: dict[str, Any]) -> None:
    with pytest.raises(line.LineProtocolError) as caught:
        line.parse_response(vector["line"])
    assert caught.value.code is None
