"""A client's metrics as OpenTelemetry collects them."""

from __future__ import annotations

import sys

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from kafkacodec.client import Admin, export_metrics
from kafkacodec.client.core.metrics import METRICS, Metrics


class Client:
    def __init__(self):
        self.counted = Metrics()

    def metrics(self):
        return self.counted.snapshot()


def collected(reader):
    """The observations by instrument: attributes and value."""
    data = reader.get_metrics_data()
    found = {}
    for resource in data.resource_metrics if data is not None else ():
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                found[metric.name] = [(dict(p.attributes), p.value) for p in metric.data.data_points]
    return found


@pytest.fixture
def reader():
    return InMemoryMetricReader()


def test_every_kind_of_metric_is_observed(reader):
    client = Client()
    export_metrics(client, meter_provider=MeterProvider([reader]), attributes={"client.id": "a"})
    client.counted.request(1, 10, 100, 1000)
    client.counted.request(1, 30, 100, 1000)
    client.counted.request(3, 5, 10, 20)
    client.counted.gauge("connections", lambda: 2)
    client.counted.histogram("producer.batch_records").add(7)
    found = collected(reader)
    own = {"client.id": "a"}
    assert found["kafkacodec.client.requests"] == [({**own, "api": "Fetch"}, 2), ({**own, "api": "Metadata"}, 1)]
    assert found["kafkacodec.client.bytes_in"] == [(own, 2020)]
    assert found["kafkacodec.client.connections"] == [(own, 2)]
    assert found["kafkacodec.client.request_ms.count"] == [
        ({**own, "api": "Fetch"}, 2),
        ({**own, "api": "Metadata"}, 1),
    ]
    assert found["kafkacodec.client.request_ms.sum"][0] == ({**own, "api": "Fetch"}, 40)
    assert ({**own, "api": "Fetch", "quantile": 1.0}, 30) in found["kafkacodec.client.request_ms.quantile"]
    assert found["kafkacodec.client.producer.batch_records.count"] == [(own, 1)]
    client.counted.request(1, 1, 0, 80)
    assert collected(reader)["kafkacodec.client.bytes_in"] == [(own, 2100)]


def test_units_and_descriptions_are_those_of_the_table(reader):
    client = Client()
    export_metrics(client, meter_provider=MeterProvider([reader]))
    for name, metric in METRICS.items():
        if metric.kind == "counter":
            client.counted.counter(name, "x" if metric.label else None).add()
    data = reader.get_metrics_data().resource_metrics[0].scope_metrics[0].metrics
    shown = {metric.name: (metric.unit, metric.description) for metric in data}
    counters = {name: metric for name, metric in METRICS.items() if metric.kind == "counter"}
    assert shown == {f"kafkacodec.client.{name}": (of.unit, of.description) for name, of in counters.items()}


def test_a_real_client_before_and_after_its_first_request(reader):
    with Admin("127.0.0.1:1") as admin:
        export_metrics(admin, meter_provider=MeterProvider([reader]))
        assert collected(reader) == {}
        with pytest.raises(TimeoutError):
            admin.list_topics(timeout_ms=200)
        assert collected(reader)["kafkacodec.client.connections_failed"][0][1] >= 1


def test_without_opentelemetry_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(ImportError, match=r"kafkacodec\[otel\]"):
        export_metrics(Client())
