"""What of an answer counts, for steps of several scripts."""

from __future__ import annotations

from typing import Any


def sizes(a: Any) -> list[int]:
    """The sizes of partitions, of DescribeLogDirs."""
    return [row["partition_size"] for d in a["results"] for topic in d["topics"] for row in topic["partitions"]]


def seen(a: Any) -> list[Any]:
    """Of a Fetch answer: the error, the offsets of the log, and those of the batches that were read."""
    part = a["responses"][0]["partitions"][0]
    ends = [part["log_start_offset"], part["high_watermark"], part["last_stable_offset"]]
    return [part["error_code"], ends, [batch["base_offset"] for batch in part["records"] or []]]
