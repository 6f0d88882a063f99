"""Lines beyond the golden ones: new commands and keys, encoding's refusals, splitting."""

from __future__ import annotations

import pickle

import pytest

from kafkacodec.dialects import line
from kafkacodec.dialects.line.values import INTEGER, WORD
from kafkacodec.errors import EncodeError, LimitExceeded


def test_errors_say_code_id_and_section() -> None:
    with pytest.raises(line.LineProtocolError) as caught:
        line.parse_request("V1|7|COMMIT|g t c 1 x 9")
    error = caught.value
    assert (error.code, error.correlation_id, error.path) == (line.ErrorCode.BAD_REQUEST, "7", "args.partition")
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.code, copy.correlation_id) == (str(error), error.code, "7")


def test_a_new_command_needs_only_a_row_in_the_table() -> None:
    commands = {**line.COMMANDS, "SEEK": line.command([line.Slot("topic", WORD)], {"at": INTEGER})}
    request = line.parse_request("V1|1|SEEK|orders", commands=commands)
    assert request.args == {"topic": "orders"}
    assert request.encode(commands=commands) == "V1|1|SEEK|orders"
    assert line.parse_response("V1|1|OK|at=5", "SEEK", commands=commands).fields == {"at": 5}
    assert line.parse_response("V1|1|OK|at=5", "SEEK").fields == {"at": "5"}


def test_a_value_may_hold_commas() -> None:
    response = line.parse_response("V1|1|OK|messages=3:a,b,4:,5:1:x,,9:z hw=10", "CONSUME")
    assert response.fields["messages"] == [
        {"offset": 3, "value": "a,b"},
        {"offset": 4, "value": ""},
        {"offset": 5, "value": "1:x,"},
        {"offset": 9, "value": "z"},
    ]
    assert line.Response.success("1", "CONSUME", response.fields).encode() == response.encode()


@pytest.mark.parametrize(
    "payload",
    ["hw=x messages=", "hw", "=5", "messages=a hw=1", "messages=,1:a hw=1", "hw=1 hw=1", "messages=5 hw=1", ""],
)
def test_bad_payloads(payload: str) -> None:
    if not payload:
        assert line.parse_response(f"V1|1|OK|{payload}", "CONSUME").fields == {}
        return
    with pytest.raises(line.LineProtocolError):
        line.parse_response(f"V1|1|OK|{payload}", "CONSUME")


@pytest.mark.parametrize(
    ("command", "args", "path"),
    [
        ("NOPE", {}, "command"),
        ("OFFSET", {"group": "g", "topic": "t"}, "args.partition"),
        ("OFFSET", {"group": "g t", "topic": "t", "partition": 0}, "args.group"),
        ("OFFSET", {"group": "", "topic": "t", "partition": 0}, "args.group"),
        ("OFFSET", {"group": "g", "topic": "t", "partition": 1 << 63}, "args.partition"),
        ("OFFSET", {"group": "g", "topic": "t", "partition": "0"}, "args.partition"),
        ("PRODUCE", {"topic": "t", "key": "a:b", "value": "c"}, "args.key:value"),
        ("PRODUCE", {"topic": "t", "key": "a", "value": "c|d"}, "args.key:value"),
        ("PRODUCE", {"topic": "t", "key": "a", "value": "b", "acks": "2"}, "args.acks"),
        ("PRODUCE", {"topic": "t", "key": "a"}, "args.key:value"),
    ],
)
def test_what_a_line_cannot_hold_is_refused(command: str, args: dict[str, object], path: str) -> None:
    with pytest.raises(EncodeError) as caught:
        line.Request("1", command, args).encode()
    assert caught.value.path == path


def test_responses_that_cannot_be_written() -> None:
    for response in (
        line.Response("", True, "x"),
        line.Response("1|2", True, "x"),
        line.Response("1", True, "a\nb"),
        line.Response("1", False, code="", message="m"),
        line.Response("1", False, code="C"),
    ):
        with pytest.raises(EncodeError):
            response.encode()
    with pytest.raises(EncodeError, match="hw"):
        line.Response.success("1", "CONSUME", {"messages": []})
    with pytest.raises(EncodeError, match="messages"):
        line.Response.success("1", "CONSUME", {"messages": [{"offset": 1, "value": "a b"}], "hw": 2})


def test_lines_are_cut_at_line_feeds() -> None:
    assert line.split_lines(b"V1|1|A|\nV1|2|B|\r\nV1|3") == (["V1|1|A|", "V1|2|B|\r"], b"V1|3")
    assert line.split_lines(b"") == ([], b"")
    with pytest.raises(LimitExceeded):
        line.split_lines(b"x" * 11, max_line_bytes=10)
    with pytest.raises(line.LineProtocolError):
        line.split_lines(b"\xff\n")
