"""An interrupt at any line leaves no temporary file or directory."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click
import pytest

from kafkacodec import temporary
from kafkacodec.cli.files import sources, standard_input
from kafkacodec.log.files import publishing
from kafkacodec.temporary import directory_until_exit, temporary_directory
from tests import interrupts
from tests.patience import SOON

FILES = {module.__file__ for module in (temporary, publishing, standard_input, sources, contextlib)}


class Interrupts(interrupts.Interrupts):
    def steps(self, frame, event):
        return event == "line" if frame.f_code.co_filename in FILES else None


def directory(_):
    with temporary_directory("test.") as path:
        Path(path, "file").touch()


def failing_directory(_):
    with contextlib.suppress(ValueError), temporary_directory("test.") as path:
        Path(path, "file").touch()
        raise ValueError


def new_file(place):
    with publishing.new_file(os.path.join(place, "name"), replace=True) as file:
        file.write(b"data")


def failing_file(place):
    with contextlib.suppress(ValueError), publishing.new_file(os.path.join(place, "name")) as file:
        file.write(b"data")
        raise ValueError


def new_directory(place):
    with publishing.new_directory(os.path.join(place, "name")) as path:
        Path(path, "file").touch()


def standard_input_of_a_command(_):
    with click.Context(click.Command("test")) as context:
        path = standard_input.path_with_copy(context, click.Option(["--path"]), "-")
        assert Path(path).read_bytes() == b"data"


def standard_input_on_disk(_):
    source = sources.Source("-", "parquet")
    with source.on_disk() as path:
        assert Path(path).read_bytes() == b"data"


WAYS = [
    directory,
    failing_directory,
    new_file,
    failing_file,
    new_directory,
    standard_input_of_a_command,
    standard_input_on_disk,
]


def interrupt_each_line(way, place, monkeypatch):
    for at in range(1, 2000):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"data")))
        interrupted = Interrupts(at)
        with contextlib.suppress(KeyboardInterrupt), interrupted:
            way(place)
        if way is standard_input_of_a_command:  # click may hold the directory until the process ends
            temporary._remove_kept()
        left = sorted(os.listdir(place))
        assert left in ([], ["name"]), at
        for name in left:
            path = os.path.join(place, name)
            assert os.listdir(path) == ["file"] if os.path.isdir(path) else Path(path).read_bytes() == b"data"
            os.rename(path, f"{place}.{at}")
        if interrupted.left > 0:
            break
    assert at > 10


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("way", WAYS)
def test_an_interrupt_leaves_no_temporary_file(way, tmp_path, monkeypatch):
    place = tmp_path / "place"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    monkeypatch.setattr(temporary, "_kept", {})  # those of other tests stay
    # CPython 3.11 may leave the thread with the exception that was being handled when a trace function raised.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(interrupt_each_line, way, str(place), monkeypatch).result(10 * SOON)


def test_what_stays_until_the_exit_is_known_before_it_is_made(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(temporary, "_kept", {})
    for at in range(1, 8):
        with contextlib.suppress(KeyboardInterrupt), Interrupts(at):
            directory_until_exit("test.")
    assert os.listdir(tmp_path)
    temporary._remove_kept()
    assert os.listdir(tmp_path) == []


def test_a_fork_does_not_remove_what_the_parent_keeps(tmp_path, monkeypatch):
    monkeypatch.setattr(temporary, "_kept", {str(tmp_path): os.getpid() + 1})
    temporary._remove_kept()
    assert tmp_path.exists()


def test_a_directory_is_private_and_removed_with_its_files(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with temporary_directory("test.") as path:
        assert os.stat(path).st_mode & 0o777 == 0o700
        Path(path, "file").touch()
    assert os.listdir(tmp_path) == []
