"""Clients of object stores: from a URL to a bucket and a key, and from their errors to those of files."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from obstore.store import ObjectStore

__all__ = ["errors_of", "place_of"]

SCHEMES = ("s3", "s3a", "gs", "az", "abfs", "abfss")

_SETTINGS = ("AWS_", "GOOGLE_", "AZURE_")

_TIMEOUT = timedelta(seconds=30)  # of one request
_CONNECT_TIMEOUT = timedelta(seconds=5)
_RETRIES = 3
_RETRY_TIME = timedelta(seconds=60)

_URL = re.compile(r"(?P<scheme>[^:]+)://(?P<bucket>[^/]+)/*(?P<key>.*)", re.DOTALL)
_CODE = re.compile(r"<Code>(\w{1,64})</Code>")
_REFUSED = {"AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "AuthFailure"}


def place_of(url: str) -> tuple[ObjectStore, str]:
    """The client of a URL's bucket, and the key in it.

    Raises:
        ValueError: the URL has no bucket, or another scheme than `SCHEMES`.
        ImportError: the package obstore is not installed.
    """
    parts = _URL.fullmatch(url)
    if parts is None:
        raise ValueError(f"{url}: a URL of objects has a bucket, as in s3://bucket/prefix")
    if parts["scheme"] not in SCHEMES:
        raise ValueError(f"{url}: unknown scheme {parts['scheme']!r}; use one of {', '.join(SCHEMES)}")
    settings = tuple(sorted(item for item in os.environ.items() if item[0].startswith(_SETTINGS)))
    scheme = "s3" if parts["scheme"] == "s3a" else parts["scheme"]
    return _store(f"{scheme}://{parts['bucket']}", hash(settings)), parts["key"].rstrip("/")


@lru_cache(maxsize=64)
def _store(root: str, _settings: int) -> ObjectStore:
    """A client, kept with its connections while the environment has the same settings."""
    try:
        from obstore.store import from_url
    except ImportError:
        raise ImportError("reading from object stores needs obstore: pip install 'kafkacodec[objects]'") from None
    endpoint = os.environ.get("AWS_ENDPOINT_URL", os.environ.get("AWS_ENDPOINT", ""))
    store: ObjectStore = from_url(
        root,
        client_options={
            "timeout": _TIMEOUT,
            "connect_timeout": _CONNECT_TIMEOUT,
            "allow_http": endpoint.startswith("http://"),
        },
        retry_config={"max_retries": _RETRIES, "retry_timeout": _RETRY_TIME},
    )
    return store


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
    if code == "NoSuchBucket":
        return errno.ENOENT, "there is no such bucket"
    if code == "ExpiredToken":
        return errno.EACCES, "the credentials have expired; get new ones"
    if code in _REFUSED or isinstance(error, no_access):
        return errno.EACCES, "the object store refused access; check the credentials and their permissions"
    if isinstance(error, exceptions.NotFoundError | FileNotFoundError):
        return errno.ENOENT, os.strerror(errno.ENOENT)
    if isinstance(error, exceptions.PreconditionError):
        return errno.ESTALE, "the object was replaced while it was read; read it again"
    said = f" ({code})" if code else ""
    return errno.EIO, f"the object store did not answer as expected{said}; check its address and try again"
