"""Files beside segments in ``kafkacodec dump``, by kafka-dump-log; packed files; trees of data directories."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from kafkacodec.cli.__main__ import BAD_INPUT, DONE, WRONG_USAGE
from kafkacodec.log.formats import layout
from tests.corpus import ROOT
from tests.integration.cli_samples import BROKER
from tests.integration.kafka_jars import java, tools

LOGS = ROOT / "logs"
SUFFIXES = (".index", ".timeindex", ".txnindex", ".snapshot")
# Kafka's tool -> here.
NAMES = {"lastTimestamp": "timestamp"}


def samples() -> list[Path]:
    """Files of each kind that a broker wrote, the largest ones."""
    every = [path for path in sorted(LOGS.glob("v2-*/*/*")) if path.suffix in SUFFIXES]
    return [
        path
        for suffix in SUFFIXES
        for path in sorted((p for p in every if p.suffix == suffix), key=lambda p: -p.stat().st_size)[:4]
    ]


def by_kafka(paths: list[Path]) -> dict[str, list[dict[str, int | None]]]:
    """The rows of kafka-dump-log by path."""
    command = [*java("newest", tools("newest")), "org.apache.kafka.tools.DumpLogSegments", "--files"]
    text = subprocess.run([*command, ",".join(map(str, paths))], capture_output=True, text=True, check=True).stdout
    found: dict[str, list[dict[str, int | None]]] = {}
    for line in text.splitlines():
        if line.startswith("Dumping "):
            rows = found.setdefault(line.removeprefix("Dumping "), [])
        elif pairs := re.findall(r"(\w+): (\S+)", line):
            rows.append({_name(name): _number(value) for name, value in pairs})
    return found


def _name(name: str) -> str:
    return NAMES.get(name) or re.sub("([A-Z])", lambda found: f"_{found[0].lower()}", name)


def _number(text: str) -> int | None:
    number = text.removeprefix("OptionalLong[").removesuffix("]")
    return None if number == "OptionalLong.empty" else int(number)


@pytest.mark.java
def test_rows_are_those_of_kafka_s_tool(kafkacodec):
    paths = samples()
    expected = by_kafka(paths)
    assert sum(len(rows) for rows in expected.values()) > 50
    for path in paths:
        code, out, err = kafkacodec("dump", path, "--json")
        assert (code, err) == (DONE, "")
        ours = [json.loads(line) for line in out.splitlines()]
        theirs = expected[str(path)]
        if path.suffix == ".index" and theirs and not ours:
            base = layout.parse_file_name(path.name).base_offset  # the tool shows an empty index so
            assert theirs == [{"offset": base, "position": 0}]
            continue
        assert ours == theirs, path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("leader-epoch-checkpoint", "epoch start offset 0 0"),
        ("partition.metadata", r"name value version 0 topic_id [\w-]{22}"),
    ],
)
def test_files_that_kafka_s_tool_does_not_know(kafkacodec, name, text):
    path = LOGS / "kraft-4.1.0" / "gzip-0" / name
    code, out, _ = kafkacodec("dump", path)
    assert code == DONE
    assert re.fullmatch(text, " ".join(out.split()))


@pytest.mark.parametrize(
    ("content", "rows"),
    [('{"version":0,"brokerEpoch":17}', "name value version 0 brokerEpoch 17"), ("", "name value")],
)
def test_the_mark_of_a_clean_stop(kafkacodec, tmp_path, content, rows):
    """As Kafka 4.1 and Kafka 0.8.2 leave it."""
    path = tmp_path / ".kafka_cleanshutdown"
    path.write_text(content)
    code, out, _ = kafkacodec("dump", path)
    assert (code, " ".join(out.split())) == (DONE, rows)


def test_several_files_with_segments(kafkacodec):
    log, index = BROKER / "gzip-0/00000000000000000000.log", BROKER / "gzip-0/00000000000000000000.index"
    code, out, _ = kafkacodec("dump", index, BROKER / "recovery-point-offset-checkpoint", log, "-n", 2)
    assert code == DONE
    lines = out.splitlines()
    assert lines[0] == f"{index}:"
    assert f"{BROKER / 'recovery-point-offset-checkpoint'}:" in lines
    assert any(line.startswith("offset  timestamp (UTC)") for line in lines)
    for options in (
        ("--grep", "x"),
        ("--topic", "foo"),
        ("--start-offset", "3"),
        ("--follow",),
        ("--raw",),
        ("--no-crc",),
    ):
        code, _, err = kafkacodec("dump", index, *options)
        text = f"{options[0].replace('no-', '')} does not apply to {index}, which has no records"
        assert (code, text in err) == (WRONG_USAGE, True), err
    code, _, err = kafkacodec("dump", index, log, "--tail", 2, "--columns", "key")
    assert (code, f"--tail, --columns do not apply to {index}" in err) == (WRONG_USAGE, True), err


def test_metadata_snapshots_are_shown_by_name(kafkacodec):
    code, out, _ = kafkacodec("dump", BROKER / "bootstrap.checkpoint")
    assert code == DONE
    assert "FeatureLevelRecord name=metadata.version" in out


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_damaged_files_say_where(kafkacodec, suffix, tmp_path):
    source = next(path for path in samples() if path.suffix == suffix)
    path = tmp_path / source.name
    path.write_bytes(source.read_bytes()[:-3])
    code, _, err = kafkacodec("dump", path)
    assert code == BAD_INPUT
    assert err.startswith(f"kafkacodec: error: {path}: ")
    assert len(err.splitlines()) == 1


def test_packed_files_are_one_sentence(kafkacodec, tmp_path):
    log = BROKER / "gzip-0/00000000000000000000.log"
    packed = tmp_path / "gzip-0" / f"{log.name}.gz"
    packed.parent.mkdir()
    packed.write_bytes(gzip.compress(log.read_bytes()))
    archive = tmp_path / "logs.tar"
    with tarfile.open(archive, "w") as tar:
        tar.add(log, "gzip-0/segment")
    for command in ("dump", "topics", "scan", "verify"):
        code, _, err = kafkacodec(command, packed)
        assert code == BAD_INPUT
        assert f"{packed}: a gzip file, not a segment: unpack it first, as in: gzip -dc {packed.name} |" in err
        code, _, err = kafkacodec(command, archive)
        assert (code, f"{archive}: a tar archive, not a segment: unpack it first\n" in err) == (BAD_INPUT, True)
    code, _, err = kafkacodec("dump", packed.parent)
    assert (code, "but packed files: unpack them first" in err) == (BAD_INPUT, True)


@pytest.fixture
def tree(tmp_path):
    """Two brokers' data directories."""
    for broker in ("a", "b"):
        for partition in ("gzip-0", "lz4-0"):
            shutil.copytree(BROKER / partition, tmp_path / "tree" / broker / "data" / partition)
    return tmp_path / "tree"


