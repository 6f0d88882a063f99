"""The lag of a streaming query, from Spark's report of its progress."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kafkacodec.datatypes import NamedTuple
from kafkacodec.spark.errors import OptionError
from kafkacodec.spark.reading.checkpoint import TOPIC_ID

__all__ = ["StreamLag", "progress_lag"]


class StreamLag(NamedTuple):
    """The lag of a query in one partition.

    Attributes:
        source (int): the number of the source in the query, from 0.
        topic (str), partition (int): which.
        offset (int): where the micro-batch ended; the next one begins there.
        end_offset (int): where the partition ended when the micro-batch was planned; for ``kafkalog`` up to where it
            is read, such as the high watermark.
        lag (int): `end_offset` - `offset`, at least 0.
    """

    source: int
    topic: str
    partition: int
    offset: int
    end_offset: int
    lag: int


def progress_lag(progress: Any) -> list[StreamLag]:
    """The lag of a query after a micro-batch, by source, topic and partition.

    For ``kafkalog``, ``kafkabroker`` and Spark's own Kafka source; other sources are left out, and so is a source of
    which Spark reports no latest offset.

    Args:
        progress: ``query.lastProgress``, or ``event.progress`` of a `StreamingQueryListener`; also its JSON or dict.

    Raises:
        OptionError: `progress` is None, as before the first micro-batch, or not a progress.
    """
    found = []
    for number_of_source, source in enumerate(_sources(progress)):
        at, ends = (_offsets(source.get(name)) for name in ("endOffset", "latestOffset"))
        for topic, number in sorted(at.keys() & ends.keys()):
            offset, end = at[topic, number], ends[topic, number]
            found.append(StreamLag(number_of_source, topic, number, offset, end, max(0, end - offset)))
    return found


def _sources(progress: Any) -> list[Mapping[str, Any]]:
    known = progress if isinstance(progress, (str, Mapping)) else getattr(progress, "json", None)
    try:
        known = json.loads(known) if isinstance(known, str) else known
    except ValueError:
        known = None
    sources = known.get("sources") if isinstance(known, Mapping) else None
    if not isinstance(sources, list) or not all(isinstance(source, Mapping) for source in sources):
        raise OptionError("progress: not a progress of a streaming query; None means that no micro-batch has ended yet")
    return sources


def _offsets(stored: Any) -> dict[tuple[str, int], int]:
    """Offsets of a source, which Spark gives as JSON or as text of JSON; none if they are of another kind."""
    try:
        known = json.loads(stored) if isinstance(stored, str) else stored
        return {
            (topic, int(number)): int(value["offset"] if isinstance(value, Mapping) else value)
            for topic, partitions in (known or {}).items()
            for number, value in partitions.items()
            if number != TOPIC_ID
        }
    except (AttributeError, KeyError, TypeError, ValueError):
        return {}
