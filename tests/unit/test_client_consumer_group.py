"""Consumers in a group: what is committed, who reads what, and who is called, while the group changes."""

from __future__ import annotations

import asyncio

import pytest

import kafkacodec as kc
from kafkacodec.client import Consumer, aio
from tests.patience import SOON, until
from tests.reference.group_broker import GroupBroker

FAST = {
    "retry_backoff_ms": 20,
    "retry_backoff_max_ms": 20,
    "auto_offset_reset": "earliest",
}
HEARTBEATS = {"heartbeat_interval_ms": 20}  # of the classic protocol
T0, T1 = ("t", 0), ("t", 1)


def member(broker, *topics, **options):
    own = {} if "group_protocol" in options else HEARTBEATS
    return aio.Consumer(*topics, bootstrap_servers=broker.address, group_id="g", **FAST | own | options)


async def count(consumer, most=10):
    """How many records come at once."""
    found = await consumer.getmany(SOON, most)
    return sum(map(len, found.values()))


async def test_unsubscribing_commits_what_was_given_and_leaves_the_group_at_once():
    async with GroupBroker({"t": 2}) as broker, member(broker, "t") as consumer:
        broker.write("t", 0, 10)
        assert await count(consumer, 3) == 3
        async with asyncio.timeout(SOON / 2):
            await consumer.unsubscribe()
        assert broker.committed[T0] == 3
        assert broker.members_gone == 1


async def test_unsubscribing_partitions_assigned_by_hand_commits_what_was_given():
    async with GroupBroker({"t": 1}) as broker, member(broker) as consumer:
        broker.write("t", 0, 10)
        await consumer.assign([T0])
        assert await count(consumer, 3) == 3
        await consumer.unsubscribe()
        assert broker.committed == {T0: 3}


@pytest.mark.parametrize("modern", [False, True])
async def test_a_member_that_iterates_gives_partitions_up_with_the_next_record(modern):
    """A revocation waits until the application asks for more; it has to see that in an iteration too."""
    protocol = {"group_protocol": "consumer"} if modern else {}
    async with GroupBroker({"t": 2}, modern=modern) as broker, member(broker, "t", **protocol) as first:
        broker.write("t", 0, 200)
        broker.write("t", 1, 200)
        seen = [await anext(first)]
        async with member(broker, "t", **protocol) as second:
            reading = asyncio.create_task(second.getmany(None))
            async with asyncio.timeout(SOON):
                while not second.assignment():
                    seen.append(await anext(first))
                    await asyncio.sleep(0.01)
            (lost,) = second.assignment()
            # One record may have been given of it that was not processed yet: it is none of those that come now.
            ((_, number, offset),) = {c for c in broker.commits if c[:2] == lost} or {(*lost, 0)}
            assert offset == sum(record.partition == number for record in seen)
            for records in (await reading).values():
                assert records[0].offset == offset


async def test_partitions_are_read_although_a_callback_failed():
    def fails(partitions):
        raise KeyError("mine")

    async with GroupBroker({"t": 1}) as broker, member(broker) as consumer:
        broker.write("t", 0, 10)
        await consumer.subscribe(["t"], on_assigned=fails)
        with pytest.raises(KeyError, match="mine"):
            await consumer.getmany(SOON)
        assert await count(consumer) == 10


async def test_a_commit_that_is_repeated_does_not_undo_a_later_one():
    async with GroupBroker({"t": 2}) as broker, member(broker, "t", enable_auto_commit=False) as consumer:
        await until(lambda: consumer.assignment() == [T0, T1])
        broker.refuse("OffsetCommit", 14)
        early = asyncio.create_task(consumer.commit({T0: 5, T1: 5}))
        await asyncio.sleep(0)
        await consumer.commit({T0: 7})
        await early
        assert broker.committed == {T0: 7, T1: 5}


@pytest.mark.parametrize("modern", [False, True])
async def test_a_commit_is_not_repeated_for_a_partition_that_another_member_has(modern):
    protocol = {"group_protocol": "consumer"} if modern else {}
    options = {"enable_auto_commit": False, "retry_backoff_ms": 1000, "retry_backoff_max_ms": 1000, **protocol}
    async with GroupBroker({"t": 2}, modern=modern) as broker, member(broker, "t", **options) as first:
        await until(lambda: first.assignment() == [T0, T1])
        broker.refuse("OffsetCommit", 14)
        early = asyncio.create_task(first.commit({T0: 5, T1: 5}))
        await asyncio.sleep(0.01)
        async with member(broker, "t", **options) as second:
            await until(lambda: len(first.assignment()) == len(second.assignment()) == 1)
            (moved,), (kept,) = second.assignment(), first.assignment()
            await second.commit({moved: 9})
            with pytest.raises(kc.errors.error(27)):
                await early
            # An eager member had given up both.
            assert broker.committed == ({moved: 9, kept: 5} if modern else {moved: 9})


