"""Objects of S3, Google Cloud Storage and Azure, by obstore; its errors as those of files."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from kafkacodec.lazy import missing_package
from kafkacodec.log.files.access import FileIdentity
from kafkacodec.log.storage.access import ENVIRONMENT, S3Access
from kafkacodec.log.storage.calls import result_of
from kafkacodec.log.storage.forks import check_process, note_client
from kafkacodec.log.storage.paths import REPLACED

if TYPE_CHECKING:
    from obstore.store import ObjectStore
    from typing_extensions import Buffer

__all__ = [
    "SCHEMES",
    "StoreObject",
    "files_below",
    "identity_of",
    "names_below",
    "open_object",
    "parts_of",
    "remove",
    "upload",
    "use",
]

SCHEMES = ("s3", "s3a", "gs", "az", "abfs", "abfss")

_SETTINGS = ("AWS_", "GOOGLE_", "AZURE_")

_CONNECT_TIMEOUT = timedelta(seconds=5)
_SILENCE = timedelta(seconds=30)  # without a byte, after which a request is made again
_TIMEOUT = timedelta(minutes=10)  # of one request: a large one takes that long from 30 kB a second on
_RETRIES = 3

_PART_BYTES = 8 << 20  # of a large upload
_PARTS = 4  # at a time

_LISTED_SECONDS = 30.0
"""How long a listing tells the size of an object, and by what it is recognized."""

_MOST_LISTED = 100_000  # objects of a bucket

_URL = re.compile(r"(?P<scheme>[^:]+)://(?P<bucket>[^/]+)/*(?P<key>.*)", re.DOTALL)
_CODE = re.compile(r"<Code>(\w{1,64})</Code>")
_REFUSED = {"AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "AuthFailure"}
_CHANGED = {"PreconditionFailed", "ConditionNotMet", "InvalidRange"}  # what is asked for was in the object


_access = ENVIRONMENT


def use(access: S3Access) -> None:
    """Set how this process reaches S3 from now on. A process of Spark's works for one query at a time."""
    global _access
    _access = access


class StoreObject:
    """An object as it was when this was made: every request names its ETag, and every answer must have it.

    If it has none, or a weak one, every answer must have its size and time too.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        bucket, self._key = _place_of(url)
        self._client = bucket.client
        state = _state_of(url)
        self.identity, self._tag, self._version = _identity(state), _strong_tag(state), _version(state)

    def fetch(self, start: int, end: int) -> Buffer:
        """The bytes in [start, end). Raises as `objects.ObjectFile`."""
        _exceptions()  # raises if it is not installed
        import obstore

        wanted: Any = {"range": (start, end)}
        if self._tag is not None:
            wanted["if_match"] = self._tag
        with _errors_of(self._url):
            answer = obstore.get(self._client, self._key, options=wanted)
            # Not every server that offers an interface of these stores heeds the condition.
            if _version(answer.meta) != self._version:
                raise OSError(errno.ESTALE, REPLACED, self._url)
            return answer.bytes()


def open_object(url: str) -> StoreObject:
    """Open an object. Raises as `storage.open_file`."""
    return StoreObject(url)


def identity_of(url: str) -> FileIdentity:
    """The identity of an object, from a recent listing or else a request. Raises as `storage.open_file`."""
    bucket, key = _place_of(url)
    return bucket.listed(key) or _identity(_state_of(url))


def _state_of(url: str) -> Any:
    """The store's current information about an object."""
    _exceptions()  # raises if it is not installed
    import obstore

    bucket, key = _place_of(url)
    if not key:
        raise IsADirectoryError(errno.EISDIR, "a bucket, not an object", url)
    with _errors_of(url):
        return result_of(lambda: obstore.head(bucket.client, key))


def _strong_tag(state: Any) -> str | None:
    """An ETag that is unique to the content; None for a weak one, which no condition may name (RFC 9110, 13.1.1)."""
    tag: str | None = state["e_tag"]
    return None if tag is None or tag.startswith("W/") or not tag.strip('"') else tag


