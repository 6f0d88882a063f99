"""``kafkacodec dump`` as a searching tool: conditions, columns, format strings, the last records, internal topics."""

import base64
import json
import re
import uuid

import pytest

from kafkacodec.cli.__main__ import DONE, WRONG_USAGE
from tests.conformance.test_internal_topics import commit_key, commit_value, records_of
from tests.corpus import ROOT, segments
from tests.integration.cli_samples import BROKER, expected, from_json, from_json_value
from tests.protocol_vectors import plain_json, same, vectors, without_absent
from tests.terminal import on_a_terminal


def found(kafkacodec, *options):
    code, out, err = kafkacodec("dump", BROKER, "--topic", "mixed", "--json", *options)
    assert (code, err) == (DONE, "")
    return [from_json(line) for line in out.splitlines()]


def rows(matches):
    chosen = [row[:6] for row in expected("mixed") if matches(row)]
    assert 0 < len(chosen) < len(expected("mixed"))
    return chosen


def contains(row, wanted):
    parts = [row.key, row.value, *(value for _, value in row.headers)]
    return any(part is not None and wanted in part for part in parts)


def test_records_that_contain_text_or_bytes(kafkacodec):
    for text in ("broker", "Москва", '"amount":1'):
        assert found(kafkacodec, "--grep", text) == rows(lambda row, t=text: contains(row, t.encode()))
    binary = next(row.value for row in expected("mixed") if row.value and b"\xff" in row.value)
    part = binary[binary.index(b"\xff") :][:3]
    assert found(kafkacodec, "--grep", "0x" + part.hex()) == rows(lambda row: contains(row, part))
    either = rows(lambda row: contains(row, b"broker") or contains(row, b"invoice"))
    assert found(kafkacodec, "--grep", "broker", "--grep", "invoice") == either
    assert found(kafkacodec, "--grep", "broker", "-v") == rows(lambda row: not contains(row, b"broker"))


def test_records_by_key_value_and_header(kafkacodec):
    key = next(row.key for row in expected("mixed") if row.key).decode()
    assert found(kafkacodec, "--key", key) == rows(lambda row: row.key == key.encode())
    assert found(kafkacodec, "--value", "") == rows(lambda row: row.value == b"")
    assert found(kafkacodec, "--header", "trace-id") == rows(lambda row: any(k == "trace-id" for k, _ in row.headers))
    name, value = next((k, v) for row in expected("mixed") for k, v in row.headers if v and v.isascii() and v.isalnum())
    wanted = found(kafkacodec, "--header", f"{name}={value.decode()}")
    assert wanted == rows(lambda row: (name, value) in row.headers)


def test_regular_expressions(kafkacodec):
    expression = re.compile(rb'"user":"u2\d+"')
    wanted = rows(lambda row: row.value is not None and expression.search(row.value) is not None)
    assert found(kafkacodec, "-E", "--value", expression.pattern.decode()) == wanted
    both = rows(lambda row: row.key is not None and row.key.startswith(b"key-4") and contains(row, b"broker"))
    assert found(kafkacodec, "-E", "--key", "^key-4", "--grep", "broker") == both


