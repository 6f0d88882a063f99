"""Lines to requests and responses, and back. Lines here are text without their line end; `LineReader` cuts bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kafkacodec.dialects.line._tokens import read_words
from kafkacodec.dialects.line.commands import COMMANDS, RECORD, Args, Command
from kafkacodec.dialects.line.errors import ErrorCode, LineProtocolError
from kafkacodec.errors import EncodeError

__all__ = ["Request", "Response", "parse_request", "parse_response"]

VERSION = "V1"
_SECTION_ENDS = ("|", "\n")
_SURROGATES = re.compile("[\ud800-\udfff]")
# One before the line feed would be taken for a part of the line end.
_LINE_END = "\r"


@dataclass(slots=True)
class Request:
    """A request.

    Attributes:
        correlation_id (str): any text that is not empty; the response carries it back.
        command (str): a name in the table of commands.
        args (dict): the arguments by name; options that are not given are None.
    """

    correlation_id: str
    command: str
    args: Args = field(default_factory=dict)

    def encode(self, *, commands: Mapping[str, Command] = COMMANDS) -> str:
        """The line, without a line end.

        Raises:
            EncodeError: an unknown command, a missing argument, or a value that a line cannot hold.
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
                    raise EncodeError("is missing", path=f"args.{name}")
                continue
            try:
                words.append(kind.write(value))
            except (TypeError, ValueError) as e:
                raise EncodeError(str(e), path=f"args.{name}") from None
        return _written(f"{VERSION}|{self.correlation_id}|{self.command}|{' '.join(words)}")


