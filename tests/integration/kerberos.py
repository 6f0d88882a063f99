"""A Kerberos realm for tests: a key distribution center on the loopback interface, principals and their keys."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

from tests.integration.kafka_jvm import free_port

__all__ = ["PROGRAMS", "REALM", "Realm"]

REALM = "KAFKACODEC.TEST"
PROGRAMS = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")


class Realm:
    """A realm with principals.

    Attributes:
        config: the file that names the realm and its center.
        environment: what programs and libraries need to use it.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._port = free_port()
        self.config = directory / "krb5.conf"
        self.config.write_text(
            f"""[libdefaults]
default_realm = {REALM}
dns_lookup_kdc = false
dns_canonicalize_hostname = false
rdns = false
udp_preference_limit = 1
[realms]
{REALM} = {{
  kdc = 127.0.0.1:{self._port}
}}
"""
        )
        profile = directory / "kdc.conf"
        profile.write_text(
            f"""[kdcdefaults]
kdc_listen = ""
kdc_tcp_listen = 127.0.0.1:{self._port}
[realms]
{REALM} = {{
  database_name = {directory}/principal
  key_stash_file = {directory}/stash
  acl_file = {directory}/acl
}}
[logging]
kdc = FILE:{directory}/kdc.log
"""
        )
        self.environment = {
            "KRB5_CONFIG": str(self.config),
            "KRB5_KDC_PROFILE": str(profile),
            "KRB5CCNAME": f"FILE:{directory}/cache",
        }
        self._run("kdb5_util", "create", "-s", "-r", REALM, "-P", "master")

    def start(self) -> None:
        """Wait until the center answers."""
        self._process = subprocess.Popen([_path("krb5kdc"), "-n"], env={**os.environ, **self.environment})
        for _ in range(100):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self._port)) == 0:
                    return
            time.sleep(0.05)
        raise AssertionError((self._directory / "kdc.log").read_text())

    def stop(self) -> None:
        """End the center."""
        self._process.terminate()
        self._process.wait(10)

    def add(self, principal: str) -> Path:
        """A principal with a random key; the file that has it."""
        keys = self._directory / f"{principal.replace('/', '-')}.keytab"
        self._run("kadmin.local", "-q", f"addprinc -randkey {principal}")
        self._run("kadmin.local", "-q", f"ktadd -k {keys} {principal}")
        return keys

    def log_in(self, principal: str, keys: Path) -> None:
        """Get a ticket for it, in the cache that `environment` names."""
        self._run("kinit", "-k", "-t", str(keys), principal)

    def _run(self, program: str, *arguments: str) -> None:
        environment = {**os.environ, **self.environment}
        finished = subprocess.run(
            [_path(program), *arguments], env=environment, capture_output=True, text=True, check=False
        )
        assert finished.returncode == 0, finished.stdout + finished.stderr


def _path(program: str) -> str:
    found = shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")
    assert found is not None, f"{program} is not installed"
    return found
