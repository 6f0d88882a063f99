"""A stream's reader that cannot be made, as one whose first call says why."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from kafkacodec.errors import KafkaCodecError
from kafkacodec.spark.errors import without_traceback

__all__ = ["or_refusing"]


def or_refusing(make: Callable[[], DataSourceStreamReader]) -> DataSourceStreamReader:
    """A stream's reader, or, if it cannot be made, one that ends the query with the error of `make`.

    Spark replaces an error of `DataSource.streamReader` by an unrelated one, since it stops the reader that it has not
    got (UnboundLocalError), so the error is raised by the first call.
    """
    try:
        return make()
    except (KafkaCodecError, OSError) as error:
        return _RefusingReader(error)


class _RefusingReader(DataSourceStreamReader):
    """Raises an error, whatever Spark calls first: this depends on the checkpoint."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    @without_traceback()
    def _refuse(self) -> NoReturn:
        raise self.error

    def initialOffset(self) -> dict[str, Any]:
        """Raises the error."""
        self._refuse()

    def latestOffset(self) -> dict[str, Any]:
        """Raises the error."""
        self._refuse()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Raises the error."""
        self._refuse()

    def commit(self, end: dict[str, Any]) -> None:
        """Raises the error."""
        self._refuse()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Raises the error; Spark does not call it."""
        self._refuse()
