"""Files that another process truncates, rewrites, replaces or deletes while they are read: errors, never a signal."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kafkacodec as kc
from kafkacodec.dialects import kafka07
from kafkacodec.log import LogWriter, Partition, Segment
from kafkacodec.log.files import access as files
from kafkacodec.log.partitions.segment07 import segment_at

RECORDS = pa.table(
    {
        "key": pa.array([b"%d" % n for n in range(20_000)]),
        "value": pa.array([b"value %d" % n * 5 for n in range(20_000)]),
        "timestamp": pa.array(range(20_000), pa.timestamp("ms")),
    }
)
SECONDS = float(os.environ.get("KAFKACODEC_LIVE_SECONDS", "2"))
TORN = 200_000
"""Position at which files are cut: inside a page and a batch that are neither the first nor the last."""


def in_child(action: Callable[[], str], seconds: int = 30) -> str:
    """The outcome of an action in a separate process; the signal if one ends it."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGBUS, signal.SIG_DFL)  # without pytest's report of crashes
        signal.alarm(seconds)
        try:
            text = action()
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        os.write(write, text.encode())
        os._exit(0)
    os.close(write)
    with open(read) as answer:
        text = answer.read()
    status = os.waitpid(child, 0)[1]
    return text if status == 0 else f"ended by {signal.Signals(status & 127).name}"


@contextmanager
def cut_when_mapped(size: int, regrown: bool = False) -> Iterator[None]:
    """Every file is truncated just after it was opened and mapped."""
    ordinary = files.MappedFile.__init__

    def opened(self: files.MappedFile, path: str) -> None:
        ordinary(self, path)
        os.truncate(path, size)
        if regrown:
            os.truncate(path, self.size)

    files.MappedFile.__init__ = opened  # type: ignore[method-assign]
    try:
        yield
    finally:
        files.MappedFile.__init__ = ordinary  # type: ignore[method-assign]


def old_segment(directory: Path) -> Path:
    path = directory / "old-0" / "00000000000000000000.kafka"
    path.parent.mkdir()
    path.write_bytes(kafka07.encode_messages([b"message %d" % n * 5 for n in range(20_000)]))
    return path


def new_segment(directory: Path) -> Path:
    with LogWriter(directory, "orders", 0, sync=False) as writer:
        writer.write(RECORDS)
    (segment,) = Partition(directory / "orders-0").segments
    return Path(segment.path)


def read_by_spark(path: Path) -> list[Any]:
    from kafkacodec.spark.reading.tasks import read_ranges

    return list(read_ranges(Segment(path).ranges(), ["value", "offset"], permissive=False))


def dumped(path: Path) -> None:
    from click.testing import CliRunner

    from kafkacodec.cli.app import application

    result = CliRunner().invoke(application, ["dump", "--log-format", "kafka07", str(path)])
    if result.exception is not None:
        raise result.exception


def recovered(path: Path) -> None:
    """What cannot be read of one segment does not end the recovery of others."""
    report = kc.log.recover(path, path.parent.parent.parent / "recovered")
    for finding in report.findings:
        if finding.kind == "left-out":
            raise kc.Truncated(finding.text, path=finding.path)


# Everything that opens a segment.
WAYS: dict[str, Callable[[Path], Any]] = {
    "read": lambda path: list(Segment(path).read()),
    "read and skip": lambda path: list(Segment(path).read(on_error="skip")),
    "read and stop": lambda path: list(Segment(path).read(on_error="stop")),
    "read from the middle": lambda path: list(Segment(path).read(start_offset=15_000)),
    "scan": lambda path: Segment(path).scan(),
    "scan, stop": lambda path: Segment(path).scan(on_error="stop"),
    "verify": lambda path: Segment(path).verify(),
    "verify the partition": lambda path: Partition(path.parent).verify(),
    "ranges": lambda path: Segment(path).ranges(max_bytes=100_000),
    "last offset": lambda path: Segment(path).last_offset(),
    "offset": lambda path: Segment(path).position_of_offset(19_000),
    "timestamp": lambda path: Segment(path).offset_of_timestamp(19_000),
    "end position": lambda path: Segment(path).end_position(),
    "committed": lambda path: list(Partition(path.parent).read(isolation_level="read_committed")),
    "recover": recovered,
    "spark": read_by_spark,
}
OLD_WAYS: dict[str, Callable[[Path], Any]] = {
    "read": lambda path: [len(chunk) for chunk in segment_at(str(path)).read()],
    "verify": lambda path: segment_at(str(path)).verify(),
    "last offset": lambda path: segment_at(str(path)).last_offset(),
    "dump": dumped,
}


