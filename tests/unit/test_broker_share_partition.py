"""What share groups are given of a partition. Expected values are answers of Apache Kafka 4.4.0 to such requests."""

from __future__ import annotations

from typing import Any

import pytest

from kafkacodec.broker.state.sharing.batches import Batch, combined
from kafkacodec.broker.state.sharing.deliveries import ACCEPT, GAP, REJECT, RELEASE, RENEW, Wanted
from kafkacodec.broker.state.sharing.partition import SharePartition

THREES = [(0, 2), (3, 5), (6, 8), (9, 11)]
"""Four batches of three records."""


class Reader:
    """A member that reads a log."""

    def __init__(self, log: list[tuple[int, int]], shared: SharePartition | None = None, member: str = "m") -> None:
        self.log, self.member = log, member
        self.shared = SharePartition(0, ()) if shared is None else shared

    def fetch(self, records: int = 500, batch: int = 500, *, strict: bool = False, until: float = 30_000) -> Any:
        """First and last offset and delivery count of what is given out."""
        read = [one for one in self.log if one[1] >= self.shared.next_offset]
        return [tuple(one) for one in self.shared.acquire(read, Wanted(self.member, records, batch, strict, until))]

    def say(self, *said: tuple[int, int, list[int]], until: float = 30_000) -> Any:
        """What is written, once it is, or an error code."""
        change = self.shared.acknowledge(self.member, [Said(*one) for one in said], until)
        if isinstance(change, int):
            return change
        self.shared.done(change)
        return [tuple(batch) for batch in change.batches]


class Said:
    """A range that something is said about."""

    def __init__(self, first: int, last: int, types: list[int]) -> None:
        self.first, self.last, self.types = first, last, types


def test_what_fails_often_comes_in_smaller_pieces() -> None:
    reader = Reader([(0, 7)])
    found = []
    while got := reader.fetch():
        found.append(got)
        reader.say(*((first, last, [RELEASE]) for first, last, _ in got))
    assert found == [
        [(0, 7, 1)], [(0, 7, 2)], [(0, 7, 3)],
        [(0, 3, 4)], [(0, 0, 5)], [(1, 1, 5)], [(2, 2, 5)], [(3, 3, 5)],
        [(4, 7, 4)], [(4, 4, 5)], [(5, 5, 5)], [(6, 6, 5)], [(7, 7, 5)],
    ]  # fmt: skip
    assert reader.shared.start == 8


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"batch": 2}, [[(0, 2, 1), (3, 5, 1), (6, 8, 1), (9, 11, 1)], []]),
        ({"batch": 4}, [[(0, 5, 1), (6, 11, 1)], []]),
        ({"batch": 1, "records": 4}, [[(0, 2, 1), (3, 5, 1)], [(6, 8, 1), (9, 11, 1)], []]),
        ({"batch": 5, "records": 4}, [[(0, 5, 1)], [(6, 11, 1)], []]),
        ({"records": 4, "strict": True}, [[(0, 3, 1)], [(4, 5, 1), (6, 7, 1)], [(8, 8, 1), (9, 11, 1)], []]),
        ({"records": 4, "batch": 2, "strict": True}, [[(0, 3, 1)], [(4, 5, 1), (6, 7, 1)], [(8, 8, 1), (9, 11, 1)]]),
        ({"records": 0}, [[]]),
    ],
)
def test_how_much_is_given_out(options: dict[str, Any], found: list[Any]) -> None:
    reader = Reader(THREES)
    assert [reader.fetch(**options) for _ in found] == found


def test_released_records_come_with_their_counts() -> None:
    reader = Reader(THREES[:3])
    assert reader.fetch() == [(0, 8, 1)]
    assert reader.say((0, 1, [ACCEPT]), (4, 5, [RELEASE]), (7, 7, [RELEASE])) == [
        (0, 1, 2, 1), (4, 5, 0, 1), (7, 7, 0, 1),
    ]  # fmt: skip
    assert (reader.shared.start, reader.shared.next_offset) == (2, 4)
    assert reader.fetch() == [(4, 5, 2), (7, 7, 2)]
    reader.say((2, 3, [RELEASE]), (4, 4, [ACCEPT]), (5, 8, [RELEASE]))
    assert reader.fetch(records=2) == [(2, 3, 2), (5, 5, 3), (6, 6, 2), (7, 7, 3), (8, 8, 2)]
    assert reader.fetch() == []


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ([(4, 5, [ACCEPT])], 42),
        ([(3, 6, [ACCEPT])], 42),
        ([(0, 1, [ACCEPT]), (1, 2, [ACCEPT])], 121),
        ([(0, 0, [ACCEPT]), (0, 0, [RENEW])], 121),
    ],
)
def test_what_is_refused_is_refused_whole(said: list[Any], code: int) -> None:
    reader = Reader([(0, 3)])
    reader.fetch()
    assert reader.say(*said) == code
    assert Reader([(0, 3)], reader.shared, "n").say((0, 3, [ACCEPT])) == 121
    assert reader.say((0, 3, [ACCEPT])) == [(0, 3, 2, 1)]
    assert reader.say((0, 3, [ACCEPT])) == []  # done long ago


