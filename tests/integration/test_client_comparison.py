"""What docs/client/comparison.md says about other clients is so for the installed ones."""

from __future__ import annotations

import ctypes
import inspect
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiokafka
import confluent_kafka
import pytest

import kafkacodec as kc
from kafkacodec.client.consuming.settings import ConsumerSettings
from kafkacodec.client.producing.settings import ProducerSettings
from tests.wheel import ROOT

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it uses deprecated functions of importlib
    import kafka

PAGE = (ROOT / "docs" / "client" / "comparison.md").read_text()
PEERS = ("kafkacodec", "aiokafka", "kafka-python", "confluent-kafka")


def table(heading: str) -> dict[str, dict[str, str]]:
    """The rows of the first table after a heading, by first cell, then by client."""
    part = PAGE.partition(heading)[2]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in re.findall(r"^\|.*\|$", part, re.M)]
    ends = next((i for i, row in enumerate(rows) if len(row) != len(PEERS) + 1), len(rows))
    return {row[0].strip("`"): dict(zip(PEERS, row[1:], strict=True)) for row in rows[2:ends]}


DEFAULTS = table("## Defaults")


def librdkafka() -> Callable[[str], str]:
    """Reads the default of an option from the library that confluent-kafka brings with it."""
    (path,) = (Path(confluent_kafka.__file__).parent.parent / "confluent_kafka.libs").glob("librdkafka*")
    library = ctypes.CDLL(str(path))
    readers = []
    for kind in ("conf", "topic_conf"):
        make, get = getattr(library, f"rd_kafka_{kind}_new"), getattr(library, f"rd_kafka_{kind}_get")
        make.restype = ctypes.c_void_p
        get.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_size_t)]
        readers.append((get, make()))

    def value(name: str) -> str:
        for get, settings in readers:
            text, size = ctypes.create_string_buffer(512), ctypes.c_size_t(512)
            if get(settings, name.replace("_", ".").encode(), text, ctypes.byref(size)) == 0:
                return text.value.decode()
        raise AssertionError(f"librdkafka has no {name}")

    return value


def of_signature(*functions: Any) -> Mapping[str, Any]:
    return {name: p.default for f in functions for name, p in inspect.signature(f).parameters.items()}


def options() -> dict[str, Callable[[str], Any]]:
    """How the default of an option is found, by client."""
    ours = {o.name: o.default for settings in (ConsumerSettings, ProducerSettings) for o in fields(settings)}
    theirs = of_signature(aiokafka.AIOKafkaProducer.__init__, aiokafka.AIOKafkaConsumer.__init__)
    python = {**kafka.KafkaConsumer.DEFAULT_CONFIG, **kafka.KafkaProducer.DEFAULT_CONFIG}
    names = {"batch_size": "max_batch_size"}
    return {
        "kafkacodec": lambda name: ours[name],
        "aiokafka": lambda name: theirs.get(names.get(name, name), "-"),
        "kafka-python": lambda name: python[name],
        "confluent-kafka": librdkafka(),
    }


def shown(name: str, value: Any) -> str:
    """A default as the page has it."""
    if name == "acks":
        # aiokafka has a sentinel for 1, or for all with an idempotent producer.
        return {"-1": "all", "all": "all"}.get(str(value), "1")
    if name == "enable_idempotence" and value is None:
        return "if brokers can"
    if name == "partition_assignment_strategy":
        assignors = value.split(",") if isinstance(value, str) else value
        return ", ".join(getattr(assignor, "name", assignor) for assignor in assignors)
    if str(value).lower() in ("true", "false"):
        return "yes" if str(value).lower() == "true" else "no"
    return f"{int(value):,}" if str(value).isdigit() else str(value)


@pytest.mark.parametrize("client", PEERS)
@pytest.mark.parametrize("name", [name for name in DEFAULTS if name != "partition of a key"])
def test_defaults(name: str, client: str) -> None:
    assert shown(name, options()[client](name)) == DEFAULTS[name][client]


def test_only_what_differs_is_in_the_table() -> None:
    assert len(DEFAULTS) > 8
    for name, values in DEFAULTS.items():
        assert len(set(values.values())) > 1, name


def test_partitions_of_keys() -> None:
    assert librdkafka()("partitioner") == "consistent_random"  # CRC-32 of the key
    keys = [b"k%d" % n for n in range(50)]
    ours = kc.partition(keys, 7).tolist()
    numbers = list(range(7))
    aio = of_signature(aiokafka.AIOKafkaProducer.__init__)["partitioner"]
    assert [aio(key, numbers, numbers) for key in keys] == ours
    python = kafka.KafkaProducer.DEFAULT_CONFIG["partitioner"]
    known = SimpleNamespace(
        topics=lambda: ["t"],
        partitions_for_topic=lambda topic: numbers,
        available_partitions_for_topic=lambda topic: numbers,
    )
    assert [python.partition("t", key, key, None, None, known) for key in keys] == ours


def test_assignors_and_protocols() -> None:
    features = table("# Coming from another client")
    assignors = features["assignors of classic groups"]
    assert {a for a in ("range", "roundrobin", "sticky", "cooperative") if has_assignor("aiokafka", a)} == set(
        assignors["aiokafka"].split(", ")
    )
    names = assignors["kafka-python"].replace("cooperative-sticky", "cooperative_sticky").split(", ")
    assert all(has_assignor("kafka", name) for name in names)
    for protocol in ("classic", "consumer"):
        confluent_kafka.Consumer(
            {"group.id": "g", "group.protocol": protocol, "bootstrap.servers": "127.0.0.1:1"}
        ).close()
    for name in assignors["confluent-kafka"].split(", "):
        settings = {"group.id": "g", "partition.assignment.strategy": name, "bootstrap.servers": "127.0.0.1:1"}
        confluent_kafka.Consumer(settings).close()
    with pytest.raises(confluent_kafka.KafkaException):
        confluent_kafka.Consumer({"group.id": "g", "partition.assignment.strategy": "sticky"})
    assert "group_protocol" not in kafka.KafkaConsumer.DEFAULT_CONFIG
    assert "group_protocol" not in of_signature(aiokafka.AIOKafkaConsumer.__init__)
    assert hasattr(confluent_kafka, "ShareConsumer")
    assert not hasattr(kafka, "KafkaShareConsumer")


def has_assignor(package: str, name: str) -> bool:
    (root,) = {"aiokafka": aiokafka, "kafka": kafka}[package].__path__
    folder = Path(root) / "coordinator" / "assignors"
    return (folder / f"{name}.py").exists() or (folder / name).is_dir()
