"""`Search`, `RecordColumns.take` and `filter`, compared with Python's own operators on the same records."""

from __future__ import annotations

import copy
import pickle
import random

import numpy as np
import pytest

import kafkacodec as kc
from kafkacodec.patterns import PatternError
from tests.corpus import ROOT

LAYOUTS = ["copy", "view"]
ROWS: list[kc.Record] = [
    kc.Record(0, 1, 0, b"user-1", b'{"status": "shipped"}', (("trace", b"abc"), ("type", b"order"))),
    kc.Record(1, 2, 0, b"user-2", b'{"status": "returned"}', ()),
    kc.Record(2, 3, 0, None, b"", (("trace", None),)),
    kc.Record(3, 4, 0, b"", None, (("type", b"refund"), ("type", b"order"))),
    kc.Record(4, 5, 0, b"user-1", b"\x00\xff\xfe" + b"x" * 40, (("", b""),)),
    kc.Record(5, 6, 0, "ключ".encode(), "значение заказа, длиннее двенадцати байт".encode(), ()),
]


def table(rows: list[kc.Record], layout: str = "copy", **options: object) -> kc.RecordColumns:
    return kc.decode(kc.encode(rows), layout=layout, **options)  # type: ignore[arg-type]


def offsets(search: kc.Search, rows: list[kc.Record] = ROWS, layout: str = "copy") -> list[int]:
    found = search.select(table(rows, layout))
    assert [rows[i] for i in found["offset"]] == found.records()
    return found["offset"].tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({"key": "user-1"}, [0, 4]),
        ({"key": b"user"}, []),
        ({"key": ""}, [3]),
        ({"value": b""}, [2]),
        ({"key": ["user-2", "ключ"]}, [1, 5]),
        ({"key": []}, []),
        ({"header": "trace"}, [0, 2]),
        ({"header": ("trace", "abc")}, [0]),
        ({"header": ("type", b"order")}, [0, 3]),
        ({"header": ("type", b"ord")}, []),
        ({"header": ["trace", ("type", "refund")]}, [0, 2, 3]),
        ({"header": ("", b"")}, [4]),
        ({"grep": "status"}, [0, 1]),
        ({"grep": "order"}, [0, 3]),
        ({"grep": b"\xff\xfe"}, [4]),
        ({"grep": ["returned", "abc"]}, [0, 1]),
        ({"grep": "заказа"}, [5]),
        ({"grep": "status", "key": "user-2"}, [1]),
        ({"grep": "status", "key": "user-2", "invert": True}, [0, 2, 3, 4, 5]),
        ({"key": "user-[12]", "regex": True}, [0, 1, 4]),
        ({"key": "^$", "regex": True}, [3]),
        ({"value": "(?i)RETURNED", "regex": True}, [1]),
        ({"header": ("type", "^ref"), "regex": True}, [3]),
        ({"grep": r"x{40}$|^abc$", "regex": True}, [0, 4]),
        ({}, [0, 1, 2, 3, 4, 5]),
    ],
)
def test_conditions(conditions: dict[str, object], expected: list[int], layout: str) -> None:
    assert offsets(kc.Search(**conditions), layout=layout) == expected  # type: ignore[arg-type]


def test_an_empty_search_is_false_and_columns_are_those_read() -> None:
    assert not kc.Search()
    assert kc.Search(key="").columns == ("key",)
    assert kc.Search(header="a", value="b").columns == ("value", "headers")
    assert kc.Search(grep="a").columns == ("key", "value", "headers")
    with pytest.raises(KeyError):
        kc.Search(value="a").mask(table(ROWS, columns=["key"]))


@pytest.mark.parametrize("expression", ["(", "a(?=b)", r"(a)\1", "a{2000}"])
def test_expressions_that_re2_refuses(expression: str) -> None:
    with pytest.raises(PatternError, match="invalid RE2"):
        kc.Search(grep=expression, regex=True)