def test_each_record_may_have_a_type() -> None:
    reader = Reader([(0, 3)])
    reader.fetch()
    assert reader.say((0, 3, [ACCEPT, RELEASE, REJECT, GAP])) == [(0, 0, 2, 1), (1, 1, 0, 1), (2, 3, 4, 1)]
    assert reader.fetch() == [(1, 1, 2)]
    assert reader.say((1, 3, [ACCEPT, GAP, ACCEPT])) == 121
    assert (reader.say((1, 1, [ACCEPT])), reader.shared.start) == ([(1, 1, 2, 2)], 4)


def test_nothing_counts_before_it_is_written() -> None:
    reader = Reader([(0, 3)])
    reader.fetch()
    change = reader.shared.acknowledge("m", [Said(0, 0, [ACCEPT]), Said(1, 1, [RELEASE])], 0)
    assert not isinstance(change, int)
    assert (reader.shared.start, reader.shared.complete, reader.fetch()) == (0, 1, [])
    reader.shared.undo(change)
    assert (reader.shared.complete, reader.say((0, 1, [ACCEPT]))) == (0, [(0, 1, 2, 1)])
    assert reader.shared.start == 2


def test_locks_end_and_are_renewed() -> None:
    reader = Reader([(0, 1)])
    reader.fetch(until=100)
    assert reader.say((0, 0, [RENEW]), until=200) == []
    change = reader.shared.expire(100)
    assert change.batches == (Batch(1, 1, 0, 1),)
    reader.shared.done(change)
    assert reader.say((1, 1, [ACCEPT])) == 121
    assert (reader.say((0, 0, [ACCEPT])), reader.fetch()) == ([(0, 0, 2, 1)], [(1, 1, 2)])


def test_a_leaving_member_frees_what_it_has() -> None:
    reader = Reader(THREES)
    other = Reader(THREES, reader.shared, "n")
    assert (reader.fetch(records=1), other.fetch(records=1)) == ([(0, 2, 1)], [(3, 5, 1)])
    change = reader.shared.release("m")
    reader.shared.done(change)
    assert (change.batches, other.fetch(records=1)) == ((Batch(0, 2, 0, 1),), [(0, 2, 2)])


def test_no_more_than_the_most_locks() -> None:
    reader = Reader([(n, n) for n in range(9)], SharePartition(0, (), max_locks=3))
    assert (reader.shared.is_full, reader.fetch(records=3), reader.shared.is_full) == (False, [(0, 2, 1)], True)
    reader.say((0, 0, [ACCEPT]), (1, 1, [RELEASE]))
    assert not reader.shared.is_full
    assert reader.fetch(records=1) == [(1, 1, 2)]


def test_what_was_stored_goes_on() -> None:
    """Records that were out when the broker ended are given out anew: nothing was written of them."""
    shared = SharePartition(2, [Batch(3, 3, 0, 1), Batch(4, 4, 2, 1), Batch(5, 5, 4, 5)])
    reader = Reader([(0, 8)], shared)
    assert (shared.start, shared.next_offset) == (2, 2)
    assert reader.fetch() == [(2, 2, 1), (3, 3, 2), (6, 8, 1)]
    reader.say((2, 3, [ACCEPT]))
    assert shared.start == 6


def test_offsets_that_the_log_does_not_have_are_done() -> None:
    reader = Reader([(4, 5), (9, 9)])
    assert (reader.fetch(batch=1), reader.shared.start) == ([(4, 5, 1), (6, 9, 1)], 4)
    stored = Reader([(4, 5)], SharePartition(1, [Batch(4, 4, 0, 1)]))
    assert (stored.fetch(), stored.shared.start) == ([(4, 4, 2), (5, 5, 1)], 4)


def test_what_is_deleted_from_the_log_is_not_given_out() -> None:
    reader = Reader([(n, n) for n in range(4)])
    reader.fetch(records=2)
    reader.shared.delete_before(3)
    assert (reader.fetch(), reader.say((0, 1, [ACCEPT])), reader.say((3, 3, [ACCEPT]))) == (
        [(3, 3, 1)], [], [(3, 3, 2, 1)],
    )  # fmt: skip


def test_ranges_over_one_another() -> None:
    known = [Batch(5, 6, 2, 1), Batch(7, 9, 0, 2), Batch(10, 10, 4, 1)]
    assert combined(known, [Batch(7, 7, 2, 2), Batch(11, 12, 0, 1)], 5) == (
        (5, 6, 2, 1), (7, 7, 2, 2), (8, 9, 0, 2), (10, 10, 4, 1), (11, 12, 0, 1),
    )  # fmt: skip
    assert combined(known, (), 8) == ((8, 9, 0, 2), (10, 10, 4, 1))
    assert combined([Batch(0, 0, 2, 1), Batch(1, 1, 2, 1)], [Batch(3, 2, 0, 1)], 0) == ((0, 1, 2, 1),)
