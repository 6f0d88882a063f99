"""The commands about messages and internal topics, in this process."""

import json
import shutil

import pytest

pytest.importorskip("click")

from click.testing import CliRunner

import kafkacodec as kc
from kafkacodec import messages, protocol
from kafkacodec.cli.app import application
from kafkacodec.log import LogWriter
from kafkacodec.log.state.cluster_metadata import read_cluster_metadata
from kafkacodec.log.state.groups import read_committed_offsets
from tests.corpus import ROOT


def run(*arguments, code=0, stdin=None):
    result = CliRunner().invoke(application, arguments, input=stdin)
    assert result.exit_code == code, result.output
    return result.output


def test_message_decode_and_encode():
    message = messages.FetchRequest(topics=[messages.FetchRequest.FetchTopic(topic="orders")])
    message.unknown_tagged_fields[99] = b"\x00\xff"
    body = message.encode(12).hex()
    shown = run("message", "decode", "--rpc", "FetchRequest", "--version", "12", stdin=body)
    assert json.loads(shown)["topics"][0]["topic"] == "orders"
    assert run("message", "encode", "FetchRequest", "12", stdin=shown).strip() == body


def test_message_frames_and_files(tmp_path):
    frame = protocol.encode_request(messages.MetadataRequest(), 12, 5, "me")
    path = tmp_path / "frame"
    path.write_bytes(frame)
    shown = json.loads(run("message", "decode", "--rpc", "MetadataRequest", "--version", "12", "--frame", str(path)))
    assert shown["header"]["correlation_id"] == 5


def test_a_request_frame_needs_no_name_and_version():
    frame = protocol.encode_request(messages.MetadataRequest(), 12, 5, "me").hex()
    shown = json.loads(run("message", "decode", "--frame", stdin=frame))
    assert (shown["type"], shown["version"], shown["header"]["client_id"]) == ("MetadataRequest", 12, "me")
    run("message", "decode", "--frame", "--rpc", "FetchRequest", code=1, stdin=frame)
    run("message", "decode", "--frame", "--version", "11", code=1, stdin=frame)
    run("message", "decode", "--frame", "--rpc", "OffsetCommitKey", "--version", "1", code=2, stdin=frame)


def test_a_response_frame():
    frame = protocol.encode_response(messages.MetadataResponse(controller_id=3), 12, 5).hex()
    options = ("message", "decode", "--frame", "--rpc", "MetadataResponse")
    shown = json.loads(run(*options, "--version", "12", stdin=frame))
    assert (shown["header"]["correlation_id"], shown["message"]["controller_id"]) == (5, 3)
    run(*options, code=2, stdin=frame)


def test_message_describe():
    shown = run("message", "describe", "Fetch")
    assert "FetchRequest, key 1" in shown
    assert "FetchResponse, key 1" in shown
    assert "aborted_transactions" in shown
    assert "session_id" not in run("message", "describe", "FetchRequest", "--version", "3")


def test_wrong_usage():
    run("message", "describe", "Nothing", code=2)
    run("message", "decode", "--rpc", "FetchRequest", code=2, stdin="00")


@pytest.mark.parametrize(
    "text", ["{", "[" * 100_000, '{"unknown_tagged_fields": {"a": ""}}', '{"topics": [{"topic_id": "zz"}]}']
)
def test_json_that_is_not_a_message(text):
    assert "error: " in run("message", "encode", "FetchRequest", "13", code=1, stdin=text).lower()
    run("message", "encode", "FetchRequest", "13", code=1, stdin="[]")


def test_describe_an_unknown_version():
    run("message", "describe", "Fetch", "--version", "99", code=1)


