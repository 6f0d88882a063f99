from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Never

from kafkacodec.client.producing._batch import BatchBuilder
from kafkacodec.client.producing._callbacks import Callback
from kafkacodec.client.producing._delivery import Delivery
from kafkacodec.client.producing._row_cells import RowCells
from kafkacodec.client.producing.outcome import Outcome, TableOutcome
from kafkacodec.moments import Moment

NAMES: Final[tuple[str, ...]]
"""The arguments of `send`."""

BY_NAME: Final[str]
"""What `send` says of more than two arguments by position."""

class OpenBatch:
    """What `Appending` needs of a batch.

    Attributes:
        sealed: whether it takes no more records.
    """

    builder: BatchBuilder | None
    outcome: Outcome
    count: int
    size: int
    sealed: bool

class OpenQueue:
    """What `Appending` needs of the queue of a partition."""

    open: Any

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

class RowRuns:
    """Which records of batches are the rows of a table.

    Args:
        table: the outcome that learns about them.
    """

    def __init__(self, table: TableOutcome) -> None: ...
    def add(self, made: Delivery) -> None:
        """The next row is this record."""

    def tell(self) -> None:
        """Count the rows as queued, run by run; from now on the table learns what becomes of them."""

class Appending:
    """Adds records to open batches, and counts the bytes of all batches.

    Args:
        is_owned: whether this thread has the lock of the queues.
        memory: how many bytes may wait, until `send` has to.
        most: how many bytes a record may take.
    """

    ready: dict[str, Any]
    pending: dict[Any, None]
    active: dict[Any, None]
    @property
    def bytes(self) -> int: ...
    @property
    def full(self) -> bool: ...
    @property
    def drained(self) -> int: ...
    def __init__(self, is_owned: Callable[[], bool], memory: int, most: int) -> None: ...
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

    def add_rows(
        self,
        topic: OpenTopic,
        rows: RowCells,
        row: int,
        end: int,
        partition: int | None,
        headers: Any,
        timestamp: int,
        runs: RowRuns,
    ) -> int:
        """Add rows [row, end) to open batches, as `put` adds records with these headers; `runs` learns where they are.

        Args:
            partition: that of all rows; None: by their keys.

        Returns:
            int: the first row that has no open batch, or is refused; `end` if all are added.

        Raises:
            EncodeError: a header has a wrong type.
        """

    def pend(self, queue: OpenQueue, batch: OpenBatch) -> None:
        """Count a batch as queued. If it is open, it is open to others from now on, without the lock."""

class Sending:
    """`send` of a producer for threads: into a batch that is open, or by `_send`, which may wait."""

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
    ) -> Delivery:
        """Queue a record."""
