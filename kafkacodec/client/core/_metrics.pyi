class Counter:
    """A number that increases.

    Attributes:
        value: the number.
    """

    value: float

    def __init__(self) -> None: ...
    def add(self, amount: float = 1) -> None:
        """Increase it."""

class Histogram:
    """A distribution of values: eight classes per power of two, so quantiles are at most 1/8 too high.

    Values range from 0 to 2^40; all below 2^-10 share one class, and so do all above the range.

    Attributes:
        count, sum, max: the number of values, their sum, and the largest; 0 if there are none.
    """

    def __init__(self) -> None: ...
    @property
    def count(self) -> int: ...
    @property
    def sum(self) -> float: ...
    @property
    def max(self) -> float: ...
    @property
    def _classes(self) -> dict[int, int]: ...
    def add(self, value: float) -> None:
        """Count a value."""

    def quantile(self, part: float) -> float:
        """The value below which this fraction (0 to 1) of all values lies; 0 if there are none."""

class RequestCounts:
    """The metrics of answered requests of one API."""

    def __init__(self, requests: Counter, request_ms: Histogram, bytes_out: Counter, bytes_in: Counter) -> None: ...
    def add(self, ms: float, bytes_out: int, bytes_in: int) -> None:
        """Count a request, which took so many ms from writing it to its answer."""

class BatchCounts:
    """The metrics of acknowledged batches."""

    def __init__(
        self, batches: Counter, records: Counter, bytes: Counter, batch_records: Histogram, batch_bytes: Histogram
    ) -> None: ...
    def add(self, records: int, bytes: int) -> None:
        """Count a batch of so many records and bytes."""
