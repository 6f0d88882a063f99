"""Several writers, jobs and brokers at one partition: one at a time, and nothing that is there is ever replaced."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

import kafkacodec as kc
from kafkacodec.log import LogDirectory, LogWriter, Partition, SegmentWriter, remove_unfinished
from kafkacodec.log.files import locks, publishing

RECORDS = [(b"k", b"%d" % n) for n in range(10)]


def values(directory: Path, partition: int = 0) -> list[bytes]:
    chunks = LogDirectory(directory).read("t", partition)
    return [record.value for chunk in chunks for record in chunk.records()]


@contextmanager
def other_process(code: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """A process that has said "ready", and is killed at the end."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


WRITER = """
import sys, time
from kafkacodec.log import LogWriter
writer = LogWriter(sys.argv[1], "t", int(sys.argv[2]), append=True, sync=False)
writer.write([(None, b"theirs")])
print("ready", flush=True)
time.sleep(float(sys.argv[3]))
writer.commit()
"""

BROKER = """
import fcntl, sys, time
lock = open(sys.argv[1] + "/.lock", "w")
fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # as Java's FileChannel.tryLock does
print("ready", flush=True)
time.sleep(60)
"""


def test_a_second_writer_is_refused_and_the_error_says_who_has_the_partition(tmp_path: Path) -> None:
    first = LogWriter(tmp_path, "t", 0, sync=False)
    first.write(RECORDS)
    with pytest.raises(BlockingIOError, match=rf"another writer in this process \({os.getpid()}\)") as caught:
        LogWriter(tmp_path, "t", 0, append=True)
    assert caught.value.filename == str(tmp_path / "t-0")
    with LogWriter(tmp_path, "t", 1, sync=False) as other:  # of another partition
        other.write(RECORDS)
    first.commit()
    assert len(values(tmp_path)) == len(values(tmp_path, 1)) == 10


def test_a_writer_in_another_process(tmp_path: Path) -> None:
    with other_process(WRITER, tmp_path, 0, 60) as process:
        with pytest.raises(BlockingIOError, match=rf"process {process.pid} \(.+\) is writing") as caught:
            LogWriter(tmp_path, "t", 0, append=True)
        assert caught.value.filename == str(tmp_path / "t-0")
        (temporary,) = (tmp_path / "t-0").glob("*.tmp")
        assert remove_unfinished(tmp_path / "t-0") == []
        LogWriter(tmp_path, "t", 1, sync=False).commit()
        process.send_signal(signal.SIGKILL)
        process.wait()
        # The lock has gone with the process, and the next one clears away.
        with LogWriter(tmp_path, "t", 0, append=True, sync=False) as writer:
            assert not temporary.exists()
            writer.write(RECORDS)
    assert len(values(tmp_path)) == 10


def test_waiting_for_another_writer(tmp_path: Path) -> None:
    with (
        other_process(WRITER, tmp_path, 0, 0.5),
        LogWriter(tmp_path, "t", 0, append=True, sync=False, wait=30) as writer,
    ):
        assert writer.next_offset == 1
        writer.write([(None, b"ours")])
    assert values(tmp_path) == [b"theirs", b"ours"]


def test_a_broker_and_a_writer_exclude_each_other(tmp_path: Path) -> None:
    with other_process(BROKER, tmp_path) as broker:
        with pytest.raises(BlockingIOError, match=rf"process {broker.pid} \(.+\) has locked .* broker") as caught:
            LogWriter(tmp_path, "t", 0)
        assert caught.value.filename == str(tmp_path)
        assert not (tmp_path / "t-0").exists()
    with LogWriter(tmp_path, "t", 0, sync=False) as writer:
        writer.write(RECORDS)
        held = subprocess.run([sys.executable, "-c", BROKER, tmp_path], capture_output=True, text=True, check=False)
        assert "BlockingIOError" in held.stderr
    with other_process(BROKER, tmp_path):
        pass


