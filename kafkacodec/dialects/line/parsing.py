"""Parses and encodes requests and responses. Lines are text without line end; `LineReader` splits bytes into lines."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kafkacodec.datatypes import dataclass, field
from kafkacodec.dialects.line._tokens import read_words
from kafkacodec.dialects.line.commands import COMMANDS, RECORD, Args, Command
from kafkacodec.dialects.line.errors import ErrorCode, LineProtocolError
from kafkacodec.errors import EncodeError
from kafkacodec.signatures import suggests_options

__all__ = ["Request", "Response", "parse_request", "parse_response"]

VERSION = "V1"
_SECTION_ENDS = ("|", "\n")
_SURROGATES = re.compile("[\ud800-\udfff]")
# Before the line feed it is read as part of the line end.
_LINE_END = "\r"


@dataclass(slots=True)
class Request:
    """A request.

    Attributes:
        correlation_id (str): any text that is not empty; the response has the same.
        command (str): the name of the command.
        args (dict): the arguments by name; missing options are None.
    """

    correlation_id: str
    command: str
    args: Args = field(default_factory=dict)

    def encode(self, *, commands: Mapping[str, Command] = COMMANDS) -> str:
        """The line, without a line end.

        Raises:
            EncodeError: an unknown command, a missing argument, or a value that a line cannot represent.
        """
        shape = commands.get(self.command)
        if shape is None:
            raise EncodeError(f"unknown command {self.command!r}", path="command")
        _check_section(self.correlation_id, "correlation_id")
        args = self.args
        if RECORD in shape.names and "key" in args and "value" in args:
            args = {**args, RECORD: (args["key"], args["value"])}
        words = []
        for position, (name, kind) in enumerate(shape.slots):
            value = args.get(name)
            if value is None:
                if position < shape.required:
                    raise EncodeError("missing argument", path=f"args.{name}")
                continue
            try:
                words.append(kind.write(value))
            except (TypeError, ValueError) as e:
                raise EncodeError(str(e), path=f"args.{name}") from None
        return _written(f"{VERSION}|{self.correlation_id}|{self.command}|{' '.join(words)}")


@dataclass(slots=True)
class Response:
    """A response.

    Attributes:
        correlation_id (str): that of the request; ``"0"`` if the request's envelope was invalid.
        ok (bool): whether the request succeeded.
        payload (str | None): the text of a successful response.
        fields (dict): the payload by key; empty unless `parse_response` was given the command.
        code (str | None): the error code; `ErrorCode` has those of V1.
        message (str | None): the error's free text.
    """

    correlation_id: str
    ok: bool
    payload: str | None = None
    fields: dict[str, Any] = field(default_factory=dict)
    code: str | None = None
    message: str | None = None

    @classmethod
    def success(
        cls, correlation_id: str, command: str, fields: dict[str, Any], *, commands: Mapping[str, Command] = COMMANDS
    ) -> Response:
        """Return the response to a successful request, with a payload of `fields`.

        Raises:
            EncodeError: a missing field, or one that the payload cannot represent.
        """
        shape = commands[command]
        words = []
        for key, kind in shape.every_key.items():
            if key in fields:
                try:
                    words.append(f"{key}={kind.write(fields[key])}")
                except (KeyError, TypeError, ValueError) as e:
                    raise EncodeError(str(e), path=key) from None
            elif key in shape.payload:
                raise EncodeError("missing field", path=key)
            if shape.prepare is not None and len(words) == len(shape.payload):
                fields = shape.prepare(fields)
        return cls(correlation_id, True, " ".join(words) or None, fields)

    @classmethod
    def error(cls, correlation_id: str, code: str, message: str) -> Response:
        """Return the response to a failed request."""
        return cls(correlation_id, False, code=code, message=message)

    def encode(self) -> str:
        """The line, without a line end.

        Raises:
            EncodeError: a missing section, or one that contains a separator.
        """
        _check_section(self.correlation_id, "correlation_id")
        if self.ok:
            if self.payload is None:
                return f"{VERSION}|{self.correlation_id}|OK"
            _check_text(self.payload, "payload")
            return _written(f"{VERSION}|{self.correlation_id}|OK|{self.payload}")
        _check_section(self.code, "code")
        _check_text(self.message, "message")
        return _written(f"{VERSION}|{self.correlation_id}|ERR|{self.code}|{self.message}")


def _check_section(text: str | None, path: str) -> None:
    if not text:
        raise EncodeError("empty section", path=path)
    if any(end in text for end in _SECTION_ENDS):
        raise EncodeError(f"{text!r} contains a bar or a line end", path=path)


def _check_text(text: str | None, path: str) -> None:
    if text is None or "\n" in text:
        raise EncodeError("missing text" if text is None else f"{text!r} contains a line end", path=path)


def _written(line: str) -> str:
    """The line, if it survives UTF-8 and the line end unchanged."""
    if line[-1:] == _LINE_END:
        raise EncodeError("ends in a carriage return", path="line")
    if not _is_text(line):
        raise EncodeError("contains surrogates, which UTF-8 cannot encode", path="line")
    return line


def _is_text(line: str) -> bool:
    if not isinstance(line, str):
        raise TypeError(f"a line must be a str, not {type(line).__name__}")
    return line.isascii() or _SURROGATES.search(line) is None


@suggests_options
def parse_request(
    line: str, *, replication_factor: int | None = None, commands: Mapping[str, Command] = COMMANDS
) -> Request:
    """Parse a request line and check its envelope and its arguments.

    Args:
        line: the line without its line end.
        replication_factor: limits the replica id of REPLICA_FETCH; None for no check.
        commands: the known commands; for new ones, add to a copy of `COMMANDS`.

    Raises:
        LineProtocolError: with code BAD_REQUEST and id ``"0"`` for the envelope, UNKNOWN_COMMAND or BAD_REQUEST with
            the request's id for the rest.
    """
    if not _is_text(line):
        raise _bad_envelope("contains surrogates: not valid UTF-8", "line")
    sections = line.split("|")
    if len(sections) != 4 or "\n" in line:
        raise _bad_envelope(
            f"expected 4 sections, got {len(sections)}" if len(sections) != 4 else "contains a line end", "line"
        )
    version, correlation_id, name, text = sections
    if version != VERSION:
        raise _bad_envelope("version is not V1", "version")
    if not correlation_id or not name:
        raise _bad_envelope("empty section", "command" if correlation_id else "correlation_id")
    shape = commands.get(name)
    if shape is None:
        raise LineProtocolError(
            f"unknown command {name[:40]!r}",
            code=ErrorCode.UNKNOWN_COMMAND,
            correlation_id=correlation_id,
            path="command",
        )
    if text[-1:] == _LINE_END:
        raise _bad_argument(correlation_id, "carriage return at the end", "args")
    words = text.split(" ") if text else []
    count = len(words)
    if not shape.required <= count <= len(shape.slots):
        raise _bad_argument(correlation_id, f"{name} takes {_range(shape)} arguments, got {count}", "args")
    try:
        args = read_words(shape.names, shape.readers, words)
    except ValueError as e:
        raise _bad_argument(correlation_id, str(e), f"args.{_first_bad(shape, words)}") from None
    if RECORD in args:
        args["key"], args["value"] = args.pop(RECORD)
    if count < len(shape.slots):
        args[shape.names[count]] = None
    if replication_factor is not None and "replica_id" in args and not 1 <= args["replica_id"] < replication_factor:
        reason = f"must be 1 to {replication_factor - 1}, not {args['replica_id']}"
        raise _bad_argument(correlation_id, reason, "args.replica_id")
    return Request(correlation_id, name, args)


def _range(shape: Command) -> str:
    return f"{shape.required}" if shape.required == len(shape.slots) else f"{shape.required} to {len(shape.slots)}"


def _bad_envelope(reason: str, section: str) -> LineProtocolError:
    return LineProtocolError(reason, code=ErrorCode.BAD_REQUEST, path=section)


def _first_bad(shape: Command, words: list[str]) -> str:
    """The name of the first invalid word."""
    for i, name in enumerate(shape.names):
        try:
            read_words(shape.names, shape.readers, words[: i + 1])
        except ValueError:
            return name
    return ""


def _bad_argument(correlation_id: str, reason: str, path: str) -> LineProtocolError:
    return LineProtocolError(reason, code=ErrorCode.BAD_REQUEST, correlation_id=correlation_id, path=path)


def parse_response(line: str, command: str | None = None, *, commands: Mapping[str, Command] = COMMANDS) -> Response:
    """Parse a response line.

    Args:
        line: the line without its line end. A payload or an error's text may contain bars.
        command: that of the request; if given, the payload is parsed into `Response.fields`. The values of unknown keys
            are text.
        commands: the known commands.

    Raises:
        LineProtocolError: an invalid envelope, or a payload that does not consist of ``key=value`` words; its code is
            None.
    """
    if not _is_text(line):
        raise _bad_response("contains surrogates: not valid UTF-8", "0", "line")
    version, _, rest = line.partition("|")
    correlation_id, _, rest = rest.partition("|")
    status, bar, rest = rest.partition("|")
    if version != VERSION:
        raise _bad_response("version is not V1", "0", "version")
    if not correlation_id:
        raise _bad_response("empty section", "0", "correlation_id")
    if "\n" in line or line[-1:] == _LINE_END:
        raise _bad_response("contains a line end", correlation_id, "line")
    if status == "OK":
        payload = rest if bar else None
        fields = _parse_payload(payload, command, commands, correlation_id) if payload and command is not None else {}
        return Response(correlation_id, True, payload, fields)
    if status != "ERR":
        raise _bad_response(f"{status[:40]!r} is neither OK nor ERR", correlation_id, "status")
    code, bar, message = rest.partition("|")
    if not code or not bar:
        raise _bad_response("an error needs a code and a message", correlation_id, "code")
    return Response(correlation_id, False, code=code, message=message)


def _parse_payload(payload: str, command: str, commands: Mapping[str, Command], correlation_id: str) -> dict[str, Any]:
    shape = commands.get(command)
    kinds = shape.every_key if shape is not None else {}
    fields: dict[str, Any] = {}
    for word in payload.split(" "):
        key, equals, text = word.partition("=")
        if not key or not equals:
            raise _bad_response(f"{word[:40]!r} is not key=value", correlation_id, "payload")
        if key in fields:
            raise _bad_response("duplicate key", correlation_id, f"payload.{key}")
        kind = kinds.get(key)
        try:
            fields[key] = text if kind is None or kind.read is None else kind.read(text)
        except ValueError as e:
            raise _bad_response(str(e), correlation_id, f"payload.{key}") from None
    if shape is not None and shape.refine is not None:
        try:
            shape.refine(fields, payload)
        except ValueError as e:
            raise _bad_response(str(e), correlation_id, "payload") from None
    return fields


def _bad_response(reason: str, correlation_id: str, path: str) -> LineProtocolError:
    return LineProtocolError(reason, code=None, correlation_id=correlation_id, path=path)
