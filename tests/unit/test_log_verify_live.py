"""Inspecting a log that grows at the same time: no finding of lag or loss."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

import kafkacodec as kc
from kafkacodec.log.formats.checkpoints import encode_checkpoint, encode_producer_snapshot
from kafkacodec.log.formats.indexes import encode_offset_index, encode_time_index
from kafkacodec.log.formats.layout import file_name

START = 1_700_000_000_000


class Broker(threading.Thread):
    """Appends as a broker does: the batch, then its index entries, then the checkpoints."""

    def __init__(self, directory: Path) -> None:
        super().__init__(daemon=True)
        self.directory, self.log = directory, directory / "t-0"
        self.log.mkdir()
        self.stopped = threading.Event()
        self.segments = 0

    def run(self) -> None:
        offset = 0
        while not self.stopped.is_set():
            self.segments += 1
            offset = self.segment(offset)

    def segment(self, base: int) -> int:
        """Fill a segment with 40 batches; returns the offset after them."""
        paths = {suffix: self.log / file_name(base, suffix) for suffix in (".log", ".index", ".timeindex")}
        opened = {suffix: path.open("ab", 0) for suffix, path in paths.items()}
        position = 0
        for offset in range(base, base + 40):
            batch = kc.encode([(offset, START + offset, 0, b"k", b"v" * 20, [])], base_offset=offset)
            opened[".log"].write(batch)
            if position:
                opened[".index"].write(encode_offset_index([offset], [position], base))
                opened[".timeindex"].write(encode_time_index([START + offset], [offset], base))
            position += len(batch)
            self.stopped.wait(0.0005)
            for name in ("replication-offset-checkpoint", "recovery-point-offset-checkpoint"):
                self.replace(self.directory / name, encode_checkpoint({("t", 0): offset + 1}))
        for file in opened.values():
            file.close()
        nobody = encode_producer_snapshot(())
        self.replace(self.log / file_name(base + 40, ".snapshot"), nobody)
        return base + 40

    @staticmethod
    def replace(path: Path, data: bytes) -> None:
        path.with_suffix(".tmp").write_bytes(data)
        os.replace(path.with_suffix(".tmp"), path)


def test_a_log_that_is_being_written_is_in_order(tmp_path):
    broker = Broker(tmp_path)
    broker.start()
    try:
        rounds = 0
        while broker.segments < 5 or rounds < 15:
            log = kc.log.LogDirectory(tmp_path)
            if not (log.topics and log.partitions("t")[0].segments):
                continue
            report = log.verify()
            serious = [str(f) for f in report.findings if f.level != "note" and f.kind != "torn-tail"]
            assert serious == []
            offsets = [o for chunk in kc.log.LogDirectory(tmp_path).read("t", 0) for o in chunk["offset"].tolist()]
            assert offsets == list(range(len(offsets)))
            rounds += 1
    finally:
        broker.stopped.set()
        broker.join()
    assert kc.log.LogDirectory(tmp_path).verify().clean


def test_a_snapshot_that_is_being_written_is_read_once_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker makes the file under its final name, and writes it then; an old one is not waited for."""
    log = tmp_path / "t-0"
    with kc.log.LogWriter(tmp_path, "t", 0, sync=False) as writer:
        writer.write([(b"k", b"v")])
    whole, path = encode_producer_snapshot(()), log / file_name(1, ".snapshot")
    pauses: list[float] = []

    def finish(seconds: float) -> None:
        pauses.append(seconds)
        path.write_bytes(whole)

    monkeypatch.setattr("kafkacodec.log.checking.verify_files.time.sleep", finish)
    path.write_bytes(b"")
    assert [f for f in kc.log.Partition(log).verify().findings if f.kind == "producer-snapshot"] == []
    assert len(pauses) == 1
    path.write_bytes(whole[:5])
    os.utime(path, (1_700_000_000, 1_700_000_000))
    (found,) = (f for f in kc.log.Partition(log).verify().findings if f.kind == "producer-snapshot")
    assert "at least 10 bytes" in found.text
    assert len(pauses) == 1
