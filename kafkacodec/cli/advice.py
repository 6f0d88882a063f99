"""What messages of the library advise, in the words of the command that prints them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from kafkacodec import errors
from kafkacodec.errors import DecodeError, MissingOffsets, SchemaError

if TYPE_CHECKING:
    import click

__all__ = ["advised", "in_words", "of_file", "options_of", "wrong_usage"]

# The name of an error code where a message has nothing but that, also for one of several items.
_CODE = re.compile(r"(?:^|(?<=: ))[A-Z0-9]+(?:_[A-Z0-9]+)+(?=$|;)", re.MULTILINE)
_GAPS = "; gaps='accept' ignores gaps"
_SKIP = "; --on-error skip reads what follows"
# Advice about options of Spark's source, by which exports read.
_OF_SPARK = re.compile(
    r"; (?:mode=PERMISSIVE skips and logs damage|failOnDataLoss=false reads on|on_error='null' reads [^;]*)"
)
_NO_PATH = re.compile(r"Path '([\w.-]*[\w-])' does not exist\.$")  # what may be a topic
_IN_SEGMENT = re.compile(r"\.log(?:$|\W)")
_OF_VALUE = re.compile(r"offset \d+: (?:key|value)(?:$|\W)")


# Command -> option of another tool -> what to write for it.
_LISTEN = "use --listen kafka://127.0.0.1:9092"
_INSTEAD: Mapping[str, Mapping[str, str]] = {
    "serve": {
        **dict.fromkeys(("--port", "-p", "--host", "--bind", "--bootstrap", "-b", "--bootstrap-server"), _LISTEN),
        **dict.fromkeys(("--partitions", "--topics", "-t"), "use --topic NAME:PARTITIONS"),
        **dict.fromkeys(("--data-dir", "--dir", "--directory", "--log-dir", "-d"), "use --data DIRECTORY"),
    },
    "consume": {
        "--from-beginning": "not needed: it starts at the beginning",
        **dict.fromkeys(("--max-messages", "--max-records", "--count"), "use --limit N"),
        **dict.fromkeys(("--timeout", "--timeout-ms"), "use --exit-at-end"),
        "-u": "not needed: output is flushed when there is no more for now",
    },
    "produce": dict.fromkeys(("--file", "--input", "-i", "-l"), "name the files after the topic"),
    "topics": dict.fromkeys(("--list", "--describe"), "not needed")
    | dict.fromkeys(("--create", "--delete", "--alter"), "use kafkacodec admin topics"),
    "groups": dict.fromkeys(("--list",), "not needed")
    | {"--describe": "use kafkacodec lag"}
    | dict.fromkeys(("--delete", "--reset-offsets"), "use kafkacodec admin groups"),
}
# kcat's modes, and the commands for them.
_MODES: Mapping[str, tuple[str, str]] = {
    "-C": ("consume", "consume -b HOST:PORT TOPIC"),
    "-P": ("produce", "produce -b HOST:PORT TOPIC"),
    "-L": ("topics", "topics -b HOST:PORT --partitions"),
    "-Q": ("consume", "consume -b HOST:PORT TOPIC --start-time TIME"),
    "-G": ("consume", "consume -b HOST:PORT -G GROUP TOPIC"),
}
_OF_BROKERS: Mapping[str, str] = dict.fromkeys(
    ("--broker-list", "--brokers", "--broker", "--server", "--host"), "use --bootstrap HOST:PORT"
)


def wrong_usage(error: click.UsageError) -> str:
    """What is wrong with the arguments. For an option that only other tools have, what to write in its place."""
    import click

    topic = _NO_PATH.search(error.message) if isinstance(error, click.BadParameter) else None
    if topic is not None and error.ctx is not None and _takes(error.ctx.command, "--topic"):
        return f"{error.format_message()} For a topic: --topic {topic[1]}"
    if not isinstance(error, click.NoSuchOption) or error.ctx is None:
        return error.format_message()
    command = error.ctx.command
    known = _INSTEAD.get(command.name or "", {})
    if _takes(command, "--bootstrap"):
        known = {**_OF_BROKERS, **known}
    found = known.get(error.option_name) or _mode(error.option_name, error.ctx)
    return f"{error.message.rstrip('.')}; {found}" if found else error.format_message()


def _mode(option: str, context: click.Context) -> str | None:
    """What to write for an option that chooses kcat's mode, or begins a call of kcat without one."""
    name, instead = _MODES.get(option, ("", ""))
    if name and name == context.command.name and option not in ("-Q", "-G"):
        return f"not needed: kafkacodec {name} does that"
    if context.parent is None and option in ("-b", "-t", "-F", "-X"):
        return f"a command comes first, such as: kafkacodec {_MODES['-C'][1]}"
    return f"use kafkacodec {instead}" if instead else None


def _takes(command: click.Command, option: str) -> bool:
    return any(option in parameter.opts for parameter in command.params)


def in_words(message: str) -> str:
    """A message in which a broker's error codes are words, with the name in parentheses."""
    found = set(_CODE.findall(message))
    known = {code.name for code in errors.CODES.values()} if found else ()

    def worded(code: re.Match[str]) -> str:
        return f"{code[0].replace('_', ' ').lower()} ({code[0]})" if code[0] in known else code[0]

    return _CODE.sub(worded, message) if found else message


def options_of(application: click.Group, arguments: Collection[str]) -> set[str]:
    """The options of the command that the arguments name first, such as ``--gaps``."""
    import click

    context = click.Context(application)
    name = next((argument for argument in arguments if not argument.startswith("-")), "")
    command = application.get_command(context, name)
    return {option for parameter in getattr(command, "params", ()) for option in parameter.opts}


def advised(message: str | Exception, options: Collection[str] = ()) -> str:
    """A message with advice as a command with these options takes it; without what it does not take."""
    text = str(message).replace(_GAPS, "; --gaps accept ignores gaps" if "--gaps" in options else "")
    if isinstance(message, str) and "--on-error" in options:  # of a task, with nothing else of its exception
        text = text.replace("; mode=PERMISSIVE skips and logs damage", _SKIP)
    text = _OF_SPARK.sub("", text)
    if "have the number of a schema" in text and "--schemas" in options:
        text += "; --schemas names the registry"
    path = message.path if isinstance(message, DecodeError | SchemaError) else None
    if path and _OF_VALUE.search(path):
        if "--on-value-error" in options:
            text += "; --on-value-error null makes such values null"
    elif path and "--on-error" in options and _in_segment(message, path):
        text += _SKIP
    return text


def of_file(error: OSError, text: str, options: Collection[str]) -> str:
    """The text of an error of the system, with advice as `advised` has it, if the file is a segment."""
    from kafkacodec.log.storage.paths import is_unreadable

    path = error.filename
    can_skip = isinstance(path, str) and _IN_SEGMENT.search(path) is not None and is_unreadable(path, error)
    return text + _SKIP if can_skip and "--on-error" in options else text


def _in_segment(error: str | Exception, path: str) -> bool:
    """Whether an error is damage in a segment, with a path, that readers can skip. Messages about gaps have advice."""
    return (
        _IN_SEGMENT.search(path) is not None
        and isinstance(error, DecodeError)
        and not isinstance(error, MissingOffsets)
    )
