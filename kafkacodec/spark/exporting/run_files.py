"""Publication of a run's files: with one rename, or one by one in an object store."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import suppress
from tempfile import gettempdir
from urllib.parse import quote

from kafkacodec.datatypes import dataclass, replace
from kafkacodec.errors import KafkaCodecError
from kafkacodec.log.files import publishing
from kafkacodec.log.opening import is_url
from kafkacodec.log.storage.access import S3Access
from kafkacodec.log.storage.objects import files_below, remove_objects, upload
from kafkacodec.spark.exporting.days import date_of
from kafkacodec.spark.exporting.options import DATE
from kafkacodec.spark.exporting.report import ExportedFile
from kafkacodec.spark.writing import owner, staging
from kafkacodec.spark.writing.staging import Owner

__all__ = ["RunFiles", "StagedFiles", "UploadedFiles", "partition_values", "tidy"]

_OUTPUT = "output"
_NULL = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class RunFiles(ABC):
    """The files of a run. The driver makes it, and Spark sends it to the tasks.

    Attributes:
        root: the directory or URL in which the run has a directory.
        run: the name of that.
        partition_by: the columns that name the directories in it.
    """

    root: str
    run: str
    partition_by: tuple[str, ...]

    @abstractmethod
    def begin(self, task: int) -> str:
        """In a task: create a directory for the files of an attempt."""

    @abstractmethod
    def add(self, directory: str, file: ExportedFile) -> ExportedFile:
        """In a task: hand over a complete file of this directory. Returns it with its path for the driver."""

    @abstractmethod
    def end(self, directory: str) -> None:
        """In a task: remove what is no longer needed."""

    @abstractmethod
    def arrange(self, files: Iterable[ExportedFile]) -> list[ExportedFile]:
        """On the driver: keep these files only. Returns them with their paths below the directory of the run."""

    @abstractmethod
    def discard(self) -> None:
        """On the driver: remove the files of a run that failed before `publish`."""

    @abstractmethod
    def publish(self) -> None:
        """On the driver: move the files to their place in the target.

        Raises:
            KafkaCodecError: another run has it.
            OSError: they cannot be moved.
        """

    @abstractmethod
    def withdraw(self) -> None:
        """On the driver: remove the files after `publish`, if nothing was committed."""

    @abstractmethod
    def close(self) -> None:
        """On the driver, after success and failure: remove files that were not published."""


@dataclass(frozen=True)
class StagedFiles(RunFiles):
    """Files on a file system that all machines see: they appear by the renaming of one directory.

    Attributes:
        place: the staging directory.
        belongs_to: its owner.
    """

    place: str
    belongs_to: Owner

    @classmethod
    def of(cls, root: str, run: str, partition_by: Sequence[str]) -> StagedFiles:
        """The files of a new run; removes the leftovers of killed runs."""
        place = _beside(root)
        os.makedirs(place, exist_ok=True)
        staging.sweep(place)
        belongs_to = Owner(owner.driver())
        return cls(root, run, tuple(partition_by), staging.new_directory(place), belongs_to)

    @property
    def output(self) -> str:
        """The directory that gets the name of the run."""
        return os.path.join(self.place, _OUTPUT)

    def begin(self, task: int) -> str:
        """Create it in the staging directory."""
        return staging.new_task(self.place, self.belongs_to, task)

    def add(self, directory: str, file: ExportedFile) -> ExportedFile:
        """Nothing is moved before the run is complete."""
        return replace(file, path=os.path.join(os.path.basename(directory), os.path.basename(file.path)))

    def end(self, directory: str) -> None:
        """Nothing: the files are still there."""

    def arrange(self, files: Iterable[ExportedFile]) -> list[ExportedFile]:
        """Move files from the directories of tasks; what failed attempts left stays there."""
        os.makedirs(self.output)
        made, arranged = {""}, []
        for file in files:
            place = _directory(self.partition_by, file)
            if place not in made:
                os.makedirs(os.path.join(self.output, place), exist_ok=True)
                made.add(place)
            path = os.path.join(place, os.path.basename(file.path))
            os.rename(os.path.join(self.place, file.path), os.path.join(self.output, path))
            arranged.append(replace(file, path=path))
        return arranged

    def discard(self) -> None:
        """Nothing: `close` does it."""

    def publish(self) -> None:
        """Rename the directory."""
        os.makedirs(self.root, exist_ok=True)
        try:
            os.rename(self.output, os.path.join(self.root, self.run))
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                raise
            raise KafkaCodecError(
                f"another export wrote {self.run} of {self.root} in the meantime; this one wrote nothing; run it again"
            ) from None
        publishing.sync_names(self.root, self.run)

    def withdraw(self) -> None:
        """Remove it again."""
        shutil.rmtree(os.path.join(self.root, self.run), ignore_errors=True)

    def close(self) -> None:
        """Remove the staging directory."""
        staging.remove(self.place)
        tidy(self.root)


@dataclass(frozen=True)
class UploadedFiles(RunFiles):
    """Objects of a store, which cannot rename: tasks put each at its place, and only the table says which belong to it.

    Attributes:
        access: how S3 is reached.
    """

    access: S3Access

    def begin(self, task: int) -> str:
        """Create it in a directory that the executor removes when it ends."""
        local = os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0] or gettempdir()
        directory = os.path.join(local, f"kafkacodec-export-{task}.{secrets.token_hex(8)}")
        os.makedirs(directory)
        return directory

    def add(self, directory: str, file: ExportedFile) -> ExportedFile:
        """Upload a file; its name differs from those of other attempts."""
        stem, suffix = os.path.splitext(os.path.basename(file.path))
        name = f"{stem}-{directory.rpartition('.')[2]}{suffix}"
        path = "/".join(filter(None, (_directory(self.partition_by, file), name)))
        upload(file.path, f"{self._place}/{path}", self.access)
        os.unlink(file.path)
        return replace(file, path=path)

    def end(self, directory: str) -> None:
        """Remove the directory: its files are uploaded, or the attempt failed."""
        shutil.rmtree(directory, ignore_errors=True)

    def arrange(self, files: Iterable[ExportedFile]) -> list[ExportedFile]:
        """Remove the leftovers of failed attempts."""
        kept = list(files)
        self._remove_except({file.path for file in kept})
        return kept

    def discard(self) -> None:
        """Remove all of them, but for those of a task that is still running."""
        self._remove_except(set())

    def publish(self) -> None:
        """Nothing: the files are there."""

    def withdraw(self) -> None:
        """Remove all of them."""
        self._remove_except(set())

    def close(self) -> None:
        """Nothing."""

    @property
    def _place(self) -> str:
        return f"{self.root}/{self.run}"

    def _remove_except(self, kept: set[str]) -> None:
        # It would be in no one's way: nothing may fail because of it.
        with suppress(OSError):
            left = [name for name in files_below(self._place, self.access) if name not in kept]
            remove_objects([f"{self._place}/{name}" for name in left], self.access)


def tidy(root: str) -> None:
    """Remove the leftovers of killed runs, also of those that were killed after their commit."""
    if is_url(root):
        return
    place = _beside(root)
    staging.sweep(place)
    with suppress(OSError):  # another run uses it, or there is none
        os.rmdir(place)


def _beside(root: str) -> str:
    """Where runs are staged: next to the target, where its readers do not look, for they would see its files.

    In it, if it is a file system of its own: files cannot be moved from another one.
    """
    root = os.path.realpath(root)
    if os.path.ismount(root):
        return os.path.join(root, ".kafkacodec")
    parent, name = os.path.split(root)
    return os.path.join(parent, f".{name}.kafkacodec")


def partition_values(partition_by: Sequence[str], file: ExportedFile) -> dict[str, str | None]:
    """The values of a file's partition columns, as text."""
    values = {"topic": file.topic, "partition": str(file.partition), DATE: date_of(file.day)}
    return {name: values[name] for name in partition_by}


def _directory(partition_by: Sequence[str], file: ExportedFile) -> str:
    """The directory of a file below that of its run, as Hive names it: ``topic=orders/partition=0``."""
    values = partition_values(partition_by, file)
    return "/".join(f"{name}={_NULL if value is None else quote(value, safe=' ')}" for name, value in values.items())
