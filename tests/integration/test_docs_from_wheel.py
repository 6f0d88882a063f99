"""Every example of README and of the docs, in Python and in the shell, with the installed wheel in an empty directory.

Those with prompts, commands, and the Spark of README run in an environment with exactly what the install lines above
them on their page name. `spark-cluster.md` has tests of its own, since its recipes start clusters; the examples of the
clients, too.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests import wheel
from tests.integration import ready_python
from tests.page_examples import BLOCK, assert_printed, program
from tests.wheel import ROOT

PAGES = {str(page.relative_to(ROOT)): page for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))}
WITH_PROMPTS = [name for name, page in PAGES.items() if ">>> " in page.read_text()]
INSTALL = re.compile(r"^    pip install (.+)$", re.M)
COMMAND = re.compile(r"^    (?:\$ )?((?:[^\n]* \| )?kafkacodec [^\n]+)$", re.M)
INCOMPLETE = re.compile(
    r"\.\.\.|://|[|<>]|--follow|--schemas|body\.|request\.bin|--protocol|\b[A-Z]{2,}\b|\bA B\b|--topic T\b"
)
FEWEST_COMMANDS = 15

# Every page with prompts, in a directory of its own; then which of them failed.
PROMPTS = """
import doctest, os, sys, kafkacodec
from pathlib import Path
assert Path(kafkacodec.__file__).is_relative_to(sys.prefix), kafkacodec.__file__
start, failed = Path.cwd(), []
for number, page in enumerate(sys.argv[1:]):
    os.chdir(start)
    os.mkdir(str(number))
    os.chdir(str(number))
    examples = doctest.DocTestParser().get_doctest(Path(page).read_text(), {"__name__": "__main__"}, page, page, 0)
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(examples)
    failed += [page] if result.failed or not result.attempted else []
sys.exit(", ".join(failed) or None)
"""

# The help of each command in a list in JSON, by the command.
HELP = """
import contextlib, io, json, sys
from kafkacodec.cli.__main__ import run
shown = {}
for words in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as text:
        code = run([*words, "--help"])
    shown[" ".join(words)] = code, text.getvalue()
