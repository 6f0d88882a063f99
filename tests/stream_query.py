"""A streaming query without Spark: what Spark does with a reader of `kafkalog`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from kafkacodec.spark.reading.options import parse_read_options
from kafkacodec.spark.reading.streaming import SegmentStreamReader


class Query:
    """What Spark does with a reader, with JSON between the calls; a new reader after each restart."""

    def __init__(self, path: Path, start: object = None, **given: str) -> None:
        self.options = parse_read_options({"path": str(path), **given}, streaming=True)
        self.at: Any = self._json(start or self._reader().initialOffset())

    def _reader(self) -> SegmentStreamReader:
        return SegmentStreamReader(self.options, ("partition", "offset", "value"))

    def plan(self, most: int | None = None) -> object:
        limit = ReadAllAvailable() if most is None else ReadMaxRows(most)
        return self._json(self._reader().latestOffset(self._json(self.at), limit))

    def rows(self, end: object) -> list[dict[str, Any]]:
        """The rows of a micro-batch that ends there; go on from there."""
        reader = self._reader()
        tasks = reader.partitions(self._json(self.at), self._json(end))
        rows = [row for task in tasks for batch in reader.read(task) for row in batch.to_pylist()]
        self.at = end
        return rows

    def run(self, end: object) -> list[int]:
        """As `rows`, their offsets."""
        return [row["offset"] for row in self.rows(end)]

    def step(self, most: int | None = None) -> list[int]:
        return self.run(self.plan(most))

    @staticmethod
    def _json(value: object) -> object:
        return json.loads(json.dumps(value))
