"""Defaults of topics that the broker's configuration has, in all units.

Expected values are those of Apache Kafka 4.4.0; `tests/differential/given` compares all of them.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

import kafkacodec as kc
from kafkacodec.errors import INVALID_CONFIG, INVALID_REQUEST, NONE
from tests.broker_wire import Wire

_TOPIC, _BROKER = 2, 4
_OF_BROKER, _OF_CLUSTER, _STATIC, _DEFAULT = 2, 3, 4, 5
_SET, _DELETE = 0, 1
_HOURS = ("log.retention.hours", "168", _DEFAULT)
_ROLL_HOURS = ("log.roll.hours", "168", _DEFAULT)


def _alter(wire, broker, name, value):
    change = {"name": name, "config_operation": _DELETE if value is None else _SET, "value": value}
    resource = {"resource_type": _BROKER, "resource_name": broker, "configs": [change]}
    return wire.ask("IncrementalAlterConfigs", 1, resources=[resource]).responses[0].error_code


def _rows(wire, kind, resource, *names, documentation=False):
    asked = {"resource_type": kind, "resource_name": resource, "configuration_keys": list(names) or None}
    options = {"include_synonyms": True, "include_documentation": documentation}
    return wire.ask("DescribeConfigs", 4, resources=[asked], **options).results[0].configs


def _shown(wire, kind, resource, name):
    """The value, the source and the synonyms of a configuration."""
    (row,) = _rows(wire, kind, resource, name)
    return row.value, row.config_source, [(one.name, one.value, one.source) for one in row.synonyms]


def test_cluster_wide_and_broker_defaults_of_retention():
    with kc.broker.serve(topics=["t"]) as broker, closing(Wire(broker)) as wire:
        assert _shown(wire, _TOPIC, "t", "retention.ms") == ("604800000", _DEFAULT, [])
        assert _shown(wire, _BROKER, "1", "log.retention.ms") == (None, _DEFAULT, [])
        assert _shown(wire, _BROKER, "1", "log.retention.hours") == ("168", _DEFAULT, [_HOURS])
        assert _alter(wire, "", "log.retention.ms", "1000000") == NONE
        of_cluster = ("log.retention.ms", "1000000", _OF_CLUSTER)
        expected = "1000000", _OF_CLUSTER, [of_cluster, _HOURS]
        assert _shown(wire, _TOPIC, "t", "retention.ms") == expected
        assert _shown(wire, _BROKER, "1", "log.retention.ms") == expected
        assert _shown(wire, _BROKER, "", "log.retention.ms") == ("1000000", _OF_CLUSTER, [of_cluster])
        assert _alter(wire, "1", "log.retention.ms", "-2") == NONE
        of_broker = ("log.retention.ms", "-2", _OF_BROKER)
        synonyms = [of_broker, of_cluster, _HOURS]
        assert _shown(wire, _TOPIC, "t", "retention.ms") == ("-1", _OF_BROKER, synonyms)
        assert _shown(wire, _BROKER, "1", "log.retention.ms") == ("-2", _OF_BROKER, synonyms)
        assert _alter(wire, "1", "log.retention.ms", None) == NONE
        assert _shown(wire, _TOPIC, "t", "retention.ms") == expected
        assert _alter(wire, "", "log.retention.ms", None) == NONE
        assert _shown(wire, _TOPIC, "t", "retention.ms") == ("604800000", _DEFAULT, [])


@pytest.mark.parametrize(
    ("name", "value", "of_topic", "expected", "last"),
    [
        ("log.roll.ms", "70000", "segment.ms", "70000", _ROLL_HOURS),
        ("log.roll.jitter.ms", "10", "segment.jitter.ms", "10", ("log.roll.jitter.hours", "0", _DEFAULT)),
        ("log.flush.interval.ms", "3000", "flush.ms", "3000",
         ("log.flush.scheduler.interval.ms", "9223372036854775807", _DEFAULT)),
        ("log.cleanup.policy", "compact", "cleanup.policy", "compact", ("log.cleanup.policy", "delete", _DEFAULT)),
        ("log.preallocate", "true", "preallocate", "true", ("log.preallocate", "false", _DEFAULT)),
    ],
)  # fmt: skip
def test_cluster_wide_defaults(name, value, of_topic, expected, last):
    with kc.broker.serve(topics=["t"]) as broker, closing(Wire(broker)) as wire:
        before = _shown(wire, _TOPIC, "t", of_topic)
        assert _alter(wire, "", name, value) == NONE
        assert _shown(wire, _TOPIC, "t", of_topic) == (expected, _OF_CLUSTER, [(name, value, _OF_CLUSTER), last])
        assert _alter(wire, "", name, None) == NONE
        assert _shown(wire, _TOPIC, "t", of_topic) == before


def test_defaults_in_other_units_that_a_broker_is_given():
    config = {
        "log.retention.minutes": 7, "log.retention.hours": 5, "log.roll.hours": 9, "log.roll.jitter.ms": 30,
        "log.flush.scheduler.interval.ms": 5000, "log.flush.interval.messages": 50,
    }  # fmt: skip
    with kc.broker.serve(topics=["t"], config=config) as broker, closing(Wire(broker)) as wire:
        hours = [("log.retention.hours", "5", _STATIC), _HOURS]
        minutes = [("log.retention.minutes", "7", _STATIC), *hours]
        found = {name: _shown(wire, _TOPIC, "t", name) for name in ("retention.ms", "segment.ms", "flush.ms")}
        assert found == {
            "retention.ms": ("420000", _DEFAULT, []),
            "segment.ms": ("32400000", _DEFAULT, []),
            "flush.ms": ("5000", _DEFAULT, []),
        }
        jitter = [("log.roll.jitter.ms", "30", _STATIC), ("log.roll.jitter.hours", "0", _DEFAULT)]
        assert _shown(wire, _TOPIC, "t", "segment.jitter.ms") == ("30", _STATIC, jitter)
        assert _shown(wire, _BROKER, "1", "log.retention.ms") == (None, _DEFAULT, [])
        assert _shown(wire, _BROKER, "1", "log.retention.minutes") == ("7", _STATIC, minutes)
        assert _shown(wire, _BROKER, "1", "log.retention.hours") == ("5", _STATIC, hours)
        assert _alter(wire, "", "log.retention.ms", "99000") == NONE
        of_cluster = ("log.retention.ms", "99000", _OF_CLUSTER)
        assert _shown(wire, _TOPIC, "t", "retention.ms") == ("99000", _OF_CLUSTER, [of_cluster, *minutes])


def test_a_change_takes_the_place_of_what_a_broker_was_given_in_other_units():
    with kc.broker.serve(config={"log.retention.hours": 5}) as broker, closing(Wire(broker)) as wire:
        hours = [("log.retention.hours", "5", _STATIC), _HOURS]
        assert _alter(wire, "", "log.retention.ms", "99000") == NONE
        assert _shown(wire, _BROKER, "1", "log.retention.hours") == ("168", _STATIC, hours)
        assert _alter(wire, "", "log.retention.ms", None) == NONE
        assert _shown(wire, _BROKER, "1", "log.retention.hours") == ("5", _STATIC, hours)


@pytest.mark.parametrize(
    ("given", "change", "expected"),
    [
        ({}, None, ("604800000", _DEFAULT)),
        ({"log.retention.hours": 5}, None, ("18000000", _STATIC)),
        ({"log.retention.hours": -1}, None, ("-3600000", _STATIC)),
        ({"log.retention.hours": 5}, "-2", ("-2", _OF_CLUSTER)),
    ],
)
def test_the_source_of_a_new_topics_default(given, change, expected):
    with kc.broker.serve(config=given) as broker, closing(Wire(broker)) as wire:
        if change is not None:
            assert _alter(wire, "", "log.retention.ms", change) == NONE
        topic = {"name": "new", "num_partitions": 1, "replication_factor": 1}
        (made,) = wire.ask("CreateTopics", 5, topics=[topic], timeout_ms=10_000).topics
        assert [(row.value, row.config_source) for row in made.configs if row.name == "retention.ms"] == [expected]


def test_a_negative_time_of_flushes_is_stored_and_has_no_effect():
    with kc.broker.serve(topics=["t"]) as broker, closing(Wire(broker)) as wire:
        assert _alter(wire, "", "log.flush.interval.ms", "-1") == NONE
        assert _shown(wire, _BROKER, "1", "log.flush.interval.ms")[:2] == ("-1", _OF_CLUSTER)
        assert _shown(wire, _TOPIC, "t", "flush.ms")[0] == "9223372036854775807"
        broker.write("t", [(None, b"kept")])
        assert len(broker.records("t")) == 1
    with pytest.raises(ValueError, match="must be from 0"):
        kc.broker.serve(config={"log.flush.interval.ms": -1})


def test_no_more_stays_on_the_disk_than_in_all():
    with kc.broker.serve() as served, closing(Wire(served)) as wire:
        assert _alter(wire, "", "log.local.retention.ms", "3000000000") == INVALID_REQUEST
        assert _alter(wire, "", "log.local.retention.ms", "-1") == INVALID_REQUEST
        assert _alter(wire, "", "log.retention.ms", "-1") == NONE
        assert _alter(wire, "", "log.local.retention.ms", "3000000000") == NONE
        assert _alter(wire, "1", "log.retention.ms", "2000000000") == INVALID_REQUEST


def test_a_configuration_of_topics_that_a_broker_is_given_is_its_own():
    with (
        kc.broker.serve(topics=["t"], config={"retention.ms": 60_000, "remote.copy.lag.ms": 5}) as broker,
        closing(Wire(broker)) as wire,
    ):
        own = [("log.retention.ms", "60000", _STATIC), _HOURS]
        assert _shown(wire, _TOPIC, "t", "retention.ms") == ("60000", _STATIC, own)
        assert _shown(wire, _TOPIC, "t", "remote.copy.lag.ms") == ("5", _STATIC, [])


@pytest.mark.parametrize(
    ("broker", "name", "value", "code"),
    [
        ("1", "log.retention.minutes", "5", INVALID_REQUEST),
        ("", "log.retention.hours", "5", INVALID_REQUEST),
        ("1", "log.roll.hours", "5", INVALID_REQUEST),
        ("", "log.flush.scheduler.interval.ms", "5", INVALID_REQUEST),
        ("1", "log.retention.ms", "0", INVALID_REQUEST),
        ("", "log.retention.ms", "many", INVALID_REQUEST),
        ("1", "log.roll.ms", "0", INVALID_REQUEST),
        ("1", "log.roll.jitter.ms", "-5", INVALID_REQUEST),
        ("", "log.segment.bytes", "2_000_000", INVALID_REQUEST),
        ("", "log.cleaner.min.cleanable.ratio", "0.5_0", INVALID_REQUEST),
        ("", "compression.gzip.level", "0", INVALID_REQUEST),
        ("1", "min.insync.replicas", "3", INVALID_CONFIG),
        ("", "min.insync.replicas", None, INVALID_CONFIG),
    ],
)
def test_refused(broker, name, value, code):
    with kc.broker.serve() as served, closing(Wire(served)) as wire:
        assert _alter(wire, broker, name, value) == code


def test_the_cluster_wide_retention_deletes_old_records_of_topics_without_their_own():
    with kc.broker.serve(topics=["t"], clock="manual") as broker, closing(Wire(broker)) as wire:
        broker.create_topic("kept", 1, {"retention.ms": "-1"})
        for topic in ("t", "kept"):
            broker.write(topic, [(None, b"old")])
        broker.advance(3600)
        assert [len(broker.records(topic)) for topic in ("t", "kept")] == [1, 1]
        assert _alter(wire, "", "log.retention.ms", "60000") == NONE
        broker.advance(301)
        assert [len(broker.records(topic)) for topic in ("t", "kept")] == [0, 1]


def test_the_cluster_wide_time_of_a_segment_is_heeded_at_once_and_after_a_restart(tmp_path):
    hour = 3_600_000

    def segments():
        return len(list((Path(tmp_path) / "t-0").glob("*.log")))

    with kc.broker.serve(tmp_path, topics=["t"], clock="manual") as broker, closing(Wire(broker)) as wire:
        _written_an_hour_apart(broker, 2)
        assert segments() == 1
        assert _alter(wire, "", "log.roll.ms", str(hour // 2)) == NONE
        _written_an_hour_apart(broker, 2)
        assert segments() == 3
    with kc.broker.serve(tmp_path, clock="manual") as broker:  # the clock starts anew, four hours back
        _written_an_hour_apart(broker, 6)
        assert segments() == 5


def _written_an_hour_apart(broker, times):
    for _ in range(times):
        broker.advance(3600)
        broker.write("t", [(None, b"x")])


def test_what_a_broker_does_not_know_is_kept_and_not_shown():
    with kc.broker.serve() as broker, closing(Wire(broker)) as wire:
        assert _alter(wire, "", "no.such", "6") == NONE
        assert _alter(wire, "1", "no.such", "7") == NONE
        (row,) = _rows(wire, _BROKER, "1", "no.such")
        assert (row.value, row.is_sensitive, row.read_only, row.config_type) == (None, True, True, 0)
        assert _shown(wire, _BROKER, "1", "no.such")[2] == [
            ("no.such", None, _OF_BROKER), ("no.such", None, _OF_CLUSTER),
        ]  # fmt: skip


@pytest.mark.parametrize(("kind", "resource"), [(_TOPIC, "t"), (_BROKER, "1"), (16, "metrics"), (32, "group")])
def test_descriptions(kind, resource):
    with kc.broker.serve(topics=["t"]) as broker, closing(Wire(broker)) as wire:
        rows = _rows(wire, kind, resource, documentation=True)
        assert rows
        assert [row.name for row in rows if not (row.documentation or "").endswith(".")] == []
        assert {row.documentation for row in _rows(wire, kind, resource)} == {None}
