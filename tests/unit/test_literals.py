"""Options of a few values say so in their types, and refuse others with all that they may be."""

from __future__ import annotations

import ssl
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

import kafkacodec as kc
from kafkacodec.client.consuming.settings import ConsumerOptions, ConsumerSettings
from kafkacodec.client.producing.settings import ProducerOptions, ProducerSettings
from kafkacodec.client.sharing.settings import ShareConsumerOptions, ShareConsumerSettings
from kafkacodec.log.reading.options import ReadOptions
from kafkacodec.records.encode import EncodePlan, EncoderOptions
from kafkacodec.records.plan import DecodeOptions, plan_of


def values_of(kind: Any) -> tuple[Any, ...]:
    """The values of a Literal, also one that may be None or other text."""
    if get_origin(kind) is Literal:
        return get_args(kind)
    return tuple(value for part in get_args(kind) for value in values_of(part))


def choices(options: type) -> dict[str, tuple[Any, ...]]:
    return {
        name: found
        for name, kind in get_type_hints(options, localns={"ssl": ssl}).items()
        if (found := values_of(kind))
    }


CHECKED: list[tuple[type, Any]] = [
    (ProducerOptions, lambda **given: ProducerSettings(bootstrap_servers="localhost", **given)),
    (ConsumerOptions, lambda **given: ConsumerSettings(bootstrap_servers="localhost", **given)),
    (ShareConsumerOptions, lambda **given: ShareConsumerSettings(bootstrap_servers="localhost", group_id="g", **given)),
    (EncoderOptions, EncodePlan),
    (DecodeOptions, plan_of),
]
GIVEN = [
    (options.__name__, make, name, values) for options, make in CHECKED for name, values in choices(options).items()
]


@pytest.mark.parametrize(("options", "make", "name", "values"), GIVEN)
def test_another_value_is_refused_by_all_that_there_are(
    options: str, make: Any, name: str, values: tuple[Any, ...]
) -> None:
    with pytest.raises(ValueError, match=name) as caught:
        make(**{name: "nonesuch"})
    assert all(str(value) in str(caught.value) for value in values)


def test_options_of_a_few_values_are_literals() -> None:
    assert {name for _, _, name, _ in GIVEN} >= {
        "acks", "compression_type", "codec", "isolation_level", "auto_offset_reset", "group_protocol", "on_error",
        "layout", "security_protocol", "sasl_mechanism", "share_acknowledgement_mode",
    }  # fmt: skip
    assert choices(ReadOptions).keys() >= {"isolation_level", "gaps", "on_error", "layout"}
    assert choices(ProducerOptions)["compression_type"] == ("none", "gzip", "snappy", "lz4", "zstd")


def test_too_many_arguments_by_position_are_refused_by_the_names_of_the_others() -> None:
    producer = kc.client.Producer("localhost:1")
    by_name = "takes topic, value by position, and the others by name: key=, headers=, partition=, timestamp="
    with producer, pytest.raises(TypeError, match=by_name):
        producer.send("t", b"v", b"k")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"decode\(data\) takes data by position, and the others by name: .*columns=, "):
        kc.decode(b"", ["offset"])  # type: ignore[misc]
    log = kc.sample()
    with pytest.raises(TypeError, match=r"verify\(\) takes nothing by position, and the others by name: threads="):
        log.verify(2)  # type: ignore[misc]


def test_missing_arguments_are_named_with_the_call() -> None:
    with pytest.raises(TypeError, match=r"^Producer\(bootstrap_servers\): missing a required argument"):
        kc.client.Producer()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^Consumer\(\*topics, bootstrap_servers=\): missing a required argument"):
        kc.client.Consumer("orders")  # type: ignore[call-arg]
    with kc.client.Consumer(bootstrap_servers="localhost:1") as consumer:
        with pytest.raises(TypeError, match=r"seek\(topic, partition, offset\): missing a required argument: 'offset'"):
            consumer.seek(0, 0)  # type: ignore[call-arg, arg-type]
        with pytest.raises(TypeError, match=r"seek\(topic, partition, offset\) takes topic, partition, offset by pos"):
            consumer.seek("t", 0, 0, 0)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"filter\(mask\): missing|'mask'"):
        kc.decode(b"").filter()  # type: ignore[call-arg]
