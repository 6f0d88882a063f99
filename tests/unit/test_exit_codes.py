"""The table of exit codes: the same in the code, in --help and in the docs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kafkacodec.cli import __main__ as main
from kafkacodec.cli.app import EXIT_CODES
from kafkacodec.cli.console import ending

CODES = {main.DONE, main.BAD_INPUT, main.WRONG_USAGE, main.INTERRUPTED, main.PIPE_CLOSED}
DOCS = (Path(__file__).parents[2] / "docs/command.md").read_text()
TABLE = r"^\| (\d+) \| (.*) \|$"


def test_every_code_is_in_the_docs_and_in_the_help() -> None:
    assert [int(code) for code, _ in re.findall(TABLE, DOCS, re.M)] == sorted(CODES)
    assert [int(code) for code in re.findall(r"^  (\d+) ", EXIT_CODES, re.M)] == sorted(CODES)


@pytest.mark.parametrize(
    ("raised", "code", "printed"),
    [
        (None, main.DONE, ""),
        (OSError(5, "Input/output error", "a.log"), main.BAD_INPUT, "a.log: Input/output error"),
        (ModuleNotFoundError("No module named 'pyarrow'", name="pyarrow"), main.WRONG_USAGE, "missing package pyarrow"),
        (KeyboardInterrupt(), main.INTERRUPTED, "interrupted"),
        (BrokenPipeError(32, "Broken pipe"), main.PIPE_CLOSED, ""),
    ],
)
def test_outcomes(
    raised: BaseException | None,
    code: int,
    printed: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    def command(*arguments: object, **options: object) -> None:
        if raised is not None:
            raise raised

    monkeypatch.setattr("kafkacodec.cli.commands.verify.verify.callback", command)
    assert main.run(["verify", str(tmp_path)]) == code
    assert printed in capsys.readouterr().err


def test_an_interrupt_that_a_command_waits_for_is_no_error(monkeypatch, capsys, tmp_path) -> None:
    def follow(*arguments: object, **options: object) -> None:
        ending.by_interrupt = True
        raise KeyboardInterrupt

    monkeypatch.setattr("kafkacodec.cli.commands.verify.verify.callback", follow)
    assert main.run(["verify", str(tmp_path)]) == main.INTERRUPTED
    assert capsys.readouterr().err.strip() == ""
