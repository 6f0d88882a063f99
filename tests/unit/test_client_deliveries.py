"""Every delivery becomes known, or says that it cannot: callbacks that raise anything, forks, signal handlers."""

from __future__ import annotations

import asyncio
import os
import signal
import threading

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
