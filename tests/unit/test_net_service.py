"""The words between services and their hosts."""

from __future__ import annotations

from kafkacodec.net.service import NOTHING, Append, Effect, Reply, together


def test_effects_together_stay_apart_and_nothing_stays_nothing():
    first = Effect([Append("log", b"a")], [Reply(1, "one")])
    second = Effect([Append("log", b"b", token=2, durability="flushed")], [Reply(2, "two")])
    assert together([first, NOTHING]) is first
    both = together([first, NOTHING, second])
    assert (both.appends, both.replies, both.others) == ((), (), [first, second])
    assert together([]) == NOTHING
    assert not NOTHING
    assert first
    assert both