def _version(state: Any) -> tuple[Any, ...]:
    """A value that differs if the content does, as far as the store says."""
    tag = _strong_tag(state)
    return (tag,) if tag is not None else (state["e_tag"], state["size"], state["last_modified"])


def _identity(state: Any) -> FileIdentity:
    """An identity with a number made from the ETag. Times are in seconds, which is all that some answers have."""
    tag: str | None = state["e_tag"]
    digest = b"" if tag is None else hashlib.blake2b(tag.strip('"').encode(), digest_size=8).digest()
    changed_ns = int(state["last_modified"].timestamp()) * 1_000_000_000
    return FileIdentity(int.from_bytes(digest, "big") >> 1, state["size"], changed_ns, changed_ns)


def names_below(url: str) -> list[tuple[str, bool]]:
    """The names directly below a URL, each with whether it is a common prefix. Raises as `storage.entries`."""
    _exceptions()  # raises if it is not installed
    import obstore

    bucket, key = _place_of(url)
    with _errors_of(url):
        found = result_of(lambda: obstore.list_with_delimiter(bucket.client, f"{key}/" if key else None))
    bucket.remember(found["objects"])
    names = [(str(prefix).rstrip("/"), True) for prefix in found["common_prefixes"]]
    names += [(entry["path"], False) for entry in found["objects"]]
    if not names:
        raise FileNotFoundError(errno.ENOENT, "there are no objects below this URL", url)
    return [(path.rpartition("/")[2], below) for path, below in names]


def files_below(url: str, access: S3Access) -> Iterator[str]:
    """The paths of all objects below a URL, relative to it. Raises as `storage.entries`."""
    _exceptions()  # raises if it is not installed
    import obstore

    bucket, key = _place_of(url, access)
    with _errors_of(url):
        for chunk in obstore.list(bucket.client, f"{key}/"):
            yield from (entry["path"].removeprefix(f"{key}/") for entry in chunk)


def upload(path: str, url: str, access: S3Access) -> None:
    """Write an object; a large one in parts. Raises OSError."""
    _exceptions()  # raises if it is not installed
    import obstore

    bucket, key = _place_of(url, access)
    with open(path, "rb") as file, _errors_of(url):
        obstore.put(bucket.client, key, file, chunk_size=_PART_BYTES, max_concurrency=_PARTS)


def remove(url: str, access: S3Access) -> None:
    """Remove an object. Raises OSError."""
    _exceptions()  # raises if it is not installed
    import obstore

    bucket, key = _place_of(url, access)
    with _errors_of(url):
        obstore.delete(bucket.client, key)


def parts_of(url: str) -> re.Match[str]:
    """A URL's ``scheme``, ``bucket`` and ``key``. Raises ValueError: it has no bucket."""
    parts = _URL.fullmatch(url)
    if parts is None:
        raise ValueError(f"{url}: a URL of objects has a bucket, as in s3://bucket/prefix")
    return parts


def _place_of(url: str, access: S3Access | None = None) -> tuple[_Bucket, str]:
    """A URL's bucket, and the key in it.

    Raises:
        ValueError: the URL has no bucket.
        OSError: settings are missing or malformed.
        ImportError: the package obstore is not installed.
        KafkaCodecError: as `check_process`.
    """
    check_process()
    exceptions, parts = _exceptions(), parts_of(url)
    settings = tuple(sorted(item for item in os.environ.items() if item[0].startswith(_SETTINGS)))
    scheme = "s3" if parts["scheme"] == "s3a" else parts["scheme"]
    given = _access if access is None else access
    try:
        bucket = _bucket(scheme, parts["bucket"], given if scheme == "s3" else ENVIRONMENT, hash(settings))
    except (exceptions.BaseError, ValueError):
        text = "the bucket's name or settings of the store (AWS_*, GOOGLE_*, AZURE_*) are missing or malformed"
        raise OSError(errno.EINVAL, text, url) from None
    return bucket, parts["key"].rstrip("/")


