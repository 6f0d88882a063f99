"""Private keys, and decryption of data encrypted for them.

The data key of a segment is encrypted by RSA with OAEP, SHA3-512 for hash and mask; chunks by AES-256-GCM: a nonce of
12 bytes, the ciphertext, a tag of 16 bytes.
"""

from __future__ import annotations

import errno
import os
from functools import lru_cache
from typing import Any

from kafkacodec.errors import CorruptRecord
from kafkacodec.lazy import missing_package
from kafkacodec.log.files import access as files
from kafkacodec.log.tiered.manifest import Encryption

__all__ = ["KEYS_VARIABLE", "TAG_AND_NONCE", "data_key", "decrypt", "named_file"]

KEYS_VARIABLE = "KAFKACODEC_TIERED_KEYS"
"""The environment variable with the files of the private keys (PEM), separated as in ``PATH``. ``ID=FILE`` is used for
the key pair of that name only."""

_NONCE, _TAG = 12, 16
TAG_AND_NONCE = _NONCE + _TAG
"""The number of bytes that encryption adds to a chunk."""

_MAX_PEM_BYTES = 1 << 20


def data_key(encryption: Encryption, path: str) -> bytes:
    """The key of a segment's chunks; `path` is the object that needs it.

    Raises:
        PermissionError: no private key is known for the key pair, or it is not the right one.
        OSError: a file with a private key cannot be read or has none.
        ImportError: the package pycryptodome is not installed.
    """
    try:
        return _data_key(encryption, os.environ.get(KEYS_VARIABLE, ""))
    except PermissionError as error:
        if error.filename is None:
            error.filename = path
        raise


@lru_cache(maxsize=1024)
def _data_key(encryption: Encryption, configured: str) -> bytes:
    pem = _file_of(encryption.key_id, configured)
    if pem is None:
        text = (
            f"encrypted for the key pair {encryption.key_id!r}; pass its private key: --tiered-key or {KEYS_VARIABLE}"
        )
        raise PermissionError(errno.EACCES, text)
    crypto = _library()
    try:
        key = crypto.RSA.import_key(files.read_file(pem, _MAX_PEM_BYTES))
        if not key.has_private():
            raise ValueError
    except (ValueError, IndexError, TypeError):
        text = "not an RSA private key in PEM without a passphrase"
        raise OSError(errno.EINVAL, text, pem) from None
    try:
        found: bytes = crypto.PKCS1_OAEP.new(key, hashAlgo=crypto.SHA3_512).decrypt(encryption.data_key)
    except (ValueError, TypeError):
        found = b""
    if len(found) != 32:
        text = f"the private key in {pem} does not open the data key, encrypted for the key pair {encryption.key_id!r}"
        raise PermissionError(errno.EACCES, text)
    return found


def _file_of(key_id: str, configured: str) -> str | None:
    """The file of a private key: one that is named for the key pair, else one that is named for none."""
    named, unnamed = {}, None
    for item in filter(None, configured.split(os.pathsep)):
        name, path = named_file(item)
        if name is None:
            unnamed = path
        else:
            named[name] = path
    return named.get(key_id, unnamed)


def named_file(item: str) -> tuple[str | None, str]:
    """The key pair, None for any, and the file of ``ID=FILE`` or ``FILE``."""
    name, equals, path = item.partition("=")
    return (name, path) if equals and os.sep not in name else (None, item)


def decrypt(data: bytes, key: bytes, aad: bytes) -> bytes:
    """The plain bytes of a chunk or an index.

    Raises:
        CorruptRecord: it is too short, or was changed, or is of another segment.
    """
    if len(data) < TAG_AND_NONCE:
        raise CorruptRecord(f"{len(data)} bytes are fewer than the {TAG_AND_NONCE} of encryption", position=0)
    cipher = _library().AES.new(key, _library().AES.MODE_GCM, nonce=data[:_NONCE], mac_len=_TAG)
    cipher.update(aad)
    try:
        plain: bytes = cipher.decrypt_and_verify(data[_NONCE:-_TAG], data[-_TAG:])
    except ValueError:
        text = "decryption failed: the bytes were changed, or are of another segment"
        raise CorruptRecord(text, position=0) from None
    return plain


def _library() -> Any:
    try:
        from kafkacodec.log.tiered import _crypto
    except ImportError:
        raise missing_package("reading encrypted segments needs", "pycryptodome", "tiered") from None
    return _crypto
