"""The golden files are what their manifest says, and every one has expected content."""

import hashlib

import pytest

from tests.corpus import ROOT, blobs, index_entries, manifest, read_committed, segments


def test_files_are_those_of_the_manifest():
    listed = {f["path"]: (f["size"], f["sha256"]) for f in manifest()["files"]}
    found = {}
    for path in ROOT.rglob("*"):
        if path.is_file() and path.name not in ("manifest.json", "README.md"):
            data = path.read_bytes()
            found[path.relative_to(ROOT).as_posix()] = len(data), hashlib.sha256(data).hexdigest()
    assert found == listed


def test_total_size_stays_small():
    assert sum(f["size"] for f in manifest()["files"]) < 12_000_000


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_every_format_is_there(magic):
    assert len(segments(magics={magic})) > 10
    assert len(blobs(magics={magic})) > 50


@pytest.mark.slow
def test_every_sample_has_expected_content():
    samples = segments() + blobs()
    assert sum(len(sample.expected.records) for sample in samples) > 90_000
    for sample in samples:
        assert len(sample.data()) >= sample.expected.valid_bytes, sample


def test_side_files_have_expected_content():
    entries = index_entries("kraft-4.1.0")
    assert {name.rsplit(".", 1)[-1] for name in entries} >= {"index", "timeindex", "txnindex", "snapshot"}
    assert all((ROOT / name).is_file() for name in entries)
    assert all((item.directory / f"{item.topic}-{item.partition}").is_dir() for item in read_committed())