print(json.dumps(shown))
"""


class Place(NamedTuple):
    """A directory that was empty, and the Python that the wheel is installed for."""

    directory: Path
    python: Path

    def run(self, *command: object, seconds: int = 120, **more: str) -> subprocess.CompletedProcess[str]:
        """Run in the directory, with the command of the wheel first on the path; `more` are variables."""
        path = f"{self.python.parent}{os.pathsep}{os.environ['PATH']}"
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        return subprocess.run(
            [*map(str, command)],
            cwd=self.directory,
            env=environment | {"PATH": path, "COLUMNS": "100"} | more,
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


Packages = frozenset[str]


@pytest.fixture(scope="module")
def with_exactly(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Packages], Path]:
    """The Python of an environment with exactly some packages and what they require."""

    @cache
    def made(packages: Packages) -> Path:
        return wheel.install_exactly(tmp_path_factory.mktemp("exactly") / "venv", packages)

    return made


def parts(page: str) -> list[tuple[Packages, str]]:
    """What is on a page between its install lines, each with all that the reader has installed there."""
    first, *rest = INSTALL.split(PAGES[page].read_text())
    found, packages = [(frozenset({"kafkacodec"}), first)], frozenset({"kafkacodec"})
    for line, text in zip(rest[::2], rest[1::2], strict=True):
        words = (re.sub(r"^\.", "kafkacodec", word) for word in shlex.split(line.split("  ")[0]))
        packages |= set(words)
        found.append((packages, text))
    return found


def pages_with_prompts() -> dict[Packages, list[str]]:
    """Pages up to the end of a part with prompts, which may use what earlier parts made, by what is installed."""
    found: dict[Packages, list[str]] = {}
    for page in WITH_PROMPTS:
        read = ""
        for packages, text in parts(page):
            read += text
            if ">>> " in text:
                found.setdefault(packages, []).append(f"<!-- {page} -->\n{read}")
    return found


def test_install_lines_are_read() -> None:
    arrow = frozenset({"kafkacodec", "kafkacodec[cli,arrow]"})
    assert {frozenset({"kafkacodec"}), arrow, arrow | {"kafkacodec[values]"}} <= pages_with_prompts().keys()
    assert parts("README.md")[-1][0] == arrow | {f"kafkacodec[{extra}]" for extra in ("values", "spark", "all")}


@pytest.mark.parametrize("packages", pages_with_prompts(), ids=lambda packages: ",".join(sorted(packages)))
def test_prompts(with_exactly: Callable[[Packages], Path], tmp_path: Path, packages: Packages) -> None:
    files = []
    for number, text in enumerate(pages_with_prompts()[packages]):
        files.append(tmp_path / f"page{number}.md")
        files[-1].write_text(text)
    place = Place(tmp_path, with_exactly(packages))
    done = place.run(place.python, "-c", PROMPTS, *files, seconds=500)
    assert done.returncode == 0, done.stdout + done.stderr


def test_pandas_and_polars_are_asked_for_by_name(with_exactly: Callable[[Packages], Path], tmp_path: Path) -> None:
    place = Place(tmp_path, with_exactly(frozenset({"kafkacodec", "kafkacodec[cli,arrow]"})))
    for name in ("pandas", "polars"):
        done = place.run(place.python, "-c", f"import kafkacodec as kc; kc.sample().topic('orders').to_{name}()")
        assert done.stderr.endswith(f"ModuleNotFoundError: {name} is not installed: pip install {name}\n")


def test_an_older_python_is_refused_before_anything_is_compiled() -> None:
    start = "import sys; sys.version_info, sys.version = (3, 10, 4), '3.10.4 (main)'; sys.modules['Cython'] = None\n"
    code = start + (ROOT / "setup.py").read_text()
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "kafkacodec needs Python 3.11 or later; this is 3.10.4\n")


@pytest.mark.spark
def test_spark_of_readme(with_exactly: Callable[[Packages], Path], tmp_path: Path) -> None:
    (packages, text) = parts("README.md")[-2]
    assert "kafkacodec[spark]" in packages
    blocks = BLOCK.findall(text)
    script = tmp_path / "page.py"
    script.write_text(f"{program(blocks)}\nspark.stop()\n")
    place = Place(tmp_path, with_exactly(frozenset({"kafkacodec[spark]"})))
    done = place.run(place.python, script, seconds=500)
    assert done.returncode == 0, done.stderr[-3000:]
    assert_printed(blocks, done.stdout)


@pytest.mark.spark
def test_spark_and_cookbook(place: Place) -> None:
    """The recipes of the cookbook without a broker (tests of clients run the others), and pages on Spark."""
    recipes = BLOCK.findall(PAGES["docs/cookbook.md"].read_text())
    alone = [block for block in recipes if "localhost:9092" not in block[0]]
    assert (len(recipes), len(alone)) == (13, 11)
    of_spark = BLOCK.findall(PAGES["docs/spark.md"].read_text())
    assert len(of_spark) > 8
    rest = "".join(PAGES[f"docs/{page}.md"].read_text() for page in ("spark-sql", "values"))
    more = BLOCK.findall(rest)
    assert len(more) == 6
    blocks = [*alone, *of_spark, ("assert exploded.count() == 282, exploded.count()\n", ""), *more]
    script = place.directory / "page.py"
    script.write_text(f"{program(blocks)}\nspark.stop()\n")
    done = place.run(place.python, script, seconds=500, **ready_python.variables(str(place.python)))
    assert done.returncode == 0, done.stderr[-3000:]
    assert_printed(blocks, done.stdout)
    assert "282 records," in done.stdout


def commands(page: str) -> list[str]:
    """The command lines of a page."""
    return lines_of(PAGES[page].read_text())


def lines_of(text: str) -> list[str]:
    """The command lines of a text, without the descriptions beside them."""
    return [re.split(r"(?<!\\) {2,}(?!\\)", line)[0] for line in COMMAND.findall(text)]


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


@pytest.fixture(scope="module")
def sample(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = Place(tmp_path_factory.mktemp("sample"), python)
    made = place.run("kafkacodec", "sample", "data")
    assert made.returncode == 0, made.stderr
    return place.directory / "data"


@pytest.mark.parametrize("page", [page for page in WITH_COMMANDS if any(map(is_complete, commands(page)))])
def test_commands(with_exactly: Callable[[Packages], Path], sample: Path, tmp_path: Path, page: str) -> None:
    shutil.copytree(sample, tmp_path / "data")
    for packages, text in parts(page):
        for line in filter(is_complete, lines_of(text)):
            here = re.sub(r"/var/lib/kafka/data|/(data|backup)(/kafka)?\b", "data", line)
            done = Place(tmp_path, with_exactly(packages)).run("bash", "-c", here)
            assert done.returncode == 0, f"{line}\n{done.stderr}"
            assert "Traceback" not in done.stderr


def test_options_of_other_commands(place: Place) -> None:
    """The commands that cannot be run as they stand exist, and have the options that their lines name."""
    lines = [line for page in WITH_COMMANDS for line in commands(page) if not is_complete(line)]
    asked = {" ".join(command): command for line in lines for command in named(line)}
    done = place.run(place.python, "-c", HELP, json.dumps([*asked.values()]))
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    for line in lines:
        for command in named(line):
            code, text = shown[" ".join(command)]
            assert code == 0, line
            for word in words(line):
                if word.startswith("-") and word != "-" and not word[1:].isdigit():
                    assert word in text, f"{line}: {word}"


def words(line: str) -> list[str]:
    """What follows `kafkacodec` in a line, up to a pipe or a redirection."""
    return shlex.split(line[line.index("kafkacodec ") :].split("|")[0].replace("'", "").split(">")[0])[1:]


def named(line: str) -> list[list[str]]:
    """The command of a line, or those that it has as alternatives, as words."""
    depth = {"message": 2, "admin": 3}.get(words(line)[0], 1)
    group = words(line)[:depth]
    return [[*group[:-1], command] for command in group[-1].split("|")]