def test_who_locks_a_directory_excludes_brokers_and_writers(tmp_path: Path) -> None:
    lock = locks.DirectoryLock(str(tmp_path))
    lock.acquire()
    assert lock.held
    assert lock.exclusive
    assert not subprocess_says_free(tmp_path)
    with pytest.raises(BlockingIOError, match=rf"this process \({os.getpid()}\) has locked the log") as caught:
        LogWriter(tmp_path, "t", 0, sync=False)
    assert caught.value.filename == str(tmp_path)
    with pytest.raises(BlockingIOError, match=rf"this process \({os.getpid()}\) has locked the log"):
        locks.DirectoryLock(str(tmp_path)).acquire()
    refused = subprocess.run([sys.executable, "-c", WRITER, tmp_path, "0", "0"], capture_output=True, text=True)
    assert f"process {os.getpid()} (" in refused.stderr
    assert "has locked the log directory" in refused.stderr
    lock.release()
    assert subprocess_says_free(tmp_path)
    LogWriter(tmp_path, "t", 0, sync=False).commit()


def test_a_directory_is_not_locked_while_a_broker_or_a_writer_runs(tmp_path: Path) -> None:
    lock = locks.DirectoryLock(str(tmp_path))
    with other_process(BROKER, tmp_path) as broker:
        with pytest.raises(BlockingIOError, match=rf"process {broker.pid} \(.+\) has locked the log") as caught:
            lock.acquire()
        assert caught.value.filename == str(tmp_path)
    with other_process(WRITER, tmp_path, 3, 60) as process:
        with pytest.raises(BlockingIOError, match=rf"process {process.pid} \(.+\) is writing to a partition of this"):
            lock.acquire()
        process.kill()
        process.wait()
        lock.acquire()
        lock.release()
    with (
        LogWriter(tmp_path, "t", 0, sync=False),
        pytest.raises(BlockingIOError, match=r"a writer in this process \(\d+\) is writing"),
    ):
        lock.acquire()
    assert not lock.held


def test_the_lock_of_a_directory_goes_with_its_last_reference(tmp_path: Path) -> None:
    lock = locks.DirectoryLock(str(tmp_path))
    lock.acquire()
    lock.acquire()  # no harm
    del lock
    assert subprocess_says_free(tmp_path)
    assert not locks._open_files


def test_the_lock_is_given_up_in_every_way(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path, "t", 0, sync=False)
    assert not subprocess_says_free(tmp_path)
    writer.commit()
    assert subprocess_says_free(tmp_path)
    writer.write(RECORDS)
    assert not subprocess_says_free(tmp_path)
    writer.discard()
    assert subprocess_says_free(tmp_path)
    writer.prepare()
    assert not subprocess_says_free(tmp_path)
    del writer
    assert subprocess_says_free(tmp_path)
    assert not locks._open_files
    with pytest.raises(ValueError, match="topic_id"):
        LogWriter(tmp_path, "t", 0, append=True, leader_epoch=0, topic_id=uuid.uuid4())
    assert subprocess_says_free(tmp_path)


def subprocess_says_free(directory: Path) -> bool:
    code = BROKER.replace("time.sleep(60)", "")
    return subprocess.run([sys.executable, "-c", code, directory], capture_output=True, check=False).returncode == 0


def test_a_forked_child_does_not_keep_the_lock(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path, "t", 0, sync=False)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(write)
        os.read(read, 1)
        os._exit(0)
    writer.commit()
    assert subprocess_says_free(tmp_path)
    os.close(write)
    os.close(read)
    os.waitpid(child, 0)


def test_a_writer_that_was_overtaken_says_so(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path, "t", 0, sync=False)
    writer.write(RECORDS)
    writer.commit()
    with LogWriter(tmp_path, "t", 0, append=True, sync=False) as other:
        other.write(RECORDS)
    with pytest.raises(FileExistsError, match="another writer has continued the partition to offset 20"):
        writer.write(RECORDS)
    writer.commit()  # nothing of it is waiting
    assert Partition(tmp_path / "t-0").end_offset() == 20


