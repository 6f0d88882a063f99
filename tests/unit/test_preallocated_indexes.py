"""Indexes with the 10 MiB that a running broker gives them: what is read of them, and what is found in them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import kafkacodec as kc
from tests.corpus import ROOT

SOURCE = ROOT / "logs/kraft-4.1.0/none-0"
SIZES = {".index": 10 << 20, ".timeindex": (10 << 20) // 12 * 12}
NAME = "00000000000000000000.index"


def bytes_read(call):
    """The result of a call, and how many bytes this process read from files meanwhile."""

    def total():
        return int(Path("/proc/self/io").read_text().split()[1])

    before = total()
    return call(), total() - before


def preallocated(directory, *, holes):
    """A copy of a partition whose indexes are as long as a running broker's."""
    copy = Path(shutil.copytree(SOURCE, directory / SOURCE.name))
    for suffix, size in SIZES.items():
        for path in copy.glob(f"*{suffix}"):
            if holes:
                os.truncate(path, size)
            else:
                path.write_bytes(path.read_bytes().ljust(size, b"\0"))
    return copy


@pytest.fixture(params=["holes", "zeros"])
def live(request, tmp_path):
    return preallocated(tmp_path, holes=request.param == "holes")


def test_all_entries_of_a_preallocated_index_are_read(live):
    for path in sorted(live.glob("*.index")):
        index, used = kc.log.read_offset_index(path), kc.log.read_offset_index(SOURCE / path.name)
        assert index.entries.tolist() == used.entries.tolist()
        assert len(index) + index.padding == SIZES[".index"] // 8
        assert len(index) > 0 or index.padding > 0
    for path in sorted(live.glob("*.timeindex")):
        index, used = kc.log.read_time_index(path), kc.log.read_time_index(SOURCE / path.name)
        assert index.entries.tolist() == used.entries.tolist()
        assert len(index) + index.padding == SIZES[".timeindex"] // 12


def test_a_look_up_reads_what_is_used(live):
    end, size = bytes_read(kc.log.Partition(live).end_offset)
    assert end == kc.log.Partition(SOURCE).end_offset()
    assert size < 1 << 20
    found, size = bytes_read(lambda: kc.log.Partition(live).offset_of_timestamp(0))
    assert found == kc.log.Partition(SOURCE).offset_of_timestamp(0)
    assert size < 1 << 20


def test_inspection_reads_no_holes(tmp_path):
    live = preallocated(tmp_path, holes=True)
    report, size = bytes_read(kc.log.Partition(live).verify)
    assert report.ok
    _, trimmed = bytes_read(kc.log.Partition(SOURCE).verify)
    assert size < trimmed + (1 << 20)


@pytest.mark.parametrize("at", [70_000, 5 << 20, (10 << 20) - 8])
def test_an_entry_after_zeros_is_found(live, at):
    path = live / NAME
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(b"\0\0\0\1")
    with pytest.raises(kc.CorruptIndex, match="out of order"):
        kc.log.read_offset_index(path)
    findings = kc.log.Partition(live).verify().findings
    assert [(finding.kind, finding.path) for finding in findings] == [("offset-index", str(path))]


def test_a_long_index_is_read_to_its_last_entry(tmp_path):
    entries = [(n, n * 4096) for n in range(1, 100_000)]
    data = kc.log.formats.indexes.encode_offset_index([n for n, _ in entries], [p for _, p in entries], 0)
    path = tmp_path / NAME
    for size in (len(data), 10 << 20):
        path.write_bytes(data)
        os.truncate(path, size)
        index = kc.log.read_offset_index(path)
        assert index.entries.tolist() == entries
        assert kc.log.opening.indexes.index_of(str(path), ".index").entries.tolist() == entries
        assert index.padding == (size - len(data)) // 8


def test_zeros_in_the_last_entry_belong_to_it(tmp_path):
    path = tmp_path / NAME
    path.write_bytes(bytes.fromhex("00000001 00000100 00000002 00010000"))
    assert kc.log.read_offset_index(path).entries.tolist() == [(1, 256), (2, 65536)]
    os.truncate(path, 20)
    with pytest.raises(kc.CorruptIndex, match="trailing partial index entry"):
        kc.log.read_offset_index(path)


@pytest.mark.parametrize(
    ("name", "entries", "half", "read"),
    [
        (NAME, "00000001 00000100", "00000002", kc.log.read_offset_index),
        (NAME.replace(".index", ".timeindex"), "0000000000000001 00000007", "0000000000000002", kc.log.read_time_index),
    ],
)
def test_an_entry_that_is_half_written_is_not_there_yet(tmp_path, name, entries, half, read):
    """A broker writes the fields one after the other; the rest of its index is zeros."""
    path = tmp_path / name
    path.write_bytes(bytes.fromhex(entries + half))
    size = len(bytes.fromhex(entries))
    os.truncate(path, 100 * size)
    index = read(path)
    assert (len(index), index.padding) == (1, 99)
    os.truncate(path, 2 * size)  # a complete index has no half of an entry
    with pytest.raises(kc.CorruptIndex, match="out of order"):
        read(path)
