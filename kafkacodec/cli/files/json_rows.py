"""Records as JSON objects with key, value, timestamp, headers and offset, as `kafkacodec convert` writes them."""

from __future__ import annotations

import base64
import codecs
import json
import re
from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, BinaryIO

from kafkacodec.arguments import suggestion
from kafkacodec.cli.output import json_line
from kafkacodec.datatypes import NamedTuple
from kafkacodec.records._record_chunks import is_record_column

MAX_BYTES = 128 << 20
"""The largest line, and the largest row of a JSON array; the largest record of a broker is smaller."""

_STEP = 1 << 20
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BLANK = re.compile(r"[ \t\r\n]*")

Row = dict[str, Any]
"""Column -> value, for the columns that the row has; and `FIELDS`."""

FIELDS = ""
"""In a row: the names of all fields, if those of no column are left out."""


class Names(NamedTuple):
    """The columns of records in a file.

    Attributes:
        of: column, such as ``key`` -> its name in the file; without those that are not read.
        required: the columns that the file must have.
        leaves_out: whether it may have others, which belong to no record, since an option names a column.
    """

    of: dict[str, str]
    required: frozenset[str]
    leaves_out: bool

    def require(self, present: Iterable[str]) -> None:
        """Raise ValueError if a required column is missing."""
        missing = sorted(self.of[column] for column in self.required.difference(present))
        if missing:
            raise ValueError(f"missing column {missing[0]!r}")

    def check(self, kind: str, present: Collection[str]) -> None:
        """Raise ValueError if there is neither a key nor a value, or an unknown name; `kind` is what errors call it."""
        read = [self.of[column] for column in ("key", "value") if column in self.of]
        if not any(name in present for name in read):
            named = " or ".join(map(repr, read)) or "of keys or values is read"
            raise ValueError(f"no {kind} {named}")
        if self.leaves_out:
            return
        unknown = next((name for name in present if name not in self.of and not is_record_column(name)), None)
        if unknown is not None:
            raise ValueError(
                f"unknown {kind} {unknown!r}; {suggestion(unknown, self.of, f'{kind}s')}; "
                "with --value-column or --key-column others are left out"
            )

    def check_values(self, kind: str, present: Collection[str]) -> None:
        """Raise ValueError if there are no values, but others of which one may be meant."""
        others = [name for name in present if name not in self.of.values() and not is_record_column(name)]
        if self.leaves_out and others and "value" in self.of and self.of["value"] not in present:
            raise ValueError(
                f"no {kind} {self.of['value']!r}, but {', '.join(map(repr, others[:3]))}"
                f"{', ...' if len(others) > 3 else ''}: --value-column names that of the values; "
                "with --value-column - all values are null"
            )


def lines(file: BinaryIO) -> Iterator[tuple[str, bytes]]:
    """The lines that are not blank, each with its place.

    Raises:
        ValueError: a line is longer than `MAX_BYTES`.
    """
    number = 0
    while line := file.readline(MAX_BYTES + 1):
        number += 1
        if len(line) > MAX_BYTES:
            raise ValueError(f"line {number}: longer than {MAX_BYTES >> 20} MiB")
        if number == 1:
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if line.strip():
            yield f"line {number}", line


def elements(file: BinaryIO) -> Iterator[tuple[str, Any]]:
    """The elements of a JSON array, or JSON values that follow one another, each with its place. Read in pieces.

    Raises:
        ValueError: invalid JSON, or an element longer than `MAX_BYTES`.
    """
    text = _Text(file)
    array = text.skip_blank() == "["
    if array:
        text.at += 1
    number = 0
    while (following := text.skip_blank()) and following != "]":
        number += 1
        if array and number > 1:
            if following != ",":
                raise ValueError(f"row {number}: expected ',' or ']', found {following!r}")
            text.at += 1
            text.skip_blank()
        try:
            yield f"row {number}", text.value()
        except RecursionError:
            raise ValueError(f"row {number}: JSON is nested too deeply") from None
        except ValueError as error:
            raise ValueError(f"row {number}: {error}") from None
    if array:
        if following != "]":
            raise ValueError(f"the array is not closed after row {number}")
        text.at += 1
        following = text.skip_blank()
    if following:
        raise ValueError(f"unexpected {following!r} after row {number}")


