"""The blocking consumer: the asyncio one on a thread of its own, read in the caller's thread."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple, Self, TypeVar, Unpack

from kafkacodec.client.aio.consumer import Consumer as AioConsumer, consumer_defaults
from kafkacodec.client.aio.consumer_group import OnPartitions
from kafkacodec.client.consuming.offset_lookup import FoundOffset
from kafkacodec.client.consuming.positions import Key
from kafkacodec.client.consuming.record import ConsumedColumns, ConsumerRecord
from kafkacodec.client.consuming.settings import ConsumerOptions, ConsumerSettings
from kafkacodec.client.driver.thread import LoopThread
from kafkacodec.client.faces import row_limit, seconds
from kafkacodec.client.groups.membership import GroupMetadata
from kafkacodec.client.groups.offsets import CommittedOffset
from kafkacodec.client.options import options_from_config
from kafkacodec.errors import ClientClosed, LocalProtocolError
from kafkacodec.records.signatures import shows_options

__all__ = ["Consumer"]

T = TypeVar("T")


class _Callback(NamedTuple):
    """A function of the application that the loop waits for."""

    function: OnPartitions
    partitions: list[Key]
    done: asyncio.Future[None]


class Consumer:
    """Reads topics: records one by one, in lists, or as tables.

    It fetches ahead on a thread of its own. One thread uses it at a time. A context manager, and an iterable over
    records that never ends::

        with Consumer("orders", bootstrap_servers="localhost:9092", group_id="billing") as consumer:
            for record in consumer:
                ...

    Args:
        topics: what to subscribe to at once; `subscribe` and `assign` do it later.
        bootstrap_servers, other options: those of `ConsumerSettings`.

    Raises:
        TypeError: an option is unknown or has a wrong type.
        ValueError: an option or topic name has a wrong value.

    Errors of reading (`columns`, `getmany`, iteration):
        LocalProtocolError: nothing is subscribed to or assigned.
        ClientClosed: it is closed, or was made before this process was forked.
        CorruptRecord (also CrcMismatch): a batch is damaged. The records before it were given; the path names topic
            and partition. The error comes again until `seek` leaves the batch out.
        NoOffset, OffsetOutOfRangeError, LogTruncated: a partition has no valid position and ``auto_offset_reset`` is
            ``"none"``.
        BrokerError: the cluster refuses to let a partition be read, or the group refuses this member.
        AuthenticationFailed: the brokers refuse this client.
        DeadlineExceeded: `timeout` has passed and no broker ever answered.
    """

    @shows_options(ConsumerOptions, ConsumerSettings)
    def __init__(
        self, *topics: str, bootstrap_servers: str | Iterable[str], **options: Unpack[ConsumerOptions]
    ) -> None:
        settings = ConsumerSettings(bootstrap_servers=bootstrap_servers, **options)
        self._event = threading.Event()
        self._callbacks: deque[_Callback] = deque()
        self._thread = LoopThread("kafkacodec consumer")

        async def make() -> AioConsumer:
            return AioConsumer._for_threads(settings, topics, self._thread.soon, self._event.set, self._call_later)

        try:
            self._inner = self._thread.run(make())
        except BaseException:
            self._thread.close()
            raise
        self._settings = settings
        self._parts = self._inner._parts
        self._reader = self._parts.reader

    @classmethod
    def from_config(cls, config: Mapping[str, Any], *topics: str) -> Self:
        """A consumer with the dotted option names of Java and librdkafka, such as ``bootstrap.servers``.

        Raises:
            TypeError: a name is unknown; the error has the nearest known one.
            ValueError: a value is wrong.
        """
        return cls(*topics, **options_from_config(config, consumer_defaults()))

    # What is read

    def subscribe(
        self,
        topics: Iterable[str] = (),
        *,
        pattern: Any = None,
        on_assigned: OnPartitions | None = None,
        on_revoked: OnPartitions | None = None,
        on_lost: OnPartitions | None = None,
    ) -> None:
        """Read these topics, or those whose names a regular expression matches; replaces an earlier subscription.

        With a group id the group shares the partitions among its members. Without one, this consumer reads all.

        Args:
            topics: names.
            pattern: a regular expression, which matches a name in full. New topics are found by
                ``metadata_max_age_ms``.
            on_assigned: called with a list of (topic, partition) that are new, before they are read.
            on_revoked: called with those that another member gets, after their automatic commit; `commit` still works.
            on_lost: called with those that another member may have already. Default: `on_revoked`.

        The functions are called in the thread that reads, while it asks for records.
        """
        listener = {"on_assigned": on_assigned, "on_revoked": on_revoked, "on_lost": on_lost}
        self._run(self._inner.subscribe(topics, pattern=pattern, **listener))

    def unsubscribe(self) -> None:
        """Read nothing any more; commit if `enable_auto_commit`, and leave the group."""
        self._run(self._inner.unsubscribe())

    def assign(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Read these partitions, a list of (topic, number), and no others; no group takes part in that.

        Partitions that are assigned already go on where they are. New ones start at the committed offset of the group,
        if there is a group id, else as ``auto_offset_reset`` says.
        """
        self._run(self._inner.assign(partitions))

    def assignment(self) -> list[Key]:
        """The partitions that are read now, as (topic, number)."""
        return self._inner.assignment()

    def subscription(self) -> list[str]:
        """The topics that are subscribed to by name."""
        return self._inner.subscription()

    # Where it is read

    def seek(self, topic: str, partition: int, offset: int) -> None:
        """Go on at an offset. Raises LocalProtocolError if the partition is not assigned."""
        self._run(self._inner.seek(topic, partition, offset))

    def seek_to_beginning(self, *partitions: tuple[str, int]) -> None:
        """Go on at the first offsets of these partitions, or of all that are assigned."""
        self._run(self._inner.seek_to_beginning(*partitions))

    def seek_to_end(self, *partitions: tuple[str, int]) -> None:
        """Go on at the ends of these partitions, or of all that are assigned."""
        self._run(self._inner.seek_to_end(*partitions))

    def seek_to_timestamp(self, timestamp: int, *partitions: tuple[str, int]) -> None:
        """Go on at the first records that are not older than `timestamp` (ms since 1970), or at the end."""
        self._run(self._inner.seek_to_timestamp(timestamp, *partitions))

    def position(self, topic: str, partition: int) -> int:
        """The offset of the next record. It is found out first, within ``default_api_timeout_ms``, if needed."""
        return self._run(self._inner.position(topic, partition))

    def pause(self, *partitions: tuple[str, int]) -> None:
        """Get no records of these partitions until `resume`. They stay assigned."""
        self._run(self._inner.pause(*partitions))

    def resume(self, *partitions: tuple[str, int]) -> None:
        """End `pause`."""
        self._run(self._inner.resume(*partitions))

    def paused(self) -> list[Key]:
        """The assigned partitions that are paused."""
        return self._inner.paused()

    # Offsets of partitions, assigned or not

    def beginning_offsets(self, partitions: Iterable[tuple[str, int]]) -> dict[Key, int]:
        """The first offset of each partition."""
        return self._run(self._inner.beginning_offsets(partitions))

    def end_offsets(self, partitions: Iterable[tuple[str, int]]) -> dict[Key, int]:
        """The offset after the last record of each partition; after the last stable one for ``read_committed``."""
        return self._run(self._inner.end_offsets(partitions))

    def offsets_for_times(self, timestamps: Mapping[tuple[str, int], int]) -> dict[Key, FoundOffset | None]:
        """The first record at or after a time in each partition; None where there is none.

        Args:
            timestamps: ms since 1970 by (topic, number).

        Raises:
            UnsupportedVersion: the broker is older than 0.10.1.
        """
        return self._run(self._inner.offsets_for_times(timestamps))

    def lag(self) -> dict[Key, int]:
        """For each assigned partition that was fetched from, the offsets between its position and its end."""
        return self._inner.lag()

    # Committing

    def commit(self, offsets: Mapping[tuple[str, int], Any] | None = None) -> None:
        """Commit the positions of all assigned partitions, or the given offsets.

        Args:
            offsets: by (topic, number): the offset of the next record to process, or a pair of it and a text.

        Raises:
            LocalProtocolError: the consumer has no group id.
            BrokerError: the coordinator refused; RebalanceInProgressError, IllegalGenerationError and
                UnknownMemberIdError mean that partitions may have another owner now.
            DeadlineExceeded: not within ``default_api_timeout_ms``.
        """
        self._run(self._inner.commit(offsets))

    def committed(self, topic: str, partition: int) -> int | None:
        """The group's committed offset of a partition; None without one."""
        return self._run(self._inner.committed(topic, partition))

    def committed_offsets(self, partitions: Iterable[tuple[str, int]]) -> dict[Key, CommittedOffset | None]:
        """The group's committed offsets with leader epochs and metadata; None without one."""
        return self._run(self._inner.committed_offsets(partitions))

    def group_metadata(self) -> GroupMetadata:
        """What a transactional producer needs to commit this consumer's offsets."""
        return self._inner.group_metadata()

    # Reading

    def columns(self, *, max_rows: int | None = None, timeout: float | None = None) -> Iterator[ConsumedColumns]:
        """Records as tables, without a Python object per record: the fastest way.

        Args:
            max_rows: the most rows of a table. Default: 8,192, so that a table stays in the processor's cache.
            timeout: the iterator ends when so many seconds brought nothing; None: never.

        Yields:
            ConsumedColumns: ``topic``, ``partition``, ``offset``, ``timestamp``, ``timestamp_type``, ``key``,
            ``value``, ``headers``. Rows of one partition are in order. A table may be kept: it has its own memory.
        """
        return self._tables(row_limit("max_rows", max_rows), seconds("timeout", timeout))

    def _tables(self, max_rows: int | None, timeout: float | None) -> Iterator[ConsumedColumns]:
        while True:
            self._check_reading()
            table = self._reader.columns(max_rows)
            if table is not None:
                yield table
            elif not self._wait(timeout):
                return

    def getmany(self, timeout: float | None = 0, max_records: int | None = None) -> dict[Key, list[ConsumerRecord]]:
        """Records by (topic, partition): what is there, or what comes within `timeout` seconds.

        Args:
            timeout: in seconds; None waits until something comes.
            max_records: the most records in all. Default: ``max_poll_records``.
        """
        limit = seconds("timeout", timeout)
        most = row_limit("max_records", max_records) or self._settings.max_poll_records
        while True:
            self._check_reading()
            found = self._reader.records_by_partition(most)
            if found or not self._wait(limit):
                return found

    def __iter__(self) -> Iterator[ConsumerRecord]:
        return chain.from_iterable(self._iterators())

    def _iterators(self) -> Iterator[Iterator[ConsumerRecord]]:
        while True:
            self._check_reading()
            records = self._reader.iterated()
            if records is not None:
                yield records
            else:
                self._wait(None)

    def _check_reading(self) -> None:
        self._thread.check()
        self._run_callbacks()
        self._parts.raise_error()
        if self._inner._topics is None and not self._parts.positions.partitions:
            raise LocalProtocolError("nothing to read: call subscribe() or assign() first")

    def _wait(self, timeout: float | None) -> bool:
        """Wait until there may be something to read; False if nothing came in time."""
        deadline = None if timeout is None else time.monotonic() + timeout
        self._reader.waiting = True
        try:
            while True:
                self._event.clear()
                if self._parts.readable:
                    return True
                self._run_callbacks()
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    if timeout:
                        self._parts.raise_unreachable()
                    return False
                self._event.wait(left)
                self._thread.check()
        finally:
            self._reader.waiting = False

    # The loop's thread

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the loop's thread; callbacks that it waits for run here meanwhile."""
        if self._inner._group is None or not self._inner._group.listens:
            return self._thread.run(coroutine)
        task = self._thread.run(self._started(coroutine))
        try:
            while not task.done():
                self._event.clear()
                self._run_callbacks()
                if not task.done():
                    self._event.wait()
        except BaseException:
            self._thread.soon(task.cancel)
            raise
        return self._thread.run(_result(task))

    async def _started(self, coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(coroutine)
        task.add_done_callback(lambda task: self._event.set())
        return task

    def _call_later(self, function: OnPartitions, partitions: list[Key]) -> asyncio.Future[None]:
        """Have a callback run in the reading thread. Called in the loop's."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._callbacks.append(_Callback(function, partitions, done))
        self._event.set()
        return done

    def _run_callbacks(self) -> None:
        while self._callbacks:
            callback = self._callbacks.popleft()
            problem: BaseException | None = None
            try:
                callback.function(callback.partitions)
            except Exception as error:
                problem = error
            self._thread.soon(_end, callback.done, problem)

    # Else

    def metrics(self) -> dict[str, float]:
        """The numbers of `kafkacodec.client.core.metrics.METRICS`, of now."""
        return self._inner.metrics()

    def close(self) -> None:
        """Commit what is processed if `enable_auto_commit`, leave the group, close the connections.

        Nothing happens the second time.
        """
        try:
            self._thread.check()
        except ClientClosed:
            return
        try:
            self._run(self._inner.close())
        finally:
            self._thread.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        group = f", group_id={self._settings.group_id!r}" if self._settings.group_id else ""
        return f"<Consumer of {', '.join(self._settings.bootstrap_servers)}{group}>"


async def _result(task: asyncio.Task[T]) -> T:
    return await task


def _end(done: asyncio.Future[None], problem: BaseException | None) -> None:
    if done.done():
        return
    if problem is None:
        done.set_result(None)
    else:
        done.set_exception(problem)
