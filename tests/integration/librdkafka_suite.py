"""The tests that librdkafka has in its repository, against this broker.

    python -m tests.integration.librdkafka_suite [--tests NUMBER,…] [--protocol consumer] [--patience 6]

npm has librdkafka's sources with their tests, in Confluent's package for JavaScript; they are built once into .cache,
with a C++ compiler. Tests that need no broker are left out. Prints which tests fail and are skipped, what they say, and
why where that is known; the exit code is 1 if others fail.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import kafkacodec as kc
from tests.integration.client_suites import Results, show
from tests.integration.other_clients import CACHE

PACKAGE = "@confluentinc/kafka-javascript@1.10.1"
RELEASE = "4.4.0"  # by which the tests know what the broker can do
SCENARIOS = {"default": "true", "noautocreate": "false"}
"""The brokers that tests are for: whether they make topics that are asked for."""
CONFIG = {
    "num.partitions": 4,
    "allow.everyone.if.no.acl.found": "true",
    "group.initial.rebalance.delay.ms": 3000,  # Apache Kafka's default, on which tests count
    "group.share.heartbeat.interval.ms": 500,  # a member is assigned its partitions with the second one
    "group.share.min.record.lock.duration.ms": 1000,
    # A member that does not poll in time sends no heartbeat and does not leave; 0113 waits 30 s for its partitions.
    # With the 45 s that are the default, it fails against Apache Kafka 4.4.0, too.
    "group.consumer.min.session.timeout.ms": 6000,
    "group.consumer.session.timeout.ms": 6000,
    "group.consumer.min.heartbeat.interval.ms": 1000,
    "group.consumer.heartbeat.interval.ms": 1000,
}
KNOWN = {
    "0081_admin": "it waits 6 s for sessions of 6 s to end, so that it may fail with any broker",
    "0091_max_poll_interval_timeout": "it counts rebalances, of which there are more on a busy machine",
    "0119_consumer_auth": "its limit of 20 s, with four starts of a tool, is too short for a busy machine",
    "0170_share_consumer_subscription": "its limit for all of its parts is too short for a busy machine",
}
"""By the name of a test: why it fails."""
KNOWN_OF_CONSUMER = {
    "0045_subscribe_many_updates": "a race of the client: if it leaves while it gives up partitions that a heartbeat "
    "took away, it forgets what it subscribes to meanwhile; with heartbeats that are answered 20 ms later it passes, "
    "and with 4 ms between its calls it fails against Apache Kafka 4.1.0 in the same way",
    "0045_subscribe_update_non_exist_and_partchange": "it expects that added partitions are preceded by a revocation",
    "0045_subscribe_update_topic_remove": "it expects that partitions are assigned anew after a revocation",
}
"""The same for groups of the consumer protocol, whose assignments are increments (KIP-848): the last two fail against
Apache Kafka 4.4.0, too."""

_COLOUR = re.compile(r"\x1b\[[\d;]*m")
_SUMMARY = re.compile(r"^\| (\d\w+) +\| +([A-Z_]+) \| +[\d.]+s \|(.*)$", re.MULTILINE)
_FAILURE = re.compile(r"^### Test \"(\d\w+).*###\n(.*)", re.MULTILINE)
_OTHER = ("Filtered", "filtered", "scenario")  # in the reasons of tests that are not for this run
_SECONDS = 900

TOPICS = """#!{python}
import argparse
from kafkacodec.client import Admin, NewTopic
parser = argparse.ArgumentParser()
for word in ("create", "alter", "delete"):
    parser.add_argument("--" + word, action="store_true")
for word in ("bootstrap-server", "topic"):
    parser.add_argument("--" + word)
for word in ("partitions", "replication-factor"):
    parser.add_argument("--" + word, type=int, default=-1)
parser.add_argument("--config", action="append", default=[])
asked = parser.parse_args()
configs = dict(text.split("=", 1) for text in asked.config)
with Admin(asked.bootstrap_server) as admin:
    if asked.create:
        admin.create_topics([NewTopic(asked.topic, asked.partitions, asked.replication_factor, configs=configs)])
    elif asked.alter:
        admin.create_partitions({{asked.topic: asked.partitions}})
    elif asked.delete:
        admin.delete_topics([asked.topic])
"""
ACLS = """#!{python}
import argparse
from kafkacodec.client import Acl, AclFilter, Admin
parser = argparse.ArgumentParser()
for word in ("add", "remove", "force"):
    parser.add_argument("--" + word, action="store_true")
for word in ("bootstrap-server", "topic", "operation"):
    parser.add_argument("--" + word)
for word in ("allow", "deny"):
    parser.add_argument("--" + word + "-principal")
    parser.add_argument("--" + word + "-host")
asked = parser.parse_args()
way = "allow" if asked.allow_principal else "deny"
entry = ("topic", asked.topic, asked.allow_principal or asked.deny_principal, asked.operation.lower(), way)
with Admin(asked.bootstrap_server) as admin:
    if asked.add:
        admin.create_acls([Acl(*entry)])
    else:
        admin.delete_acls([AclFilter(*entry)])
