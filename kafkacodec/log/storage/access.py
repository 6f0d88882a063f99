"""Access to S3 that is not left to the environment: credentials and address, under Hadoop's names."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from kafkacodec.datatypes import dataclass, field

__all__ = ["ENVIRONMENT", "S3_PREFIX", "S3_SETTINGS", "S3Access"]

S3_PREFIX = "fs.s3a."

_CREDENTIALS = {
    "access.key": "access_key_id",
    "secret.key": "secret_access_key",
    "session.token": "token",
}
S3_SETTINGS = (*_CREDENTIALS, "endpoint", "endpoint.region", "path.style.access", "connection.ssl.enabled")
"""Names below `S3_PREFIX` that are used; ``bucket.NAME.`` before one of them makes it that of one bucket."""


@dataclass(frozen=True)
class S3Access:
    """Settings of Hadoop's S3A, by their names without the prefix. They hold secrets: the `repr` shows none of them."""

    settings: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> S3Access:
        """The settings that are used, without empty ones."""
        used = ((name, value) for name, value in settings.items() if value and name.endswith(S3_SETTINGS))
        return cls(tuple(sorted((name, value) for name, value in used if _is_used(name))))

    def over(self, other: S3Access) -> S3Access:
        """These settings, completed with those of another. Credentials are not mixed."""
        mine, others = dict(self.settings), dict(other.settings)
        if any(name in mine for name in _CREDENTIALS):
            others = {name: value for name, value in others.items() if not name.endswith(tuple(_CREDENTIALS))}
        return S3Access(tuple(sorted({**others, **mine}.items())))

    def client_options(self, bucket: str) -> dict[str, Any]:
        """The options of obstore's client of a bucket, without credentials; empty: as the environment says."""
        mine = self._of_bucket(bucket)
        found: dict[str, Any] = {"region": mine["endpoint.region"]} if mine["endpoint.region"] else {}
        if mine["endpoint"]:
            found |= _address(bucket, mine)
        return found

    def credentials(self, bucket: str) -> dict[str, Any] | None:
        """The credentials for obstore's client; None if they are left to the environment."""
        mine = self._of_bucket(bucket)
        found: dict[str, Any] = {option: mine[name] for name, option in _CREDENTIALS.items() if mine[name]}
        return {**found, "expires_at": None} if found else None

    def _of_bucket(self, bucket: str) -> dict[str, str]:
        given = dict(self.settings)
        return {name: given.get(f"bucket.{bucket}.{name}", given.get(name, "")) for name in S3_SETTINGS}


def _is_used(name: str) -> bool:
    return name in S3_SETTINGS or name.startswith("bucket.")


def _address(bucket: str, settings: Mapping[str, str]) -> dict[str, Any]:
    """The options for an address. As in S3A, the bucket is in the host's name unless `path.style.access` is set."""
    address = settings["endpoint"]
    if "://" not in address:
        scheme = "http" if settings["connection.ssl.enabled"].lower() == "false" else "https"
        address = f"{scheme}://{address}"
    parts = urlsplit(address)
    in_host = settings["path.style.access"].lower() == "false" and "." not in bucket and not _is_number(parts.hostname)
    if in_host:
        address = parts._replace(netloc=f"{bucket}.{parts.netloc}").geturl()
    return {"endpoint": address.rstrip("/"), "virtual_hosted_style_request": in_host}


def _is_number(host: str | None) -> bool:
    """Whether a host is given by its address: nothing can be put before that."""
    try:
        ipaddress.ip_address(host or "")
    except ValueError:
        return host == "localhost"
    return True


ENVIRONMENT = S3Access()
"""All is left to the environment."""
