"""``kafkacodec dump --follow`` on a partition that grows, in its own process."""

import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading

import pytest

import kafkacodec as kc

SECONDS = 60


class Followed:
    """The command, with its lines of output as they come."""

    def __init__(self, *arguments):
        command = [sys.executable, "-m", "kafkacodec.cli", "dump", "--follow", *map(str, arguments)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.printed = queue.Queue()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.printed.put(line)

    def line(self):
        return self.printed.get(timeout=SECONDS)

    def value(self):
        return json.loads(self.line())["value"]

    def end(self, how=signal.SIGINT):
        if how is not None:
            self.process.send_signal(how)
        code, err = self.process.wait(SECONDS), self.process.stderr.read()
        self.close()
        return code, err

    def close(self):
        self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stdout.close()
        self.process.stderr.close()


@pytest.fixture
def follow():
    started = []

    def start(*arguments):
        started.append(Followed(*arguments))
        return started[-1]

    yield start
    for followed in started:
        followed.close()


@pytest.fixture
def partition(tmp_path):
    path = tmp_path / "orders-0"
    path.mkdir()
    append(path, 0, b"a", b"b", b"c")
    return path


def append(partition, base_offset, *values, segment=0):
    with open(partition / f"{segment:020}.log", "ab") as file:
        file.write(kc.encode([(None, value) for value in values], base_offset=base_offset))


def test_records_appear_as_they_are_written(follow, partition):
    followed = follow(partition, "--json")
    assert [followed.value() for _ in range(3)] == ["a", "b", "c"]
    append(partition, 3, b"d")
    assert followed.value() == "d"
    append(partition, 4, b"e", segment=4)
    append(partition, 5, b"f", segment=4)
    assert [followed.value() for _ in range(2)] == ["e", "f"]
    code, err = followed.end()
    assert (code, err.strip()) == (130, "")


def test_only_the_last_and_new_ones(follow, partition):
    followed = follow(partition, "--json", "--tail", 1, "--grep", "c")
    assert followed.value() == "c"
    append(partition, 3, b"d", b"ccc")
    assert followed.value() == "ccc"
    table = follow(partition, "--columns", "offset,value")
    assert [table.line().split() for _ in range(6)][-1] == ["4", "ccc"]
    append(partition, 5, b"new")
    assert table.line().split() == ["5", "new"]
    assert table.end()[0] == 130


def test_only_new_ones_and_no_more_than_asked_for(follow, partition):
    followed = follow(partition, "--json", "--tail", 0, "-n", 2)
    for n in range(3, 3 + 4 * SECONDS):  # it may start at any of these
        append(partition, n, b"%d" % n)
        try:
            first = followed.printed.get(timeout=0.25)
        except queue.Empty:
            continue
        append(partition, n + 1, b"last")
        break
    offset = json.loads(first)["offset"]
    assert offset >= 3
    assert json.loads(followed.line())["offset"] == offset + 1
    assert followed.end(None) == (0, "")


def test_partitions_that_are_created_later_are_followed(follow, partition):
    followed = follow(partition.parent, "--json", "--topic", "orders", "--tail", 1)
    assert followed.value() == "c"
    table = follow(partition.parent, "--columns", "topic,partition,value")
    assert [table.line().split() for _ in range(4)][-1] == ["orders", "0", "c"]
    (partition.parent / "payments-0").mkdir()
    append(partition.parent / "payments-0", 0, b"other topic")
    assert table.line().split()[:2] == ["payments", "0"]
    created = partition.parent / "orders-1"
    created.mkdir()
    append(created, 0, b"first", b"second")
    assert [followed.value(), followed.value()] == ["first", "second"]
    append(created, 2, b"third", segment=2)
    assert followed.value() == "third"
    shutil.rmtree(partition)
    assert followed.process.stderr.readline().endswith("orders-0: the partition was deleted\n")
    partition.mkdir()
    append(partition, 0, b"again")
    assert followed.value() == "again"
    created.rename(created.with_name(f"orders-1.{'0' * 32}-delete"))
    append(partition, 1, b"last")
    assert followed.value() == "last"
    assert followed.end()[0] == 130


def test_a_table_of_a_log_directory_names_the_partition(follow, partition):
    followed = follow(partition.parent)
    assert followed.line().split()[0] == "partition"
    assert followed.line().split()[0] == "orders-0"


def test_truncated_and_deleted_logs_are_said_in_a_sentence(follow, partition):
    followed = follow(partition, "--json")
    assert [followed.value() for _ in range(3)] == ["a", "b", "c"]
    size = (partition / f"{0:020}.log").stat().st_size
    append(partition, 3, b"d")
    assert followed.value() == "d"
    os.truncate(partition / f"{0:020}.log", size)
    noted = followed.process.stderr.readline()
    assert noted == (
        f"kafkacodec: warning: {partition}: the log was truncated to offset 3; reading continues there (it was at 4)\n"
    )
    append(partition, 3, b"D")
    assert followed.value() == "D"
    shutil.rmtree(partition)
    code, err = followed.end(None)
    assert (code, err.splitlines()) == (
        1,
        [
            f"kafkacodec: warning: {partition}: the partition was deleted",
            "kafkacodec: error: nothing is left to follow",
        ],
    )


@pytest.mark.parametrize(("position", "reason"), [(-1, "CRC-32C"), (16, "magic")])
def test_damage_is_an_error_after_the_records_before_it(follow, partition, position, reason):
    followed = follow(partition, "--json")
    assert [followed.value() for _ in range(3)] == ["a", "b", "c"]
    bad = bytearray(kc.encode([(None, b"d")], base_offset=3))
    bad[position] ^= 0x55
    with open(partition / f"{0:020}.log", "ab") as file:
        file.write(bad)
    code, err = followed.end(None)
    assert code == 1
    assert reason in err
    assert err.count("\n") == 1