"""
"""In place of the two tools of Apache Kafka that some tests call."""


def built() -> Path:
    """The directory of the tests, with their program."""
    source = CACHE / "librdkafka"
    tests = source / "package" / "deps" / "librdkafka" / "tests"
    if not (tests / "test-runner").exists():
        shutil.rmtree(source, ignore_errors=True)
        source.mkdir(parents=True)
        packed = subprocess.run(["npm", "pack", "--silent", PACKAGE], cwd=source, check=True, capture_output=True)
        subprocess.run(["tar", "xzf", packed.stdout.decode().strip()], cwd=source, check=True)
        for command in (["./configure"], ["make", "-j2", "libs"], ["make", "-j2", "-C", "tests", "build"]):
            subprocess.run(command, cwd=tests.parent, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return tests


def prepare(directory: Path, servers: str, patience: float = 1) -> dict[str, str]:
    """Write what the tests read; their environment. `patience` multiplies their time limits."""
    directory.mkdir(exist_ok=True)
    (directory / "test.conf").write_text(f"bootstrap.servers={servers}\ntest.timeout.multiplier={patience}\n")
    (directory / "bin").mkdir(exist_ok=True)
    for name, text in (("topics", TOPICS), ("acls", ACLS)):
        program = directory / "bin" / f"kafka-{name}.sh"
        program.write_text(text.format(python=sys.executable))
        program.chmod(0o755)
    return {
        "TEST_KAFKA_VERSION": RELEASE,
        "RDKAFKA_TEST_CONF": str(directory / "test.conf"),
        "KAFKA_PATH": str(directory),
        "BROKERS": servers,
    }


def run(
    tests: Path, directory: Path, numbers: Iterable[str], environment: dict[str, str], options: Iterable[str] = ()
) -> Results:
    """Run tests that need a broker, each in a process of its own, whose output is a file of the directory."""
    environment = os.environ | environment
    environment["LD_LIBRARY_PATH"] = f"{tests.parent / 'src'}:{tests.parent / 'src-cpp'}"

    def one(number: str) -> tuple[str, str]:
        command = [tests / "test-runner", "-p1", "-L", "-K", *options]
        with open(directory / number, "wb") as output:
            try:
                subprocess.run(
                    command, cwd=tests, env=environment | {"TESTS": number}, stdout=output, stderr=output,
                    timeout=_SECONDS, check=False,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                output.write(f'\n### Test "{number}" ###\nnot done in {_SECONDS} s'.encode())
        return number, _COLOUR.sub("", (directory / number).read_text(errors="replace"))

    results = Results(set(), {}, {})
    with ThreadPoolExecutor(2) as pool:
        for number, printed in pool.map(one, numbers):
            rows = _SUMMARY.findall(printed)
            failures = [(name, "FAILED", text) for name, text in _FAILURE.findall(printed)]
            # A test that fails ends the program, mostly without a summary.
            for name, state, said in rows or failures or [(number, "FAILED", printed[-300:])]:
                if state == "PASSED":
                    results.passed.add(name)
                elif state != "SKIPPED":
                    results.failed[name] = f"    {said.strip()}"
                elif said.strip() and not any(word in said for word in _OTHER):
                    results.skipped[name] = f"    {said.strip()}"
    return results


def main() -> int:
    """Run the tests."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", default="", help="numbers of tests, such as 0030,0081")
    parser.add_argument("--protocol", default="classic", choices=("classic", "consumer"), help="of groups")
    parser.add_argument("--patience", type=float, default=1, help="multiplies the time limits, for a busy machine")
    parser.add_argument("--quick", action="store_true", help="without most parts of tests")
    parser.add_argument("--keep", type=Path, help="where the tests' output stays")
    arguments = parser.parse_args()
    tests = built()
    numbers = arguments.tests.split(",") if arguments.tests else sorted({p.name[:4] for p in tests.glob("0*-*.c*")})
    results = Results(set(), {}, {})
    for scenario, creates in SCENARIOS.items():
        config = CONFIG | {"auto.create.topics.enable": creates}
        with (
            tempfile.TemporaryDirectory() as name,
            kc.broker.serve(brokers=3, config=config, authorizer=True) as broker,
        ):
            directory = (arguments.keep or Path(name)) / scenario
            directory.parent.mkdir(exist_ok=True)
            environment = prepare(directory, broker.bootstrap_servers, arguments.patience)
            environment |= {"TEST_CONSUMER_GROUP_PROTOCOL": arguments.protocol, "TEST_SCENARIO": scenario}
            found = run(tests, directory, _of_scenario(tests, numbers, scenario), environment, ["-Q"] * arguments.quick)
        results.passed.update(found.passed)
        results.failed.update(found.failed)
        results.skipped.update(found.skipped)
    known = KNOWN | (KNOWN_OF_CONSUMER if arguments.protocol == "consumer" else {})
    show("librdkafka", results, known)
    return int(not results.passed or bool(results.failed.keys() - known.keys()))


def _of_scenario(tests: Path, numbers: Iterable[str], scenario: str) -> list[str]:
    """The tests that a scenario is for: what is said of them in the list of all tests."""
    if scenario == "default":
        return list(numbers)
    listed = (tests / "test.c").read_text().split("_TEST(")
    named = {row[:4] for row in listed if f'.scenario = "{scenario}' in row}
    return [number for number in numbers if number in named]


if __name__ == "__main__":
    sys.exit(main())