def test_conditions_are_text_or_bytes() -> None:
    for wrong in (5, [b"a", 5]):
        with pytest.raises(TypeError):
            kc.Search(key=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("seed", range(60))
def test_bytes_are_found_as_python_finds_them(seed: int, layout: str) -> None:
    """Few letters, so that parts of the needle are everywhere, across the ends of values too."""
    rng = random.Random(seed)
    letters = [b"ab", b"a", b"abc", bytes(range(256))][seed % 4]

    def text(most: int) -> bytes | None:
        return None if rng.random() < 0.1 else bytes(rng.choices(letters, k=rng.randrange(most + 1)))

    most = rng.choice([0, 1, 3, 40, 900])
    rows = [kc.Record(i, 0, 0, text(4), text(most), [("h", text(5))] * rng.randrange(3)) for i in range(300)]
    whole = table(rows, layout)
    for size in (0, 1, 2, 3, 7, 60):
        wanted = bytes(rng.choices(letters, k=size))
        values = [row.value for row in rows]
        expected = [v is not None and wanted in v for v in values]
        headers = [any(h is not None and wanted in h for _, h in row.headers) for row in rows]
        keys = [row.key is not None and wanted in row.key for row in rows]
        found = kc.Search(grep=wanted).mask(whole)
        assert found.tolist() == [any(three) for three in zip(expected, headers, keys, strict=True)]
        assert kc.Search(value=wanted).mask(whole).tolist() == [v == wanted for v in values]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_searching_stays_linear(layout: str) -> None:
    """Every position of these values starts like the needle; compared one by one, that is 2e11 bytes."""
    values = [b"a" * 60_000 + b"b" + b"a" * 60_000, b"a" * 100_000] + [b"a"] * 50_000
    whole = table([kc.Record(i, 0, 0, None, value, []) for i, value in enumerate(values)], layout)
    for wanted, expected in ((b"a" * 50_000 + b"b" + b"a" * 50_000, 1), (b"a" * 99_999, 1), (b"ba" * 40_000, 0)):
        assert kc.Search(grep=wanted).mask(whole).sum() == expected


@pytest.mark.parametrize("layout", LAYOUTS)
def test_taken_rows_have_all_columns(layout: str) -> None:
    """Nulls, lists, strings, bools and numbers, in any order and more than once."""
    source = (ROOT / "logs" / "kraft-4.1.0" / "mixed-0" / "00000000000000000000.log").read_bytes()
    whole = kc.decode(source, batch_columns=True, include_control=True, layout=layout)  # type: ignore[arg-type]
    rng = np.random.default_rng(5)
    expected = whole.to_pyarrow().to_pylist()
    for rows in (rng.integers(0, len(whole), 500), np.arange(len(whole))[::-1], [], [7]):
        taken = whole.take(rows)
        assert taken.to_pyarrow().to_pylist() == [expected[i] for i in rows]
        assert (taken.consumed, taken.problems, taken.schema) == (whole.consumed, whole.problems, whole.schema)
        taken.to_pyarrow().validate(full=True)
        again = taken.take(np.arange(len(taken)))
        assert again.to_pyarrow().equals(taken.to_pyarrow())


def test_views_live_longer_than_the_table_that_they_are_taken_from() -> None:
    taken = kc.decode(kc.encode(ROWS, codec="zstd"), layout="view").take([5, 0])
    kc.trim_memory()
    assert taken.records() == [ROWS[5], ROWS[0]]


def test_wrong_rows_and_masks_are_refused() -> None:
    whole = table(ROWS)
    for rows in ([6], [-1], [0, 1 << 40]):
        with pytest.raises(IndexError):
            whole.take(rows)
    with pytest.raises(IndexError):
        table([]).take([0])
    assert len(whole.filter(np.zeros(6, np.bool_))) == 0
    for mask in (np.ones(5, np.bool_), np.ones(6, np.int8), [[True] * 6]):
        with pytest.raises(ValueError, match="one bool for each of 6 rows"):
            whole.filter(mask)
    with pytest.raises(TypeError):
        whole.take([[0]])


def test_batch_headers_are_filtered_too() -> None:
    headers = kc.scan(kc.encode(ROWS, batch_bytes=60))
    late = headers.filter(headers["base_offset"] >= 3)
    assert late["base_offset"].tolist() == [o for o in headers["base_offset"].tolist() if o >= 3]


@pytest.mark.parametrize("search", [
    kc.Search(key=b"a", header=("x", b"y"), grep=["q", "b"]),
    kc.Search(value="b+", regex=True, invert=True),
], ids=["bytes", "expression"])  # fmt: skip
def test_a_search_can_be_sent_to_another_process(search: kc.Search) -> None:
    table = kc.decode(kc.encode([kc.Record(n, 0, 0, k, b"b", (("x", b"y"),)) for n, k in enumerate([b"a", b"c"])]))
    for copied in (pickle.loads(pickle.dumps(search)), copy.deepcopy(search)):
        assert copied.mask(table).tolist() == search.mask(table).tolist()
        assert copied.columns == search.columns
