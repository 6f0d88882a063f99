"""Frames received in place, calls with retries, the loop's thread."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import gc
import os
import random
import signal
import sys
import threading
import warnings
import weakref

import pytest
from hypothesis import given, strategies as st

from kafkacodec import messages
from kafkacodec.client.blocking.callbacks import CallbackThread
from kafkacodec.client.core.backoff import Backoff
from kafkacodec.client.core.calls import ANY, CONTROLLER, Answer
from kafkacodec.client.core.cluster import Cluster
from kafkacodec.client.core.retrying import Call
from kafkacodec.errors import (
    AuthenticationFailed,
    ClientClosed,
    ConnectionFailed,
    DeadlineExceeded,
    DecodeError,
    LimitExceeded,
)
from kafkacodec.net.frames import FrameBuffers, FrameReader
from kafkacodec.net.loop import LoopThread
from tests.patience import SOON, eventually

SIZES = st.one_of(st.integers(0, 40), st.sampled_from([65531, 65532, 65533, 70000, 200_000]))


@given(sizes=st.lists(SIZES, max_size=6), cuts=st.lists(st.integers(1, 100_000), min_size=1, max_size=20))
def test_frames_in_any_pieces(sizes, cuts):
    rnd = random.Random(1)
    frames = [size.to_bytes(4, "big") + rnd.randbytes(size) for size in sizes]
    stream, found = b"".join(frames), []
    reader = FrameReader(FrameBuffers(), 1 << 20)
    at = turn = 0
    while at < len(stream):
        into = reader.buffer()
        assert len(into) > 0
        piece = stream[at : at + min(len(into), cuts[turn % len(cuts)])]
        into[: len(piece)] = piece
        for frame in reader.received(len(piece)):
            found.append(bytes(frame.view))
            frame.release()
        at, turn = at + len(piece), turn + 1
    assert found == frames


@pytest.mark.parametrize(("head", "kind"), [(b"\xff\xff\xff\xff", DecodeError), (b"\x00\x10\x00\x01", LimitExceeded)])
def test_frame_sizes_are_checked_before_anything_is_allocated(head, kind):
    reader = FrameReader(FrameBuffers(), 1 << 20)
    reader.buffer()[:4] = head
    with pytest.raises(kind):
        reader.received(4)


def test_memory_is_used_again_after_release():
    buffers = FrameBuffers()
    first = buffers.take(100_000)
    buffers.give(first)
    assert buffers.take(90_000) is first
    buffers.give(first)
    assert buffers.take(10_000) is not first
    assert buffers.take(200_000) is not first


def test_kept_memory_is_bounded():
    buffers = FrameBuffers(kept_bytes=1 << 20)
    for memory in [buffers.take(200_000) for _ in range(20)]:
        buffers.give(memory)
    assert sum(map(len, buffers._free)) <= 1 << 20
    buffers.give(memoryview(bytearray(2 << 20)))
    assert sum(map(len, buffers._free)) <= 1 << 20


def made_call(to=ANY, **options):
    backoff = Backoff(100, 1000, jitter=0)
    return Call(
        messages.MetadataRequest(),
        to,
        cluster=Cluster([("a", 1)], backoff=backoff),
        deadline=5000,
        attempt_ms=2000,
        backoff=backoff,
        **options,
    )


def test_a_call_is_repeated_while_its_failure_passes():
    call, now, waits = made_call(), 0.0, []
    for _ in range(3):
        (send,) = call.poll(now)
        assert call.poll(now) == []
        call.failed(send, ConnectionFailed("refused"), now)
        waits.append(call.next_deadline() - now)
        now = call.next_deadline()
    assert waits == [100, 200, 400]
    (send,) = call.poll(now)
    call.answered(send, Answer(messages.MetadataResponse(error_code=7), 12, 1), now)
    assert not call.done
    now = call.next_deadline()
    (send,) = call.poll(now)
    call.answered(send, Answer(messages.MetadataResponse(error_code=29), 12, 1), now)
    assert call.answer.message.error_code == 29


def test_a_call_ends_at_its_deadline():
    call = made_call()
    (send,) = call.poll(4990)
    assert send.timeout_ms == 10
    call.failed(send, ConnectionFailed("reset", sent=True), 4995)
    assert isinstance(call.error, DeadlineExceeded)
    assert call.error.sent
    assert "reset" in str(call.error)


def test_a_call_is_not_repeated_after_a_refusal():
    call = made_call()
    (send,) = call.poll(0)
    call.failed(send, AuthenticationFailed("wrong password"), 1)
    assert isinstance(call.error, AuthenticationFailed)


def test_a_call_looks_for_the_controller_again():
    call = made_call(CONTROLLER)
    (send,) = call.poll(0)
    call.answered(send, Answer(messages.CreateTopicsResponse(), 5, 1), 1)
    assert call.done
    call = made_call(CONTROLLER, error_of=lambda message: 41)
    (send,) = call.poll(0)
    call.answered(send, Answer(messages.CreateTopicsResponse(), 5, 1), 1)
    assert not call.done
    assert len(call._cluster.poll(1)) == 1


async def double(number):
    return 2 * number


def test_a_loop_on_a_thread():
    thread = LoopThread("test loop")
    assert thread.run(lambda: double(4)) == 8
    with pytest.raises(TimeoutError):
        thread.run(lambda: asyncio.sleep(10), 0.01)

    async def wait_for_itself():
        return thread.run(lambda: double(1))

    with pytest.raises(RuntimeError, match="waits for"):
        thread.run(lambda: wait_for_itself())
    thread.close()
    thread.close()
    with pytest.raises(ClientClosed, match="closed"):
        thread.run(lambda: double(1))
    assert "test loop" not in {t.name for t in threading.enumerate()}


def test_a_callback_that_exits_does_not_end_the_loop(caplog):
    thread = LoopThread("test loop")
    thread.soon(sys.exit, 3)
    assert thread.run(lambda: double(4)) == 8
    assert "a callback of test loop raised SystemExit" in caplog.text
    thread.close()


def test_a_last_coroutine_runs_once_and_all_wait_for_it(caplog):
    thread, ran, begun, go_on = LoopThread("test loop"), [], threading.Event(), threading.Event()

    async def last():
        ran.append(1)
        begun.set()
        while not go_on.is_set():
            await asyncio.sleep(0.001)
        raise LookupError("not in good order")

    thread.soon(thread.end, last)  # as a callback does
    begun.wait()
    others = [threading.Thread(target=thread.end, args=(last,)) for _ in range(3)]
    for other in others:
        other.start()
    assert thread.run(lambda: double(4)) == 8  # meanwhile
    go_on.set()
    for other in others:
        other.join(SOON)
    assert ran == [1]
    assert "test loop was not closed properly" in caplog.text
    assert "test loop" not in {t.name for t in threading.enumerate()}
    waited = LoopThread("test loop")
    with pytest.raises(LookupError):
        waited.end(last)
    waited.end(last)


def test_functions_are_served_by_two_threads():
    class Taken(collections.deque):
        def __bool__(self):  # and then another thread takes the last one
            return True

    thread = CallbackThread("test loop")
    thread._calls = Taken()
    thread.serve()
    thread.close()


def test_what_runs_is_cancelled_at_the_end():
    thread = LoopThread("test loop")
    found = []

    def wait():
        with pytest.raises(ClientClosed):
            thread.run(lambda: asyncio.sleep(600))
        found.append(True)

    waiter = threading.Thread(target=wait)
    waiter.start()
    thread.run(lambda: asyncio.sleep(0.01))
    thread.close()
    waiter.join(SOON)
    assert found == [True]


def test_what_has_not_begun_to_run_is_cancelled_at_the_end():
    thread, holds, go_on, begun, found = LoopThread("test loop"), threading.Event(), threading.Event(), [], []

    def run():
        try:
            thread.run(lambda: begun.append(double(1)))
        except ClientClosed as error:
            found.append(str(error))

    thread.soon(lambda: (holds.set(), go_on.wait()))  # then the call begins and the loop ends, in one of its rounds
    holds.wait()
    ready = vars(thread.loop)["_ready"]
    before = len(ready)
    waiters = [threading.Thread(target=run), threading.Thread(target=thread.close)]
    for number, waiter in enumerate(waiters, 1):
        waiter.start()
        eventually(lambda number=number: len(ready) == before + number)
    go_on.set()
    for waiter in waiters:
        waiter.join(SOON)
    assert found == ["test loop was closed meanwhile"]
    assert begun == []


def test_a_coroutine_that_exits_tells_its_caller_and_the_loop_goes_on():
    async def leave():
        sys.exit(3)

    for kind in (LoopThread, CallbackThread):
        thread = kind("test loop")
        vars(thread)["wanted"] = True
        with pytest.raises(SystemExit):
            thread.run(leave)
        assert thread.run(lambda: double(4)) == 8
        thread.close()


def test_an_error_that_was_raised_is_freed_without_the_garbage_collector():
    class Fault(Exception):
        pass

    async def fail():
        raise Fault

    def fault():
        try:
            thread.run(fail)
        except Fault as error:
            return weakref.ref(error)

    thread = LoopThread("test loop")
    gc.disable()
    try:
        assert fault()() is None
    finally:
        gc.enable()
    thread.close()


def test_a_forked_process_is_refused():
    thread = LoopThread("test loop")
    child = os.fork()
    if not child:
        try:
            thread.soon(print)
        except ClientClosed as error:
            os._exit(0 if "forked" in str(error) else 2)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    thread.close()


def test_a_process_forked_while_another_thread_waits_is_refused():
    thread, held, go_on = LoopThread("test loop"), threading.Event(), threading.Event()

    def hold():
        with thread._lock:
            held.set()
            go_on.wait(SOON)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    child = os.fork()
    if not child:
        signal.alarm(SOON // 2)
        with contextlib.suppress(ClientClosed):
            thread.run(lambda: double(1))
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    go_on.set()
    holder.join()
    thread.close()


def test_a_closed_thread_leaves_no_coroutine_unawaited():
    thread = CallbackThread("test loop")
    thread.wanted = True
    thread.close()
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        with pytest.raises(ClientClosed):
            thread.run(lambda: double(1))
        gc.collect()
    assert not found


def test_a_function_that_is_interrupted_is_waited_for_no_more():
    thread, ended = CallbackThread("test loop"), threading.Event()

    def interrupted(_):
        raise KeyboardInterrupt

    async def wait():
        await thread.call(interrupted, None)
        ended.set()

    waiting = asyncio.run_coroutine_threadsafe(wait(), thread.loop)
    thread.event.wait(SOON)
    with pytest.raises(KeyboardInterrupt):
        thread.serve()
    assert ended.wait(SOON)
    waiting.result(SOON)
    thread.close()
