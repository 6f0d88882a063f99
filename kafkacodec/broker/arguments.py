"""Checks of the arguments of a broker's calls, which those for threads and those for event loops share."""

from __future__ import annotations

from typing import Any

from kafkacodec.arguments import config_texts, require_int, require_text
from kafkacodec.records.encode import encode

__all__ = ["new_topic", "written_batches"]

_INT32_MAX = 2**31 - 1


def new_topic(name: Any, partitions: Any, config: Any) -> tuple[str, int, dict[str, str | None]]:
    """The arguments of `Broker.create_topic`, with configurations as text. Raises TypeError, ValueError."""
    require_int("partitions", partitions, -_INT32_MAX - 1, _INT32_MAX)
    return (
        require_text("the name of a topic", name),
        partitions,
        config_texts("config", {} if config is None else config),
    )


def written_batches(topic: Any, table: Any, partition: Any, now: int) -> bytes:
    """The batches that `Broker.write` appends, with the time `now` for records without one.

    Raises:
        TypeError, ValueError: an argument is wrong, or there is no record.
        EncodeError: as `kafkacodec.encode`.
    """
    require_text("topic", topic)
    require_int("partition", partition, 0, _INT32_MAX)
    data = encode(table, default_timestamp=now)
    if not data:
        raise ValueError("table has no records, and an offset of the first one is to be returned: write at least one")
    return data
