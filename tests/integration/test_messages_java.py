"""Every message in every version, compared with Kafka's generated classes of two releases: both directions, and damage.

The older release has versions that were later dropped, the newer one those added since; most are in both.
"""

from __future__ import annotations

import base64
import random
import re
import uuid
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

import kafkacodec as kc
from kafkacodec import messages
from kafkacodec.messages.model import snake_case
from tests.integration.kafka_jars import RELEASES, TARGET
from tests.integration.kafka_jvm import JavaMessage, Messages
from tests.message_values import Values, damage
from tools import schemas

pytestmark = pytest.mark.java

# Messages that only Kafka's tests use.
IGNORED = re.compile(r"Simple(ExampleMessage|Arrays|Records)")
# Names that later releases changed; the bytes are the same.
RENAMED_CLASSES = {"ListClientMetricsResources": "ListConfigResources"}
RENAMED = {
    "candidate_directory_id": "replica_directory_id",
    "candidate_epoch": "replica_epoch",
    "candidate_id": "replica_id",
    "client_metrics_resources": "config_resources",
    "generation_id": "generation_id_or_member_epoch",
    "name": "resource_name",
}
# Tagged fields that later releases added to existing versions: unknown tags in the older one.
ADDED = {
    "ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions.assignment_epochs",
    "ConsumerGroupMetadataValue.metadata_hash",
    "ConsumerGroupTargetAssignmentMetadataValue.assignment_timestamp",
    "OffsetCommitValue.topic_id",
    "RemoteLogSegmentMetadataRecord.txn_index_empty",
    "RemoteLogSegmentMetadataSnapshotRecord.txn_index_empty",
    "TransactionLogValue.client_transaction_version",
    "TransactionLogValue.next_producer_epoch",
    "TransactionLogValue.next_producer_id",
    "TransactionLogValue.previous_producer_id",
}
# Drafts in the older release whose bytes changed later.
DRAFTS = {"ReadShareGroupStateSummaryResponse", "ShareGroupMetadataValue"}
# Nullable structs that are not nullable in these releases' schemas, but in their readers and writers.
WRONG_SCHEMAS = {
    "ConsumerGroupHeartbeatResponse",
    "ConsumerGroupMemberMetadataValue",
    "DescribeTopicPartitionsRequest",
    "DescribeTopicPartitionsResponse",
    "ShareGroupHeartbeatResponse",
}
# Errors for bytes that Kafka's reader accepts; see docs/protocol/leniency.md.
STRICTER = (
    "an unsigned varint overflows 32 bits",
    "a length below -1",
    "a string is not UTF-8",
    "tags are not in ascending order",
    "a tag: ",
    "the marker of a struct is neither -1 nor 1",
    "the marker of a tagged struct is neither 0 nor 1",
    "unexpected bytes after the message",
)
# A tag that a later version of the schema has: the older release keeps it, the newest rejects it.
LATER_TAG = "a tag that the schema defines for other versions only"
# The same where a tagged field has a wrong size: it ends too early, too late, or outside the message.
WRONG_SIZE = re.compile(r"unexpected bytes at the end of a tagged field|.* needs \d+ bytes, \d+ left")


class Case(NamedTuple):
    """A message class in one version, with Kafka's name and ours."""

    java_name: str
    java_version: int
    cls: Any
    version: int


class Release(NamedTuple):
    java: Messages
    cases: list[Case]
    newest: bool


@pytest.fixture(scope="module")
def releases() -> Iterator[dict[str, Release]]:
    found = {}
    for name in RELEASES:
        java, newest = Messages(name), name == "newest"
        compared = [case for case in cases(java) if newest or case.cls.__name__ not in DRAFTS]
        found[name] = Release(java, compared, newest)
    yield found
    for release in found.values():
        release.java.close()


@pytest.fixture(params=RELEASES)
def release(request: pytest.FixtureRequest, releases: dict[str, Release]) -> Release:
    return releases[request.param]


def cases(java: Messages) -> Iterator[Case]:
    for name, versions in java.versions().items():
        if IGNORED.search(name):
            continue
        ours = name if name in messages.message_names() else name.removesuffix("Data")
        for old, new in RENAMED_CLASSES.items():
            ours = ours.replace(old, new)
        cls = getattr(messages, ours)
        for version in versions:
            # In the older release the version of a coordinator key is its record type.
            yield Case(name, version, cls, 0 if cls._message.kind == "coordinator-key" else version)


def test_every_message_in_every_version_is_met(releases: dict[str, Release]) -> None:
    met = {(case.cls.__name__, case.version) for release in releases.values() for case in release.cases}
    classes = {name: getattr(messages, name) for name in messages.message_names()}
    assert met == {(name, version) for name, cls in classes.items() for version in cls.valid_versions}
    assert len(met) > 850
    assert all(len(release.cases) > 700 for release in releases.values())


def test_the_tables_are_what_the_newest_release_defines(releases: dict[str, Release]) -> None:
    jars = sorted((TARGET / "newest").glob("kafka-*.jar"))
    assert len(jars) > 5
    assert schemas.check(jars) == 0


