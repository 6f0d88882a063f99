"""The used parts of pycryptodome, an optional package. (The package cryptography has no OAEP with SHA-3.)"""

from Crypto.Cipher import AES, PKCS1_OAEP
from Crypto.Hash import SHA3_512
from Crypto.PublicKey import RSA

__all__ = ["AES", "PKCS1_OAEP", "RSA", "SHA3_512"]
