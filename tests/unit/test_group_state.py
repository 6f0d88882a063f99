"""The state of groups, record by record, from what a broker wrote for the groups of the sample."""

from __future__ import annotations

from typing import Any

import kafkacodec as kc
from kafkacodec.log.sample import sample
from kafkacodec.log.state.group_state import GroupState
from kafkacodec.messages.stored import decode_coordinator_record


def records() -> list[tuple[int, Any, Any]]:
    found = []
    for record in sample().topic("__consumer_offsets"):
        assert record.key is not None
        decoded = decode_coordinator_record("group", record.key, record.value)
        if decoded is not None:
            found.append((record.offset, *decoded))
    return found


def read(state: GroupState, group: str) -> int:
    return sum(commit.offset for commit in state.committed_offsets() if commit.group == group)


def test_records_are_applied_one_by_one() -> None:
    state = GroupState()
    kinds, progress = [], [0]
    for offset, key, value in records():
        state.apply(offset, key, value)
        kinds.append({group.group: group.kind for group in state.groups({})})
        progress.append(read(state, "billing"))
    assert kinds[-1].keys() == {"billing", "reports"}
    assert read(state, "reports") == 600
    assert progress[-1] == 359  # of each partition 60 %, rounded down
    assert progress == sorted(progress)


def test_a_tombstone_removes_what_its_key_names() -> None:
    state = GroupState()
    for record in records():
        state.apply(*record)
    commits = state.committed_offsets()
    last = max(offset for offset, _, _ in records())
    for number, commit in enumerate(commits, last + 1):
        key = kc.messages.OffsetCommitKey(group=commit.group, topic=commit.topic, partition=commit.partition)
        state.apply(number, key, None)
        assert commit not in state.committed_offsets()
    assert state.committed_offsets() == []


def test_a_group_with_commits_alone_is_a_classic_one_without_members() -> None:
    state = GroupState()
    for offset, key, value in records():
        if "Commit" in type(key).__name__:
            state.apply(offset, key, value)
    found = {group.group: group for group in state.groups({})}
    assert found.keys() == {"billing", "reports"}
    assert found["reports"][1:] == ("classic", 0, "", None, None, [])


def test_a_commit_of_a_transaction_that_ends_after_a_later_commit_does_not_replace_that() -> None:
    state = GroupState()
    offset, key, value = next(record for record in records() if "Commit" in type(record[1]).__name__)
    state.apply(offset + 1, key, value)
    earlier = kc.messages.OffsetCommitValue(offset=value.offset + 7)
    state.apply(offset, key, earlier)
    assert [commit.offset for commit in state.committed_offsets()] == [value.offset]
