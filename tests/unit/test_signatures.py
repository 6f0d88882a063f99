"""Signatures show every option with its default, for help() and editors."""

from __future__ import annotations

import contextlib
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kafkacodec as kc
from kafkacodec import messages, protocol
from kafkacodec.dialects import kafka07
from tests.corpus import ROOT

RECORDS = [(b"key %d" % i, b"value" * i) for i in range(40)]
DATA = kc.encode(RECORDS, codec="gzip", batch_bytes=300)
LOG = ROOT / "logs/kraft-4.1.0"
SEGMENT = LOG / "txn-0/00000000000000000000.log"


def rows(result: Any) -> Any:
    """Something that can be compared."""
    if isinstance(result, bytes):
        return result
    if hasattr(result, "__arrow_c_stream__"):
        return pa.table(result).to_pylist()
    if hasattr(result, "__arrow_c_array__"):
        return pa.array(result).to_pylist()
    if isinstance(result, (kc.Record, kc.EncodedBatch)):
        return result
    return [rows(part) for part in result]


def response() -> messages.FetchResponse:
    partition = messages.FetchResponse.PartitionData(partition_index=1, records=DATA)
    topic = messages.FetchResponse.FetchableTopicResponse(topic="t", partitions=[partition])
    return messages.FetchResponse(responses=[topic])


def table() -> pa.Table:
    return pa.table({"row": [0, 0, 1], "value": [b"a", b"b", b"c"]})


CALLS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "decode": (kc.decode, (DATA,)),
    "iter_columns": (kc.iter_columns, (DATA,)),
    "iter_records": (kc.iter_records, (DATA,)),
    "decode_batches": (kc.decode_batches, (pa.array([DATA, None, DATA]),)),
    "encode": (kc.encode, (RECORDS,)),
    "iter_encoded": (kc.iter_encoded, (RECORDS,)),
    "encode_rows": (kc.encode_rows, (table(),)),
    "fetch_to_columns": (protocol.fetch_to_columns, (response(),)),
    "kafka07.decode": (kafka07.decode, (kafka07.encode_messages([b"a", b"b"]),)),
    "kafka07.iter_columns": (kafka07.iter_columns, (kafka07.encode_messages([b"a", b"b"]),)),
    "Segment.read": (kc.log.Segment(SEGMENT).read, ()),
    "SegmentRange.read": (kc.log.Segment(SEGMENT).ranges()[0].read, ()),
    "Partition.read": (kc.log.Partition(SEGMENT.parent).read, ()),
    "Segment.head": (kc.log.Segment(SEGMENT).head, (9,)),
    "Partition.to_arrow": (kc.log.Partition(SEGMENT.parent).to_arrow, ()),
    "Topic.to_polars": (kc.log.LogDirectory(LOG).topic("txn").to_polars, ()),
    "Topic.read": (kc.log.LogDirectory(LOG).topic("txn").read, ()),
    "LogDirectory.read": (kc.log.LogDirectory(LOG).read, ("txn", 0)),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_shown_defaults_are_those_of_the_call(name: str) -> None:
    call, arguments = CALLS[name]
    shown = list(inspect.signature(call).parameters.values())
    assert not any(p.kind is p.VAR_KEYWORD for p in shown)
    options = {p.name: p.default for p in shown if p.kind is p.KEYWORD_ONLY}
    assert len(options) >= 6
    assert not any(default is inspect.Parameter.empty for default in options.values())
    assert rows(call(*arguments, **options)) == rows(call(*arguments))


@pytest.mark.parametrize("name", CALLS)
def test_other_options_are_unknown(name: str) -> None:
    call, arguments = CALLS[name]
    with pytest.raises(TypeError, match=r"^unknown option 'no_such_option'; options are \w+"):
        call(*arguments, no_such_option=1)


@pytest.mark.parametrize("name", CALLS)
def test_a_misspelt_option_suggests_the_right_one_before_anything_is_read(name: str) -> None:
    call, arguments = CALLS[name]
    option = next(p.name for p in inspect.signature(call).parameters.values() if p.kind is p.KEYWORD_ONLY)
    with pytest.raises(TypeError) as caught:
        call(*arguments, **{f"{option}s": 1})
    assert str(caught.value) == f"unknown option '{option}s'; did you mean {option!r}?"
    assert caught.value.__context__ is None


MODULES = [kc, kc.log, kc.protocol, kc.errors, kc.spark, kc.dialects, kc.dialects.kafka07, kc.dialects.line]
MODULES += [kc.dialects.rewrite, kc.dialects.zookeeper, kc.values]

