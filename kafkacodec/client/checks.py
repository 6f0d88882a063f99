"""Checks of arguments that several clients share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from operator import index
from typing import Any

from kafkacodec.arguments import is_integer, is_number, require_int

__all__ = [
    "by_partition",
    "check_topic",
    "mapping",
    "offset_number",
    "partition_keys",
    "partition_number",
    "row_limit",
    "seconds",
    "time_number",
    "topic_names",
]

_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_MOST_PARTITIONS = 2**31 - 1


def check_topic(topic: Any) -> str:
    """A valid topic name (`org.apache.kafka.common.internals.Topic`). Raises TypeError, ValueError."""
    if not isinstance(topic, str):
        raise TypeError(f"a topic must be text, not {type(topic).__name__}")
    if _TOPIC.fullmatch(topic) is None or topic in (".", ".."):
        hint = "; a consumer's subscribe(pattern=...) takes a regular expression" if topic.startswith("^") else ""
        raise ValueError(f"illegal topic {topic[:260]!r}: use 1 to 249 of a-z, A-Z, 0-9, '.', '_' and '-'{hint}")
    return topic


def topic_names(topics: Any) -> list[str]:
    """Topic names, each once. Raises TypeError, ValueError."""
    if isinstance(topics, (str, bytes)) or not isinstance(topics, Iterable):
        raise TypeError(f"topics must be a list of names, not {topics!r}")
    return list(dict.fromkeys(check_topic(topic) for topic in topics))


def partition_keys(partitions: Any) -> list[tuple[str, int]]:
    """Pairs of topic and partition number, each once. Raises TypeError, ValueError."""
    if isinstance(partitions, (str, bytes)) or not isinstance(partitions, Iterable):
        raise TypeError(f"partitions must be a list of (topic, number), not {partitions!r}")
    if isinstance(partitions, tuple) and len(partitions) == 2 and isinstance(partitions[0], str):
        pair = f"partitions are pairs, and {tuple(partitions)!r} is one of them"
        raise TypeError(f"{pair}: put it into a list, or pass it as one argument where several may be given")
    return list(dict.fromkeys(map(_key, partitions)))


def partition_number(partition: Any) -> int:
    """The partition of a record. Raises TypeError, ValueError."""
    if isinstance(partition, bool) or not hasattr(partition, "__index__"):
        raise TypeError(f"partition must be an integer, not {type(partition).__name__}")
    if partition < 0:
        raise ValueError(f"partition must not be negative, not {partition}: leave it out to have one chosen")
    return index(partition)


def by_partition(name: str, values: Any) -> dict[tuple[str, int], Any]:
    """Values by topic and partition number. Raises TypeError, ValueError."""
    if not isinstance(values, Mapping):
        raise TypeError(f"{name} must be a dict by (topic, number), not {type(values).__name__}")
    return {_key(partition): value for partition, value in values.items()}


def mapping(name: str, values: Any) -> Mapping[Any, Any]:
    """A dict or another mapping. Raises TypeError."""
    if not isinstance(values, Mapping):
        raise TypeError(f"{name} must be a dict, not {type(values).__name__}")
    return values


def _key(partition: Any) -> tuple[str, int]:
    if not isinstance(partition, tuple) or len(partition) != 2:
        among = isinstance(partition, (list, tuple)) and partition and isinstance(partition[0], tuple)
        hint = ": give each pair as an argument of its own" if among else "; ('orders', 0) is one"
        raise TypeError(f"a partition is a pair of topic and number, not {partition!r}{hint}")
    topic, number = partition
    if not is_integer(number):
        raise TypeError(f"the number of a partition must be an integer, not {number!r}")
    if not 0 <= index(number) <= _MOST_PARTITIONS:
        raise ValueError(f"the number of a partition must not be negative or over {_MOST_PARTITIONS}, not {number}")
    return check_topic(topic), index(number)


def seconds(name: str, value: Any) -> float | None:
    """A time in seconds, or None for no limit. Raises TypeError, ValueError."""
    if value is None:
        return None
    if not is_number(value):
        raise TypeError(f"{name} must be seconds or None, not {value!r}")
    if not value >= 0:
        raise ValueError(f"{name} must not be negative, not {value!r}")
    return float(value)


def offset_number(value: Any, name: str = "offset") -> int:
    """An offset or a timestamp: an integer that is not negative. Raises TypeError, ValueError."""
    require_int(name, value, 0, 2**63 - 1)
    return index(value)


def time_number(value: Any, name: str = "timestamp") -> int:
    """A time, as `kafkacodec.moments.Moment` has it, in milliseconds. Raises TypeError, ValueError."""
    if not isinstance(value, int):
        from kafkacodec.moments import milliseconds  # and the module datetime, which few programs need

        value = milliseconds(value, name)
    return offset_number(value, name)


def row_limit(name: str, value: Any) -> int | None:
    """The maximum number of rows or records, at least 1; None for the default. Raises TypeError, ValueError."""
    if value is None:
        return None
    require_int(name, value, 1, 2**31 - 3)
    return index(value)
