"""The broker's host: any service behind sockets; appends before replies, order of answers, limits, stop."""

from __future__ import annotations

import asyncio
import math
import socket
import struct
import threading
import time
from contextlib import asynccontextmanager, suppress
from typing import Any

from kafkacodec.broker.host.host import Host
from kafkacodec.broker.host.limits import Limits
from kafkacodec.broker.host.runner import Runner
from kafkacodec.errors import RemoteProtocolError
from kafkacodec.net.frames import FrameBuffers, FrameReader
from kafkacodec.net.service import CLOSE, NO_ANSWER, NOTHING, Append, Effect, Reply, together
from tests.patience import until


class Lines:
    """A codec of lines; a request is a line, a response a text."""

    in_order = True
    answers_last = False

    def __init__(self):
        self.memory, self.kept = memoryview(bytearray(256)), b""
        self.released = []

    @property
    def waits(self):
        return False

    def buffer(self):
        return self.memory

    def received(self, count):
        *lines, self.kept = (self.kept + bytes(self.memory[:count])).split(b"\n")
        if b"bad" in lines:
            raise RemoteProtocolError("not a line", events=[line.decode() for line in lines[: lines.index(b"bad")]])
        return [line.decode() for line in lines]

    def response(self, request, response):
        return [response.encode(), b"\n"]

    def settled(self, request):
        return request != "alone"

    def rest(self, request):
        return {"last": math.inf, "tired": 30.0, "quiet tired": 30.0}.get(request, 0.0)

    def release(self, request):
        self.released.append(request)

    def drop(self):
        self.kept = b""


class Unordered(Lines):
    """The same, whose answers leave when they are there."""

    in_order = False


class Patient(Lines):
    """The same, whose clients may stop sending before they have all answers."""

    answers_last = True


class Word(str):
    """A request that takes memory."""

    nbytes = 100_000


class Sized(Lines):
    """The same, whose requests take memory."""

    def received(self, count):
        return [Word(line) for line in super().received(count)]


class Frames(Lines):
    """A codec of frames with a word and zeros, whose memory while they are received is limited."""

    buffers = FrameBuffers(0, most_begun=300_000)

    def __init__(self):
        super().__init__()
        self.reader = FrameReader(self.buffers, 1 << 20)

    @property
    def waits(self):
        return self.reader.waits

    def buffer(self):
        return self.reader.buffer()

    def received(self, count):
        return [bytes(frame.view[4:]).rstrip(b"\0").decode() for frame in self.reader.received(count)]

    def drop(self):
        self.reader.drop()


class Store:
    """Logs in memory, which can fail, and whose flush waits for an event."""

    def __init__(self):
        self.logs, self.safe, self.gate = {}, [], threading.Event()
        self.gate.set()

    def append(self, log, data):
        if log == "full":
            raise OSError(28, "no space left on device")
        self.logs.setdefault(log, []).append(data)
        return len(self.logs[log]) - 1

    def must_flush(self, log):
        return log == "strict"

    def flushing(self, log):
        return Flushing(self, log)

    def flushed(self, log, flushing):
        self.safe.append(log)


class Flushing:
    """The flush of a log."""

    def __init__(self, store, log):
        self.store, self.log = store, log

    def sync(self):
        self.store.gate.wait(30)
        if self.log == "broken":
            raise OSError(5, "input/output error")


class Service:
    """Answers words: `echo X`, `put LOG X`, `safe LOG X`, `wait`, `go`, `later MS`, `quiet`, `close`, `boom`;
    `alone` waits, and the next request of its connection with it.
    """

    store: Any
    host: Any
    runner: Any

    def __init__(self):
        self.waiting, self.later, self.gone = [], [], []

    def receive(self, request, session, to, now):
        word, _, rest = request.partition(" ")
        if word in ("put", "safe"):
            log, _, text = rest.partition(" ")
            durability = "flushed" if word == "safe" else "written"
            return Effect([Append(log, text, to, durability)])
        if word in ("wait", "alone"):
            self.waiting.append(to)
            return NOTHING
        if word == "go":
            waiting, self.waiting = self.waiting, []
            return Effect((), [Reply(to, "went"), *(Reply(one, "woken") for one in waiting)])
        if word == "later":
            self.later.append((now + float(rest), to))
            return NOTHING
        if word == "both":
            return together([Effect([Append("full", "x")], [Reply(to, "not sent")])])
        fates = {"quiet": NO_ANSWER, "close": CLOSE}
        if word == "boom":
            raise RuntimeError("a fault of the service")
        return Effect((), [Reply(to, fates.get(word, rest))])

    def disconnected(self, session, now):
        self.gone.append(session)
        return NOTHING

    def tick(self, now):
        due = [to for at, to in self.later if at <= now]
        self.later = [(at, to) for at, to in self.later if at > now]
        return Effect((), [Reply(to, "due") for to in due])

    def next_deadline(self):
        return min((at for at, _ in self.later), default=None)

    def appended(self, token, result, now):
        return Effect((), [Reply(token, f"at {result}")])

    def not_appended(self, token, error, now):
        return Effect((), [Reply(token, f"failed: {error.strerror}")])