class _Bucket:
    """A client of a bucket, and what was listed in it lately: a request less for each object of a directory."""

    def __init__(self, client: ObjectStore) -> None:
        self.client = client
        self._listed: dict[str, tuple[float, FileIdentity]] = {}

    def remember(self, listed: Iterable[Any]) -> None:
        """Keep the objects of a listing."""
        if len(self._listed) > _MOST_LISTED:
            self._listed.clear()
        now = time.monotonic()
        self._listed.update((entry["path"], (now, _identity(entry))) for entry in listed)

    def listed(self, key: str) -> FileIdentity | None:
        """An object's entry in a listing of the last seconds."""
        found = self._listed.get(key)
        return None if found is None or time.monotonic() - found[0] > _LISTED_SECONDS else found[1]


@lru_cache(maxsize=64)
def _bucket(scheme: str, bucket: str, access: S3Access, _settings: int) -> _Bucket:
    """A bucket, kept with its connections while the environment has the same settings."""
    note_client()
    _exceptions()  # raises if it is not installed
    from obstore.store import from_url

    options: Any = access.client_options(bucket)
    credentials: Any = access.credentials(bucket)
    # By a provider: to credentials in the options, the client would add a session token of the environment.
    provider: Any = None if credentials is None else lambda: credentials
    endpoint = options.get("endpoint", os.environ.get("AWS_ENDPOINT_URL", os.environ.get("AWS_ENDPOINT", "")))
    client: ObjectStore = from_url(
        f"{scheme}://{bucket}",
        config=options,
        client_options={
            "timeout": _TIMEOUT,
            "read_timeout": _SILENCE,
            "connect_timeout": _CONNECT_TIMEOUT,
            "allow_http": scheme != "s3" or endpoint.startswith("http://"),
        },
        retry_config={"max_retries": _RETRIES, "retry_timeout": _TIMEOUT},
        credential_provider=provider,
    )
    return _Bucket(client)


def _exceptions() -> Any:
    """The module with the client's exceptions. Raises ImportError: the package is not installed."""
    try:
        from obstore import exceptions
    except ImportError:
        raise missing_package("reading from object stores needs", "obstore", "objects") from None
    return exceptions


@contextmanager
def _errors_of(url: str) -> Iterator[None]:
    """Turn an error of an object store into an OSError that names the URL, without the text of the response."""
    try:
        yield
    except BaseException as error:
        # The client panics, which is no Exception, at an address or credentials that cannot be in a request.
        known = (_exceptions().BaseError, FileNotFoundError, PermissionError, ValueError)
        if not isinstance(error, known) and type(error).__name__ != "PanicException":
            raise
        if isinstance(error, OSError) and error.errno is not None:
            raise
        number, reason = _reason(error)
        raise OSError(number, reason, url) from None


def _reason(error: BaseException) -> tuple[int, str]:
    exceptions = _exceptions()
    no_access = (PermissionError, exceptions.PermissionDeniedError, exceptions.UnauthenticatedError)
    found = _CODE.search(str(error))
    code = "" if found is None else found[1]
    if code in ("NoSuchBucket", "ContainerNotFound"):
        return errno.ENOENT, "there is no such bucket"
    if code == "ExpiredToken":
        return errno.EACCES, "the credentials have expired; get new ones"
    if code in _REFUSED or isinstance(error, no_access):
        return errno.EACCES, "the object store refused access; check the credentials and their permissions"
    if isinstance(error, exceptions.NotFoundError | FileNotFoundError):
        return errno.ENOENT, os.strerror(errno.ENOENT)
    if code in _CHANGED or isinstance(error, exceptions.PreconditionError):
        return errno.ESTALE, REPLACED
    if isinstance(error, exceptions.InvalidPathError | ValueError):
        return errno.EINVAL, "a name here cannot be read: it has an empty part, '.', '..' or a control character"
    said = f" ({code})" if code else ""
    return errno.EIO, f"the object store did not answer as expected{said}; check its address and the credentials"