def test_searches_work_with_limits_and_spans(kafkacodec):
    wanted = rows(lambda row: contains(row, b"broker"))
    assert found(kafkacodec, "--grep", "broker", "-n", 2) == wanted[:2]
    assert found(kafkacodec, "--grep", "broker", "--tail", 3) == wanted[-3:]
    middle = wanted[len(wanted) // 2][0]
    assert (
        found(kafkacodec, "--grep", "broker", "--end-offset", middle, "--tail", 1)
        == [row for row in wanted if row[0] < middle][-1:]
    )


@pytest.mark.parametrize("count", [0, 1, 7, 100_000])
@pytest.mark.parametrize("path", ["kraft-4.1.0/mixed-0", "v0-0.8.2.2/gzip-0", "upgraded"])
def test_the_last_records_of_each_partition(kafkacodec, path, count):
    directory = ROOT / "logs" / path
    _, every, _ = kafkacodec("dump", directory, "--json")
    of_partition = {}
    for line in every.splitlines():
        record = json.loads(line)
        of_partition.setdefault((record["topic"], record["partition"]), []).append(line)
    code, last, err = kafkacodec("dump", directory, "--json", "--tail", count)
    assert (code, err) == (DONE, "")
    assert last.splitlines() == [line for lines in of_partition.values() for line in lines[-count:] if count]


def test_the_last_records_are_found_without_reading_the_first(kafkacodec, tmp_path):
    """The first segment is damaged, which reading it would report."""
    source = ROOT / "logs" / "kraft-4.1.0"
    partition = max(source.glob("*-0"), key=lambda path: len(list(path.glob("*.log"))))
    logs = sorted(partition.glob("*.log"))
    assert len(logs) > 1
    copy = tmp_path / partition.name
    copy.mkdir()
    for path in partition.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    damaged = bytearray(logs[0].read_bytes())
    damaged[30] ^= 1
    (copy / logs[0].name).write_bytes(damaged)
    assert kafkacodec("dump", copy, "--json")[0] != DONE
    code, out, err = kafkacodec("dump", copy, "--json", "--tail", 2)
    assert (code, err, len(out.splitlines())) == (DONE, "", 2)


def test_chosen_columns(kafkacodec):
    _, out, _ = kafkacodec("dump", BROKER, "--topic", "mixed", "--columns", "offset,codec,value", "--json", "-n", 5)
    samples = [s for s in segments(writer="kraft-4.1.0") if s.path.parent.name == "mixed-0"]
    batches = [batch["codec"] for s in samples for batch in s.expected.batches]
    for line, row in zip(out.splitlines(), expected("mixed"), strict=False):
        record = json.loads(line)
        assert list(record) == ["offset", "codec", "value"]
        assert (record["offset"], from_json_value(record["value"])) == (row.offset, row.value)
        assert record["codec"] == batches[row.batch].lower()
    _, out, _ = kafkacodec("dump", BROKER, "--topic", "mixed", "--columns", "partition,producer_id", "-n", 1)
    assert [line.split() for line in out.splitlines()] == [["partition", "producer_id"], ["0", "-1"]]
    code, _, err = kafkacodec("dump", BROKER, "--columns", "offset,size")
    assert (code, "unknown column 'size'; columns are topic, partition" in err) == (WRONG_USAGE, True)


def test_format_strings(kafkacodec_bytes):
    template = r"%t %p %o %T %K %S [%k] [%s] %h%%\t\x41\\\n"
    code, out = kafkacodec_bytes("dump", BROKER, "--topic", "mixed", "-f", template)
    assert code == DONE
    wanted = b""
    for row in expected("mixed"):
        sizes = [-1 if part is None else len(part) for part in (row.key, row.value)]
        headers = b",".join(key.encode() + b"=" + (b"NULL" if value is None else value) for key, value in row.headers)
        wanted += f"mixed 0 {row.offset} {row.timestamp} {sizes[0]} {sizes[1]} ".encode()
        wanted += b"[" + (row.key or b"") + b"] [" + (row.value or b"") + b"] " + headers + b"%\tA\\\n"
    assert out == wanted
    _, out = kafkacodec_bytes("dump", BROKER, "--topic", "mixed", "-n", 3, "--format", "%R%s")
    values = [row.value for row in expected("mixed")[:3]]
    sizes = [-1 if value is None else len(value) for value in values]
    assert out == b"".join(
        size.to_bytes(4, "big", signed=True) + (value or b"") for size, value in zip(sizes, values, strict=True)
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-f", "%q"], "unknown '%q'"),
        (["-f", "100%"], "unknown '%'"),
        (["-f", r"\y"], r"unknown '\y'"),
        (["-f", "%o", "--json"], "--json and --columns do not apply"),
        (["--grep", "0xabc"], "'0xabc' is not hex"),
        (["-E", "--grep", "("], "invalid RE2 regular expression '('"),
        (["-E"], "need --key"),
        (["-v"], "need --key"),
        (["--follow", "--end-offset", "3"], "--follow does not end"),
    ],
)
def test_wrong_options(kafkacodec, arguments, said):
    code, out, err = kafkacodec("dump", BROKER, *arguments)
    assert (code, out) == (WRONG_USAGE, "")
    assert said in err


def test_a_terminal_gets_no_control_characters_by_a_format_string(tmp_path):
    import kafkacodec as kc

    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(kc.encode([(b"\x1b[31m", "рука\x07\n\u202e".encode()), (b"\xff", b"plain")]))
    code, shown = on_a_terminal("dump", path, "-f", r"%k:%s\n")
    assert code == DONE
    assert shown == "\\x1b[31m:рука\\x07\\n\\u202e\r\n\\udcff:plain\r\n"