@asynccontextmanager
async def served(limits=None, codec=Lines):
    loop = asyncio.get_running_loop()
    service, store = Service(), Store()
    host = Host(loop, limits)
    runner = Runner(service, store, loop)
    listener = await host.listen("lines", runner, codec, "127.0.0.1", 0)
    service.store, service.host, service.runner = store, host, runner
    opened = []

    async def connect():
        opened.append(await asyncio.open_connection(*listener.address))
        return opened[-1]

    try:
        yield service, connect
    finally:
        await host.stop()
        for _, writer in opened:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()


async def say(connection, *lines):
    connection[1].write("".join(f"{line}\n" for line in lines).encode())
    await connection[1].drain()


async def hear(connection):
    return (await asyncio.wait_for(connection[0].readline(), 30)).decode().rstrip("\n")


async def test_answers_are_in_the_order_of_the_requests():
    async with served() as (_, connect):
        one, other = await connect(), await connect()
        await say(one, "wait", "echo second", "quiet", "echo third")
        await say(other, "echo x")
        assert await hear(other) == "x"
        await say(other, "go")
        assert [await hear(one) for _ in range(3)] == ["woken", "second", "third"]
        assert await hear(other) == "went"


async def test_answers_leave_when_they_are_there_where_no_order_is_kept():
    async with served(codec=Unordered) as (service, connect):
        one, other = await connect(), await connect()
        await say(one, "wait", "echo second", "quiet", "wait", "echo third")
        assert [await hear(one), await hear(one)] == ["second", "third"]
        await say(other, "go")
        assert [await hear(one), await hear(one)] == ["woken", "woken"]
        assert await hear(other) == "went"
        await say(one, "wait", "close", "echo not heard")
        assert await hear(one) == ""
        assert service.waiting


async def test_the_next_request_begins_when_the_one_before_is_settled():
    async with served() as (service, connect):
        one, other = await connect(), await connect()
        await say(one, "alone", "put a x", "alone", "put a y")
        for n in range(2):
            await say(other, "echo x")
            assert await hear(other) == "x"
            assert len(service.store.logs.get("a", ())) == n
            await say(other, "go")
            assert await hear(other) == "went"
            assert [await hear(one), await hear(one)] == ["woken", f"at {n}"]
        service.store.gate.clear()
        await say(one, "safe a z", "put b x")
        await until(lambda: "b" in service.store.logs)
        assert service.store.safe == []
        service.store.gate.set()
        assert [await hear(one), await hear(one)] == ["at 2", "at 0"]


async def test_who_sends_no_more_gets_its_answers():
    async with served(codec=Patient) as (service, connect):
        one, other = await connect(), await connect()
        for lines in (["alone"], ["alone", "put a x"], ["alone", "echo x", "alone", "put a y"]):
            one = await connect()
            await say(one, *lines)
            one[1].write_eof()
            await until(lambda: service.waiting)
            answers = []
            while len(answers) < len(lines):
                await say(other, "go")
                assert await hear(other) == "went"
                answers.append(await hear(one))
            assert await hear(one) == ""
        assert service.store.logs["a"] == ["x", "y"]


async def test_what_a_client_sent_before_it_closed_is_done():
    async with served() as (service, connect):
        one, other = await connect(), await connect()
        await say(one, "alone", "put a x", "put a y")
        await until(lambda: service.waiting)
        one[1].close()
        await say(other, "echo x", "go")
        assert [await hear(other), await hear(other)] == ["x", "went"]
        await until(lambda: service.gone)
        assert service.store.logs["a"] == ["x", "y"]


