"""Compressing batches in several threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any

from kafkacodec.records.parallel.workers import Job, Workers

if TYPE_CHECKING:
    from kafkacodec.records._encoder import BatchEncoder
    from kafkacodec.records._record_chunks import RecordChunk

__all__ = ["compressed_in_threads"]

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
    little time compared with compression. So batches and errors are those of one thread.

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
