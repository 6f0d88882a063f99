"""Work in several threads: jobs with results in order, and decoding of record sets in runs of batches.

A run is the range that one decoder reads, between two cuts. A cut is the start of a batch by the lengths in the batch
headers, which is not verified by a checksum. The result of a run is therefore used only if decoding the data before it
ends at its start, in the state in which the run was started; otherwise decoding continues through the run. The result
is always that of one thread.
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, suppress
from functools import partial
from itertools import pairwise
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from kafkacodec.arrow._columns import append, fits
from kafkacodec.errors import LimitExceeded
from kafkacodec.records.columns import Problems, RecordColumns
from kafkacodec.records.decode import (
    DEFAULT_MAX_BYTES,
    DEFAULT_MAX_DECOMPRESSED_BYTES,
    DEFAULT_MAX_ROWS,
    NOWHERE,
    TABLE_ROWS,
    OnError,
    Place,
    Plan,
    ScanResult,
    handle_fault,
    read_chunks,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from typing_extensions import Buffer

    from kafkacodec.arrow._columns import Budget
    from kafkacodec.records._decoder import Decoder
    from kafkacodec.records._encoder import BatchEncoder, RecordChunk

__all__ = [
    "Job",
    "Source",
    "Workers",
    "compressed_in_threads",
    "read_chunks_in_threads",
    "read_whole_in_threads",
    "scan_in_threads",
]

RUNS_A_THREAD = 2
"""Number of started runs per thread, so that no thread waits for the consumer of the results."""

CHUNKS_OF_RUN = 6
"""Maximum number of waiting chunks of a run, which pauses until they are consumed."""

CHUNKS_AIMED_AT = 4
"""Target number of chunks in a run; its length follows from earlier runs."""

FIRST_RUN = 256 << 10
"""Size of the first runs in bytes. Data of at most two such runs is read by one thread."""

LONGEST_RUN = 8 << 20
SHORTEST_RUN = 64 << 10

T = TypeVar("T")


class Job(Generic[T]):
    """A call that the first available thread makes."""

    __slots__ = ("_call", "_claim", "_done", "_error", "_value")

    def __init__(self, call: Callable[[], T]) -> None:
        self._call: Callable[[], T] | None = call
        self._claim = threading.Lock()
        self._done = threading.Lock()
        self._done.acquire()
        self._error: BaseException | None = None

    def run(self) -> bool:
        """Make the call, unless another thread has started it."""
        if not self._claim.acquire(blocking=False):
            return False
        call, self._call = self._call, None
        assert call is not None
        try:
            self._value = call()
        except BaseException as error:
            self._error = error
            if not isinstance(error, Exception):
                raise
        finally:
            self._done.release()
        return True

    @property
    def done(self) -> bool:
        """Whether `result` returns without waiting."""
        return not self._done.locked()

    def result(self) -> T:
        """Wait for the call; return its result or raise its exception. Must be called only once."""
        self._done.acquire()
        error, self._error = self._error, None
        if error is not None:
            try:
                raise error
            finally:
                del error
        return self._value


class Workers:
    """Threads that make calls, including the thread that takes the results.

    Args:
        threads: their number, including the caller's. Threads are started when there are calls for them.
    """

    def __init__(self, threads: int) -> None:
        self._process = os.getpid()
        self._jobs: SimpleQueue[Job[Any] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._most = threads - 1
        weakref.finalize(self, self._jobs.put, None).atexit = False  # where `close` was interrupted
        _open_workers.add(self)

    def start(self, call: Callable[[], T]) -> Job[T]:
        """Queue a call for the next idle thread."""
        job = Job(call)
        self._jobs.put(job)
        if len(self._threads) < self._most:
            thread = threading.Thread(target=_work, args=(self._jobs,), name="kafkacodec", daemon=True)
            try:
                thread.start()
                self._threads.append(thread)
            except RuntimeError:  # no more threads can be started: the others make the calls
                self._most = len(self._threads)
        return job

    def result(self, wanted: Job[T], others: Iterator[Job[T]]) -> T:
        """The result of a job. Until it is done, this thread runs jobs that no other thread has started.

        Raises:
            RuntimeError: this process is a fork of the one that has the threads.
        """
        if os.getpid() != self._process:
            raise RuntimeError("a forked process has no threads of this iterator: create it after the fork")
        if not wanted.run():
            while not wanted.done and any(job.run() for job in others):
                pass
        return wanted.result()

    def close(self) -> None:
        """End the threads and wait for them. Calls that were not started are dropped."""
        if os.getpid() != self._process:
            return
        self._most = 0
        with suppress(Empty):
            while True:
                self._jobs.get_nowait()
        self._jobs.put(None)
        # The garbage collector may call this in any thread; a thread cannot wait for itself.
        if threading.current_thread() not in self._threads:
            for thread in self._threads:
                thread.join()


_open_workers: weakref.WeakSet[Workers] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """Ends the threads of iterators that still exist when the interpreter exits."""
    for workers in list(_open_workers):
        workers.close()


def _work(jobs: SimpleQueue[Job[Any] | None]) -> None:
    while (job := jobs.get()) is not None:
        job.run()
        del job  # and with it the buffers that it reads from
    jobs.put(None)  # for the next thread, which `close` may not know of if it was interrupted


class _Part(NamedTuple):
    """Some chunks of a run, whether decoding continues after them, and the error to raise after them, if any."""

    chunks: deque[RecordColumns]
    going_on: bool
    errors: list[Exception]


class _Run:
    """Batches up to `stop`, which one decoder reads in jobs of one part each."""

    __slots__ = ("decoder", "job", "start", "stop")

    def __init__(self, decoder: Decoder, start: int, stop: int, job: Job[_Part]) -> None:
        self.decoder = decoder
        self.start = start
        self.stop = stop
        self.job = job


class Source(NamedTuple):
    """The data to decode, as for `Plan.decoder`."""

    plan: Plan
    data: memoryview
    start: int
    end: int | None
    aborted: Buffer = b""
    place: Place = NOWHERE
    owned: bool = False

    def decoder(self, start: int) -> Decoder:
        """A decoder that starts at a position."""
        decoder = self.plan.decoder(self.data, start, self.end, self.aborted, owned=self.owned)
        decoder.set_place(*self.place)
        return decoder


class _Reader:
    """Plans runs, which threads read. `size` is the end of the data."""

    def __init__(self, source: Source, first: Decoder, max_rows: int, max_bytes: int, threads: int) -> None:
        self.source = source
        self.max_rows = max_rows
        self.max_bytes = max_bytes
        self.size = first.size
        self.decoders = [first]  # all of them
        self.idle = [first]
        self.next_start: int | None = first.position  # of the next run to plan; None: not yet known
        self.run_bytes = FIRST_RUN
        self.waiting: deque[_Run] = deque()
        self.threads = threads
        self.most_waiting = threads
        self.workers = Workers(threads)

    def parts(self) -> Iterator[_Part]:
        """The parts of all runs, in order, up to the first fault."""
        before: _Run | None = None
        while (run := self._next_run(before)) is not None:
            part = self._first_part(run, before)
            num_chunks, num_parts = len(part.chunks), 1
            while part.going_on and not run.decoder.done:
                run.job = self._start(run.decoder)
                yield part
                part = self._result(run.job)
                num_chunks += len(part.chunks)
                num_parts += 1
            yield part
            if not part.going_on:
                return
            self._learn(run, num_chunks, num_parts)
            before = run

    def _next_run(self, before: _Run | None) -> _Run | None:
        """The next run, or None after the last one. The previous run was read to its end."""
        if before is not None and before.decoder.position < before.stop:
            return None
        if before is not None and not self.waiting:
            # Planning stopped at damage, which the decoder has skipped.
            self._plan(before.decoder, before.decoder.position)
        while len(self.waiting) < self.most_waiting and self.next_start is not None:
            self._plan(self._idle_decoder(self.next_start), self.next_start)
        return self.waiting.popleft() if self.waiting else None

    def _plan(self, decoder: Decoder, start: int) -> None:
        """Start a run of about the target size, or up to the position where the walk over headers ends."""
        target = start + self.run_bytes
        reached = decoder.reach(start, min(target, self.size))
        is_cut = target <= reached < self.size
        stop = reached if is_cut else reached + 1
        self.next_start = reached if is_cut else None
        decoder.stop_at(stop)
        self.waiting.append(_Run(decoder, start, stop, self._start(decoder)))

    def _idle_decoder(self, start: int) -> Decoder:
        if self.idle:
            decoder = self.idle.pop()
            decoder.restart(start)
        else:
            decoder = self.source.decoder(start)
            self.decoders.append(decoder)
        return decoder

    def _start(self, decoder: Decoder) -> Job[_Part]:
        """Start reading the next part of a run."""
        return self.workers.start(
            partial(_read_part, decoder, self.source.plan.on_error, self.max_rows, self.max_bytes)
        )

    def _result(self, job: Job[_Part]) -> _Part:
        """The result of a job. Until it is done, this thread runs jobs of later runs."""
        return self.workers.result(job, (run.job for run in self.waiting))

    def _first_part(self, run: _Run, before: _Run | None) -> _Part:
        """The result of the job of a run, if it is valid; else the result of continuing from the previous run."""
        part = self._result(run.job)
        if before is None or run.decoder is before.decoder:
            return part
        if run.decoder.continues(before.decoder, run.start):
            self.idle.append(before.decoder)
            return part
        self.idle.append(run.decoder)
        run.decoder = before.decoder
        run.decoder.stop_at(run.stop)
        return self._result(self._start(run.decoder))

    def _learn(self, run: _Run, num_chunks: int, num_parts: int) -> None:
        """Choose length and number of later runs from the result of a run. On average its last chunk is half full.

        Waiting runs of several parts hold decompressed batches, which may be large.
        """
        self.most_waiting = self.threads * (RUNS_A_THREAD if num_parts == 1 else 1)
        wanted = (run.stop - run.start) * 2 * CHUNKS_AIMED_AT // max(2 * num_chunks - 1, 1)
        wanted = max(self.run_bytes // 2, min(wanted, self.run_bytes * 2))
        self.run_bytes = max(SHORTEST_RUN, min(wanted, LONGEST_RUN))

    def close(self) -> None:
        """End the threads and release the buffer."""
        self.workers.close()
        for decoder in self.decoders:
            with suppress(RuntimeError):  # in use by a thread that could not be waited for
                decoder.close()
        with suppress(BufferError):  # it is released when that decoder is freed
            self.source.data.release()


def _read_part(decoder: Decoder, on_error: OnError, max_rows: int, max_bytes: int) -> _Part:
    """The next chunks of a run."""
    chunks: deque[RecordColumns] = deque()
    errors: list[Exception] = []
    going_on = True
    left = CHUNKS_OF_RUN * max_bytes
    while going_on and not decoder.done and len(chunks) < CHUNKS_OF_RUN and left > 0:
        for chunk, position in decoder.read_many(RecordColumns, CHUNKS_OF_RUN - len(chunks), max_rows, max_bytes, left):
            chunk.problems = Problems()
            chunk.consumed = position
            chunks.append(chunk)
            left -= chunk.nbytes
        if decoder.fault is not None:
            try:
                going_on = handle_fault(decoder, on_error, chunk.problems)
            except Exception as error:
                going_on = False
                errors.append(error)
            chunk.consumed = decoder.position
    return _Part(chunks, going_on, errors)


def read_chunks_in_threads(
    source: Source, first: Decoder, max_rows: int, max_bytes: int, threads: int
) -> Generator[RecordColumns]:
    """As `read_chunks` of the first decoder, but in several threads. The end of a run also ends a chunk.

    Args:
        source: the data.
        first: a new decoder of the data.
        max_rows, max_bytes: of a chunk.
        threads: number of threads, including the caller's.
    """
    on_error = source.plan.on_error
    if first.size - first.position <= 2 * FIRST_RUN:
        source.data.release()
        yield from read_chunks(first, on_error, max_rows, max_bytes)
        return
    told = -1  # `consumed` of the last chunk
    with closing(_Reader(source, first, max_rows, max_bytes, threads)) as reader:
        for part in reader.parts():
            while part.chunks:
                chunk = part.chunks.popleft()
                if len(chunk) or chunk.problems:
                    told = chunk.consumed
                    yield chunk
            if part.errors:
                raise part.errors.pop()  # frames must not keep it: its traceback refers to them
        if part.going_on and chunk.consumed != told:
            yield chunk


def read_whole_in_threads(plan: Plan, data: Buffer, budget: Budget, threads: int) -> RecordColumns | None:
    """As `read_whole` of a decoder of all data with the budget. None if one thread must read it.

    That is the case for small data, and if the table comes close to a limit: the result then depends on the batch that
    reaches it, and on how the table has grown.
    """
    with plan.decoder(data, budget=budget) as decoder:
        if decoder.size <= 2 * FIRST_RUN:
            return None
        whole = decoder.empty_table(RecordColumns)
        decoder.expect(whole, decoder.size)
    whole.problems = Problems()
    source = Source(plan, memoryview(data), 0, None)
    chunks = read_chunks_in_threads(source, source.decoder(0), DEFAULT_MAX_ROWS, DEFAULT_MAX_BYTES, threads)
    try:
        with closing(chunks):
            for chunk in chunks:
                if len(whole) + len(chunk) >= TABLE_ROWS or not fits(whole, chunk, DEFAULT_MAX_DECOMPRESSED_BYTES):
                    return None
                try:
                    append(whole, chunk)
                except LimitExceeded:
                    return None
                whole.problems.include(chunk.problems)
                whole.consumed = chunk.consumed
    except MemoryError:  # one thread needs less
        return None
    return whole


BATCHES_A_THREAD = 8
"""Number of batches per thread that are being compressed or wait for the batches before them."""


def compressed_in_threads(
    ahead: BatchEncoder,
    encoder: BatchEncoder,
    compress: Callable[[bytes], Any],
    chunks: Iterator[RecordChunk],
    threads: int,
) -> Iterator[tuple[bytes, int, int, int, int]]:
    """The batches of an encoder, whose records are compressed in threads.

    Another encoder with the same options runs ahead to find the records of the next batches; writing them twice takes
    little time beside compression. So batches and errors are those of one thread.

    Args:
        ahead, encoder: the two encoders.
        compress: a function that several threads may call at once.
        chunks: the input.
        threads: the number of threads, including the caller's.
    """
    with closing(Workers(threads)) as workers:
        jobs: deque[Job[Any]] = deque()
        held: deque[RecordChunk] = deque()  # which `encoder` has not begun
        errors: list[Exception] = []  # of the input

        def start(records: Any) -> bytes:
            jobs.append(workers.start(partial(compress, bytes(records))))
            return b""

        def run_ahead() -> Iterator[None]:
            try:
                for chunk in chunks:
                    held.append(chunk)
                    yield
                    while _next_batch(ahead, chunk, start):
                        yield
                ahead.last_batch(start)
            except Exception as error:
                errors.append(error)

        steps = run_ahead()

        def finish(_: Any) -> Any:
            while len(jobs) < BATCHES_A_THREAD * threads and next(steps, steps) is None:
                pass
            return workers.result(jobs.popleft(), iter(jobs))

        while True:
            while not held and next(steps, steps) is None:
                pass
            if not held:
                break
            chunk = held.popleft()
            while batch := encoder.next_batch(chunk, finish):
                yield batch
        if errors:
            raise errors.pop()
        if batch := encoder.last_batch(finish):
            yield batch


def _next_batch(encoder: BatchEncoder, chunk: RecordChunk, start: Callable[[Any], bytes]) -> bool:
    return encoder.next_batch(chunk, start) is not None


LEAST_SCANNED = 64
"""Number of batches below which one thread computes their checksums."""


def scan_in_threads(
    read: Callable[[int, int | None, int], ScanResult],
    positions: npt.NDArray[np.int64],
    end: int | None,
    most: int,
    threads: int,
) -> ScanResult | None:
    """The result of a scan, from threads that each read a part of the batches.

    Args:
        read: scans from a position to another, at most so many batches.
        positions: of all batches, as a scan without checksums found them.
        end: where the data ends; None for the end of the buffer.
        most: the maximum number of batches.
        threads: the number of threads, including the caller's.

    Returns:
        None if one thread has to scan: there are few batches, a limit was reached, or the data has changed.
    """
    if len(positions) < LEAST_SCANNED:
        return None
    bounds = [len(positions) * i // threads for i in range(threads)]
    starts = [int(positions[i]) for i in sorted(set(bounds))]
    lasts = sorted(set(bounds))[-1]
    with closing(Workers(threads)) as workers:
        calls = [partial(read, first, stop, most) for first, stop in pairwise(starts)]
        jobs = [workers.start(call) for call in [*calls, partial(read, starts[-1], end, most - lasts)]]
        results = [workers.result(job, iter(jobs)) for job in jobs]
    whole = results[0][0]
    for (_, position, *_, fault, _), stop in zip(results, starts[1:], strict=False):
        if position != stop or fault is not None:
            return None
    for part, *_ in results[1:]:
        if not fits(whole, part, 0):
            return None
        try:
            append(whole, part)
        except LimitExceeded:
            return None
    return None if results[-1][4] else (whole, *results[-1][1:])