# One option each, called for every frame or line.
SMALL = {"encode_request", "encode_response", "request_pieces", "response_pieces", "frame_size", "split_frames"}
SMALL |= {
    "api_versions_response",
    "parse_response",
    "split_lines",
    "decode_request",
    "decode_response",
    "LineReader",
    "MemoryStorage",
}


def passes_options_on(call: Any) -> bool:
    """Whether other functions check its options: `CALLS` has such functions with working arguments."""
    own = inspect.signature(inspect.unwrap(call), follow_wrapped=False)
    return any(p.kind is p.VAR_KEYWORD for p in own.parameters.values())


def functions_with_options() -> list[Any]:
    found = {}
    for module in MODULES:
        for name in dir(module):
            value = getattr(module, name)
            calls = [(name, value)] if callable(value) else []
            if inspect.isclass(value):
                own = [a for a in vars(value) if callable(getattr(value, a)) and not a.startswith("_")]
                calls = [(f"{name}.{a}", getattr(value, a)) for a in own]
                if "__init__" in vars(value) and not issubclass(value, BaseException):
                    calls.append((name, value.__init__))
            for label, call in calls:
                if call.__module__ and call.__module__.startswith("kafkacodec") and label not in SMALL:
                    with contextlib.suppress(ValueError):
                        if passes_options_on(call):
                            continue
                        options = [p for p in inspect.signature(call).parameters.values() if p.kind is p.KEYWORD_ONLY]
                        if len(options) > ("." in label and not label.startswith(("Log", "Part", "Seg"))):
                            found[label] = pytest.param(call, options[0].name, id=label)
    return list(found.values())


@pytest.mark.parametrize(("call", "option"), functions_with_options())
def test_every_public_function_with_options_suggests_them(call: Any, option: str) -> None:
    positional = [p for p in inspect.signature(call).parameters.values() if p.default is p.empty]
    arguments = [None for p in positional if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    with pytest.raises(TypeError, match=f"^unknown option '{option}x'; did you mean '{option}'"):
        call(*arguments, **{f"{option}x": None})


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_completion_shows_public_names_alone(module: Any) -> None:
    shown = set(dir(module)) - {"__version__"}
    assert shown == set(module.__all__)
    assert all(hasattr(module, name) for name in shown)


def test_completion_of_messages_shows_every_message() -> None:
    assert set(dir(messages)) == {*messages.__all__, *messages.message_names()}


def test_a_misspelt_field_of_a_message_suggests_the_right_one() -> None:
    with pytest.raises(TypeError, match="FetchRequest has no field 'max_wiat_ms'; did you mean 'max_wait_ms'"):
        messages.FetchRequest(**{"max_wiat_ms": 1})


def test_a_missing_log_directory_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        kc.log.LogDirectory(tmp_path / "nope")
    assert caught.value.filename == str(tmp_path / "nope")
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError) as caught_file:
        kc.log.LogDirectory(tmp_path / "file")
    assert caught_file.value.filename == str(tmp_path / "file")


def test_a_writer_has_the_options_of_batches(tmp_path: Path) -> None:
    with kc.log.LogWriter(tmp_path, "t", 0) as writer:
        shown = inspect.signature(writer.write).parameters
        assert list(shown) == ["records", "codec", "level", "batch_bytes", "timestamp_type"]
        assert writer.write(RECORDS, **{name: shown[name].default for name in list(shown)[1:]}) == len(RECORDS)


@pytest.mark.parametrize("readable", [kc.log.Topic, kc.log.Partition, kc.log.Segment, kc.log.Selection])
@pytest.mark.parametrize("method", ["read", "to_arrow", "reader", "count", "head"])
def test_help_describes_every_option(readable, method):
    """Or another place where it is described, for what a docstring itself mentions."""
    function = getattr(readable, method)
    doc = inspect.getdoc(function)
    for name in inspect.signature(function).parameters:
        assert name == "self" or re.search(rf"^    (\w+, )*{name}(, \w+)*(:| \()", doc, re.M), name


def test_options_are_described_once_and_in_order():
    doc = inspect.getdoc(kc.log.Topic.read)
    assert doc.count("\nOptions:\n") == 1
    assert doc.count("\n    on_error: ") == 1
    assert '\n    isolation_level: ``"read_committed"`` leaves out' in doc
    assert inspect.getdoc(kc.log.Topic.reader).index("    verify_crc: ") > inspect.getdoc(kc.log.Topic.reader).index(
        "Options:"
    )