async def test_replies_leave_after_what_they_promise_is_appended_and_flushed():
    async with served() as (service, connect):
        one, other = await connect(), await connect()
        await say(one, "put a first", "put a second")
        assert [await hear(one), await hear(one)] == ["at 0", "at 1"]
        service.store.gate.clear()
        await say(one, "safe a third", "echo after")
        await say(other, "echo alive")
        assert await hear(other) == "alive"
        assert service.store.logs["a"] == ["first", "second", "third"]
        assert service.store.safe == []
        service.store.gate.set()
        assert [await hear(one), await hear(one)] == ["at 2", "after"]
        assert service.store.safe == ["a"]


async def test_answers_of_a_log_keep_its_order_also_if_only_some_wait_for_the_disk():
    async with served() as (service, connect):
        one, two, three = await connect(), await connect(), await connect()
        service.store.gate.clear()
        await say(one, "put strict first")
        await say(two, "safe a first")
        await say(three, "put b other")
        assert await hear(three) == "at 0"
        await say(three, "put a second", "put b other")
        while len(service.store.logs["b"]) < 2:
            await asyncio.sleep(0)
        assert service.store.safe == []
        service.store.gate.set()
        assert await hear(one) == "at 0"
        assert await hear(two) == "at 0"
        assert [await hear(three), await hear(three)] == ["at 1", "at 1"]
        assert service.store.safe == ["strict", "a"]
        await say(three, "put a third")
        assert await hear(three) == "at 2"
        assert service.store.safe == ["strict", "a"]


async def test_a_full_disk_is_an_answer_and_others_go_on():
    async with served() as (_, connect):
        one = await connect()
        await say(one, "put full x", "safe broken x", "put a y")
        assert [await hear(one) for _ in range(3)] == [
            "failed: no space left on device", "failed: input/output error", "at 0",
        ]  # fmt: skip
        await say(one, "both")
        assert await hear(one) == ""  # closed: it promised what was not kept


async def test_a_connection_is_closed_after_the_answers_to_what_was_asked_before():
    async with served() as (_, connect):
        for ending in ("close", "bad", "boom"):
            one = await connect()
            await say(one, "echo before", ending, "echo after")
            assert [await hear(one), await hear(one)] == ["before", ""]
        one = await connect()
        await say(one, "echo still")
        assert await hear(one) == "still"


async def test_what_is_due_is_done():
    async with served() as (_, connect):
        one = await connect()
        await say(one, "later 20")
        assert await hear(one) == "due"


async def test_too_many_connections_are_refused_and_the_service_learns_who_left():
    async with served(Limits(max_connections=1)) as (service, connect):
        one = await connect()
        await say(one, "echo first")
        assert await hear(one) == "first"
        other = await connect()
        with suppress(ConnectionError):
            assert await hear(other) == ""
        one[1].close()
        while not service.gone:
            await asyncio.sleep(0)


async def test_a_client_that_asks_more_than_may_wait_is_not_read_until_it_gets_answers():
    async with served(Limits(max_pending=2)) as (service, connect):
        one, other = await connect(), await connect()
        await say(one, *["wait"] * 5)
        while len(service.waiting) < 2:
            await asyncio.sleep(0)
        await say(other, "echo x")
        assert await hear(other) == "x"
        assert len(service.waiting) == 2
        for _ in range(3):
            await say(other, "go")
            assert await hear(other) == "went"
        assert [await hear(one) for _ in range(5)] == ["woken"] * 5


def frame(word, size=200_000):
    return struct.pack(">i", size) + word.ljust(size, b"\0")


async def test_frames_that_are_not_complete_have_a_limit_of_their_own():
    """Those that have begun are received to their end, and small requests are served meanwhile."""
    async with served(codec=Frames) as (service, connect):
        clients = [await connect() for _ in range(5)]
        for number, (_, writer) in enumerate(clients):
            writer.write(frame(b"echo %d" % number)[:-1])
        stopped = service.host.listeners[0].load.stopped
        await until(lambda: len(stopped) == 3)
        assert Frames.buffers.begun == 2 * 262_144
        small = await connect()
        small[1].write(frame(b"echo small", 100))
        assert await hear(small) == "small"
        waiting = [session.peer.rpartition(":")[2] for session in stopped]
        begun = [one for one in clients if str(one[1].get_extra_info("sockname")[1]) not in waiting]
        begun[0][1].close()  # its memory goes to the first that waits
        await until(lambda: len(stopped) == 2)
        rest = [one for one in clients if one is not begun[0]]
        for _, writer in rest:
            writer.write(b"\0")
        answers = await asyncio.gather(*map(hear, rest))
        assert sorted(answers) == sorted(str(clients.index(one)) for one in rest)
        assert (Frames.buffers.begun, stopped) == (0, {})