@pytest.mark.parametrize("regrown", [False, True], ids=["cut", "cut and grown again"])
@pytest.mark.parametrize(
    ("make", "way"),
    [pytest.param(new_segment, way, id=name) for name, way in WAYS.items()]
    + [pytest.param(old_segment, way, id=f"0.7, {name}") for name, way in OLD_WAYS.items()],
)
def test_a_file_cut_while_it_is_mapped(
    make: Callable[[Path], Path], way: Callable[[Path], Any], regrown: bool, tmp_path: Path
) -> None:
    path = make(tmp_path / "logs" if make is new_segment else tmp_path)
    size = path.stat().st_size
    assert size > 2 * TORN

    def action() -> str:
        with cut_when_mapped(TORN, regrown):
            way(path)
        return "read without an error"

    said = in_child(action)
    if regrown:  # a sound file of zeros where it was cut, unless a missing page was touched
        assert not said.startswith("ended by"), said
    else:
        assert said.startswith("Truncated: "), said
        assert str(path) in said
        assert f"to {TORN} bytes" in said


def test_pages_that_were_missing_are_reported_when_the_file_has_grown_again(tmp_path: Path) -> None:
    path = new_segment(tmp_path)

    def action() -> str:
        with files.MappedFile(str(path)) as file:
            size = file.size
            os.truncate(path, TORN)
            assert file.data[size - 100 :] == bytes(100)
            os.truncate(path, size)
        return "read without an error"

    said = in_child(action)
    assert said.startswith("Truncated: ")
    assert "has grown again" in said


