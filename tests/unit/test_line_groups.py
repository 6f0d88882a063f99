"""The line protocol's broker: consumer groups and their offsets."""

from __future__ import annotations

from kafkacodec.dialects import line
from tests.line_session import Session


def test_groups_share_partitions() -> None:
    s = Session(topics={"t": 5})
    assert s.ask("JOIN", "g t b") == {"generation": 1, "assigned": [0, 1, 2, 3, 4]}
    assert s.ask("JOIN", "g t a") == {"generation": 2, "assigned": [0, 2, 4]}
    assert s.ask("JOIN", "g t b") == {"generation": 2, "assigned": [1, 3]}
    assert s.ask("SYNC", "g t a 1") == "GENERATION_MISMATCH"
    assert s.ask("SYNC", "g t nobody 2") == "GENERATION_MISMATCH"
    assert s.ask("LEAVE", "g t a 2") == {"left": True}
    assert s.ask("LEAVE", "g t a 3") == "GENERATION_MISMATCH"
    assert s.ask("JOIN", "g t b") == {"generation": 3, "assigned": [0, 1, 2, 3, 4]}
    assert s.ask("JOIN", "g other b") == {"generation": 1, "assigned": [0]}


def test_the_assignor_is_the_groups() -> None:
    s = Session(topics={"t": 5})
    assert s.ask("JOIN", "g t b assignor=range") == {"generation": 1, "assigned": [0, 1, 2, 3, 4]}
    # No assignor means the group's; another one is refused, without a new generation.
    assert s.ask("JOIN", "g t a") == {"generation": 2, "assigned": [0, 1, 2]}
    assert s.ask("JOIN", "g t c assignor=round_robin") == "BAD_REQUEST"
    assert s.ask("JOIN", "g t a assignor=round_robin") == "BAD_REQUEST"
    assert s.ask("SYNC", "g t b 2") == {"generation": 2, "assigned": [3, 4]}
    s.ask("LEAVE", "g t b 2")
    # The only member may change the assignor, and so may the first member of an empty group.
    assert s.ask("JOIN", "g t a assignor=round_robin") == {"generation": 4, "assigned": [0, 1, 2, 3, 4]}
    assert s.ask("JOIN", "g t b assignor=round_robin") == {"generation": 5, "assigned": [1, 3]}
    s.wait(10_001)
    assert s.ask("JOIN", "g t c assignor=range")["assigned"] == [0, 1, 2, 3, 4]


def test_members_with_other_assignors_do_not_expel_each_other_for_ever() -> None:
    s = Session(topics={"t": 4})
    generations = []
    for _ in range(10):
        for consumer, assignor in (("a", "range"), ("b", "round_robin")):
            answer = s.ask("JOIN", f"g t {consumer} assignor={assignor}")
            generations += [answer["generation"]] if answer != "BAD_REQUEST" else []
    assert set(generations) == {1}


def test_commits_need_generation_and_ownership() -> None:
    s = Session(topics={"t": 2})
    s.ask("JOIN", "g t a")
    s.ask("JOIN", "g t b")
    assert s.ask("OFFSET", "g t 0") == {"offset": -1}
    assert s.ask("COMMIT", "g t a 2 0 7") == {"committed": True}
    assert s.ask("COMMIT", "g t a 2 0 7") == {"committed": True}
    assert s.ask("COMMIT", "g t a 2 1 7") == "GENERATION_MISMATCH"
    assert s.ask("COMMIT", "g t a 1 0 8") == "GENERATION_MISMATCH"
    assert s.ask("COMMIT", "g t c 2 0 8") == "GENERATION_MISMATCH"
    assert s.ask("COMMIT", "g t a 2 0 6") == "BAD_REQUEST"
    assert s.ask("COMMIT", "g t b 2 1 -1") == "BAD_REQUEST"
    assert s.ask("OFFSET", "g t 0") == {"offset": 7}
    assert s.ask("OFFSET", "g t 2") == "BAD_REQUEST"


def test_silent_members_are_taken_out() -> None:
    s = Session(topics={"t": 2}, session_timeout_ms=100)
    s.ask("JOIN", "g t a")
    s.ask("JOIN", "g t b")
    s.now = 100
    assert s.ask("HEARTBEAT", "g t a 2") == {"heartbeat": "ok"}
    assert s.broker.next_deadline() == 101
    s.wait(1)
    assert s.ask("HEARTBEAT", "g t a 2") == "GENERATION_MISMATCH"
    assert s.ask("HEARTBEAT", "g t b 2") == "GENERATION_MISMATCH"
    assert s.ask("JOIN", "g t a") == {"generation": 3, "assigned": [0, 1]}
    # Without a tick too: the next request finds the member removed.
    s.now += 101
    assert s.ask("HEARTBEAT", "g t a 3") == "GENERATION_MISMATCH"


def test_groups_that_nobody_is_in_take_no_room() -> None:
    s = Session(max_groups=3)
    for i in range(20):
        s.ask("JOIN", f"g-{i} t a")
        assert s.ask("LEAVE", f"g-{i} t a 1") == {"left": True}
    assert len(s.storage.load_groups()) == 3
    for i in range(20):
        assert s.ask("JOIN", f"h-{i} t a")["generation"] == 1
        s.wait(10_001)
    assert len(s.storage.load_groups()) == 3
    assert s.ask("JOIN", "h-19 t a")["generation"] == 3


def test_a_group_without_members_keeps_its_offsets_for_a_while() -> None:
    s = Session(max_groups=1, group_retention_ms=50_000)
    for i in range(3):
        s.ask("JOIN", f"g-{i} t a")
        s.ask("COMMIT", f"g-{i} t a 1 0 {i + 5}")
        s.ask("LEAVE", f"g-{i} t a 1")
    assert s.broker.next_deadline() == 50_001
    s.wait(50_000)
    assert [s.ask("OFFSET", f"g-{i} t 0")["offset"] for i in range(3)] == [5, 6, 7]
    assert s.ask("JOIN", "g-2 t a")["generation"] == 3
    s.ask("HEARTBEAT", "g-2 t a 3")
    s.wait(1)
    assert [s.ask("OFFSET", f"g-{i} t 0")["offset"] for i in range(3)] == [-1, -1, 7]
    assert s.storage.load_offsets() == [{"group": "g-2", "topic": "t", "partition": 0, "offset": 7}]
    assert [row["group"] for row in s.storage.load_groups()] == ["g-2"]


def test_many_groups_are_saved_at_once() -> None:
    """All groups are in one file: the expiry of several groups must write it once."""
    storage, saved = line.MemoryStorage(), []
    s = Session(storage)
    for i in range(50):
        s.ask("JOIN", f"g-{i} t a")
    storage.save_groups = saved.append  # type: ignore[method-assign]
    s.wait(10_001)
    assert [len(rows) for rows in saved] == [50]
