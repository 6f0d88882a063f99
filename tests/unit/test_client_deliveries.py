"""Every delivery becomes known, or says that it cannot: callbacks that raise anything, forks, signal handlers."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
import weakref

import pytest

from kafkacodec.client.producing._delivery import Delivery, TableDelivery
from kafkacodec.client.producing.outcome import Outcome, Part, TableOutcome
from kafkacodec.errors import ClientClosed
from tests.model_producer import ModelCluster
from tests.patience import SOON


class Failed(BaseException):
    """As the outcomes of test frameworks are."""


def part(first, end):
    return Part(end, first, "t", 0, 10 + first, -1, None)


def in_child(code):
    """Whether a forked process runs it without an exception, in some seconds."""
    child = os.fork()
    if not child:
        signal.alarm(20)  # its default action ends the child
        good = False
        try:
            code()
            good = True
        finally:
            os._exit(0 if good else 1)
    return os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("kind", [asyncio.CancelledError, Failed, GeneratorExit, StopIteration])
def test_whatever_a_callback_raises_all_others_are_known_and_called(kind, caplog):
    model = ModelCluster(4)
    called = []

    def raises(delivery):
        raise kind("it failed")

    deliveries = [model.produce(b"%d" % n, n % 4) for n in range(40)]
    for delivery in deliveries:
        delivery.add_done_callback(raises)
        delivery.add_done_callback(lambda d: called.append(d.offset or 0))
    model.finish()
    assert all(delivery.done() for delivery in deliveries)
    assert sorted(called) == sorted(list(range(10)) * 4)
    assert caplog.text.count("a callback of a delivery failed") == 40
    deliveries[0].add_done_callback(raises)  # at once
    assert caplog.text.count("a callback of a delivery failed") == 41


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
def test_a_callback_that_ends_the_program_ends_it_after_others_are_called(kind):
    called = []

    def raises(delivery):
        raise kind(3)

    async def main():
        outcome = Outcome(asyncio.get_running_loop())
        for index in range(4):
            if not index:
                Delivery(outcome, index, 0).add_done_callback(raises)
            Delivery(outcome, index, 0).add_done_callback(lambda d: called.append(d.offset or 0))
        outcome.resolve(part(0, 2))
        outcome.resolve(part(2, 4))
        await asyncio.sleep(60)

    with pytest.raises(kind):
        asyncio.run(main())
    assert called == [10, 11, 12, 13]
    outcome = Outcome()
    outcome.resolve(part(0, 1))
    with pytest.raises(kind):
        Delivery(outcome, 0, 0).add_done_callback(raises)


@pytest.mark.parametrize("kind", [(Outcome, lambda o: Delivery(o, 5, 0)), (TableOutcome, TableDelivery)])
def test_deliveries_of_the_process_that_this_one_was_forked_from(kind):
    made, delivery_of = kind
    outcome = made()
    delivery = delivery_of(outcome)

    def child():
        for wait in (delivery.result, lambda: delivery.result(SOON), lambda: delivery.add_done_callback(print)):
            with pytest.raises(ClientClosed, match="forked"):
                wait()
        with pytest.raises(ClientClosed, match="forked"):
            asyncio.run(asyncio.wait_for(delivery, SOON))
        assert not delivery.done()

    assert in_child(child)
    if made is Outcome:
        outcome.resolve(part(0, 6))

        def knows():
            assert delivery.result().offset == 15

        assert in_child(knows)


def test_a_fork_while_another_thread_makes_an_outcome_known():
    begun, over = threading.Event(), threading.Event()

    class Slow(Outcome):
        def _known(self, index):
            begun.set()
            over.wait()
            return super()._known(index)

    def child():
        own = Outcome()
        threading.Thread(target=lambda: own.resolve(part(0, 1))).start()
        assert Delivery(own, 0, 0).result(SOON).offset == 10

    slow = Slow()
    thread = threading.Thread(target=lambda: slow.when(0, print))
    thread.start()
    begun.wait()
    try:
        assert in_child(child)
    finally:
        over.set()
        thread.join()


def test_a_signal_handler_asks_for_a_delivery_while_its_thread_does():
    outcome = Outcome()

    class Interrupted(Outcome):
        def _known(self, index):
            outcome.when(0, lambda: None)  # as if the signal came now
            outcome.resolve(part(0, 1))
            return super()._known(index)

    interrupted = Interrupted()
    thread = threading.Thread(target=lambda: interrupted.when(0, print), daemon=True)
    thread.start()
    thread.join(SOON)
    assert not thread.is_alive()


def test_functions_of_deliveries_that_nobody_has_get_the_same():
    outcome, got = Outcome(), []

    def known(delivery):
        got.append((delivery._index, delivery.done(), delivery.timestamp, delivery.offset))

    kept = []
    for index in range(2000):
        if index % 7 == 3:
            kept.append(Delivery(outcome, index, 1000 + index))
            kept[-1].add_done_callback(known)
        else:
            Delivery(outcome, index, 1000 + index).add_done_callback(known)
    expected = [(index, True, 1000 + index, 10 + index) for index in range(2000)]
    for first, end in ((500, 501), (0, 500), (1500, 2000), (501, 1500)):  # as the parts of a batch that was split
        outcome.resolve(part(first, end))
        assert got == expected[first:end]
        got.clear()
    assert [one.offset for one in kept] == [10 + one._index for one in kept]
    got.clear()
    other = Outcome()
    for index in (5, 3):  # out of order, and of a part with the broker's time
        Delivery(other, index, 1).add_done_callback(known)
    other.resolve(Part(9, 0, "t", 0, 0, 77, None))
    assert got == [(3, True, 77, 3), (5, True, 77, 5)]


def test_a_function_gets_the_delivery_that_somebody_has():
    outcome, got = Outcome(), []
    one, other = Delivery(outcome, 0, 0), Delivery(outcome, 1, 0)
    one.add_done_callback(got.append)
    add = other.add_done_callback
    del other
    for _ in range(3):  # the method alone has it
        add(got.append)
    outcome.resolve(part(0, 2))
    assert got[0] is one
    assert [delivery.offset for delivery in got] == [10, 11, 11, 11]


def test_deliveries_that_nobody_has_are_no_objects_for_the_garbage_collector():
    model, called = ModelCluster(1, linger_ms=10**6), []
    gc.collect()
    before = sum(isinstance(one, Delivery) for one in gc.get_objects())
    for n in range(100):
        model.produce(b"%d" % n, 0).add_done_callback(called.append)
    assert sum(isinstance(one, Delivery) for one in gc.get_objects()) == before
    model.finish()
    assert [delivery.offset for delivery in called] == [*range(100)]
    assert model.queues.pending == {}


def test_a_cycle_through_a_function_is_collected_where_the_outcome_never_comes():
    class Kept:
        def __init__(self):
            self.outcome = Outcome()
            Delivery(self.outcome, 0, 0).add_done_callback(lambda _: self)

    def make():
        return weakref.ref(Kept())

    found = make()
    gc.collect()
    assert found() is None