def test_the_mapping_is_a_plain_buffer(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(bytes(range(256)) * 100)
    with files.MappedFile(str(path)) as file:
        view = memoryview(file.data)
        assert view.readonly
        assert len(file.data) == view.nbytes == 25600
        assert file.data[3:6] == bytes([3, 4, 5])
        assert file.data[30_000:] == file.data[5:3] == b""
        with pytest.raises(ValueError, match="step"):
            file.data[::2]
    assert view[257] == 1  # the mapping goes with the last view


def test_faults_elsewhere_still_end_the_process(tmp_path: Path) -> None:
    import mmap

    path = new_segment(tmp_path)
    other = tmp_path / "other"
    other.write_bytes(bytes(100_000))

    def action() -> str:
        with other.open("rb") as file, files.MappedFile(str(path)):
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            os.truncate(other, 0)
            return str(mapped[50_000])

    assert in_child(action) == "ended by SIGBUS"


def test_a_handler_of_signals_may_come_and_go(tmp_path: Path) -> None:
    import faulthandler

    path = new_segment(tmp_path)

    data = path.read_bytes()

    def action() -> str:
        for switch in (faulthandler.enable, faulthandler.disable, faulthandler.enable):
            switch()
            with pytest.raises(kc.Truncated), cut_when_mapped(TORN):
                Segment(path).scan()
            path.write_bytes(data)
        return "caught"

    assert in_child(action) == "caught"


def cut_and_append(path: Path, data: bytes, cuts: int, seen: int) -> None:
    """Truncates a log anywhere and appends again, like a follower, but faster: as soon as a reader has met the cut."""
    rnd = random.Random(5)
    with open(path, "r+b", buffering=0) as file:
        while True:
            size = rnd.randrange(len(data))
            file.truncate(size)
            os.write(cuts, b"c")
            os.read(seen, 1)
            file.seek(size)
            while size < len(data):
                size += file.write(data[size : size + rnd.randrange(1, 400_000)]) or 0


def test_reading_while_another_process_cuts_and_appends(tmp_path: Path) -> None:
    """A reader meets every cut: one that lasts for less than a chunk takes cannot be told from the log as it was."""
    path = new_segment(tmp_path)
    data = path.read_bytes()
    written = set(kc.decode(data).to_pyarrow()["value"].to_pylist())
    cuts, seen = os.pipe(), os.pipe()

    def action() -> str:
        os.set_blocking(cuts[0], False)
        outcomes: dict[str, int] = {}
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            outcome = "whole"
            try:
                for chunk in Segment(path).read(columns=("value",), max_rows=3000):
                    if not written.issuperset(pa.record_batch(chunk)["value"].to_pylist()):
                        return "a record that nobody wrote"
            except kc.DecodeError as error:
                outcome = type(error).__name__
            outcomes[outcome] = outcomes.get(outcome, 0) + 1
            with suppress(BlockingIOError):
                os.write(seen[1], os.read(cuts[0], 1))
        return f"{outcomes['Truncated']} times Truncated; {outcomes}"

    writer = os.fork()
    if writer == 0:
        try:
            cut_and_append(path, data, cuts[1], seen[0])
        finally:
            os._exit(1)
    try:
        said = in_child(action, seconds=600)
    finally:
        os.kill(writer, signal.SIGKILL)
        os.waitpid(writer, 0)
        for end in (*cuts, *seen):
            os.close(end)
    assert "times Truncated" in said, said


@pytest.mark.parametrize("change", ["grown", "deleted", "replaced"])
def test_changes_that_do_no_harm(change: str, tmp_path: Path) -> None:
    path = new_segment(tmp_path)
    chunks = Segment(path).read(max_rows=1000)
    rows = len(next(chunks))
    if change == "grown":
        with open(path, "ab") as file:
            file.write(path.read_bytes())
    elif change == "deleted":
        path.unlink()
    else:
        other = path.with_suffix(".other")
        other.write_bytes(b"x" * 100)
        os.replace(other, path)
    assert rows + sum(map(len, chunks)) == len(RECORDS)


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_an_index_that_is_shortened_meanwhile_is_worked_around(suffix: str, tmp_path: Path) -> None:
    path = new_segment(tmp_path)
    segment = Segment(path)
    index = path.with_suffix(suffix)
    for size in range(index.stat().st_size, -1, -41):
        os.truncate(index, size)
        assert segment.offset_of_timestamp(15_000) == 15_000
        (piece, *_) = segment.ranges(start_offset=15_000)
        assert sum(map(len, piece.read())) == 5_000


@pytest.mark.parametrize("settled", [True, False])
def test_the_end_of_a_segment_is_read_again_if_the_file_may_have_changed(tmp_path, monkeypatch, settled):
    """A write into a preallocated file, a moment after another, need not show in its size or times."""
    monkeypatch.setattr(files, "SETTLED_SECONDS", -1.0 if settled else 3600.0)
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(kc.encode([(None, b"a")] * 3))
    segment, opened, ordinary = Segment(path), [], os.open

    def counting(name, *arguments, **more):
        opened.append(name)
        return ordinary(name, *arguments, **more)

    monkeypatch.setattr(os, "open", counting)
    ends = [segment.last_offset(), segment.last_offset(), segment.end_position(), segment.last_offset()]
    assert ends == [2, 2, path.stat().st_size, 2]
    assert opened.count(str(path)) == (1 if settled else 4)
    with path.open("ab") as file:
        file.write(kc.encode([(None, b"b")] * 4, base_offset=3))
    assert segment.last_offset() == 6
    os.truncate(path, 30)
    assert segment.last_offset() is None
    path.unlink()
    with pytest.raises(FileNotFoundError):
        segment.last_offset()


def test_a_small_file_that_is_shortened_while_it_is_read_is_read_again(tmp_path, monkeypatch):
    """As a broker cuts a preallocated index when a segment is complete: the size is asked for, then bytes go."""
    path = tmp_path / f"{0:020}.index"
    path.write_bytes(bytes(1_000_000))
    ordinary = os.fstat

    def cut(descriptor):
        state = ordinary(descriptor)
        if state.st_size == 1_000_000:
            os.truncate(path, 1_200)
        return state

    monkeypatch.setattr(os, "fstat", cut)
    assert files.read_file(str(path), 1 << 30) == bytes(1_200)


def test_a_batch_that_is_being_written_is_not_torn(tmp_path, monkeypatch):
    path = tmp_path / f"{0:020}.log"
    data = kc.encode([(None, b"a" * 100)] * 2, batch_bytes=1)
    path.write_bytes(data[:-10])
    kinds = [finding.kind for finding in Segment(path).verify().findings if finding.level != "note"]
    assert kinds == ["torn-tail"]

    def grow(file):
        path.write_bytes(data)
        return ordinary(file)

    ordinary = files.MappedFile.has_grown
    monkeypatch.setattr(files.MappedFile, "has_grown", grow)
    assert [finding.kind for finding in Segment(path).verify().findings if finding.level != "note"] == []


@pytest.mark.parametrize(
    ("content", "level"), [(b"abc", "error"), (b"\xff", "error"), (b"\0\0\0", "warning"), (b"\0\0\1", "warning")]
)
def test_a_file_of_a_few_bytes_is_not_an_intact_segment(tmp_path, content, level):
    """Either it cannot become a segment, or it is the torn start of a batch."""
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(content)
    report = Segment(path).verify()
    assert [finding.level for finding in report.findings if finding.level != "note"] == [level]
    assert (report.ok, report.clean) == (level != "error", False)