async def test_what_a_list_has_is_not_processed_before_more_is_asked_for():
    """Also where the list goes on with what an iteration has begun."""
    async with GroupBroker({"t": 1}) as broker, member(broker, auto_commit_interval_ms=10) as consumer:
        broker.write("t", 0, 10)
        await consumer.assign([T0])
        await anext(consumer)
        assert await count(consumer, 4) == 4
        await until(lambda: broker.committed.get(T0))
        await asyncio.sleep(0.05)
        assert broker.committed == {T0: 1}
        assert await count(consumer, 2) == 2
        await until(lambda: broker.committed == {T0: 5})
        await anext(consumer)
        await until(lambda: broker.committed == {T0: 7})


async def test_commits_take_effect_in_the_order_of_the_calls():
    async with GroupBroker({"t": 1}) as broker, member(broker) as consumer:
        await consumer.assign([T0])
        await consumer.commit({T0: 5}, wait=False)
        await consumer.commit({T0: 7})
        await asyncio.sleep(0.05)
        assert broker.committed == {T0: 7}


async def test_a_commit_that_nobody_waits_for_ends_before_the_member_leaves():
    async with GroupBroker({"t": 2}) as broker, member(broker, "t", enable_auto_commit=False) as other:
        async with member(broker, "t", enable_auto_commit=False) as consumer:
            await until(lambda: len(other.assignment()) == len(consumer.assignment()) == 1)
            broker.refuse("OffsetCommit", 14)
            await consumer.commit({T0: 5}, wait=False)
        assert broker.committed == {T0: 5}


async def test_partitions_that_are_lost_while_they_are_revoked_are_told_once():
    told = []

    async def revoked(partitions):
        told.append(("revoked", partitions))

    async def lost(partitions):
        told.append(("lost", partitions))

    async with GroupBroker({"t": 2}) as broker, member(broker) as consumer:
        broker.write("t", 0, 10)
        await consumer.subscribe(["t"], on_revoked=revoked, on_lost=lost)
        assert await count(consumer, 3) == 3
        async with member(broker, "t"):  # the consumer has not processed its records, so it keeps the other waiting
            await until(lambda: consumer.paused())
            (first, _) = broker.coordinator.members
            broker.coordinator.expire(first)
            broker.progress()
            await until(lambda: len(consumer.assignment()) == 1)
    assert told[0] == ("lost", [T0, T1])
    assert [kind for kind, _ in told] == ["lost", "revoked"]  # the second one in the end


async def test_a_callback_that_is_late_does_not_answer_to_a_later_revocation():
    go_on, told = asyncio.Event(), []

    async def revoked(partitions):
        told.append((partitions, sorted(group.revoking)))
        await go_on.wait()

    async with GroupBroker({"t": 2}) as broker, member(broker) as first:
        await first.subscribe(["t"], on_revoked=revoked)
        membership = first._group.membership
        group = membership._ownership
        await until(lambda: len(first.assignment()) == 2)
        async with member(broker, "t") as second:
            await until(lambda: told)
            name = membership._member_id
            broker.coordinator.expire(name)  # as if the callback took longer than the session
            broker.progress()
            await until(lambda: len(membership.partitions) == len(second.assignment()) == 1)
            async with member(broker, "t"):
                await until(lambda: group.revoking)
                again = list(membership.partitions)
                go_on.set()
                await until(lambda: len(told) == 2)
    assert told[:2] == [([T0, T1], [T0, T1]), (again, again)]


async def test_an_interrupt_in_a_callback_ends_it():
    def interrupted(partitions):
        raise KeyboardInterrupt

    def read():
        with Consumer(bootstrap_servers=broker.address, group_id="g", **FAST | HEARTBEATS) as consumer:
            consumer.subscribe(["t"], on_assigned=interrupted)
            with pytest.raises(KeyboardInterrupt):
                consumer.getmany(SOON)
            return sum(map(len, consumer.getmany(SOON).values()))

    async with GroupBroker({"t": 1}) as broker:
        broker.write("t", 0, 10)
        async with asyncio.timeout(SOON / 2):
            assert await asyncio.to_thread(read) == 10
        assert broker.members_gone == 1


