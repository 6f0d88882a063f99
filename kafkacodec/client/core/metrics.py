"""Metrics of a client: numbers in bounded memory, returned as a plain dict.

Each metric is a row of `METRICS`; other names are refused. Parts hold the `Counter` or `Histogram` that they update,
once per request or batch and never per record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Literal, TypeVar

from kafkacodec.client.core._metrics import BatchCounts, Counter, Histogram, RequestCounts
from kafkacodec.datatypes import NamedTuple
from kafkacodec.messages import APIS

__all__ = ["METRICS", "BatchCounts", "Counter", "Histogram", "Kind", "Metric", "Metrics", "RequestCounts"]

Kind = Literal["counter", "gauge", "histogram"]
Value = TypeVar("Value", Counter, Histogram)


class Metric(NamedTuple):
    """The meaning of a name in the snapshot.

    A counter only increases. A gauge is a current value. A histogram gives ``name.count``, ``.sum``, ``.mean``,
    ``.p50``, ``.p95``, ``.p99`` and ``.max``. With a label, each of its values has its own numbers, as in
    ``requests.Fetch``; a counter also has their sum under the plain name.
    """

    kind: Kind
    unit: str
    description: str
    label: str | None = None


METRICS: Final[dict[str, Metric]] = {
    "requests": Metric("counter", "{request}", "requests with a response", "api"),
    "request_ms": Metric("histogram", "ms", "time from writing a request to its response", "api"),
    "request_failures": Metric("counter", "{request}", "requests without a response", "error"),
    "bytes_out": Metric("counter", "By", "bytes of requests with a response"),
    "bytes_in": Metric("counter", "By", "bytes of responses"),
    "connections": Metric("gauge", "{connection}", "open connections"),
    "connections_opened": Metric("counter", "{connection}", "opened connections"),
    "connections_failed": Metric("counter", "{connection}", "connections that failed to open, or broke"),
    "throttle_ms": Metric("counter", "ms", "time that brokers' quotas asked this client to wait"),
    "producer.records": Metric("counter", "{record}", "records that brokers acknowledged"),
    "producer.record_errors": Metric("counter", "{record}", "records that failed for good"),
    "producer.batches": Metric("counter", "{batch}", "batches that brokers acknowledged"),
    "producer.bytes": Metric("counter", "By", "bytes of these batches, compressed"),
    "producer.retries": Metric("counter", "{batch}", "batches sent again"),
    "producer.queue_bytes": Metric("gauge", "By", "unsent and unacknowledged bytes"),
    "producer.batch_records": Metric("histogram", "{record}", "records of a batch"),
    "producer.batch_bytes": Metric("histogram", "By", "bytes of a batch, compressed"),
    "consumer.records": Metric("counter", "{record}", "records returned to the application"),
    "consumer.bytes": Metric("counter", "By", "bytes of record sets in fetch responses"),
    "consumer.fetch_bytes": Metric("histogram", "By", "bytes of the record sets of a fetch response"),
    "consumer.queue_bytes": Metric("gauge", "By", "bytes fetched ahead"),
    "consumer.lag": Metric("gauge", "{record}", "offsets between positions and ends of the assigned partitions"),
    "consumer.lag_max": Metric("gauge", "{record}", "the largest lag of an assigned partition"),
    "consumer.assigned_partitions": Metric("gauge", "{partition}", "assigned partitions"),
    "consumer.rebalances": Metric("counter", "{rebalance}", "assignments by the group"),
    "consumer.commits": Metric("counter", "{commit}", "commits of offsets that succeeded"),
}

_MOST_LABELS = 200  # further values of a label are counted together as "other"
_OTHER = "other"
_QUANTILES: Final = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))


class Metrics:
    """The metrics of one client."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, str | None], Counter | Histogram] = {}
        self._gauges: dict[str, Callable[[], float]] = {}
        self._apis: dict[int, RequestCounts] = {}
        self._bytes_out = self.counter("bytes_out")
        self._bytes_in = self.counter("bytes_in")

    # Counting

    def counter(self, name: str, label: str | None = None) -> Counter:
        """The counter of a name and a label value."""
        return self._value(name, "counter", label, Counter)

    def histogram(self, name: str, label: str | None = None) -> Histogram:
        """The histogram of a name and a label value."""
        return self._value(name, "histogram", label, Histogram)

    def gauge(self, name: str, read: Callable[[], float]) -> None:
        """Set the function that reads a gauge for each snapshot. Replaces an earlier one."""
        _require(name, "gauge", None)
        self._gauges[name] = read

    def request(self, api_key: int, ms: float, bytes_out: int, bytes_in: int) -> None:
        """Count an answered request: its time and its sizes, including frame headers."""
        self.requests_of(api_key).add(ms, bytes_out, bytes_in)

    def requests_of(self, api_key: int) -> RequestCounts:
        """What counts the answered requests of an API."""
        found = self._apis.get(api_key)
        if found is None:
            name = APIS[api_key].name if api_key in APIS else _OTHER
            requests, request_ms = self.counter("requests", name), self.histogram("request_ms", name)
            found = self._apis[api_key] = RequestCounts(requests, request_ms, self._bytes_out, self._bytes_in)
        return found

    def acknowledged_batches(self) -> BatchCounts:
        """What counts the batches of a producer that brokers acknowledge."""
        return BatchCounts(
            self.counter("producer.batches"),
            self.counter("producer.records"),
            self.counter("producer.bytes"),
            self.histogram("producer.batch_records"),
            self.histogram("producer.batch_bytes"),
        )

    def failure(self, kind: str) -> None:
        """Count a request without a response; `kind` is the name of the exception."""
        self.counter("request_failures", kind).value += 1

    # Reading

    def snapshot(self) -> dict[str, float]:
        """The current numbers by name. May be called from any thread."""
        found: dict[str, float] = {}
        for (name, label), value in list(self._values.items()):
            full = name if label is None else f"{name}.{label}"
            if isinstance(value, Counter):
                found[full] = value.value
                if label is not None:
                    found[name] = found.get(name, 0) + value.value
            else:
                found.update((f"{full}.{part}", number) for part, number in _numbers(value))
        found.update((name, read()) for name, read in list(self._gauges.items()))
        return dict(sorted(found.items()))

    def _value(self, name: str, kind: Kind, label: str | None, new: type[Value]) -> Value:
        _require(name, kind, label)
        found = self._values.get((name, label))
        if found is None:
            if label is not None and sum(name == known for known, _ in self._values) >= _MOST_LABELS:
                label = _OTHER
            found = self._values.setdefault((name, label), new())
        assert isinstance(found, new)
        return found


def _numbers(values: Histogram) -> Iterator[tuple[str, float]]:
    """The entries of a histogram in a snapshot."""
    yield "count", values.count
    yield "sum", values.sum
    yield "mean", values.sum / values.count if values.count else 0
    for name, part in _QUANTILES:
        yield name, values.quantile(part)
    yield "max", values.max


def _require(name: str, kind: Kind, label: str | None) -> None:
    known = METRICS.get(name)
    if known is None or known.kind != kind or (label is not None) != (known.label is not None):
        raise ValueError(f"no {kind} {name!r}{'' if label is None else ' with a label'} in METRICS")