def test_verify_of_a_tree_lists_only_what_is_not_intact(kafkacodec, tree):
    code, out, err = kafkacodec("verify", tree)
    assert (code, err, len(out.splitlines())) == (DONE, "", 1)
    assert out.startswith("4 partitions, all intact, ")
    assert len(kafkacodec("verify", tree, "--all")[1].splitlines()) == 6
    log = tree / "b/data/lz4-0/00000000000000000000.log"
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 1
    log.write_bytes(data)
    code, out, _ = kafkacodec("verify", tree)
    lines = out.splitlines()
    assert (code, lines[1].split()[0]) == (BAD_INPUT, str(log.parent))
    assert not any(line.startswith("gzip-0") for line in lines)
    assert lines[-1].startswith("4 partitions, 3 intact, ")


def test_recover_of_a_tree(kafkacodec, tree, tmp_path):
    code, out, _ = kafkacodec("recover", tree, tmp_path / "saved")
    assert (code, len(out.splitlines())) == (DONE, 2)
    for broker in ("a", "b"):
        assert f"{tmp_path / 'saved' / broker / 'data'}: " in out
        assert (tmp_path / "saved" / broker / "data/recovery-report.json").exists()
    assert kafkacodec("verify", tmp_path / "saved")[1].startswith("4 partitions, all intact, ")
    code, _, err = kafkacodec("recover", tree, tree / "inside")
    assert (code, "overlaps the source" in err) == (WRONG_USAGE, True)
    code, _, err = kafkacodec("recover", tree, tmp_path / "saved")
    assert (code, "not an empty directory" in err) == (BAD_INPUT, True)


WITHOUT = """
import sys
sys.modules.update(dict.fromkeys(["obstore", "obstore.store", "obstore.exceptions", "hdfs_native"]))
from kafkacodec.cli.__main__ import run
import kafkacodec as kc
for url in sys.argv[1:]:
    print(run(["topics", url]), run(["verify", url]))
    try:
        kc.log.LogDirectory(url).topics
    except ImportError as error:
        print(error)
"""


def test_stores_without_their_extra():
    urls = ["s3://bucket/logs", "gs://bucket/logs", "az://bucket/logs", "hdfs://host/logs"]
    found = subprocess.run([sys.executable, "-c", WITHOUT, *urls], capture_output=True, text=True, check=True)
    stores = "reading from object stores needs obstore: pip install 'kafkacodec[objects]'"
    hdfs = "reading from HDFS needs hdfs-native: pip install 'kafkacodec[hdfs]'"
    told = [stores] * 3 + [hdfs]
    assert found.stdout.splitlines() == [line for reason in told for line in ("2 2", reason)]
    assert found.stderr.splitlines() == [f"kafkacodec: error: {reason}" for reason in told for _ in range(2)]