def test_transaction_markers_with_their_producer(kafkacodec):
    kinds = {b"\0\0\0\0": "ABORT", b"\0\0\0\1": "COMMIT"}
    markers = 0
    for sample in segments(writer="kraft-4.1.0"):
        if sample.path.parent.name != "txn-0":
            continue
        _, out, _ = kafkacodec("dump", sample.path, "--control", "--json")
        _, table, _ = kafkacodec("dump", sample.path, "--control")
        for row, line, shown in zip(sample.expected.records, out.splitlines(), table.splitlines()[1:], strict=True):
            if not row.is_control:
                continue
            markers += 1
            record, batch = json.loads(line), sample.expected.batches[row.batch]
            assert record["key"] == {"type": kinds[row.key]}
            assert record["value"] == {"type": "EndTxnMarker", "version": 0, "data": {"coordinator_epoch": 0}}
            assert (record["producer_id"], record["producer_epoch"]) == (batch["producerId"], batch["producerEpoch"])
            words = [kinds[row.key], f"producer_id={batch['producerId']}", f"producer_epoch={batch['producerEpoch']}"]
            assert [word for word in shown.split() if word in words] == words
        _, raw, _ = kafkacodec("dump", sample.path, "--control", "--json", "--raw")
        assert [from_json(line)[3:5] for line in raw.splitlines()] == [row[3:5] for row in sample.expected.records]
    assert markers == 56


@pytest.mark.parametrize("writer", ["kraft-3.9.1", "kraft-4.1.0", "v0-0.9.0.1", "v2-2.8.2"])
def test_committed_offsets_by_name(kafkacodec, writer):
    _, out, _ = kafkacodec("dump", ROOT / "logs" / writer, "--topic", "__consumer_offsets", "--json")
    shown = {}
    for record in map(json.loads, out.splitlines()):
        if isinstance(record["key"], dict) and "type" in record["key"]:
            shown[record["partition"], record["offset"]] = record
    compared = 0
    for record in records_of(writer, "__consumer_offsets"):
        key = commit_key(base64.b64decode(record["key"]))
        if key is None:
            continue
        partition = int(record["file"].rpartition("/")[0].rpartition("-")[2])
        found = shown[partition, record["offset"]]
        assert tuple(found["key"]["data"].values()) == key
        if record["value"] is None:
            assert found["value"] is None
            continue
        compared += 1
        stored = base64.b64decode(record["value"])
        data = found["value"]["data"]
        assert found["value"]["version"] == int.from_bytes(stored[:2], "big")
        names = ("offset", "leader_epoch", "metadata", "commit_timestamp", "expire_timestamp")
        present = [(data[name], value) for name, value in zip(names, commit_value(stored), strict=True) if name in data]
        assert len(present) >= 3
        assert all(mine == theirs for mine, theirs in present)
    assert compared >= 9


@pytest.mark.parametrize("writer", ["kraft-3.9.1", "kraft-4.1.0", "v2-2.8.2"])
def test_all_records_of_internal_topics_have_names(kafkacodec, writer):
    code, out, err = kafkacodec("dump", ROOT / "logs" / writer, "--topic", "__*", "--control", "--json")
    assert (code, err) == (DONE, "")
    names = set()
    for record in map(json.loads, out.splitlines()):
        parts = [part for part in (record["key"], record["value"]) if part is not None]
        assert all(isinstance(part, dict) and "type" in part for part in parts), record
        names |= {part["type"] for part in parts}
    assert {"OffsetCommitKey", "GroupMetadataValue", "TransactionLogValue"} <= names
    if writer == "kraft-4.1.0":
        assert {"TopicRecord", "PartitionRecord", "LEADER_CHANGE", "LeaderChangeMessage"} <= names


def with_uuids(value):
    """The value with text of the form of a uuid as one."""
    if isinstance(value, dict):
        return {name: with_uuids(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [with_uuids(inner) for inner in value]
    is_uuid = isinstance(value, str) and re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", value)
    return uuid.UUID(value) if is_uuid else value


def test_control_records_of_raft(kafkacodec, tmp_path):
    """Batches with the control records that Kafka's serializers wrote."""
    for number, vector in enumerate(vectors("control")):
        path = tmp_path / f"__cluster_metadata-{number}" / "00000000000000018113.log"
        path.parent.mkdir()
        path.write_bytes(bytes.fromhex(vector["batch_hex"]))
        _, out, _ = kafkacodec("dump", path, "--control", "--json")
        (record,) = map(json.loads, out.splitlines())
        assert record["key"] == {"type": vector["name"]}
        assert (record["value"]["type"], record["value"]["version"]) == (vector["schema"], vector["version"])
        data = with_uuids(record["value"]["data"])
        assert same(plain_json(vector["json"], data), without_absent(data, vector["json"]))


def test_unknown_and_wrong_records_keep_their_bytes(kafkacodec, tmp_path):
    import kafkacodec as kc

    path = tmp_path / "__consumer_offsets-0" / "00000000000000000000.log"
    path.parent.mkdir()
    records = [(b"\x7f\xff", b"x"), (b"\0\1", b"\0\1"), (None, None), (b"", b"a")]
    path.write_bytes(kc.encode(records))
    _, out, _ = kafkacodec("dump", path, "--json")
    assert [from_json(line)[3:5] for line in out.splitlines()] == records
