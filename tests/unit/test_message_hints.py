"""Hints of `message decode`: what the bytes are, and which options decode them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkacodec import messages, protocol
from kafkacodec.cli.__main__ import BAD_INPUT, DONE, WRONG_USAGE, run

REQUEST = messages.MetadataRequest(topics=[])
RESPONSE = messages.MetadataResponse(controller_id=9)
FRAMES = {
    "request frame": protocol.encode_request(REQUEST, 12, 5, "me"),
    "response frame": protocol.encode_response(RESPONSE, 12, 5),
    "request": REQUEST.encode(12),
    "response": RESPONSE.encode(12),
}
NAMED = ["--version", "12", "--rpc"]
WHOLE = "a frame with MetadataRequest version 12: use --frame alone"


@pytest.mark.parametrize(
    ("what", "options", "code", "looks"),
    [
        ("request frame", [], WRONG_USAGE, WHOLE),
        ("request frame", [*NAMED, "MetadataRequest"], BAD_INPUT, WHOLE),
        ("request frame", [*NAMED, "MetadataResponse", "--frame"], BAD_INPUT, WHOLE),
        ("response frame", ["--frame"], BAD_INPUT, "the frame of a response: use --frame, --rpc and --version"),
        ("response frame", [*NAMED, "MetadataResponse"], BAD_INPUT, "a frame: use --frame"),
        ("response frame", [*NAMED, "MetadataRequest"], BAD_INPUT, "a response: use --frame --rpc MetadataResponse"),
        ("response", [*NAMED, "MetadataRequest"], BAD_INPUT, "a response: use --rpc MetadataResponse"),
        ("request", [*NAMED, "MetadataResponse"], BAD_INPUT, "a request: use --rpc MetadataRequest"),
        ("response", [*NAMED, "MetadataResponse", "--frame"], BAD_INPUT, "a body without size and header"),
    ],
)
def test_hints(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    what: str,
    options: list[str],
    code: int,
    looks: str,
) -> None:
    path = tmp_path / "message.bin"
    path.write_bytes(FRAMES[what])
    assert run(["message", "decode", *options, str(path)]) == code
    assert f"; it looks like {looks}" in capsys.readouterr().err.splitlines()[-1]
    correct = ["--frame"] if "frame" in what else []
    if what != "request frame":
        correct += [*NAMED, "MetadataRequest" if "request" in what else "MetadataResponse"]
    assert run(["message", "decode", *correct, str(path)]) == DONE


def test_no_hint_where_nothing_fits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "noise.bin"
    path.write_bytes(bytes(range(200, 256)))
    assert run(["message", "decode", "--version", "12", "--rpc", "MetadataRequest", str(path)]) == BAD_INPUT
    assert "looks like" not in capsys.readouterr().err