@dataclass(slots=True)
class Response:
    """A response, good or bad.

    Attributes:
        correlation_id (str): that of the request; ``"0"`` where the request's envelope could not be read.
        ok (bool): whether the request succeeded.
        payload (str | None): the text of a success, as it stands in the line.
        fields (dict): the payload by key; filled where the command was given to `parse_response`.
        code (str | None): the error code; `ErrorCode` names those of V1.
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
        """The response to a request that succeeded, its payload made from `fields`.

        Raises:
            EncodeError: a field that is missing or that the payload cannot hold.
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
                raise EncodeError("is missing", path=key)
            if shape.prepare is not None and len(words) == len(shape.payload):
                fields = shape.prepare(fields)
        return cls(correlation_id, True, " ".join(words) or None, fields)

    @classmethod
    def error(cls, correlation_id: str, code: str, message: str) -> Response:
        """The response to a request that failed."""
        return cls(correlation_id, False, code=code, message=message)

    def encode(self) -> str:
        """The line, without a line end.

        Raises:
            EncodeError: a section that is missing, or holds what would end it.
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
        raise EncodeError("is empty", path=path)
    if any(end in text for end in _SECTION_ENDS):
        raise EncodeError(f"{text!r} holds a bar or a line end", path=path)


def _check_text(text: str | None, path: str) -> None:
    if text is None or "\n" in text:
        raise EncodeError("is missing" if text is None else f"{text!r} holds a line end", path=path)


def _written(line: str) -> str:
    """The finished line, where it comes back from UTF-8 and from its line end as it was."""
    if line[-1:] == _LINE_END:
        raise EncodeError("ends in a carriage return", path="line")
    if not _is_text(line):
        raise EncodeError("holds surrogates, which UTF-8 has none of", path="line")
    return line


def _is_text(line: str) -> bool:
    return line.isascii() or _SURROGATES.search(line) is None


def parse_request(
    line: str, *, replication_factor: int | None = None, commands: Mapping[str, Command] = COMMANDS
) -> Request:
    """Read a request line and check its envelope and its arguments.

    Args:
        line: the line without its line end.
        replication_factor: bounds the replica id of REPLICA_FETCH; None for no check.
        commands: the commands to know; add to a copy of `COMMANDS` for new ones.

    Raises:
        LineProtocolError: with code BAD_REQUEST and id ``"0"`` for the envelope, UNKNOWN_COMMAND or BAD_REQUEST with
            the request's id for the rest.
    """
    if not _is_text(line):
        raise _bad_envelope("holds surrogates: it was not UTF-8", "line")
    sections = line.split("|")
    if len(sections) != 4 or "\n" in line:
        raise _bad_envelope(
            f"{len(sections)} sections on a line, not 4" if len(sections) != 4 else "a line end", "line"
        )
    version, correlation_id, name, text = sections
    if version != VERSION:
        raise _bad_envelope("the version is not V1", "version")
    if not correlation_id or not name:
        raise _bad_envelope("is empty", "command" if correlation_id else "correlation_id")
    shape = commands.get(name)
    if shape is None:
        raise LineProtocolError(
            f"unknown command {name[:40]!r}",
            code=ErrorCode.UNKNOWN_COMMAND,
            correlation_id=correlation_id,
            path="command",
        )
    if text[-1:] == _LINE_END:
        raise _bad_argument(correlation_id, "a carriage return at the end", "args")
    words = text.split(" ") if text else []
    count = len(words)
    if not shape.required <= count <= len(shape.slots):
        raise _bad_argument(correlation_id, f"{count} arguments, {name} takes {_range(shape)}", "args")
    try:
        args = read_words(shape.names, shape.readers, words)
    except ValueError as e:
        raise _bad_argument(correlation_id, str(e), f"args.{_first_bad(shape, words)}") from None
    if RECORD in args:
        args["key"], args["value"] = args.pop(RECORD)
    if count < len(shape.slots):
        args[shape.names[count]] = None
    if replication_factor is not None and "replica_id" in args and not 1 <= args["replica_id"] < replication_factor:
        reason = f"{args['replica_id']} is not in 1 to {replication_factor - 1}"
        raise _bad_argument(correlation_id, reason, "args.replica_id")
    return Request(correlation_id, name, args)


def _range(shape: Command) -> str:
    return f"{shape.required}" if shape.required == len(shape.slots) else f"{shape.required} to {len(shape.slots)}"


def _bad_envelope(reason: str, section: str) -> LineProtocolError:
    return LineProtocolError(reason, code=ErrorCode.BAD_REQUEST, path=section)


def _first_bad(shape: Command, words: list[str]) -> str:
    """The name of the first word that cannot be read."""
    for i, name in enumerate(shape.names):
        try:
            read_words(shape.names, shape.readers, words[: i + 1])
        except ValueError:
            return name
    return ""


def _bad_argument(correlation_id: str, reason: str, path: str) -> LineProtocolError:
    return LineProtocolError(reason, code=ErrorCode.BAD_REQUEST, correlation_id=correlation_id, path=path)


def parse_response(line: str, command: str | None = None, *, commands: Mapping[str, Command] = COMMANDS) -> Response:
    """Read a response line.

    Args:
        line: the line without its line end. Bars in a payload or an error's text belong to it.
        command: that of the request; the payload is then parsed into `Response.fields`. Keys that the command's
            table lacks are kept as text.
        commands: the commands to know.

    Raises:
        LineProtocolError: the envelope, or a payload that is not made of ``key=value`` words; its code is None.
    """
    if not _is_text(line):
        raise _bad_response("holds surrogates: it was not UTF-8", "0", "line")
    version, _, rest = line.partition("|")
    correlation_id, _, rest = rest.partition("|")
    status, bar, rest = rest.partition("|")
    if version != VERSION:
        raise _bad_response("the version is not V1", "0", "version")
    if not correlation_id:
        raise _bad_response("is empty", "0", "correlation_id")
    if "\n" in line or line[-1:] == _LINE_END:
        raise _bad_response("holds a line end", correlation_id, "line")
    if status == "OK":
        payload = rest if bar else None
        fields = _parse_payload(payload, command, commands, correlation_id) if payload and command is not None else {}
        return Response(correlation_id, True, payload, fields)
    if status != "ERR":
        raise _bad_response(f"{status[:40]!r} is neither OK nor ERR", correlation_id, "status")
    code, bar, message = rest.partition("|")
    if not code or not bar:
        raise _bad_response("an error has a code and a message", correlation_id, "code")
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
            raise _bad_response("is there twice", correlation_id, f"payload.{key}")
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
