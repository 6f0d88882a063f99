"""Searching records: conditions on keys, values and headers, checked over whole columns.

Bytes are found by the C library, which needs no Python object per record. Regular expressions are RE2's, through
pyarrow; both take time linear in the data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from kafkacodec.arrow._rows import Needle, header_ends
from kafkacodec.lazy import missing_package, np
from kafkacodec.patterns import PatternError
from kafkacodec.shown import counted, repr_of
from kafkacodec.signatures import suggests_options

if TYPE_CHECKING:
    import numpy.typing as npt

    from kafkacodec.records.columns import RecordColumns

    Mask = npt.NDArray[np.bool_]

__all__ = ["Search"]

Text = str | bytes
"""What to find; str is encoded as UTF-8."""


class Search:
    """Conditions on records. A record matches if it meets every condition that is given.

    Args:
        key, value: the key or value is equal to these bytes; with `regex`, the expression matches anywhere in it. A
            list of several: any of them.
        header: a name, which one of the headers has, or (name, bytes) for a header of this name and value. A list of
            several: any of them. Names are never expressions.
        grep: the key, the value or the value of any header contains these bytes, or matches the expression. A list of
            several: any of them.
        regex: all conditions but names are regular expressions in RE2's syntax. They are matched against bytes: ``.``
            is one byte, and not a line end. Needs pyarrow.
        invert: the records that do not match, instead.

    Attributes:
        columns (tuple[str, ...]): the columns that `mask` reads.

    Null keys and values match nothing, empty ones match an empty condition.

    Raises:
        PatternError: an expression is invalid; it is a ValueError.
        TypeError: a condition is neither str nor bytes.
        ImportError: `regex` without pyarrow.
    """

    @suggests_options
    def __init__(
        self,
        *,
        key: Text | Iterable[Text] | None = None,
        value: Text | Iterable[Text] | None = None,
        header: str | tuple[str, Text] | Iterable[str | tuple[str, Text]] | None = None,
        grep: Text | Iterable[Text] | None = None,
        regex: bool = False,
        invert: bool = False,
    ) -> None:
        self.invert = invert
        pattern: Callable[[bytes, bool], _Pattern] = _Expression if regex else _Bytes
        tests: list[tuple[tuple[str, ...], list[Callable[[RecordColumns], Mask]]]] = []
        for name, given in (("key", key), ("value", value)):
            if given is not None:
                found = [pattern(_bytes(text), True) for text in _several(given, (str, bytes))]
                tests.append(((name,), [partial(_in_column, name, one) for one in found]))
        if header is not None:
            headers: list[Callable[[RecordColumns], Mask]] = []
            for one in _several(header, (str, tuple)):
                name, text = (one, None) if isinstance(one, str) else one
                wanted = None if text is None else pattern(_bytes(text), True)
                headers.append(partial(_has_header, Needle(_bytes(name)), wanted))
            tests.append((("headers",), headers))
        if grep is not None:
            found = [pattern(_bytes(text), False) for text in _several(grep, (str, bytes))]
            tests.append((("key", "value", "headers"), [partial(_anywhere, one) for one in found]))
        self._conditions = [tried for _, tried in tests]
        read = {name for names, _ in tests for name in names}
        self.columns = tuple(name for name in ("key", "value", "headers") if name in read)

    def __repr__(self) -> str:
        return repr_of(self, counted(len(self._conditions), "condition") + (", inverted" if self.invert else ""))

    def __bool__(self) -> bool:
        """Whether there is any condition."""
        return bool(self._conditions)

    def mask(self, table: RecordColumns) -> Mask:
        """Which records match, one bool for each row.

        Raises:
            KeyError: one of `columns` was not requested.
        """
        matched = np.ones(len(table), np.bool_)
        for tried in self._conditions:
            any_of = np.zeros(len(table), np.bool_)
            for test in tried:
                any_of |= test(table)
            matched &= any_of
            if not np.count_nonzero(matched):
                break
        return ~matched if self.invert else matched

    def select(self, table: RecordColumns) -> RecordColumns:
        """The records that match, with all columns of the table."""
        mask = self.mask(table)
        return table if np.count_nonzero(mask) == len(table) else table.filter(mask)


class _Bytes:
    """Bytes to find: all of a value, or anywhere in it."""

    def __init__(self, wanted: bytes, whole: bool) -> None:
        self.needle, self.whole = Needle(wanted), whole

    def column(self, table: RecordColumns, name: str) -> Mask:
        return self.needle.rows(table, name, self.whole)

    def header_values(self, table: RecordColumns) -> Mask:
        return self.needle.header_values(table, self.whole)


class _Expression:
    """A regular expression, matched anywhere in a value."""

    def __init__(self, wanted: bytes, whole: bool) -> None:
        try:
            import pyarrow as pa
        except ImportError:
            raise missing_package("regular expressions need", "pyarrow", "arrow") from None
        self.wanted = wanted
        try:
            self._matches(pa.array([b""], pa.binary()))
        except pa.ArrowInvalid as error:
            reason = str(error).removeprefix("Invalid regular expression: ")
            shown = wanted.decode(errors="backslashreplace")
            raise PatternError(f"invalid RE2 regular expression {shown!r}: {reason}") from None

    def column(self, table: RecordColumns, name: str) -> Mask:
        return self._matches(table.to_pyarrow().column(name))

    def header_values(self, table: RecordColumns) -> Mask:
        return self._matches(table.to_pyarrow().column("headers").flatten().field("value"))

    def _matches(self, values: Any) -> Mask:
        import pyarrow as pa
        import pyarrow.compute as pc

        if str(values.type) == "binary_view":  # which the function does not support
            values = values.cast(pa.binary())
        found: Mask = pc.match_substring_regex(values, self.wanted).fill_null(False).to_numpy(zero_copy_only=False)
        return found


_Pattern = _Bytes | _Expression


def _in_column(name: str, pattern: _Pattern, table: RecordColumns) -> Mask:
    return pattern.column(table, name)


def _has_header(key: Needle, value: _Pattern | None, table: RecordColumns) -> Mask:
    found = key.header_keys(table)
    if value is not None and np.count_nonzero(found):
        found &= value.header_values(table)
    return _rows_of_headers(table, found)


def _anywhere(pattern: _Pattern, table: RecordColumns) -> Mask:
    found = pattern.column(table, "value") | pattern.column(table, "key")
    return found | _rows_of_headers(table, pattern.header_values(table))


def _rows_of_headers(table: RecordColumns, headers: Mask) -> Mask:
    """The rows that have one of the chosen headers."""
    rows = np.zeros(len(table), np.bool_)
    chosen = np.flatnonzero(headers)
    if len(chosen):
        rows[np.searchsorted(header_ends(table), chosen, "right")] = True
    return rows


def _several(given: Any, one: tuple[type, ...]) -> list[Any]:
    if isinstance(given, one):
        return [given]
    if not isinstance(given, Iterable):
        raise TypeError(f"expected str or bytes to find, not {type(given).__name__}")
    return list(given)


def _bytes(text: Text) -> bytes:
    if isinstance(text, str):
        return text.encode()
    if isinstance(text, bytes):
        return text
    raise TypeError(f"expected str or bytes to find, not {type(text).__name__}")
