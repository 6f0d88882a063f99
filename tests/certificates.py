"""Certificates for tests: an authority and what it signs, as PEM files."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = datetime.timedelta(days=1)


class Issued(NamedTuple):
    """The files of a certificate; `both` has the key and the certificate."""

    certificate: Path
    key: Path
    both: Path


class Authority:
    """Signs certificates; `certificate` is the file of its own."""

    def __init__(self, directory: Path, name: str = "authority") -> None:
        self._directory = directory
        self._name = _named(name)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._own = self._signed(self._name, self._key, 30, None)
        self.certificate = directory / f"{name}.pem"
        self.certificate.write_bytes(self._own.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str, *hosts: str, days: int = 30, password: str | None = None) -> Issued:
        """A certificate for hosts or addresses; with negative `days` it has expired. `password` encrypts the key."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._signed(_named(name), key, days, [_general(host) for host in hosts])
        encryption = (
            serialization.BestAvailableEncryption(password.encode()) if password else serialization.NoEncryption()
        )
        pem, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
        made = Issued(*(self._directory / f"{name}{end}" for end in (".crt", ".key", ".pem")))
        made.certificate.write_bytes(certificate.public_bytes(pem))
        made.key.write_bytes(key.private_bytes(pem, form, encryption))
        made.both.write_bytes(made.key.read_bytes() + made.certificate.read_bytes())
        return made

    def _signed(
        self, name: x509.Name, key: ec.EllipticCurvePrivateKey, days: int, hosts: list[x509.GeneralName] | None
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 60 * DAY)
            .not_valid_after(now + days * DAY)
            .add_extension(x509.BasicConstraints(ca=hosts is None, path_length=None), critical=True)
        )
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName(hosts), critical=False)
        return builder.sign(self._key, hashes.SHA256())


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _general(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