def test_offsets_groups_and_metadata():
    directory = str(ROOT / "logs" / "kraft-4.1.0")
    lines = [json.loads(line) for line in run("offsets", directory, "--json").splitlines()]
    assert len(lines) == 12
    assert set(lines[0]) >= {"group", "topic", "partition", "offset", "metadata", "commit_timestamp"}
    one = lines[0]["group"]
    assert all(one in line for line in run("offsets", directory, "--group", one).splitlines()[1:-1])
    groups = [json.loads(line) for line in run("groups", directory, "--json").splitlines()]
    assert {group["kind"] for group in groups} == {"classic"}
    assert [group["generation"] > 0 for group in groups].count(True) == 3
    assert {line["group"] for line in lines} <= {group["group"] for group in groups}
    assert f"{len(groups)} groups" in run("groups", directory)
    shown = json.loads(run("metadata", directory, "--json"))
    assert shown["features"]["metadata.version"] == 27
    assert "__consumer_offsets" in run("metadata", directory)


def test_offsets_and_groups_of_one_partition_and_of_other_directories(tmp_path):
    partition = str(ROOT / "logs" / "v0-0.9.0.1" / "__consumer_offsets-0")
    directory = str(ROOT / "logs" / "v0-0.9.0.1")
    of_all = {line for number in "01" for line in run("offsets", partition[:-1] + number, "--json").splitlines()}
    assert of_all == set(run("offsets", directory, "--json").splitlines())
    for command in ("offsets", "groups"):
        run(command, str(tmp_path), code=1)


@pytest.fixture
def damaged(tmp_path):
    """A data directory with an offset record of a future version and a damaged batch in the metadata log."""
    metadata = tmp_path / "__cluster_metadata-0"
    key = b"\0\1" + messages.OffsetCommitKey(group="g", topic="t", partition=3).encode(0)
    value = b"\0\3" + messages.OffsetCommitValue(offset=7).encode(3)
    with LogWriter(tmp_path, "__consumer_offsets", 0) as writer:
        writer.write([(key, b"\0\x63newer"), (key, value)])
    shutil.copytree(ROOT / "logs" / "kraft-4.1.0" / metadata.name, metadata)
    (segment,) = metadata.glob("*.log")
    data = bytearray(segment.read_bytes())
    data[-1] ^= 1
    segment.write_bytes(data)
    return tmp_path


def test_stored_records_that_cannot_be_read(damaged):
    for command in ("offsets", "groups", "metadata"):
        run(command, str(damaged), code=1)
    with pytest.raises(kc.DecodeError, match=r"__consumer_offsets-0: record at offset 0.*version 99.*versions are 0-4"):
        read_committed_offsets(damaged)
    problems = []
    assert [(c.group, c.partition, c.offset) for c in read_committed_offsets(damaged, problems=problems)] == [
        ("g", 3, 7)
    ]
    assert len(problems) == 1
    result = CliRunner().invoke(application, ["offsets", str(damaged), "--on-error", "skip", "--json"])
    assert (result.exit_code, json.loads(result.stdout)["offset"]) == (0, 7)
    assert "warning: skipped: " in result.stderr
    problems = []
    assert read_cluster_metadata(damaged, problems=problems).topics
    assert [type(problem) for problem in problems] == [kc.CrcMismatch]
    assert "1 group" in run("groups", str(damaged), "--on-error", "skip")


def test_message_decode_expands_records_and_subscriptions():
    Produce = messages.ProduceRequest
    records = kc.encode([(b"k", b"\xff"), ("ключ".encode(), None)], base_offset=4)
    data = Produce.PartitionProduceData(index=0, records=records)
    body = Produce(topic_data=[Produce.TopicProduceData(name="orders", partition_data=[data])]).encode(9).hex()
    shown = json.loads(run("message", "decode", "--rpc", "ProduceRequest", "--version", "9", "--expand", stdin=body))[
        "topic_data"
    ][0]["partition_data"][0]["records"]
    assert [(r["offset"], r["key"], r["value"]) for r in shown] == [(4, "k", {"base64": "/w=="}), (5, "ключ", None)]
    frame = protocol.encode_request(messages.MetadataRequest(), 12, 5, "me").hex()
    assert json.loads(run("message", "decode", "--frame", "--expand", stdin=frame))["header"]["client_id"] == "me"
