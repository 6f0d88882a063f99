"""Every example of README and of the docs, in Python and in the shell, with the installed wheel in an empty directory.

`spark-cluster.md` has tests of its own, since its recipes start clusters; the examples of the clients, too.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from tests import wheel
from tests.page_examples import BLOCK, assert_printed, program
from tests.wheel import ROOT

PAGES = {str(page.relative_to(ROOT)): page for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))}
WITH_PROMPTS = [name for name, page in PAGES.items() if ">>> " in page.read_text()]
COMMAND = re.compile(r"^    (?:\$ )?((?:[^\n]* \| )?kafkacodec [^\n]+)$", re.M)
PYTHON = re.compile(r"^```python\n(.*?)^```", re.M | re.S)
INCOMPLETE = re.compile(
    r"\.\.\.|://|[|<>]|--follow|--schemas|body\.|request\.bin|--protocol|\b[A-Z]{2,}\b|\bA B\b|--topic T\b"
)
FEWEST_COMMANDS = 15

PROMPTS = """
import doctest, sys, kafkacodec
from pathlib import Path
assert Path(kafkacodec.__file__).is_relative_to(sys.prefix), kafkacodec.__file__
page = Path(sys.argv[1]).read_text()
examples = doctest.DocTestParser().get_doctest(page, {"__name__": "__main__"}, sys.argv[1], sys.argv[1], 0)
result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(examples)
sys.exit(result.failed > 0 or result.attempted == 0)
"""


class Place(NamedTuple):
    """A directory that was empty, and the Python that the wheel is installed for."""

    directory: Path
    python: Path

    def run(self, *command: object, seconds: int = 120) -> subprocess.CompletedProcess[str]:
        """Run in the directory, with the command of the wheel first on the path."""
        path = f"{self.python.parent}{os.pathsep}{os.environ['PATH']}"
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        return subprocess.run(
            [*map(str, command)],
            cwd=self.directory,
            env=environment | {"PATH": path, "COLUMNS": "100"},
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheel.install(tmp_path_factory.mktemp("installed") / "venv")


@pytest.fixture
def place(python: Path, tmp_path: Path) -> Place:
    return Place(tmp_path, python)


@pytest.mark.parametrize("page", WITH_PROMPTS)
def test_prompts(place: Place, page: str) -> None:
    done = place.run(place.python, "-c", PROMPTS, PAGES[page])
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.spark
def test_spark(place: Place) -> None:
    blocks = PYTHON.findall(PAGES["docs/spark.md"].read_text())
    assert len(blocks) > 8
    checks = "assert exploded.count() == 282, exploded.count()\nspark.stop()\n"
    script = place.directory / "page.py"
    script.write_text("\n".join([*blocks, checks]))
    done = place.run(place.python, script, seconds=500)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "282 records," in done.stdout


@pytest.mark.spark
def test_cookbook(place: Place) -> None:
    """Its recipes without a broker; those with one are run with the pages of the clients."""
    blocks = BLOCK.findall(PAGES["docs/cookbook.md"].read_text())
    alone = [block for block in blocks if "localhost:9092" not in block[0]]
    assert (len(blocks), len(alone)) == (12, 10)
    script = place.directory / "page.py"
    script.write_text(program(alone))
    done = place.run(place.python, script)
    assert done.returncode == 0, done.stderr[-3000:]
    assert_printed(alone, done.stdout)


def commands(page: str) -> list[str]:
    """The command lines of a page, without the descriptions beside them."""
    return [re.split(r"(?<!\\) {2,}(?!\\)", line)[0] for line in COMMAND.findall(PAGES[page].read_text())]


def is_complete(line: str) -> bool:
    """Whether a line can be run: others have placeholders, files of the reader, other programs, or need a broker."""
    return (
        INCOMPLETE.search(line) is None
        and " -b " not in line
        and line not in ("kafkacodec demo", "kafkacodec message decode")
    )


WITH_COMMANDS = [page for page in PAGES if commands(page)]


def test_there_are_commands_to_run() -> None:
    assert sum(is_complete(line) for page in WITH_COMMANDS for line in commands(page)) >= FEWEST_COMMANDS


@pytest.mark.parametrize("page", WITH_COMMANDS)
def test_commands(place: Place, page: str) -> None:
    made = place.run("kafkacodec", "sample", "data")
    assert made.returncode == 0, made.stderr
    for line in commands(page):
        if is_complete(line):
            here = re.sub(r"/var/lib/kafka/data|/(data|backup)(/kafka)?\b", "data", line)
            done = place.run("bash", "-c", here)
            assert done.returncode == 0, f"{line}\n{done.stderr}"
            assert "Traceback" not in done.stderr
        else:
            assert_known_options(place, line)


def assert_known_options(place: Place, line: str) -> None:
    """The command of a line exists, and has the options that the line names."""
    _, *words = shlex.split(line[line.index("kafkacodec ") :].split("|")[0].replace("'", "").split(">")[0])
    group = words[:2] if words[0] == "message" else words[:1]
    for command in group[-1].split("|"):
        shown = place.run("kafkacodec", *group[:-1], command, "--help")
        assert shown.returncode == 0, f"{line}\n{shown.stderr}"
        for word in words:
            if word.startswith("-") and word != "-" and not word[1:].isdigit():
                assert word in shown.stdout, f"{line}: {word}"
