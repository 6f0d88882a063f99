"""The group calls of the proposal, compared with their vectors."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from kafkacodec.dialects import rewrite
from kafkacodec.errors import DecodeError, EncodeError, Truncated
from tests.dialect_vectors import names, rows, snake

RPCS = rows("rewrite/rpcs")
BAD = rows("rewrite/bad")


def snake_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {snake(name): snake_keys(inner) for name, inner in value.items()}
    return [snake_keys(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize("vector", RPCS, ids=names(RPCS))
def test_calls_both_ways(vector: dict[str, Any]) -> None:
    body, want = bytes.fromhex(vector["hex"]), snake_keys(vector["fields"])
    cls = getattr(rewrite, vector["rpc"])
    message = cls.decode(body)
    assert message.to_dict() == want
    assert message.encode() == body
    assert cls.from_dict(want) == message == pickle.loads(pickle.dumps(message))


@pytest.mark.parametrize("vector", BAD, ids=names(BAD))
def test_bad_bodies(vector: dict[str, Any]) -> None:
    body = bytes.fromhex(vector["hex"])
    with pytest.raises(DecodeError) as caught:
        getattr(rewrite, vector["rpc"]).decode(body)
    assert caught.value.position is not None
    assert 0 <= caught.value.position <= len(body)
    if vector["problem"] == "truncated":
        assert isinstance(caught.value, Truncated)


@pytest.mark.parametrize("vector", rows("rewrite/alternative_readings"), ids=lambda v: v["name"])
def test_the_other_readings_of_the_text_are_not_taken(vector: dict[str, Any]) -> None:
    cls = getattr(rewrite, vector["rpc"])
    try:
        message = cls.decode(bytes.fromhex(vector["hex"]))
    except DecodeError:
        return
    assert message.to_dict() != snake_keys(vector["fields"])


def test_values_that_do_not_fit() -> None:
    with pytest.raises(EncodeError) as caught:
        rewrite.Heartbeat(correlation_id=1 << 63).encode()
    assert caught.value.path == "correlation_id"
    broker = rewrite.ListGroupsResponse.Broker(port=70000)
    info = rewrite.ListGroupsResponse.GroupInfo(controller_broker=broker)
    with pytest.raises(EncodeError) as caught:
        rewrite.ListGroupsResponse(groups_info=[info]).encode()
    assert caught.value.path == "groups_info[0].controller_broker.port"
