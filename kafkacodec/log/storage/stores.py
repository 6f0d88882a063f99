"""Clients of object stores: from a URL to a bucket and a key, and from their errors to those of files."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from kafkacodec.errors import KafkaCodecError
from kafkacodec.log.storage.access import ENVIRONMENT, S3Access

if TYPE_CHECKING:
    from obstore.store import ObjectStore

__all__ = ["REPLACED", "SCHEMES", "check_process", "errors_of", "place_of", "use"]

SCHEMES = ("s3", "s3a", "gs", "az", "abfs", "abfss")

REPLACED = "the object was replaced while it was read; read it again"

_SETTINGS = ("AWS_", "GOOGLE_", "AZURE_")

_TIMEOUT = timedelta(seconds=30)  # of one request
_CONNECT_TIMEOUT = timedelta(seconds=5)
_RETRIES = 3
_RETRY_TIME = timedelta(seconds=60)

_URL = re.compile(r"(?P<scheme>[^:]+)://(?P<bucket>[^/]+)/*(?P<key>.*)", re.DOTALL)
_CODE = re.compile(r"<Code>(\w{1,64})</Code>")
_REFUSED = {"AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "AuthFailure"}


_access = ENVIRONMENT


def use(access: S3Access) -> None:
    """Set how this process reaches S3 from now on. A process of Spark's works for one query at a time."""
    global _access
    _access = access


def place_of(url: str) -> tuple[ObjectStore, str]:
    """The client of a URL's bucket, and the key in it.

    Raises:
        ValueError: the URL has no bucket, or another scheme than `SCHEMES`.
        ImportError: the package obstore is not installed.
        KafkaCodecError: as `check_process`.
    """
    check_process()
    parts = _URL.fullmatch(url)
    if parts is None:
        raise ValueError(f"{url}: a URL of objects has a bucket, as in s3://bucket/prefix")
    if parts["scheme"] not in SCHEMES:
        raise ValueError(f"{url}: unknown scheme {parts['scheme']!r}; use one of {', '.join(SCHEMES)}")
    settings = tuple(sorted(item for item in os.environ.items() if item[0].startswith(_SETTINGS)))
    scheme = "s3" if parts["scheme"] == "s3a" else parts["scheme"]
    access = _access if scheme == "s3" else ENVIRONMENT
    return _store(scheme, parts["bucket"], access, hash(settings)), parts["key"].rstrip("/")


@lru_cache(maxsize=64)
def _store(scheme: str, bucket: str, access: S3Access, _settings: int) -> ObjectStore:
    """A client, kept with its connections while the environment has the same settings."""
    try:
        from obstore.store import from_url
    except ImportError:
        raise ImportError("reading from object stores needs obstore: pip install 'kafkacodec[objects]'") from None
    options: Any = access.client_options(bucket)
    credentials: Any = access.credentials(bucket)
    # By a provider: to credentials in the options, the client would add a session token of the environment.
    provider: Any = None if credentials is None else lambda: credentials
    endpoint = options.get("endpoint", os.environ.get("AWS_ENDPOINT_URL", os.environ.get("AWS_ENDPOINT", "")))
    store: ObjectStore = from_url(
        f"{scheme}://{bucket}",
        config=options,
        client_options={
            "timeout": _TIMEOUT,
            "connect_timeout": _CONNECT_TIMEOUT,
            "allow_http": scheme != "s3" or endpoint.startswith("http://"),
        },
        retry_config={"max_retries": _RETRIES, "retry_timeout": _RETRY_TIME},
        credential_provider=provider,
    )
    return store


def check_process() -> None:
    """Refuse to work in a process that was forked after its parent had read objects.

    The client's threads do not exist there. Trying would wait for ever, and would disturb the parent, with which the
    connections are shared.

    Raises:
        KafkaCodecError: this is such a process.
    """
    if _forked:
        raise KafkaCodecError(
            "this process was forked after its parent had read from an object store, and cannot read from one; "
            "start processes by spawn or forkserver, or fork before the first read"
        )


_forked = False


def _after_fork() -> None:
    global _forked
    _forked = _forked or _store.cache_info().misses > 0


os.register_at_fork(after_in_child=_after_fork)


@contextmanager
def errors_of(url: str) -> Iterator[None]:
    """Turn an error of an object store into an OSError that names the URL, without the text of the response."""
    from obstore import exceptions

    try:
        yield
    except (exceptions.BaseError, FileNotFoundError, PermissionError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        number, reason = _reason(error)
        raise OSError(number, reason, url) from None


def _reason(error: Exception) -> tuple[int, str]:
    from obstore import exceptions

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
    if isinstance(error, exceptions.PreconditionError):
        return errno.ESTALE, REPLACED
    said = f" ({code})" if code else ""
    return errno.EIO, f"the object store did not answer as expected{said}; check its address and the credentials"
