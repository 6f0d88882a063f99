"""Parsing beyond the golden lines: new commands and keys, encoding errors, splitting."""

from __future__ import annotations

import pickle

import pytest

from kafkacodec.dialects import line
from kafkacodec.dialects.line.values import INTEGER, WORD
from kafkacodec.errors import EncodeError


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


# Values that are ambiguous by commas alone, and values that look like larger offsets.
VALUES = [
    "a,5:x",
    "a,1:x",
    ",1:",
    "1:",
    "",
    ",",
    "a,b",
    "a,99:x",
    "5:x,1:y",
    "ä,1:ö,2:",
    "a,00000000000000000000001:x",
    "a,-1:x",
]


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("more", range(4))
def test_no_value_is_taken_for_several_messages(value: str, more: int) -> None:
    values = [value, *VALUES[:more]]
    messages = [{"offset": i, "value": v} for i, v in enumerate(values)]
    for below in (len(values), 100):
        written = line.Response.success("1", "CONSUME", {"messages": messages, "hw": below}).encode()
        assert line.parse_response(written, "CONSUME").fields["messages"] == messages
        # A reader that does not know lengths finds the other keys unchanged.
        plain = ",".join(f"{m['offset']}:{m['value']}" for m in messages)
        assert written.removesuffix(written[written.index(" hw=") :]) == f"V1|1|OK|messages={plain}"


def test_messages_lie_below_the_high_watermark() -> None:
    """As other brokers write them, without lengths."""
    fields = line.parse_response("V1|1|OK|messages=0:a,5:x hw=1", "CONSUME").fields
    assert fields == {"messages": [{"offset": 0, "value": "a,5:x"}], "hw": 1}
    assert " lengths=" not in line.Response.success("1", "CONSUME", fields).encode()
    fields = line.parse_response("V1|1|OK|hw=6 messages=0:a,5:x", "CONSUME").fields
    assert [m["offset"] for m in fields["messages"]] == [0, 5]


@pytest.mark.parametrize("lengths", ["[1]", "[1,2]", "[1,1,1]", "[]", "[-1,5]", "[9223372036854775807,1]", "[3]", "1"])
def test_lengths_that_lie(lengths: str) -> None:
    with pytest.raises(line.LineProtocolError, match="payload"):
        line.parse_response(f"V1|1|OK|messages=0:ä,1:b hw=2 lengths={lengths}", "CONSUME")


def test_a_carriage_return_is_part_of_the_line_end() -> None:
    assert line.split_lines(b"V1|1|A|\nV1|2|B|\r\nV1|3") == (["V1|1|A|", "V1|2|B|"], b"V1|3")
    assert line.split_lines(b"a\rb\r\r\n") == (["a\rb\r"], b"")
    assert line.split_lines(b"") == ([], b"")
    with pytest.raises(line.LineProtocolError, match="carriage return") as caught:
        line.parse_request("V1|1|PRODUCE|t k:v\r")
    assert (caught.value.code, caught.value.correlation_id) == (line.ErrorCode.BAD_REQUEST, "1")
    with pytest.raises(line.LineProtocolError):
        line.parse_response("V1|1|ERR|BAD_REQUEST|no\r")
    # Lines that would not survive a round trip are not written.
    with pytest.raises(EncodeError, match="carriage return"):
        line.Request("1", "PRODUCE", {"topic": "t", "key": "k", "value": "v\r"}).encode()
    with pytest.raises(EncodeError, match="carriage return"):
        line.Response.error("1", "BAD_REQUEST", "no\r").encode()
    assert line.Request("1", "PRODUCE", {"topic": "t", "key": "k", "value": "v\r", "acks": "1"}).encode()


def test_a_bad_line_takes_no_other_with_it() -> None:
    reader = line.LineReader(max_line_bytes=10)
    data = b"one\ntw\xffo\nthree\n" + b"x" * 11 + b"\n" + b"y" * 10 + b"\r\n" + b"z" * 11 + b"\r\nlast\n"
    for size in (1, 2, 3, 7, len(data)):
        reader = line.LineReader(max_line_bytes=10)
        got = [x for at in range(0, len(data), size) for x in reader.receive(data[at : at + size])]
        assert [x for x in got if isinstance(x, str)] == ["one", "three", "y" * 10, "last"]
        errors = [x for x in got if isinstance(x, line.LineProtocolError)]
        assert [e.position for e in errors] == [6, 15, 39]
        assert [got.index(e) for e in errors] == [1, 3, 5]
        assert {(e.code, e.correlation_id) for e in errors} == {(line.ErrorCode.BAD_REQUEST, "0")}
        assert reader.unfinished == b""


def test_a_line_that_never_ends_is_not_kept() -> None:
    reader = line.LineReader(max_line_bytes=10)
    for _ in range(1000):
        assert reader.receive(b"x" * 1000) == []
    assert len(reader.unfinished) <= 12
    error, good = reader.receive(b"\ngood\n")
    assert good == "good"
    assert isinstance(error, line.LineProtocolError)
    assert "1000000 bytes exceeds the limit of 10" in str(error)


def test_surrogates_are_not_text() -> None:
    for bad in ("V1|1|PRODUCE|t k:\ud800", "V1|\udcff|PING|"):
        with pytest.raises(line.LineProtocolError) as caught:
            line.parse_request(bad)
        assert caught.value.correlation_id == "0"
    with pytest.raises(line.LineProtocolError):
        line.parse_response("V1|1|OK|x=\udcff")
    with pytest.raises(EncodeError, match="surrogates"):
        line.Request("1", "PRODUCE", {"topic": "t", "key": "k", "value": "\ud800"}).encode()
    with pytest.raises(EncodeError, match="surrogates"):
        line.Response.success("1", "CONSUME", {"messages": [{"offset": 0, "value": "\ud800,1:"}], "hw": 9}).encode()
