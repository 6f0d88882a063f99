"""Plain mistakes end in one sentence about the argument that is wrong, after few lines of a traceback."""

from __future__ import annotations

import io
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import kafkacodec as kc

LOG = kc.sample()
ORDERS: Any = LOG.topic("orders")
SEGMENT = Path(ORDERS.partition(0).segments[0])

MISTAKES: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: ORDERS.partition("0"), TypeError, "partition must be an integer, not str"),
    (lambda: LOG.partition("orders", "0"), TypeError, "partition must be an integer, not str"),  # type: ignore[arg-type]
    (lambda: LOG.topic(3), TypeError, "topic must be text, not int"),  # type: ignore[arg-type]
    (lambda: LOG.select(3), TypeError, "a pattern must be text, not int"),  # type: ignore[arg-type]
    (lambda: ORDERS.to_arrow(start_offset="12"), TypeError, "start_offset must be an integer, not str"),
    (lambda: ORDERS.partition(0).ranges(end_offset="12"), TypeError, "end_offset must be an integer, not str"),
    (lambda: ORDERS.count(end_offset=1.5), TypeError, "end_offset must be an integer, not float"),
    (lambda: ORDERS.to_arrow(start_timestamp="2026-13-01"), ValueError, "start_timestamp is '2026-13-01', which"),
    (lambda: ORDERS.count(end_timestamp="noon"), ValueError, "end_timestamp is 'noon', which"),
    (
        lambda: ORDERS.count(start_timestamp="now", end_timestamp="-1d"),
        ValueError,
        "end_timestamp (-1d) is before start",
    ),
    (lambda: ORDERS.to_arrow(columns=["vlaue"]), ValueError, "unknown column 'vlaue'"),
    (lambda: kc.decode(b"")["vlaue"], KeyError, "headers; did you mean 'value'?"),
    (lambda: kc.decode(b"", columns=["key"])["zzz"], KeyError, "no column 'zzz'; columns are key"),
    (lambda: kc.scan(b"").buffers("base_ofset"), KeyError, "no column 'base_ofset'; columns are position, "),
    (lambda: kc.decode(b"", columns=["vlaue"]), ValueError, "batch_position; did you mean 'value'?"),
    (lambda: kc.values.decode([b""], '"long"'), TypeError, "is given as kc.values.Schema(text) or "),
    (lambda: kc.values.decode([b""], 'syntax = "proto3";'), TypeError, "is given as kc.values.Schema(text) or "),
    (lambda: ORDERS.to_arrow(columns="value"), TypeError, "columns must be a list of names, not str"),
    (lambda: ORDERS.to_arrow(on_error="ignore"), ValueError, "on_error must be "),
    (lambda: ORDERS.head(on_error="ignore"), ValueError, "on_error must be "),
    (lambda: kc.log.Segment(b"x"), TypeError, "not bytes; kafkacodec.decode takes the bytes of a segment"),  # type: ignore[arg-type]
    (lambda: kc.log.LogDirectory(5), TypeError, "the path must be text or a path object, not int"),  # type: ignore[arg-type]
    (lambda: kc.broker.serve(5), TypeError, "data must be a path or several, not int"),  # type: ignore[arg-type]
    (lambda: kc.log.lag(5), TypeError, "paths must be a path or several, not int"),  # type: ignore[arg-type]
    (lambda: kc.log.statistics(5), TypeError, "partitions must be a path, a Partition or several, not int"),  # type: ignore[arg-type]
    (lambda: kc.log.diff(LOG, 5), TypeError, "what is compared must be a path, partitions or a log, not int"),  # type: ignore[arg-type]
    (lambda: kc.log.Follower("orders-0"), TypeError, "partition must be a kafkacodec.log.Partition, not str"),  # type: ignore[arg-type]
    (lambda: kc.log.Follower(ORDERS.partition(0), "x"), TypeError, "next_offset must be an integer, not str"),  # type: ignore[arg-type]
    (lambda: kc.Search(key=5), TypeError, "expected str or bytes to find, not int"),  # type: ignore[arg-type]
    (lambda: kc.log.lag([]), ValueError, "paths: there are none"),
    (lambda: kc.log.lag("nodir"), FileNotFoundError, "nodir"),
    (lambda: kc.log.read_committed_offsets([]), ValueError, "path: there is none"),
    (lambda: kc.log.read_committed_offsets("nodir"), FileNotFoundError, "nodir"),
    (lambda: kc.log.statistics("nodir"), FileNotFoundError, "nodir"),
    (lambda: kc.log.scan_polars("nodir"), FileNotFoundError, "nodir"),
    (lambda: kc.log.scan_polars([]), ValueError, "paths is empty"),
    (lambda: kc.log.Partition("nodir/orders-0").count(), FileNotFoundError, "nodir/orders-0"),
    (lambda: kc.log.Segment(f"{LOG.path}/orders-0").count(), IsADirectoryError, "orders-0"),
    (lambda: kc.decode(SEGMENT), TypeError, "not 'PosixPath': read the file first, or open a file of a log with"),  # type: ignore[arg-type]
    (lambda: kc.scan(str(SEGMENT)), TypeError, "not 'str': read the file first, or open a file of a log with"),  # type: ignore[arg-type]
    (lambda: kc.crc32c("text"), TypeError, "not 'str': encode text first"),  # type: ignore[arg-type]
    (lambda: kc.decode(io.BytesIO()), TypeError, "not 'BytesIO': pass what its read() returns"),  # type: ignore[arg-type]
    (lambda: kc.decode(7), TypeError, "a bytes-like object is required, not 'int'"),  # type: ignore[arg-type]
    (lambda: LOG.topic("ordres"), FileNotFoundError, "did you mean 'orders'"),
    (lambda: LOG.topic("ORDERS"), FileNotFoundError, "did you mean 'orders'"),
]


@pytest.mark.parametrize(("call", "kind", "reason"), MISTAKES, ids=[reason for _, _, reason in MISTAKES])
def test_a_mistake_is_named_after_few_lines(call: Callable[[], Any], kind: type[Exception], reason: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert type(caught.value) is kind
    assert reason in str(caught.value)
    here = traceback.extract_tb(caught.tb)
    inside = [frame for frame in here if f"{Path(kc.__file__).parent}" in frame.filename]
    assert len(inside) <= 3, "".join(traceback.format_list(here))
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize("column", [pa.array([b"1"]), np.array([b"1"], object), [b"1"], pa.chunked_array([[b"1"]])])
def test_infer_json_takes_columns(column: Any) -> None:
    with pytest.raises(TypeError, match=r"infer_json takes a list of columns, such as \[column\], not one "):
        kc.values.infer_json(column)
    assert '"integer"' in kc.values.infer_json([column]).text or '"number"' in kc.values.infer_json([column]).text


def test_many_topics_are_not_listed(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"topic{number:02}-0").mkdir()
    log = kc.log.LogDirectory(tmp_path)
    with pytest.raises(FileNotFoundError, match="no topic 'x' in this directory; there are 30 topics:"):
        log.topic("x")


def test_a_tree_that_is_too_deep_says_so(tmp_path: Path) -> None:
    (tmp_path / "a" / "b" / "c" / "d" / "orders-0").mkdir(parents=True)
    with pytest.raises(FileNotFoundError, match="in this directory, nor in log directories up to 2 levels below it"):
        kc.log.discover(tmp_path, levels=2)
