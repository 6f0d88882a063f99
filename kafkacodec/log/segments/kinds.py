"""The kinds of segment files and their readers: the only module that distinguishes them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from kafkacodec.datatypes import dataclass
from kafkacodec.errors import Truncated
from kafkacodec.log.formats import layout
from kafkacodec.log.opening import open_file
from kafkacodec.log.opening.packed import HEAD, refuse_packed
from kafkacodec.log.segments import kafka07
from kafkacodec.log.segments.walk import refuse_other, windows
from kafkacodec.records.columns import RecordColumns
from kafkacodec.records.decode import columns_between
from kafkacodec.records.plan import NOWHERE, DecodeOptions, Layout, Order, Place, layout_of

if TYPE_CHECKING:
    from kafkacodec.log.opening import StoredFile
    from kafkacodec.log.segments.extent import Extent

__all__ = ["BATCHES", "MESSAGES", "SegmentKind", "kind_of"]


@dataclass(frozen=True)
class SegmentKind:
    """The functions that read segments of one kind.

    Attributes:
        name (str): as in ``--log-format``.
        has_batches (bool): there are batches with headers: they can be scanned, indexed, cut into ranges and recovered.
        read: the records of a range of a file, as `kafkacodec.iter_columns` returns them. Takes the file, the range,
            `max_rows`, `max_bytes` (None: the default), whether chunks own the memory of their views, the number of
            threads, the options of `kafkacodec.decode`, and the order of batches: `_OutOfOrder` is raised for others.
            None: any order.
        nothing: no rows, with the columns of `read`; takes the options.
        layout: the layout of keys and values in a range of a file, for the requested one.
    """

    name: str
    has_batches: bool
    read: Callable[
        [StoredFile, Extent, int, int | None, bool, int, DecodeOptions, Order | None], Iterator[RecordColumns]
    ]
    nothing: Callable[[DecodeOptions], RecordColumns]
    layout: Callable[[StoredFile, Extent, Layout], Layout]


def kind_of(path: str) -> SegmentKind:
    """The kind of a segment: by the suffix of its file; if that is not a segment's, by its first message.

    Raises:
        CorruptRecord: the file has another name than segments have, and is clearly something else.
    """
    name = layout.parse_file_name(os.path.basename(path))
    known = _KINDS.get(os.path.splitext(path)[1])
    if known is not None and name is not None:
        return known
    being_replaced = name is not None and name.suffix.startswith(layout.LOG_SUFFIX)  # .log.swap, .log.deleted
    with suppress(OSError, Truncated), open_file(path) as file:  # raised again when it is read
        refuse_packed(path, bytes(file.read(0, HEAD)))
        if known is None and not being_replaced and kafka07.begins_with_message(file):
            return MESSAGES
        refuse_other(file)
    return known or BATCHES


def _read_batches(
    file: StoredFile,
    piece: Extent,
    max_rows: int,
    max_bytes: int | None,
    owned: bool,
    threads: int,
    options: DecodeOptions,
    order: Order | None,
) -> Iterator[RecordColumns]:
    aborted = np.array(piece.aborted, np.int64).tobytes()
    place = Place(piece.topic, piece.partition)
    for start, end in windows(file, piece.start_position, piece.end_position, order):
        yield from columns_between(
            file.view(start, end),
            start,
            end,
            aborted,
            place=place,
            max_rows=max_rows,
            max_bytes=max_bytes,
            owned=owned or file.window is not None,
            threads=threads,
            order=order,
            **options,
        )


def _no_batches(options: DecodeOptions) -> RecordColumns:
    return next(columns_between(b"", 0, None, place=NOWHERE, max_rows=1, max_bytes=1, **options))


def _layout_of_batches(file: StoredFile, piece: Extent, wanted: Layout) -> Layout:
    first = next(windows(file, piece.start_position, piece.end_position))
    return layout_of(file.view(*first), wanted, *first)


BATCHES = SegmentKind("kafka", True, _read_batches, _no_batches, _layout_of_batches)
"""Record batches and message sets, since Kafka 0.8."""

MESSAGES = SegmentKind("kafka07", False, kafka07.read, kafka07.nothing, kafka07.layout_of)
"""Messages of Kafka 0.6 and 0.7."""

_KINDS = {layout.LOG_SUFFIX: BATCHES, layout.KAFKA07_SUFFIX: MESSAGES}