def test_many_threads_take_turns(tmp_path: Path) -> None:
    def work(name: bytes) -> None:
        for _ in range(10):
            with LogWriter(tmp_path, "t", 0, append=True, sync=False, wait=60) as writer:
                writer.write([(None, name)] * 3)

    threads = [Thread(target=work, args=(b"%d" % n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = values(tmp_path)
    assert sorted(found) == sorted([b"%d" % n for n in range(6)] * 30)
    assert Partition(tmp_path / "t-0").verify().clean


@pytest.mark.parametrize("known", [True, False], ids=["renameat2", "link"])
def test_a_segment_that_came_first_stays(known: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not known:
        monkeypatch.setattr(publishing, "_renameat2", lambda: None)
    directory = tmp_path / "t-0"
    directory.mkdir()
    writers = [SegmentWriter(directory, 0, sync=False) for _ in range(2)]
    pending = []
    for number, writer in enumerate(writers):
        for batch in kc.iter_encoded([(None, b"%d" % number)] * (number + 1)):
            writer.append(batch)
        pending.append(writer.finish())
    pending[1].commit(sync=False)
    with pytest.raises(FileExistsError) as caught:
        pending[0].commit(sync=False)
    assert caught.value.filename == str(directory / f"{0:020d}.log")
    pending[0].discard()
    assert values(tmp_path) == [b"1", b"1"]
    assert Partition(directory).verify().clean
    assert not list(directory.glob("*.tmp"))


@pytest.mark.parametrize("known", [True, False], ids=["renameat2", "link"])
def test_publishing_never_replaces_nor_follows(known: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not known:
        monkeypatch.setattr(publishing, "_renameat2", lambda: None)
    bystander = tmp_path / "bystander"
    bystander.write_bytes(b"untouched")
    for name in ("file", "link", "dangling"):
        target = tmp_path / name
        if name == "file":
            target.write_bytes(b"old")
        else:
            target.symlink_to(bystander if name == "link" else tmp_path / "nowhere")
        with pytest.raises(FileExistsError) as caught, publishing.new_file(str(target), sync=False) as file:
            file.write(b"new")
        assert caught.value.filename == str(target)
        with pytest.raises(FileExistsError):
            publishing.create(str(target))
        with publishing.new_file(str(target), replace=True) as file:
            file.write(b"new")
        assert target.read_bytes() == b"new"
        assert not target.is_symlink()
    assert bystander.read_bytes() == b"untouched"
    assert not (tmp_path / "nowhere").exists()
    assert not list(tmp_path.glob("*.tmp"))


class Failure(Exception):
    pass


def test_a_new_file_that_fails_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 250)

    def fail() -> None:
        with publishing.new_file(str(path)) as file:
            file.write(b"half")
            raise Failure

    with pytest.raises(Failure):
        fail()
    assert not list(tmp_path.iterdir())
    with publishing.new_file(str(path)) as file:
        file.write(b"whole")
    assert path.read_bytes() == b"whole"


@pytest.mark.parametrize("fault", ["records", "codec", "exception"])
def test_a_first_write_that_fails_leaves_no_partition(fault: str, tmp_path: Path) -> None:
    def fail() -> None:
        with LogWriter(tmp_path, "t", 0, sync=False) as writer:
            if fault == "records":
                writer.write([("a", "b", "c", "d", "e", "f", "g")])  # type: ignore[list-item]
            elif fault == "codec":
                writer.write(RECORDS, codec="none such")
            else:
                writer.write(RECORDS)
                raise Failure

    with pytest.raises((Failure, ValueError, TypeError)):
        fail()
    assert os.listdir(tmp_path) == [".lock"]
    writer = LogWriter(tmp_path, "t", 0, sync=False)
    with pytest.raises((ValueError, TypeError)):
        writer.write(RECORDS, codec="none such")
    assert os.listdir(tmp_path) == [".lock"]
    assert writer.write(RECORDS) == 10
    writer.commit()
    assert len(values(tmp_path)) == 10


def test_an_existing_partition_stays_where_a_write_fails(tmp_path: Path) -> None:
    LogWriter(tmp_path, "t", 0, sync=False).commit()
    before = sorted(os.listdir(tmp_path / "t-0"))

    def fail() -> None:
        with LogWriter(tmp_path, "t", 0, sync=False) as writer:
            writer.write(RECORDS)
            raise Failure

    with pytest.raises(Failure):
        fail()
    assert sorted(os.listdir(tmp_path / "t-0")) == before
