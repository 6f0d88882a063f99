"""Methods of everything with records besides reading chunks: tables, streams, the first rows, a count, iteration."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from inspect import signature
from typing import TYPE_CHECKING, Any, Unpack

from kafkacodec.arguments import limit, refuse_unknown, require_list
from kafkacodec.arrow._columns import append
from kafkacodec.errors import LimitExceeded
from kafkacodec.lazy import import_extra
from kafkacodec.log.reading.counting import count_by_headers
from kafkacodec.log.reading.options import ReadOptions
from kafkacodec.log.segments.kinds import BATCHES
from kafkacodec.records import _record_rows
from kafkacodec.records.columns import Problem, Problems, RecordColumns
from kafkacodec.records.plan import DEFAULT_MAX_TOTAL_BYTES, DecodeOptions, plan_of
from kafkacodec.records.record import Record
from kafkacodec.signatures import shows_options

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from kafkacodec.log.reading.ranges import SegmentRange
    from kafkacodec.log.segments.kinds import SegmentKind


class Readable:
    """The methods that a segment, a partition and a topic share. Their options are those of their `read`.

    With ``on_error="skip"`` or ``"stop"``, each method appends what was left out to the list `problems`; without such a
    list it warns (`RuntimeWarning`), so that loss is noticed.
    """

    if TYPE_CHECKING:
        path: str

        def read(self, *args: Any, **options: Any) -> Iterator[RecordColumns]:
            """The records, in chunks."""

    def __init_subclass__(cls) -> None:
        """Give the methods signatures with the options of the class's own `read`."""
        if "read" in vars(cls):
            for name in ("to_arrow", "to_pandas", "to_polars", "reader", "head", "count"):
                method = getattr(Readable, name)
                setattr(cls, name, shows_options(ReadOptions, cls.read)(method))

    def to_arrow(
        self,
        *,
        max_total_bytes: int = DEFAULT_MAX_TOTAL_BYTES,
        problems: list[Problem] | None = None,
        **options: Unpack[ReadOptions],
    ) -> pa.Table:
        """The records as a ``pyarrow.Table``, with a chunk for each of `read`.

        Args:
            max_total_bytes: limit on the memory of the table, in bytes.
            problems: a list for what was left out; see the class.
            The other options: as in `read`.

        Raises:
            ImportError: pyarrow is not installed.
            LimitExceeded: the table would exceed `max_total_bytes`.
            As `read`.
        """
        arrow = import_extra("pyarrow")
        left = limit("max_total_bytes", max_total_bytes)
        batches = []
        for chunk in self._chunks(options, problems):
            left -= chunk.nbytes
            if left < 0:
                raise LimitExceeded(
                    f"the table would exceed max_total_bytes ({max_total_bytes}); read chunks with read(), choose "
                    "columns or offsets, or raise the limit"
                )
            batches.append(arrow.record_batch(chunk))
        schema = batches[0].schema if batches else arrow.schema(self._nothing(options).schema)
        return arrow.Table.from_batches(batches, schema)

    def to_pandas(
        self,
        *,
        max_total_bytes: int = DEFAULT_MAX_TOTAL_BYTES,
        problems: list[Problem] | None = None,
        **options: Unpack[ReadOptions],
    ) -> pd.DataFrame:
        """The records as a ``pandas.DataFrame``; arguments and errors as in `to_arrow`. Needs pandas and pyarrow."""
        import_extra("pandas")
        return self.to_arrow(max_total_bytes=max_total_bytes, problems=problems, **options).to_pandas()

    def to_polars(
        self,
        *,
        max_total_bytes: int = DEFAULT_MAX_TOTAL_BYTES,
        problems: list[Problem] | None = None,
        **options: Unpack[ReadOptions],
    ) -> pl.DataFrame:
        """The records as a ``polars.DataFrame``; arguments and errors as in `to_arrow`. Needs polars and pyarrow."""
        polars = import_extra("polars")
        return polars.DataFrame(self.to_arrow(max_total_bytes=max_total_bytes, problems=problems, **options))

    def reader(self, *, problems: list[Problem] | None = None, **options: Unpack[ReadOptions]) -> pa.RecordBatchReader:
        """The records as a ``pyarrow.RecordBatchReader``, which reads a chunk when it is asked for the next one.

        For logs of any size: Parquet writers, DuckDB and datasets take it. It can be read once.

        Args:
            problems: a list for what was left out; see the class.
            The other options: as in `read`. With ``layout="auto"``, keys and values are copied.

        Raises:
            ImportError: pyarrow is not installed.
            As `read`: the reader raises such errors while it is read.
        """
        arrow = import_extra("pyarrow")
        refuse_unknown(options, signature(self.read).parameters)  # now, not when it is read
        if options.get("layout") == "auto":  # the first values decide, and a reader's schema is known before
            options["layout"] = "copy"
        schema = arrow.schema(self._nothing(options).schema)
        return arrow.RecordBatchReader.from_batches(schema, map(arrow.record_batch, self._chunks(options, problems)))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """All records as a stream of the Arrow PyCapsule interface, which reads a chunk at a time. Needs pyarrow."""
        return self.reader().__arrow_c_stream__(requested_schema)

    def head(
        self, n: int = 5, *, problems: list[Problem] | None = None, **options: Unpack[ReadOptions]
    ) -> RecordColumns:
        """The first records as one table. Reads no more than the batches that they are in.

        Args:
            n: the most records.
            problems: a list for what was left out; see the class.
            The other options: as in `read`.

        Raises:
            As `read`.
        """
        wanted = limit("n", n)
        require_list("problems", problems)
        options["max_rows"] = max(1, min(wanted, options.get("max_rows", wanted)))
        options["threads"] = 1
        near, faults = self._near(options, wanted), Problems()
        found = None if near is None else self._first(self._chunks(near, faults), near, wanted)
        if found is None or len(found) < wanted or faults:
            found = self._first(self._chunks(options, problems), options, wanted)
        first = found[:wanted]
        first.problems = Problems()
        return first

    def _first(self, chunks: Iterator[RecordColumns], options: ReadOptions, wanted: int) -> RecordColumns:
        """The chunks with the first records, as one table."""
        found = self._nothing(options)
        for chunk in chunks if wanted else ():
            if len(found):
                append(found, chunk)
            else:
                found = chunk
            if len(found) >= wanted:
                break
        return found

    def _near(self, options: ReadOptions, wanted: int) -> ReadOptions | None:
        """The options with an end offset that so many records are likely to precede, so that later batches are not
        read.
        """
        return None

    def count(self, *, problems: list[Problem] | None = None, **options: Unpack[ReadOptions]) -> int:
        """The number of records that `read` returns for the same options.

        It is taken from batch headers, with their checksums verified, where these are exact: in intact logs of magic 2
        that are read uncommitted. Otherwise, and where an offset limit is inside a batch, records are decoded.

        Args:
            problems: a list for what was left out; see the class.
            The other options: as in `read`. Those about columns and chunks have no effect.

        Raises:
            As `read`.
        """
        refuse_unknown(options, signature(self.read).parameters)  # headers alone need few of them
        require_list("problems", problems)
        plan_of(place_columns=True, **_decoding(options))
        if options.get("isolation_level", "read_uncommitted") == "read_uncommitted":
            found = count_by_headers(self._pieces(options), options)
            if found is not None:
                return found
        plain: ReadOptions = {**options, "columns": ("offset",), "batch_columns": False, "layout": "copy"}
        return sum(len(chunk) for chunk in self._chunks(plain, problems))

    def __iter__(self) -> Iterator[Record]:
        """All records, one by one: for looking at some, and for small logs. Bulk work is faster with `read`."""
        return iter(_record_rows.RecordIterator(self.read(max_rows=2048, columns=Record._fields), Record))

    def _pieces(self, options: ReadOptions) -> list[SegmentRange]:
        """The ranges that `read` reads."""
        raise NotImplementedError

    @property
    def _kind(self) -> SegmentKind:
        return BATCHES

    def _nothing(self, options: ReadOptions) -> RecordColumns:
        """No rows, with the columns of `read`."""
        shape = _decoding(options)
        if shape.get("layout") == "auto":
            shape["layout"] = "copy"
        return self._kind.nothing(shape)

    def _chunks(self, options: ReadOptions, problems: list[Problem] | None) -> Iterator[RecordColumns]:
        """The chunks of `read`, whose problems are appended to the list or, at the end, warned of."""
        require_list("problems", problems)
        found = Problems()
        try:
            for chunk in self.read(**options):
                found.include(chunk.problems)
                yield chunk
        finally:
            if problems is not None:
                problems += found
            elif found:
                places = len(found) + max(0, found.merged - 1)
                text = f"{places} damaged or missing parts of {self.path} are left out, the first: {found[0].exception}"
                warnings.warn(text, RuntimeWarning, stacklevel=4)


def _decoding(options: ReadOptions) -> DecodeOptions:
    """The options of decoding alone."""
    known = DecodeOptions.__annotations__
    return {name: value for name, value in options.items() if name in known}  # type: ignore[return-value]