def test_what_is_written_here(release: Release) -> None:
    rnd = random.Random(1)
    written = [(case, Values(case.cls, case.version, rnd).message()) for case in release.cases for _ in range(8)]
    bodies = [message.encode(case.version) for case, message in written]
    asked = [(case.java_name, case.java_version, body) for (case, _), body in zip(written, bodies, strict=True)]
    compared = 0
    for (case, message), body, answer in zip(written, bodies, release.java.decode(asked), strict=True):
        assert isinstance(answer, JavaMessage), (case, answer)
        assert not answer.remaining, case
        assert answer.encoded == body, case
        assert case.cls.from_dict(message.to_dict()).encode(case.version) == body, case
        compared += agree(message, answer.shown, f"{case.cls.__name__} v{case.version}")
    assert len(written) == 8 * len(release.cases)
    assert compared > 8 * len(written)


def test_what_kafka_writes(release: Release) -> None:
    asked = [(case, seed) for case in release.cases for seed in range(8)]
    answers = release.java.make([(case.java_name, case.java_version, seed) for case, seed in asked])
    compared = 0
    for (case, _), answer in zip(asked, answers, strict=True):
        if isinstance(answer, str):
            assert case.cls.__name__ in WRONG_SCHEMAS, (case, answer)
            continue
        message = case.cls.decode(answer.encoded, case.version)
        assert message.encode(case.version) == answer.encoded, case
        compared += agree(message, answer.shown, f"{case.cls.__name__} v{case.version}")
    assert sum(isinstance(answer, JavaMessage) for answer in answers) > 0.99 * len(asked)
    assert compared > 8 * len(asked)


def test_damage(release: Release) -> None:
    """Kafka's errors are errors, common results are equal, and what only Kafka accepts is in the table."""
    rnd = random.Random(3)
    asked = []
    for case in release.cases:
        if case.cls.__name__ in {name.partition(".")[0] for name in ADDED} and not release.newest:
            continue  # unknown tags are not checked
        for _ in range(4):
            body = Values(case.cls, case.version, rnd).message().encode(case.version)
            asked += [(case, damage(body, rnd)) for _ in range(4)]
    answers = release.java.decode([(case.java_name, case.java_version, body) for case, body in asked])
    outcomes: Counter[str] = Counter()
    for (case, body), answer in zip(asked, answers, strict=True):
        where = f"{case.cls.__name__} v{case.version} {body.hex()}"
        message = outcome(case, body)
        if isinstance(message, kc.DecodeError):
            assert 0 <= message.position <= len(body), where
            outcomes["refused" if isinstance(answer, str) else stricter(message, answer, body, where)] += 1
            continue
        assert isinstance(answer, JavaMessage), where
        assert not answer.remaining, where
        assert message.encode(case.version) == answer.encoded, where
        agree(message, answer.shown, where)
        outcomes["read"] += 1
    assert outcomes["refused"] > 6000, outcomes
    assert outcomes["read"] > 2500, outcomes
    assert outcomes["stricter"] > 1000, outcomes
    assert 0 < outcomes["wrong size"] < 200, outcomes
    assert outcomes["later tag"] < (1 if release.newest else 20), outcomes


def outcome(case: Case, body: bytes) -> Any:
    try:
        return case.cls.decode(body, case.version)
    except kc.DecodeError as error:
        return error


def stricter(error: kc.DecodeError, answer: JavaMessage, body: bytes, where: str) -> str:
    """The reason for rejecting what Kafka accepts; never a body that Kafka wrote."""
    if error.reason.startswith(LATER_TAG):
        return "later tag"
    assert answer.remaining or answer.encoded != body, f"{where} is as Kafka writes it, but refused: {error}"
    if error.reason.startswith(STRICTER):
        return "stricter"
    assert WRONG_SIZE.match(error.reason), f"{where}: {error}"
    return "wrong size"


def agree(ours: Any, shown: Any, where: str) -> int:
    """Compares Kafka's JSON with the message, whose other fields must have defaults; returns the number of values."""
    attributes = {snake_case(key): value for key, value in shown.items()}
    attributes = {key if hasattr(ours, key) else RENAMED[key]: value for key, value in attributes.items()}
    known = {field.attribute: field.type for field in ours._spec.fields}
    assert attributes.keys() <= known.keys(), where
    for name in known.keys() - attributes.keys():
        qualified = f"{type(ours).__qualname__}.{name}"
        assert qualified in ADDED or getattr(ours, name) == getattr(type(ours)(), name), f"{where}: {qualified}"
    return sum(
        same(getattr(ours, name), value, f"{where} {name}")
        for name, value in attributes.items()
        if known[name] != "records"  # its JSON leaves it out
    )


def same(ours: Any, shown: Any, where: str) -> int:
    if isinstance(ours, messages.MessageStruct):
        return agree(ours, shown, where)
    if isinstance(ours, list):
        assert len(ours) == len(shown), where
        return sum(same(own, theirs, f"{where}[{i}]") for i, (own, theirs) in enumerate(zip(ours, shown, strict=True)))
    if isinstance(ours, bytes):
        assert ours == base64.b64decode(shown), where
    elif isinstance(ours, uuid.UUID):
        assert ours.bytes == base64.urlsafe_b64decode(shown + "=="), where
    elif isinstance(ours, float):
        assert repr(ours) == repr(float(shown)), where
    else:
        assert type(ours) is type(shown), where
        assert ours == shown, where
    return 1
