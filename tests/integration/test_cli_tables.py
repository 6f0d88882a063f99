"""`offsets`, `groups` and `metadata` with ``--output``, compared with what Kafka itself reads."""

import csv
import json
import shutil
import uuid

import pyarrow as pa
import pytest
from pyarrow import parquet

from kafkacodec.cli.__main__ import BAD_INPUT, DONE, WRONG_USAGE
from kafkacodec.cli.commands.metadata import TABLES
from kafkacodec.log.state.cluster_metadata import read_cluster_metadata
from kafkacodec.log.state.groups import read_consumer_groups
from kafkacodec.log.state.metadata_image import ClusterMetadata
from kafkacodec.log.state.tables import METADATA
from tests.conformance.test_internal_topics import WRITERS, expected_offsets
from tests.corpus import ROOT

BROKER = ROOT / "logs" / "kraft-4.1.0"


@pytest.mark.parametrize("writer", WRITERS)
def test_offsets_as_parquet(kafkacodec, tmp_path, writer):
    output = tmp_path / "offsets.parquet"
    code, out, err = kafkacodec("offsets", ROOT / "logs" / writer, "-o", output)
    assert (code, out, err.startswith(f"{output}: ")) == (DONE, "", True)
    table = parquet.read_table(output)
    for name in ("commit_timestamp", "expire_timestamp"):
        table = table.set_column(table.schema.get_field_index(name), name, table.column(name).cast(pa.int64()))
    found = {
        (row["group"], row["topic"], row["partition"]): (
            row["offset"],
            -1 if row["leader_epoch"] is None else row["leader_epoch"],
            row["metadata"],
            row["commit_timestamp"],
            -1 if row["expire_timestamp"] is None else row["expire_timestamp"],
        )
        for row in table.to_pylist()
    }
    assert found == expected_offsets(writer)
    assert table.num_rows == len(found) >= 9


def test_offsets_of_a_group_as_csv_and_json_lines(kafkacodec, tmp_path):
    group = read_consumer_groups(BROKER)[0].group
    wanted = {key: value for key, value in expected_offsets("kraft-4.1.0").items() if key[0] == group}
    lines, table = tmp_path / "offsets.jsonl", tmp_path / "offsets.csv"
    for output in (lines, table):
        assert kafkacodec("offsets", BROKER, "--group", group, "-o", output)[0] == DONE
    with open(table, newline="", encoding="utf-8") as file:
        assert {(r["group"], r["topic"], int(r["partition"])) for r in csv.DictReader(file)} == set(wanted)
    for line in lines.read_text().splitlines():
        row = json.loads(line)
        assert wanted[row["group"], row["topic"], row["partition"]][3] == row["commit_timestamp"]


def test_groups_in_every_format(kafkacodec, tmp_path):
    directory = ROOT / "logs" / "v0-0.9.0.1"
    expected = [group.to_dict() for group in read_consumer_groups(directory)]
    assert expected[0]["members"][0]["topics"] == ["gzip"]
    assert expected[0]["members"][0]["owned"] == [{"topic": "gzip", "partitions": [0]}]
    for suffix in ("arrow", "parquet", "jsonl", "csv"):
        assert kafkacodec("groups", directory, "--output", tmp_path / f"groups.{suffix}")[0] == DONE
    assert pa.ipc.open_file(tmp_path / "groups.arrow").read_all().to_pylist() == expected
    assert parquet.read_table(tmp_path / "groups.parquet").to_pylist() == expected
    assert [json.loads(line) for line in (tmp_path / "groups.jsonl").read_text().splitlines()] == expected
    with open(tmp_path / "groups.csv", newline="", encoding="utf-8") as file:
        assert [json.loads(row["members"]) for row in csv.DictReader(file)] == [row["members"] for row in expected]


@pytest.mark.parametrize("name", METADATA)
def test_metadata(kafkacodec, tmp_path, name):
    output = tmp_path / f"{name}.arrow"
    code, out, err = kafkacodec("metadata", BROKER, "--table", name, "-o", output)
    assert (code, out, err.startswith(f"{output}: ")) == (DONE, "", True)
    table = pa.ipc.open_file(output).read_all()
    assert table.schema == METADATA[name]
    state = read_cluster_metadata(BROKER)
    if name == "configs":
        assert table.num_rows == sum(map(len, state.configs.values())) > 0
    elif name != "partitions":
        assert table.num_rows == len(getattr(state, name))


