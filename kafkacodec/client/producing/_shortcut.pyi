from collections.abc import Callable
from threading import RLock
from typing import Any, Final

from kafkacodec.client.core.metrics import BatchCounts, RequestCounts
from kafkacodec.client.producing._appending import Appending, OpenBatch
from kafkacodec.client.producing._callbacks import Callbacks

MOST_ANSWER: Final[int]
"""The most bytes of an answer that a thread takes itself."""

class Way:
    """What a thread needs to send batches of one partition.

    Args:
        line: the connection, see `Line`.
        producer: the producer id and epoch of the partition.
        frame: returns what precedes and follows so many bytes of records in a request, and their number.
        answer: the usual answer, of `MOST_ANSWER` bytes at most. From one to the next the correlation id differs, and
            the 8 bytes of each: the offset, the time and the first offset of the log.
        offset_at, time_at, start_at: their places.
    """

    def __init__(
        self,
        line: Any,
        producer: tuple[int, int],
        frame: Callable[[int], tuple[bytes, bytes, int]],
        answer: bytes,
        offset_at: int,
        time_at: int,
        start_at: int,
    ) -> None: ...
    @property
    def line(self) -> Any: ...

class Shortcut:
    """Sends a batch in the thread that sends its record, and takes the answer in the thread that waits for it, while
    the loop sleeps and nothing else is under way.

    The loop knows nothing of it until it wakes, and then it adopts what is under way. It is also a `Sleeper`. It is not
    used for a while after other records have followed one at once, which are better sent together.

    Args:
        queues: the producer's.
        lock: that of the queues.
        requests, batches: the metrics of what is answered.
        adopt: called in the loop's thread with the batch, line, correlation id, time, size and unwritten rest of a
            request, which is under way when the loop wakes.
        ring: wakes the loop.
        limit_ms: it is not used while the loop may sleep for longer, since it looks at time limits.

    Attributes:
        ways: by the queues of partitions; None for those that have none.
        offered: whether the ways may be used until the loop wakes; set it in the loop's thread.
        written, taken: how many requests it has written, and answers it has taken.
    """

    ways: dict[Any, Way | None]
    offered: bool
    def __init__(
        self,
        queues: Appending,
        lock: RLock,
        requests: RequestCounts,
        batches: BatchCounts,
        adopt: Callable[..., None],
        ring: Callable[[], object],
        limit_ms: float,
    ) -> None: ...
    @property
    def written(self) -> int: ...
    @property
    def taken(self) -> int: ...
    def wants(self) -> bool:
        """Whether ways are to be offered after an answer."""

    def fall_asleep(self, timeout: float | None) -> None:
        """The loop runs nothing until events come, or this time has passed, in seconds."""

    def wake_up(self) -> None:
        """The loop goes on, and adopts what is under way."""

    def write(self, batch: OpenBatch) -> bool:
        """Send an open batch if it is the only one; returns whether it is sent. The thread has the lock of the
        queues."""

    def wait(self, outcome: Callbacks, timeout: float | None) -> bool:
        """Wait for the outcome of a batch, as long as the loop sleeps; returns whether it is known. The time is in
        seconds."""
