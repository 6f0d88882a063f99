"""The numbers that a client counts."""

from __future__ import annotations

import random
import threading

import pytest

from kafkacodec.client.core.metrics import METRICS, Histogram, Metrics


def test_requests_are_counted_by_api() -> None:
    metrics = Metrics()
    metrics.request(1, 12.5, 100, 5000)
    metrics.request(1, 7.5, 100, 3000)
    metrics.request(3, 1, 20, 300)
    metrics.failure("DeadlineExceeded")
    found = metrics.snapshot()
    assert found["requests"] == 3
    assert found["requests.Fetch"] == 2
    assert found["requests.Metadata"] == 1
    assert found["request_failures.DeadlineExceeded"] == found["request_failures"] == 1
    assert found["bytes_out"] == 220
    assert found["bytes_in"] == 8300
    assert found["request_ms.Fetch.mean"] == 10
    assert found["request_ms.Fetch.max"] == 12.5
    assert found["request_ms.Fetch.count"] == 2


def test_snapshot_is_sorted_and_has_documented_names_only() -> None:
    metrics = Metrics()
    metrics.request(99999, 1, 1, 1)
    metrics.counter("producer.records").add(3)
    metrics.gauge("connections", lambda: 2)
    found = metrics.snapshot()
    assert list(found) == sorted(found)
    assert found["requests.other"] == 1
    assert found["connections"] == 2
    assert all(any(name == known or name.startswith(known + ".") for known in METRICS) for name in found)


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [("counter", ["no.such"]), ("counter", ["requests"]), ("counter", ["bytes_in", "x"]), ("histogram", ["bytes_in"])],
)
def test_other_names_are_refused(kind: str, arguments: list[str]) -> None:
    with pytest.raises(ValueError, match=f"no {kind} '{arguments[0]}'"):
        getattr(Metrics(), kind)(*arguments)


def test_quantiles_are_at_most_an_eighth_too_high() -> None:
    random.seed(1)
    values = sorted(random.lognormvariate(3, 2) for _ in range(10_000))
    histogram = Histogram()
    for value in values:
        histogram.add(value)
    for part in (0.01, 0.5, 0.95, 0.99):
        exact = values[int(part * len(values)) - 1]
        assert exact <= histogram.quantile(part) <= exact * 1.13
    assert histogram.quantile(1) == values[-1]
    assert histogram.sum == pytest.approx(sum(values))


def test_memory_is_bounded_for_any_values_and_labels() -> None:
    histogram, metrics = Histogram(), Metrics()
    for exponent in range(-1000, 1000):
        histogram.add(2.0**exponent)
    for value in (0, -5):
        histogram.add(value)
    for n in range(10_000):
        metrics.failure(f"kind {n}")
    assert len(histogram._classes) < 500
    found = metrics.snapshot()
    assert len(found) < 300
    assert found["request_failures"] == 10_000
    assert found["request_failures.other"] == 9800


def test_empty_histogram_has_zeros() -> None:
    metrics = Metrics()
    metrics.histogram("producer.batch_bytes")
    found = metrics.snapshot()
    assert found["producer.batch_bytes.mean"] == found["producer.batch_bytes.p99"] == 0


def test_snapshot_while_another_thread_counts() -> None:
    metrics, end = Metrics(), threading.Event()

    def count() -> None:
        n = 0
        while not end.is_set():
            metrics.failure(f"kind {n % 150}")
            metrics.histogram("request_ms", f"api {n % 150}").add(n % 1000)
            n += 1

    thread = threading.Thread(target=count)
    thread.start()
    try:
        for _ in range(200):
            metrics.snapshot()
    finally:
        end.set()
        thread.join()