class _Text:
    """The text of a file from the position `at` on, which the user advances."""

    def __init__(self, file: BinaryIO) -> None:
        self.at = 0
        self._file, self._text, self._ended = file, "", False
        self._decode = codecs.getincrementaldecoder("utf-8-sig")().decode

    def skip_blank(self) -> str:
        """Advance to the next character that is not blank, and return it; empty at the end."""
        while True:
            match = _BLANK.match(self._text, self.at)
            assert match is not None
            self.at = match.end()
            if self.at < len(self._text) or not self._more():
                return self._text[self.at : self.at + 1]

    def value(self) -> Any:
        """The JSON value at the current position."""
        while True:
            try:
                value, self.at = json.JSONDecoder().raw_decode(self._text, self.at)
                return value
            except json.JSONDecodeError as error:
                # A value that goes on after the text that was read ends at its end, or within a string.
                incomplete = error.pos >= len(self._text) - 16 or error.msg.startswith("Unterminated string")
                if not incomplete or not self._more():
                    raise ValueError(error.msg) from None

    def _more(self) -> bool:
        """Read at least as much as there is, so that parsing a value again takes linear time in total."""
        if self._ended:
            return False
        self._text, self.at = self._text[self.at :], 0
        if len(self._text) > MAX_BYTES:
            raise ValueError(f"longer than {MAX_BYTES >> 20} MiB")
        data = self._file.read(max(_STEP, len(self._text)))
        self._ended = not data
        try:
            self._text += self._decode(data, final=self._ended)
        except UnicodeDecodeError as error:
            raise ValueError(f"not UTF-8: a byte is 0x{error.object[error.start]:02x}") from None
        return True


def row_of_line(place: str, line: bytes, names: Names) -> Row:
    """The row of a line with a JSON object; arguments and errors as in `row_of`."""
    try:
        found = json.loads(line.decode())
    except RecursionError:
        raise ValueError(f"{place}: JSON is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"{place} {json_fault(error)}") from None
    return row_of(place, found, names)


def json_fault(error: ValueError) -> str:
    """What is wrong with one line, from an error of decoding it."""
    if isinstance(error, UnicodeDecodeError):
        return f"is not UTF-8: byte {error.start + 1} is 0x{error.object[error.start]:02x}"
    if isinstance(error, json.JSONDecodeError):
        return f"is not JSON: column {error.colno}: {error.msg}"
    return f"is not JSON: {error}"


def row_of(place: str, found: Any, names: Names) -> Row:
    """The row of a JSON object.

    Args:
        place: where the object is, for errors.
        found: the object.
        names: the names of the object's fields.

    Raises:
        ValueError: not an object, an unknown field, or one of a wrong type.
    """
    try:
        if not isinstance(found, dict):
            raise ValueError("not a JSON object")
        names.check("field", found)
        row = {column: found[name] for column, name in names.of.items() if name in found}
        row[FIELDS] = tuple(found) if names.leaves_out else ()
        for column, convert in _CONVERT.items():
            if column in row:
                row[column] = convert(names.of[column], row[column])
    except RecursionError:
        raise ValueError(f"{place}: JSON is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None
    return row


def headers_of_text(text: str | None) -> list[Row]:
    """Headers from JSON text, as in a cell of CSV."""
    try:
        return _headers("headers", json.loads(text)) if text else []
    except RecursionError:
        raise ValueError("headers: JSON is nested too deeply") from None


def _headers(name: str, pairs: Any) -> list[Row]:
    if pairs is None:
        return []
    if not isinstance(pairs, list):
        raise ValueError("headers are not a list")
    return [_header(pair) for pair in pairs]


def _header(pair: Any) -> Row:
    if not isinstance(pair, dict) or not isinstance(pair.get("key"), str):
        raise ValueError('a header must be an object with a string "key"')
    pair["key"].encode()  # raises UnicodeEncodeError for lone surrogates
    return {"key": pair["key"], "value": _content("value", pair.get("value"))}


def _content(name: str, value: Any) -> bytes | None:
    """Bytes from the JSON that `kafkacodec convert` writes."""
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict) and value.keys() == {"base64"}:
        try:
            return base64.b64decode(value["base64"], validate=True)
        except (ValueError, TypeError) as error:
            raise ValueError(f"base64: {error}") from None
    return json_line(value).encode() if isinstance(value, dict) else json.dumps(value, ensure_ascii=False).encode()


def _timestamp(name: str, value: Any) -> int | None:
    """Milliseconds since 1970, from a number or a date and time in ISO 8601 (UTC by default)."""
    if not isinstance(value, str):
        return _int64(name, value)
    try:
        time = datetime.fromisoformat(value)
    except ValueError:
        raise ValueError(f"{name} {value[:40]!r} is not a date and time such as 2024-05-01T12:00:00Z") from None
    return ((time if time.tzinfo is not None else time.replace(tzinfo=UTC)) - _EPOCH) // timedelta(milliseconds=1)


def _int64(name: str, value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{name} is not an integer")
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"{name} does not fit 64 bits")
    return value


def _partition(name: str, value: Any) -> int | None:
    number = _int64(name, value)
    if number is not None and not 0 <= number < 2**31:
        raise ValueError(f"{name} {number} is not the number of a partition")
    return number


def _name(name: str, value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise ValueError(f"{name} is not a text")
    return value


_CONVERT = {
    "key": _content,
    "value": _content,
    "headers": _headers,
    "timestamp": _timestamp,
    "offset": _int64,
    "partition": _partition,
    "topic": _name,
}