def test_tables_of_metadata_have_one_list_of_names():
    assert list(METADATA) == TABLES


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["metadata", BROKER, "-o", "x.csv"], "--table"),
        (["offsets", BROKER, "-o", "x"], "--format"),
        (["offsets", BROKER, "--format", "csv"], "--output"),
        (["groups", BROKER, "--force"], "--output"),
        (["offsets", BROKER, "-o", "x.csv", "--json"], "--json"),
        (["groups", BROKER, "-o", "x.csv", "--compression", "zstd"], "--compression"),
    ],
)
def test_wrong_usage(kafkacodec, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    code, _, err = kafkacodec(*arguments)
    assert (code, list(tmp_path.iterdir())) == (WRONG_USAGE, [])
    assert message in err


def test_neither_inputs_nor_other_files_are_replaced(kafkacodec, tmp_path):
    data = tmp_path / "data"
    shutil.copytree(BROKER / "__consumer_offsets-0", data / "__consumer_offsets-0")
    inside, outside = data / "meta.csv", tmp_path / "mine.csv"
    for path in (inside, outside):
        path.write_text("mine")
    assert kafkacodec("groups", data, "-o", inside, "--force")[0] == WRONG_USAGE
    assert kafkacodec("groups", data, "-o", outside)[0] == WRONG_USAGE
    assert (inside.read_text(), outside.read_text()) == ("mine", "mine")
    assert kafkacodec("groups", data, "-o", outside, "--force")[0] == DONE
    assert outside.read_text().startswith('"group","kind"')


@pytest.mark.parametrize("name", TABLES)
def test_metadata_tables_are_printed(kafkacodec, name):
    code, out, err = kafkacodec("metadata", BROKER, "--table", name)
    assert (code, err) == (DONE, "")
    state = read_cluster_metadata(BROKER)
    counts = {
        "partitions": sum(len(topic["partitions"]) for topic in state.topics.values()),
        "configs": sum(map(len, state.configs.values())),
    }
    assert len(out.splitlines()) == 1 + counts.get(name, len(getattr(state, name, ())))


def test_metadata_of_some_topics(kafkacodec):
    code, out, _ = kafkacodec("metadata", BROKER, "--topic", "compact-t*", "--topic", "zstd", "--table", "configs")
    assert code == DONE
    resources = {line.split()[0] for line in out.splitlines()[1:]}
    assert resources == {"topic:compact-tombstones", "topic:compact-txn", "topic:zstd"}
    code, out, _ = kafkacodec("metadata", BROKER, "--topic", "zstd", "--json")
    assert list(json.loads(out)["topics"]) == ["zstd"]
    _, out, _ = kafkacodec("metadata", BROKER, "--topic", "zstd", "--json", "--table", "configs")
    assert json.loads(out) == {"configs": {"topic:zstd": {"internal.segment.bytes": "20000"}}}
    code, _, err = kafkacodec("metadata", BROKER, "--topic", "none-of-them")
    assert (code, "no topic 'none-of-them'; there are " in err) == (BAD_INPUT, True)


def test_acls_that_apply_to_a_topic(kafkacodec, monkeypatch):
    """By the rules of KIP-290: of this name, of all names, or of a prefix; those of groups never."""
    names = [(2, 3, "orders"), (2, 3, "*"), (2, 4, "ord"), (2, 3, "ord"), (2, 4, "x"), (3, 3, "orders")]
    entry = {"principal": "User:u", "host": "*", "operation": 3, "permission_type": 3}
    acls = {
        uuid.UUID(int=n): entry | {"resource_type": kind, "pattern_type": pattern, "resource_name": name}
        for n, (kind, pattern, name) in enumerate(names)
    }
    state = ClusterMetadata(topics={"orders": {"topic_id": uuid.UUID(int=9), "partitions": {}}}, acls=acls)
    monkeypatch.setattr("kafkacodec.cli.commands.metadata.read_cluster_metadata", lambda directory, problems: state)
    code, out, _ = kafkacodec("metadata", BROKER, "--topic", "o*", "--table", "acls")
    assert code == DONE
    assert sorted(line.split()[-1] for line in out.splitlines()[1:]) == ["*", "ord", "orders"]