async def test_who_stopped_because_of_others_goes_on_though_another_had_taken_the_room():
    async with served(Limits(max_bytes_in_flight=150_000), Sized) as (service, connect):
        clients = [await connect() for _ in range(4)]
        for count, client in zip((1, 2, 2, 2), clients, strict=True):
            await say(client, "wait")
            await until(lambda count=count: len(service.waiting) == count)
        stopped = service.host.listeners[0].load.stopped
        await until(lambda: len(stopped) == 3)
        for number in range(4):
            await until(lambda count=number: len(service.waiting) > count)
            service.waiting[number].answer(f"{number}")
        assert sorted(await asyncio.gather(*map(hear, clients))) == ["0", "1", "2", "3"]


async def test_idle_connections_are_closed_but_not_those_that_wait():
    async with served(Limits(max_idle_ms=40)) as (service, connect):
        idle, waits = await connect(), await connect()
        await say(waits, "wait")
        assert await hear(idle) == ""
        assert len(service.waiting) == 1
        assert service.host.traffic()[0] == 1


async def test_idle_connections_whose_clients_take_no_answers_end_too():
    async with served(Limits(max_idle_ms=40)) as (service, connect):
        one = await connect()
        one[1].transport.pause_reading()
        one[1].write(f"echo {'x' * 200}\n".encode() * 50_000)  # more than the system and the host keep unsent
        await until(lambda: service.host.traffic()[2] > 1 << 20)
        await until(lambda: service.host.traffic()[0] == 0)


async def test_stopping_closes_all_connections_and_ends_soon():
    async with served() as (service, connect):
        one = await connect()
        await say(one, "echo x", "wait")
        assert await hear(one) == "x"
        start = time.monotonic()
        await service.host.stop()
        assert time.monotonic() - start < 5
        assert await hear(one) == ""


async def _resets_before_its_answers(service, one, other):
    """One client resets its connection, then what it waits for is answered, as another says."""
    one[1].get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    one[1].transport.abort()
    await say(other, "go")
    assert await hear(other) == "went"
    await until(lambda: service.gone)


async def test_nothing_more_is_written_to_a_client_that_has_gone(caplog):
    """It reset its connection while the host did not read, which learns of it by writing the first of many pieces."""
    async with served(Limits(max_pending=9)) as (service, connect):
        one, other = await connect(), await connect()
        await say(one, "wait", *["echo " + "x" * 16_000] * 7, "wait", "echo not read")
        await until(lambda: len(service.waiting) == 2)
        await _resets_before_its_answers(service, one, other)
    assert "socket.send() raised exception" not in caplog.text


async def test_answers_that_leave_one_by_one_end_with_the_first_that_a_gone_client_does_not_take(caplog):
    async with served(Limits(max_pending=20), Unordered) as (service, connect):
        one, other = await connect(), await connect()
        await say(one, *["wait"] * 20, "echo not read")
        await until(lambda: len(service.waiting) == 20)
        await _resets_before_its_answers(service, one, other)
    assert "socket.send() raised exception" not in caplog.text


async def test_a_client_that_stops_sending_gets_its_answers_where_the_protocol_says_so():
    async with served(Limits(max_pending=2), Patient) as (service, connect):
        one, other = await connect(), await connect()
        await say(one, "wait", "echo x", "wait", "echo y")
        one[1].write_eof()
        for _ in range(2):
            await until(lambda: service.waiting)
            await say(other, "go")
            assert await hear(other) == "went"
        assert [await hear(one) for _ in range(5)] == ["woken", "x", "woken", "y", ""]
        await until(lambda: service.host.traffic()[0] == 1)


async def test_a_client_that_stops_sending_gets_no_more_answers_elsewhere():
    async with served() as (service, connect):
        one = await connect()
        await say(one, "wait")
        one[1].write_eof()
        assert await hear(one) == ""
        await until(lambda: service.gone)


async def test_a_connection_rests_or_ends_after_an_answer():
    async with served() as (_, connect):
        one = await connect()
        began = time.monotonic()
        await say(one, "tired", "echo after")
        assert [await hear(one), await hear(one)] == ["", "after"]
        assert time.monotonic() - began >= 0.03
        began = time.monotonic()
        await say(one, "quiet tired", "echo after")
        assert await hear(one) == "after"
        assert time.monotonic() - began >= 0.03
        await say(one, "last", "echo never")
        assert await hear(one) == ""
        assert await one[0].read() == b""
