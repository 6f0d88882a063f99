"""The cluster, node and id of a data directory: the file ``meta.properties``."""

from __future__ import annotations

import base64
import errno
import os
import uuid
from collections.abc import Mapping
from contextlib import suppress

from kafkacodec.datatypes import NamedTuple
from kafkacodec.errors import DecodeError
from kafkacodec.internal_records import CLUSTER_METADATA
from kafkacodec.log.growing.disk import Disk
from kafkacodec.log.growing.refused import DirectoryRefused, partition_names
from kafkacodec.log.opening.checkpoints import read_properties

__all__ = ["META_PROPERTIES", "Identity", "check_identity", "known_node", "new_id", "read_or_make", "refuse_nested"]

META_PROPERTIES = "meta.properties"
_VERSION, _OF_ZOOKEEPER = "1", "0"
_FIELDS = f"version={_VERSION}, cluster.id, node.id"


class Identity(NamedTuple):
    """The ids in ``meta.properties`` of version 1 (`org.apache.kafka.metadata.properties.MetaProperties`)."""

    cluster_id: str
    node_id: int
    directory_id: str

    @property
    def directory_uuid(self) -> uuid.UUID:
        """The directory's id, which is 22 characters of base64."""
        return uuid.UUID(bytes=base64.urlsafe_b64decode(f"{self.directory_id}=="))


def new_id() -> str:
    """A random id as Kafka writes it: 16 bytes in 22 characters of base64, not beginning with a dash."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text


def known_node(directory: str) -> int | None:
    """Return the node of a directory, if it has one; `read_or_make` reports errors."""
    with suppress(OSError, DecodeError):
        text = read_properties(os.path.join(directory, META_PROPERTIES)).get("node.id", "")
        return int(text) if text.isdecimal() else None
    return None


def read_or_make(directory: str, cluster_id: str | None, node_id: int | None, disk: Disk) -> Identity:
    """Read the identity of a directory, or write a new one.

    Args:
        directory: the data directory.
        cluster_id, node_id: expected, or for a new one; None: any, or a random id and node 1.
        disk: writes the file.

    Raises:
        DirectoryRefused: the file is damaged, of another version, or has other ids.
        OSError: it cannot be read or written.
    """
    found = check_identity(directory, cluster_id, node_id)
    identity = found or Identity(cluster_id or new_id(), 1 if node_id is None else node_id, "")
    if not identity.directory_id:
        identity = identity._replace(directory_id=new_id())
        disk.replace(os.path.join(directory, META_PROPERTIES), _encode(identity), sync=True)
    return identity


def refuse_nested(directory: str) -> None:
    """Refuse a data directory inside of another one, and one that has another one in it.

    Apache Kafka does not start with such a directory in its own, or sets it aside if it has the name of a partition.

    Raises:
        DirectoryRefused: it is, or it has one with the name of a partition.
        OSError: it cannot be listed.
    """
    path = os.path.realpath(directory)
    outer = os.path.dirname(path)
    while outer != os.path.dirname(outer):
        if os.path.isfile(os.path.join(outer, META_PROPERTIES)):
            reason = f"is inside of the data directory {outer}, whose broker would not start or take it for a partition"
            raise DirectoryRefused(errno.EINVAL, f"{reason}: choose a directory outside of it", directory)
        outer = os.path.dirname(outer)
    for name, _ in partition_names(directory) if os.path.isdir(directory) else ():
        inner = os.path.join(directory, name)
        if os.path.isfile(os.path.join(inner, META_PROPERTIES)):
            reason = f"is a data directory, not that of a partition: move it out of {directory}"
            raise DirectoryRefused(errno.EINVAL, reason, inner)


def check_identity(directory: str, cluster_id: str | None, node_id: int | None) -> Identity | None:
    """Return the identity of a directory, with an empty id if that is missing; None if it has none yet.

    Raises:
        DirectoryRefused, OSError: as `read_or_make`.
    """
    path = os.path.join(directory, META_PROPERTIES)
    try:
        properties = read_properties(path)
    except FileNotFoundError:
        if os.path.isdir(os.path.join(directory, f"{CLUSTER_METADATA}-0")):
            reason = f"is missing, but the directory has the metadata of a cluster: restore it ({_FIELDS})"
            raise DirectoryRefused(errno.EINVAL, reason, path) from None
        return None
    except DecodeError as error:
        raise DirectoryRefused(errno.EINVAL, f"{error.reason}: restore it ({_FIELDS})", path) from None
    wrong = _wrong(properties, cluster_id, node_id)
    if wrong is not None:
        raise DirectoryRefused(errno.EINVAL, wrong, path)
    return Identity(properties["cluster.id"], int(properties["node.id"]), properties.get("directory.id", ""))


def _wrong(properties: Mapping[str, str], cluster_id: str | None, node_id: int | None) -> str | None:
    version = properties.get("version")
    if version != _VERSION:
        return _other_version(version)
    found_node, found_cluster = properties.get("node.id", ""), properties.get("cluster.id", "")
    if not found_node.isdecimal() or not found_cluster:
        return f"cluster.id is missing, or node.id is missing or not a number: restore it ({_FIELDS})"
    if cluster_id is not None and cluster_id != found_cluster:
        return f"the directory is of cluster {found_cluster}, not {cluster_id}: use another directory"
    if node_id is not None and node_id != int(found_node):
        return f"the directory is of node {found_node}, not {node_id}: use another directory"
    return None


def _other_version(version: str | None) -> str:
    if version is None:
        return f"has no version: restore it ({_FIELDS})"
    if version == _OF_ZOOKEEPER:
        return f"version {version}, of a cluster with ZooKeeper, instead of {_VERSION}: it can only be served read-only"
    return f"version {version} instead of {_VERSION}: the directory is of a release of Kafka that is not known here"


def _encode(identity: Identity) -> bytes:
    values = {"cluster.id": identity.cluster_id, "directory.id": identity.directory_id, "node.id": identity.node_id}
    lines = [f"{name}={value}" for name, value in (values | {"version": _VERSION}).items()]
    return ("\n".join(lines) + "\n").encode()
