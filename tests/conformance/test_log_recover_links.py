"""Recovery reads only regular files in its source: no links out of it, no pipes, no huge files."""

from __future__ import annotations

import os
import shutil
from collections import defaultdict

import pytest

import kafkacodec as kc
from tests.corpus import ROOT

SOURCE = ROOT / "logs/kraft-4.1.0"
SECRET = b"root:$6$not for everyone"


@pytest.fixture
def source(tmp_path):
    target = tmp_path / "source"
    target.mkdir()
    shutil.copytree(SOURCE / "none-0", target / "none-0", copy_function=shutil.copyfile)
    (target / "none-0").chmod(0o755)
    shutil.copyfile(SOURCE / "meta.properties", target / "meta.properties")
    return target


@pytest.fixture
def secret(tmp_path):
    path = tmp_path / "shadow"
    path.write_bytes(SECRET)
    return path


def findings(report):
    """The text of the findings, by file name and level."""
    texts = defaultdict(str)
    for finding in report.findings:
        texts[os.path.basename(finding.path), finding.level] += finding.text + "\n"
    return texts


def leaked(directory):
    return [path for path in directory.rglob("*") if path.is_file() and SECRET[:8] in path.read_bytes()]


SMALL_FILES = ["meta.properties", "bootstrap.checkpoint", "none-0/quorum-state", "none-0/partition.metadata"]


@pytest.mark.parametrize("name", SMALL_FILES)
def test_links_in_place_of_small_files(tmp_path, source, secret, name):
    (source / name).unlink(missing_ok=True)
    (source / name).symlink_to(secret)
    report = kc.log.recover(source, tmp_path / "saved")
    assert leaked(tmp_path / "saved") == []
    assert not (tmp_path / "saved" / name).exists()
    assert "symbolic links are not followed" in findings(report)[os.path.basename(name), "warning"]
    assert sum(1 for _ in (tmp_path / "saved/none-0").glob("*.log")) == 4


@pytest.mark.parametrize("name", ["leader-epoch-checkpoint", "00000000000000000000.index"])
def test_links_in_place_of_files_that_are_only_read(tmp_path, source, secret, name):
    (source / "none-0" / name).unlink()
    (source / "none-0" / name).symlink_to(secret)
    report = kc.log.recover(source, tmp_path / "saved")
    assert leaked(tmp_path / "saved") == []
    assert "a symbolic link out of the source is not followed" in findings(report)[name, "warning"]


@pytest.mark.parametrize("name", SMALL_FILES)
def test_what_is_no_file_and_what_is_too_large(tmp_path, source, name):
    path = source / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    report = kc.log.recover(source, tmp_path / "saved")
    assert "not a regular file" in findings(report)[path.name, "warning"]
    path.unlink()
    with open(path, "wb") as file:
        file.truncate((16 << 20) + 1)
    report = kc.log.recover(source, tmp_path / "again")
    assert "more than 16777216 bytes" in findings(report)[path.name, "warning"]
    path.unlink()
    path.mkdir()
    report = kc.log.recover(source, tmp_path / "third")
    assert (path.name, "warning") in findings(report)
    assert not any((tmp_path / place / name).exists() for place in ("saved", "again", "third"))


def test_partitions_and_segments_that_are_links(tmp_path, source):
    """Links out of the source are not copied, but reported; one inside it, and the source itself, may be links."""
    shutil.copytree(SOURCE / "zstd-0", tmp_path / "elsewhere/zstd-0", copy_function=shutil.copyfile)
    (source / "zstd-0").symlink_to(tmp_path / "elsewhere/zstd-0")
    segment = source / "none-0/00000000000000000143.log"
    segment.rename(tmp_path / "elsewhere" / segment.name)
    segment.symlink_to(tmp_path / "elsewhere" / segment.name)
    inside = source / "none-0/00000000000000000065.log"
    inside.rename(source / "65.log")
    inside.symlink_to(source / "65.log")
    (tmp_path / "name").symlink_to(source)
    report = kc.log.recover(tmp_path / "name", tmp_path / "saved")
    assert not report.ok
    assert {name for name, level in findings(report) if level == "error"} == {"zstd-0", segment.name}
    saved = tmp_path / "saved"
    assert sorted(path.name for path in saved.glob("*-*/*.log")) == [f"{base:020d}.log" for base in (0, 32, 65)]
    (tmp_path / "partition-0").symlink_to(tmp_path / "elsewhere/zstd-0")
    report = kc.log.recover(tmp_path / "partition-0", tmp_path / "alone")
    assert report.ok
    assert len(list((tmp_path / "alone/partition-0").glob("*.log"))) == 2


def test_a_partition_of_nothing_but_links(tmp_path, source):
    for path in (source / "none-0").glob("*.log"):
        path.rename(tmp_path / path.name)
        path.symlink_to(tmp_path / path.name)
    report = kc.log.recover(source, tmp_path / "saved")
    assert report.counts["error", "left-out"] == 4
    assert list((tmp_path / "saved/none-0").glob("*.log")) == []


def test_nothing_changes_for_a_sound_source(tmp_path, source):
    report = kc.log.recover(source, tmp_path / "saved")
    assert report.clean
    for name in ("meta.properties", "none-0/partition.metadata"):
        assert (tmp_path / "saved" / name).read_bytes() == (source / name).read_bytes()
