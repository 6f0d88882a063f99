"""Files of HDFS, by hdfs-native; its errors as those of files.

Addresses and security are those of Hadoop's configuration (``HADOOP_CONF_DIR``) and environment. The client waits
without a limit for a server that does not answer.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import TYPE_CHECKING, TypeVar

from kafkacodec.lazy import missing_package
from kafkacodec.log.files.access import FileIdentity
from kafkacodec.log.storage.calls import result_of
from kafkacodec.log.storage.forks import check_process, note_client
from kafkacodec.log.storage.paths import REPLACED

if TYPE_CHECKING:
    from hdfs_native import Client, FileStatus, WriteOptions

    from kafkacodec.log.storage.access import S3Access

__all__ = ["SCHEMES", "HdfsFile", "files_below", "identity_of", "names_below", "open_object", "remove", "upload"]

SCHEMES = ("hdfs",)

_WRITE_BYTES = 8 << 20
_SETTINGS = ("HADOOP_", "KRB5")
T = TypeVar("T")
_TIMEOUT = 60.0  # in seconds, of one call
# The client asks so often, with pauses that double, so that a closed port is noticed after some seconds.
_TRIES = {"dfs.client.failover.max.attempts": "3"}

_URL = re.compile(r"hdfs://(?P<host>[^/]*)(?P<path>.*)", re.DOTALL)
_CLASS = re.compile(r'RPCError\("(?:\w+\.)*(\w{1,64})')
_UNKNOWN_ADDRESS = ("No NameNode hosts found", "No fs.defaultFS setting found")


def _in_time(call: Callable[[], T]) -> T:
    return result_of(call, _TIMEOUT)


class HdfsFile:
    """A file as it was when this was made: its blocks are read by their numbers, which no other file gets."""

    def __init__(self, url: str) -> None:
        self._url = url
        client, path = _place_of(url)
        with _errors_of(url):
            # In this order: a file that is replaced meanwhile is not taken for the new one later.
            found = _state_of(client, path, url)
            self._reader = _in_time(lambda: client.read(path))
            self.identity = found._replace(size=self._reader.size)

    def fetch(self, start: int, end: int) -> bytes:
        """The bytes in [start, end), which the file must have. Raises as `objects.ObjectFile`."""
        with _errors_of(self._url):
            try:
                return _in_time(lambda: self._reader.read_range(start, end - start))
            except RuntimeError:
                # The blocks of a file that was replaced or deleted are gone soon after it.
                if identity_of(self._url) != self.identity:
                    raise OSError(errno.ESTALE, REPLACED, self._url) from None
                raise


def open_object(url: str) -> HdfsFile:
    """Open a file. Raises as `storage.open_file`."""
    return HdfsFile(url)


def identity_of(url: str) -> FileIdentity:
    """The identity of a file: size and time, since HDFS does not give a number. Raises as `storage.open_file`."""
    client, path = _place_of(url)
    with _errors_of(url):
        return _state_of(client, path, url)


def _state_of(client: Client, path: str, url: str) -> FileIdentity:
    found = _in_time(lambda: client.get_file_info(path))
    if found.isdir:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), url)
    changed_ns = found.modification_time * 1_000_000
    return FileIdentity(0, found.length, changed_ns, changed_ns)


def names_below(url: str) -> list[tuple[str, bool]]:
    """The names in a directory, each with whether it is a directory. Raises as `storage.entries`."""
    client, path = _place_of(url)
    with _errors_of(url):
        found: list[FileStatus] = _in_time(lambda: list(client.list_status(path)))
    if any(entry.path == path and not entry.isdir for entry in found):
        raise FileNotFoundError(errno.ENOENT, "a file, not a directory", url)
    return [(entry.path.rpartition("/")[2], entry.isdir) for entry in found]


def files_below(url: str, _access: S3Access) -> Iterator[str]:
    """The paths of all files below a URL, relative to it; none if there is no such directory. Raises OSError."""
    client, path = _place_of(url)
    try:
        with _errors_of(url):
            found = _in_time(lambda: list(client.list_status(path, recursive=True)))
    except FileNotFoundError:
        return iter(())
    return (entry.path.removeprefix(f"{path}/") for entry in found if not entry.isdir)


def upload(path: str, url: str, _access: S3Access) -> None:
    """Write a file, which gets its name when it is complete. Raises OSError."""
    client, target = _place_of(url)
    temporary = f"{target}.{secrets.token_hex(8)}.tmp"
    with open(path, "rb") as source, _errors_of(url):
        file = _in_time(lambda: client.create(temporary, _options()))
        while chunk := source.read(_WRITE_BYTES):
            _in_time(partial(file.write, chunk))
        _in_time(file.close)
        _in_time(lambda: client.rename(temporary, target))


def remove(url: str, _access: S3Access) -> None:
    """Remove a file. Raises OSError."""
    client, path = _place_of(url)
    with _errors_of(url):
        _in_time(lambda: client.delete(path))


def _options() -> WriteOptions:
    from hdfs_native import WriteOptions

    return WriteOptions(create_parent=True)


def _place_of(url: str) -> tuple[Client, str]:
    """The client of a URL's name node, and the path there. Raises ImportError and as `check_process`."""
    check_process()
    parts = _URL.fullmatch(url)
    assert parts is not None  # by its scheme
    settings = tuple(sorted(item for item in os.environ.items() if item[0].startswith(_SETTINGS)))
    with _errors_of(url):
        return _client(parts["host"], hash(settings)), parts["path"].rstrip("/") or "/"


@lru_cache(maxsize=64)
def _client(host: str, _settings: int) -> Client:
    """A client, kept with its connections while the environment has the same settings."""
    try:
        from hdfs_native import Client
    except ImportError:
        raise missing_package("reading from HDFS needs", "hdfs-native", "hdfs") from None
    note_client()
    return Client(f"hdfs://{host}" if host else None, _TRIES)


@contextmanager
def _errors_of(url: str) -> Iterator[None]:
    """Turn an error of the client into an OSError that names the URL."""
    try:
        yield
    except ImportError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        number, reason = _reason(error)
        raise OSError(number, reason, url) from None


def _reason(error: Exception) -> tuple[int, str]:
    said = str(error)
    found = _CLASS.search(said)
    name = "" if found is None else found[1]
    if isinstance(error, TimeoutError):
        return errno.EIO, f"HDFS did not answer within {_TIMEOUT:.0f} seconds; check its address"
    if isinstance(error, FileNotFoundError):
        number = errno.EISDIR if "not a file" in said else errno.ENOENT
        return number, os.strerror(number)
    if name == "AccessControlException" or isinstance(error, PermissionError):
        return errno.EACCES, "HDFS refused access; check the user and the file's permissions"
    if any(text in said for text in _UNKNOWN_ADDRESS):
        return errno.EIO, "the URL names no host with a port; add it, or set HADOOP_CONF_DIR"
    said = name or said.partition("\n")[0][:100]
    return errno.EIO, f"HDFS did not answer as expected ({said}); check its address and HADOOP_CONF_DIR"
