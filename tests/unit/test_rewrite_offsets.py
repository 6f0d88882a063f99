"""CommitOffsets and FetchOffsets of the rewrite's controller."""

from __future__ import annotations

from typing import Any

from kafkacodec.dialects import rewrite
from kafkacodec.dialects.rewrite import ErrorCode
from tests.rewrite_session import Session


def commit(s: Session, client: str, offsets: dict[tuple[str, int], int], group: str = "g") -> Any:
    entry = rewrite.CommitOffsets.PartitionOffset
    entries = [entry(topic=t, partition=p, offset=o) for (t, p), o in offsets.items()]
    (reply,) = s.call(rewrite.CommitOffsets, client, consumer_group=group, offsets=entries)
    found: Any = reply.message
    return found.error_code, [result.error_code for result in found.results]


def fetch(s: Session, partitions: list[tuple[str, int]], group: str = "g") -> Any:
    entry = rewrite.FetchOffsets.TopicPartition
    entries = [entry(topic=t, partition=p) for t, p in partitions]
    (reply,) = s.call(rewrite.FetchOffsets, "x", consumer_group=group, partitions=entries)
    found: Any = reply.message
    return found.error_code, [(o.topic, o.partition, o.offset, o.error_code) for o in found.offsets]


def test_owners_commit_and_anybody_fetches() -> None:
    s = Session()
    s.create()
    s.register("a")
    assert commit(s, "a", {("t", 0): 5, ("t", 1): 7}) == (0, [0, 0])
    assert fetch(s, []) == (0, [("t", 0, 5, 0), ("t", 1, 7, 0)])
    assert fetch(s, [("t", 3), ("t", 1)]) == (0, [("t", 3, -1, 0), ("t", 1, 7, 0)])
    s.register("b")
    assert s.heartbeat("a") == ErrorCode.GROUP_CHANGES
    assert commit(s, "a", {("t", 0): 6}) == (0, [0])  # until it has registered again
    assert s.register("a") == {"a": {0: 6, 1: 7}, "b": {2: -1, 3: -1}}


def test_what_is_wrong_is_told_for_each_partition_and_the_others_are_committed() -> None:
    s = Session()
    s.create()
    s.register("a")
    commit(s, "a", {("t", 0): 5})
    given = {("t", 0): 4, ("t", 1): 1, ("t", 4): 1, ("t", 2): -1, ("t", -1): 1}
    codes = [
        ErrorCode.OFFSET_TOO_SMALL,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_PARTITION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNKNOWN_PARTITION,
    ]
    assert commit(s, "a", given) == (ErrorCode.OFFSET_TOO_SMALL, codes)
    assert fetch(s, []) == (0, [("t", 0, 5, 0), ("t", 1, 1, 0)])
    assert fetch(s, [("t", 4)]) == (ErrorCode.UNKNOWN_PARTITION, [("t", 4, -1, ErrorCode.UNKNOWN_PARTITION)])
    assert commit(s, "b", {("t", 0): 9}) == (ErrorCode.NOT_OWNER, [ErrorCode.NOT_OWNER])
    assert commit(s, "a", {("t", 0): 9}, "nope") == (ErrorCode.UNKNOWN_GROUP, [])
    assert fetch(s, [], "nope") == (ErrorCode.UNKNOWN_GROUP, [])


def test_partitions_that_the_group_does_not_share_may_be_committed_by_anybody() -> None:
    s = Session({"t": 1, "other": 2})
    s.create()
    assert commit(s, "reader", {("other", 1): 8}) == (0, [0])
    assert commit(s, "reader", {("other", 1): 3}) == (0, [0])
    assert fetch(s, [("other", 1)]) == (0, [("other", 1, 3, 0)])


def test_what_has_to_be_stored_is_told_once() -> None:
    s = Session()
    s.create()
    assert s.controller.take_changed() == ["g"]
    s.register("a")  # a new generation
    assert s.controller.take_changed() == ["g"]
    s.heartbeat("a")
    fetch(s, [])
    assert s.controller.take_changed() == []
    commit(s, "a", {("t", 0): 5})
    assert s.controller.take_changed() == ["g"]
    commit(s, "a", {("t", 0): 5})
    assert s.controller.take_changed() == []
    s.rewind("a", {("t", 0): 2})
    assert s.controller.take_changed() == ["g"]
    s.controller.disconnect("a", s.now)
    s.controller.take_changed()
    s.call(rewrite.DeleteGroup, "x", consumer_group=["g"])
    assert s.controller.take_changed() == ["g"]


def test_a_topic_that_is_made_anew_is_read_from_its_start() -> None:
    s = Session()
    s.create()
    s.register("a")
    commit(s, "a", {("t", 0): 5})
    s.controller.remove_topic("t", s.now)
    assert s.heartbeat("a") == ErrorCode.GROUP_CHANGES
    assert s.register("a") == {"a": {}}
    s.controller.set_partitions("t", 1, s.now)
    assert s.heartbeat("a") == ErrorCode.GROUP_CHANGES
    assert s.register("a") == {"a": {0: 0}}