async def test_the_time_without_a_subscription_is_not_one_without_reading():
    assigned = []
    async with GroupBroker({"t": 1}) as broker, member(broker, "t", max_poll_interval_ms=1500) as consumer:
        broker.write("t", 0, 10)
        assert await count(consumer) == 10
        await consumer.unsubscribe()
        await asyncio.sleep(1.6)
        await consumer.subscribe(["t"], on_assigned=assigned.extend)
        await until(lambda: assigned == [T0])
        await until(lambda: not consumer.assignment())  # it does not read now


@pytest.mark.parametrize("committed", [4, None])
async def test_the_position_is_known_to_a_callback(committed):
    positions = []

    async def assigned(partitions):
        positions.append(await consumer.position(*partitions[0]))

    async with GroupBroker({"t": 1}) as broker, member(broker, default_api_timeout_ms=30_000) as consumer:
        broker.write("t", 0, 10)
        if committed is not None:
            broker.committed[T0] = committed
        await consumer.subscribe(["t"], on_assigned=assigned)
        assert await count(consumer) == 10 - (committed or 0)
        assert positions == [committed or 0]


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
async def test_a_member_can_commit_and_leave_while_a_rebalance_waits_for_others(strategy):
    """JoinGroup holds up its connection at the broker, so that what is said meanwhile takes the other one."""
    options = {"partition_assignment_strategy": strategy, "enable_auto_commit": strategy != "range"}
    options["fetch_max_wait_ms"] = 50
    async with GroupBroker({"t": 1}) as broker, member(broker, "t", **options) as consumer:
        broker.write("t", 0, 10)
        assert await count(consumer, 3) == 3
        broker.coordinator.join_without_end()
        membership = consumer._group.membership
        if strategy == "range":  # gives up its partition before it joins
            await until(consumer.paused)
            await consumer.getmany(0)
        await until(lambda: membership.metadata is None)
        async with asyncio.timeout(SOON / 2):
            await consumer.close()
        assert broker.members_gone == 1
        assert broker.committed == ({} if strategy == "range" else {T0: 3})


async def test_nothing_is_committed_between_a_loss_and_its_handling():
    """A callback may hold up the loss for long, and the member may have joined again by then."""
    go_on = asyncio.Event()

    async def assigned(partitions):
        await consumer.position(*T0)
        await go_on.wait()

    async with GroupBroker({"t": 1}) as broker, member(broker, auto_commit_interval_ms=10) as consumer:
        broker.write("t", 0, 10)
        await consumer.subscribe(["t"], on_assigned=assigned)
        assert await count(consumer, 3) == 3
        await consumer.getmany(0, 1)
        await until(lambda: broker.committed == {T0: 3})
        membership = consumer._group.membership
        first = membership.metadata
        broker.coordinator.expire(membership._member_id)
        broker.progress()
        await until(lambda: membership.metadata not in (None, first))
        broker.committed[T0] = 9  # by the member that had the partition meanwhile
        await asyncio.sleep(0.05)
        with pytest.raises(kc.errors.error(25), match="t-0 were not committed"):
            await consumer.commit()
        with pytest.raises(kc.errors.error(27)):
            await consumer.commit()
        assert broker.committed == {T0: 9}
        go_on.set()
        await until(lambda: consumer._group._new_losses == 0)


async def test_a_commit_that_does_not_succeed_does_not_hold_up_the_end(caplog):
    options = {"request_timeout_ms": 400, "enable_auto_commit": False}
    async with GroupBroker({"t": 1}) as broker:
        broker.refuse("OffsetCommit", *[14] * 1000)
        async with asyncio.timeout(SOON / 2), member(broker, **options) as consumer:
            await consumer.assign([T0])
            await consumer.commit({T0: 5}, wait=False)
    assert "offsets of group 'g' were not committed: the consumer was closed" in caplog.text


@pytest.mark.parametrize("given", [False, True])
async def test_an_automatic_commit_does_not_take_one_of_the_application_back(given):
    async with GroupBroker({"t": 1}) as broker, member(broker, auto_commit_interval_ms=10) as consumer:
        broker.write("t", 0, 10)
        await consumer.assign([T0])
        assert await count(consumer, 4) == 4
        await consumer.commit({T0: 3} if given else None)
        await asyncio.sleep(0.05)
        assert broker.committed == {T0: 3 if given else 4}
        record = await anext(consumer)
        await consumer.commit({T0: record.offset + 1} if given else None)
        await asyncio.sleep(0.05)
        assert broker.committed == {T0: 5}
        await consumer.commit({T0: 1})  # on purpose
        await anext(consumer)
        await until(lambda: broker.committed == {T0: 5})
