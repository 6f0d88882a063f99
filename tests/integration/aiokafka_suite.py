"""The tests that aiokafka has in its repository, against this broker.

    python -m tests.integration.aiokafka_suite [CHECKOUT] [-- ARGUMENT…]

Without a checkout, git gets the release that is installed, whose sdist has no tests. The arguments are pytest's. Prints
which tests fail, and why where that is known; the exit code is 1 if others fail.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
from pathlib import Path

import kafkacodec as kc
from tests.certificates import Authority

REPOSITORY = "https://github.com/aio-libs/aiokafka"
USERS = {"test": "test"}
FILES = ("admin", "client", "conn", "consumer", "coordinator", "pep492", "producer", "sasl", "transactional_consumer",
         "transactional_producer")  # fmt: skip
KNOWN = {
    "gssapi": "it needs a Kerberos server in a container",
    "test_kip_345": "the end of a session of 10 s must be heard of within 15 s, which a busy machine misses",
    "test_sender__handler_base_do": "it expects that the broker has the id 0",
}
"""By a part of a test's name: why it fails."""

CONFTEST = """
import os
from pathlib import Path
from kafkacodec import client
from tests.their_conftest import *
from tests._testutil import ACLManager, KafkaConfig

@pytest.fixture(scope="session")
def docker():
    return None

@pytest.fixture(scope="session")
def ssl_folder():
    return Path(os.environ["SUITE_CERTIFICATES"])

@pytest.fixture(scope="session")
def kafka_server():
    yield KafkaServer("127.0.0.1", *map(int, os.environ["SUITE_PORTS"].split(",")), None)

@pytest.fixture(scope="class")
def kerberos_utils():
    return None

class Acls(ACLManager):
    def _exec(self, action, *options):
        words = " ".join(options).replace("--cluster", "--cluster kafka-cluster").split()
        given = dict(zip(words[::2], words[1::2]))
        kind = next((kind for kind in ("cluster", "topic", "group", "transactional-id") if "--" + kind in given), None)
        if action == "--list" or kind is None:
            return b""
        who = {way: given[f"--{way}-principal"] for way in ("allow", "deny") if f"--{way}-principal" in given}
        with client.Admin(os.environ["SUITE_SERVER"]) as admin:
            for way, principal in who.items():
                entry = (kind.replace("-", "_"), given["--" + kind], principal, given["--operation"].lower(), way)
                if action == "--add":
                    admin.create_acls([client.Acl(*entry)])
                else:
                    admin.delete_acls([client.AclFilter(*entry)])

class Users(KafkaConfig):
    def add_scram_user(self, username, password):
        pass

@pytest.fixture(scope="class")
def acl_manager():
    return Acls(None, "")

@pytest.fixture(scope="class")
def kafka_config():
    return Users(None, "")
"""
"""In place of the suite's own, which starts containers and runs Kafka's tools in them."""
DOCKER = """
class models:
    class containers:
        class Container:
            pass
"""


def prepare(checkout: Path | None, directory: Path) -> Path:
    """A copy of the tests that runs without containers, beside the installed aiokafka."""
    source, suite = directory / "source", directory / "suite"
    if checkout is None:
        tag = "v" + importlib.metadata.version("aiokafka")
        subprocess.run(["git", "clone", "-q", "--depth", "1", "--branch", tag, REPOSITORY, source], check=True)
    shutil.copytree((checkout or source) / "tests", suite / "tests")
    (suite / "tests" / "conftest.py").rename(suite / "tests" / "their_conftest.py")
    (suite / "tests" / "conftest.py").write_text(CONFTEST)
    (suite / "docker.py").write_text(DOCKER)
    return suite


def run(suite: Path, directory: Path, arguments: list[str]) -> list[str]:
    """Run the tests; pytest's lines."""
    authority = Authority(directory)
    server, client = authority.issue("server", "127.0.0.1"), authority.issue("client", password="abcdefgh")
    authority.certificate.rename(directory / "ca.crt")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(server.certificate, server.key)
    assert client.key.exists()
    listen = [f"kafka{way}://127.0.0.1:0" for way in ("", "+tls", "+sasl", "+sasl+tls")]
    config = {"num.partitions": 2, "allow.everyone.if.no.acl.found": "true", "super.users": "User:ANONYMOUS"}
    with kc.broker.serve(listen=listen, users=USERS, tls=tls, config=config, authorizer=True) as broker:
        ports = ",".join(url.rpartition(":")[2] for url in broker.listeners)
        environment = {"SUITE_PORTS": ports, "SUITE_SERVER": f"127.0.0.1:{ports.partition(',')[0]}"}
        environment |= {"SUITE_CERTIFICATES": str(directory), "PYTHONPATH": str(suite)}
        options = ["-q", "-p", "no:cacheprovider", "-p", "no:kafkacodec", "-W", "default", "--tb=line", "-rfE"]
        options += ["-o", "asyncio_default_fixture_loop_scope=function", "--no-pull"]
        options += ["--docker-image=broker:2.13_4.0.0"]  # by which the tests know the version
        tests = arguments or [f"tests/test_{name}.py" for name in FILES]
        command = [sys.executable, "-m", "pytest", *options, *tests]
        found = subprocess.run(command, cwd=suite, env=os.environ | environment, capture_output=True, text=True)
    return found.stdout.splitlines()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("checkout", type=Path, nargs="?")
    parser.add_argument("arguments", nargs="*")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        lines = run(prepare(options.checkout, Path(name)), Path(name), options.arguments)
    failed = [line for line in lines if re.match("FAILED|ERROR", line)]
    unknown = 0
    for line in failed:
        reason = next((reason for part, reason in KNOWN.items() if part in line), None)
        unknown += reason is None
        print(f"{line.split(' - ')[0]}{'' if reason is None else f': {reason}'}")
    print(lines[-1] if lines else "pytest printed nothing")
    return 1 if unknown or not lines else 0


if __name__ == "__main__":
    sys.exit(main())
