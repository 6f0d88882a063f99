"""A client's metrics as instruments of OpenTelemetry. Needs the extra ``otel``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from kafkacodec.client.core.metrics import METRICS, Metric
from kafkacodec.lazy import missing_package

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation

__all__ = ["export_metrics"]

_PREFIX: Final = "kafkacodec.client."
_QUANTILES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}


class _Measured(Protocol):
    def metrics(self) -> Mapping[str, float]: ...


def export_metrics(
    client: _Measured,
    *,
    meter_provider: MeterProvider | None = None,
    attributes: Mapping[str, str] | None = None,
) -> None:
    """Make observable instruments that read ``client.metrics()`` whenever OpenTelemetry collects.

    A metric of `METRICS` is the instrument ``kafkacodec.client.<name>``, with its label as an attribute, as in
    ``kafkacodec.client.requests`` with ``api="Fetch"``. A histogram is two counters, ``<name>.count`` and
    ``<name>.sum``, and the gauge ``<name>.quantile`` with ``quantile`` 0.5, 0.95, 0.99 and 1. The instruments keep the
    client alive; a closed one keeps reporting its last numbers.

    Args:
        client: a producer, a consumer, an admin client or a connection, blocking or for asyncio.
        meter_provider: creates the instruments. Default: the global one.
        attributes: added to every observation, such as ``{"client.id": "billing"}``, to tell clients apart.

    Raises:
        ImportError: opentelemetry-api is not installed.
    """
    try:
        from opentelemetry import metrics
    except ImportError:
        raise missing_package("export_metrics needs", "opentelemetry-api", "otel") from None
    meter = metrics.get_meter("kafkacodec", meter_provider=meter_provider)
    own = dict(attributes or {})

    def observing(name: str, parts: Mapping[str, Any]) -> Callable[[CallbackOptions], Iterable[Observation]]:
        def observe(options: CallbackOptions) -> Iterable[Observation]:
            for value, labels in _observed(client.metrics(), name, parts):
                yield metrics.Observation(value, {**own, **labels})

        return observe

    for name, metric in METRICS.items():
        text, unit = metric.description, metric.unit
        if metric.kind == "counter":
            meter.create_observable_counter(_PREFIX + name, [observing(name, {})], unit, text)
        elif metric.kind == "gauge":
            meter.create_observable_gauge(_PREFIX + name, [observing(name, {})], unit, text)
        else:
            counts = observing(name, {"count": {}})
            meter.create_observable_counter(f"{_PREFIX}{name}.count", [counts], "1", f"how many: {text}")
            meter.create_observable_counter(
                f"{_PREFIX}{name}.sum", [observing(name, {"sum": {}})], unit, f"sum of: {text}"
            )
            quantiles = observing(name, {part: {"quantile": at} for part, at in _QUANTILES.items()})
            meter.create_observable_gauge(f"{_PREFIX}{name}.quantile", [quantiles], unit, f"quantiles of: {text}")


def _observed(
    snapshot: Mapping[str, float], name: str, parts: Mapping[str, Mapping[str, Any]]
) -> Iterable[tuple[float, dict[str, Any]]]:
    """The numbers of a metric with their attributes; for a histogram, only these parts."""
    metric: Metric = METRICS[name]
    for key, value in snapshot.items():
        if key != name and not key.startswith(f"{name}."):
            continue
        labels = key[len(name) :].removeprefix(".").split(".") if key != name else []
        part = labels.pop() if parts and labels else None
        if (part is None) == bool(parts) or (part is not None and part not in parts):
            continue
        if len(labels) != (metric.label is not None):  # the sum over all labels, or another metric's name
            continue
        named = {metric.label: labels[0]} if metric.label is not None else {}
        yield value, {**named, **(parts[part] if part is not None else {})}
