import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Never

from kafkacodec.client.producing._batch import BatchBuilder
from kafkacodec.client.producing._callbacks import Callback
from kafkacodec.client.producing._delivery import Delivery, TableDelivery
from kafkacodec.client.producing._row_cells import RowCells
from kafkacodec.client.producing.outcome import Outcome, TableOutcome
from kafkacodec.errors import EncodeError
from kafkacodec.moments import Moment

NAMES: Final[tuple[str, ...]]
"""The arguments of `send`."""

BY_NAME: Final[str]
"""What `send` says of more than two arguments by position."""

SEQUENCES: Final[int]
"""The number of sequence numbers; they wrap around to 0."""

class OpenBatch:
    """What compiled code needs of a batch: see `Batch`.

    Attributes:
        sealed: whether it takes no more records.
    """

    builder: BatchBuilder | None
    queue: Any
    outcome: Outcome
    data: Any
    producer: Any
    first: int
    count: int
    size: int
    sequence: int
    attempts: int
    sealed: bool

class OpenQueue:
    """What compiled code needs of the queue of a partition: see `PartitionQueue`."""

    topic: str
    number: int
    next_sequence: int
    open: Any
    waiting: Any
    producer: Any
    flying: list[Any]
    proven: bool
    broken: bool

class OpenTopic:
    """What `Appending` needs of the queues of a topic.

    Attributes:
        in_order: those of its partitions, by number.
    """

    in_order: list[Any]
    queues: Any
    present: frozenset[int]
    sticky: Any
    batch_limit: int

class RowRun(Callback):
    """Consecutive records of a batch that are consecutive rows of a table, and are not known yet."""

class FewRows:
    """Rows that go into the open batches of their partitions like records of `send`.

    So tables with a few rows for each partition are gathered: a batch for each of them would cost more than its rows.

    Args:
        queues: those of the producer.
        topic: the topic of all rows.
        parts: the rows; `parts_of` returns them.
        partition: that of all rows; None: by their keys, as in `send`.
        headers: those of each row, as in `send`.

    Attributes:
        outcome: learns what becomes of the rows, from `finish` on.

    Raises:
        EncodeError: a header has a wrong type.
    """

    def __init__(
        self,
        queues: Appending,
        topic: str,
        parts: list[RowCells],
        partition: int | None = None,
        headers: Iterable[tuple[str, Any]] | Mapping[str, Any] = (),
    ) -> None: ...
    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int | None: ...
    @property
    def headers(self) -> Any: ...
    @property
    def outcome(self) -> TableOutcome: ...
    def add(self) -> bool:
        """Add rows to open batches, up to one that has none, that is refused, or that has to wait for memory; returns
        whether no more rows are left. Needs no lock."""

    def pair(self) -> tuple[bytes | None, bytes | None]:
        """The key and the value of the next row, for `Queues.append`."""

    def took(self, made: Delivery) -> None:
        """The next row is this record."""

    def located(self, error: EncodeError) -> EncodeError:
        """An error about the next row, with its place in the table."""

    def finish(self) -> TableDelivery:
        """The outcome of the rows, which are all queued."""

class Appending:
    """Adds records to open batches, and counts the bytes of all batches.

    Args:
        is_owned: whether this thread has the lock of the queues.
        memory: how many bytes may wait, until `send` has to.
        most: how many bytes a record may take.

    Attributes:
        topics: the queues of each topic.
        hashes: whether the hash of a record's key chooses its partition; otherwise a function of the application does.
        loop: the client's event loop, for outcomes.
    """

    topics: dict[str, Any]
    ready: dict[str, Any]
    pending: dict[Any, None]
    active: dict[Any, None]
    hashes: bool
    loop: asyncio.AbstractEventLoop | None
    @property
    def bytes(self) -> int: ...
    @property
    def full(self) -> bool: ...
    @property
    def drained(self) -> int: ...
    def __init__(self, is_owned: Callable[[], bool], memory: int, most: int) -> None: ...
    def close(self, queue: OpenQueue) -> None:
        """Close the open batch to more records."""

    def begin(self, queue: OpenQueue, batch: OpenBatch) -> None:
        """Take a batch, the first of its queue, to be sent, and number its records."""

    def resolved(self, batch: OpenBatch) -> None:
        """Record that the outcome of a batch, which is in no queue, is known."""

    def free(self, size: int) -> None:
        """Count bytes that are queued no longer."""

    def choose(self, topic: OpenTopic, partition: int | None, key: Any) -> Any:
        """The queue of a partition, None if it does not exist; by Kafka's hash of a key; without a key `topic.sticky`.

        Raises:
            EncodeError: the key has a wrong type.
        """

    def put(
        self, topic: OpenTopic, batch: OpenBatch, key: Any, value: Any, headers: Any, timestamp: int
    ) -> Delivery | None:
        """Add a record to a batch; None if it is full or closed. A batch without records takes any that is allowed.

        Raises:
            EncodeError: a key, value or header has a wrong type, or the record takes too many bytes.
        """

    def append_open(
        self, name: str, key: Any, value: Any, headers: Any, partition: int | None, timestamp: Moment | None
    ) -> Delivery | None:
        """Add a record, where a batch is open for it and nothing has to be waited for; else None. Needs no lock.

        Args:
            name: the topic, which has to be in `ready`.

        Raises:
            EncodeError: as in `put`.
        """

    def few_rows(self, name: str | None, data: Any) -> FewRows | None:
        """The rows of a small table with no more than keys and values, if nothing has to be waited for; else None.

        Needs no lock.

        Args:
            name: the topic, which has to be in `ready`.
        """

    def are_few(self, topic: OpenTopic, parts: list[RowCells]) -> bool:
        """Whether rows are better added one by one than encoded as a table: if they are few for a batch."""

    def pend(self, queue: OpenQueue, batch: OpenBatch) -> None:
        """Count a batch as queued. If it is open, it is open to others from now on, without the lock."""

class Sending:
    """`send` and `send_columns` of a producer for threads: into batches that are open, or by `_send`, `_send_columns`
    and `_add_rows`, which may wait.

    `_check_transaction` returns the open transaction, which `_add_rows` gets.
    """

    _queues: Any
    def send(
        self,
        topic: str,
        value: Any = None,
        *more: Never,
        key: Any = None,
        headers: Iterable[tuple[str, Any]] | Mapping[str, Any] = (),
        partition: int | None = None,
        timestamp: Moment | None = None,
        timestamp_ms: None = None,
        callback: None = None,
        on_delivery: None = None,
    ) -> Delivery:
        """Queue a record."""
    def send_columns(self, data: Any, *, topic: str | None = None) -> TableDelivery:
        """Queue the rows of an Arrow table."""
