"""The runs of batches that threads decode.

A run is the range that one decoder reads, between two cuts. A cut is the start of a batch by the lengths in the batch
headers, which is not verified by a checksum. The result of a run is therefore used only if decoding the data before it
ends at its start, in the state in which the run was started; otherwise decoding continues through the run. The result
is always that of one thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from kafkacodec.datatypes import NamedTuple
from kafkacodec.records.columns import Problems, RecordColumns
from kafkacodec.records.parallel.workers import Job, Workers
from kafkacodec.records.plan import NOWHERE, OnError, Place, Plan
from kafkacodec.records.reading import end_chunk

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from kafkacodec.records._decoder import Decoder

__all__ = ["FIRST_RUN", "Reader", "Source"]

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


class Reader:
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
        going_on, errors = end_chunk(decoder, on_error, chunk)
    return _Part(chunks, going_on, errors)
