"""The command as a process: interrupted, without a usable output, on a terminal."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from kafkacodec.cli.__main__ import BAD_INPUT, DONE, INTERRUPTED, WRONG_USAGE
from tests.corpus import ROOT
from tests.hostile_trees import STRANGE, real, strange_names
from tests.terminal import on_a_terminal

BROKER = ROOT / "logs" / "kraft-4.1.0"
COMMAND = [sys.executable, "-m", "kafkacodec.cli"]
SECONDS = 120


def start(*arguments: object, command: Sequence[str] = COMMAND, **options: object) -> subprocess.Popen[str]:
    """The command in a new session, with SIGINT handled as a shell sets it."""
    return subprocess.Popen(
        [*command, *map(str, arguments)],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        **options,  # type: ignore[call-overload]
    )


# --- interrupts -------------------------------------------------------------------------------------------------------


SCRIPT = [sys.executable, "-c", "from kafkacodec_command import main; main()"]
"""What the script does that pip makes."""


@pytest.mark.parametrize(
    ("module", "code"),
    [
        *((name, -signal.SIGINT) for name in ("kafkacodec", "kafkacodec.errors", "kafkacodec.cli.console")),
        *(
            (name, INTERRUPTED)
            for name in ("click", "numpy", "kafkacodec.cli.commands.convert", "pyarrow", "pyarrow.parquet")
        ),
    ],
)
def test_an_interrupt_while_something_is_imported(tmp_path: Path, module: str, code: int) -> None:
    """The signal arrives while the module is being found. Before `main` it ends the process, without a word."""
    (tmp_path / "sitecustomize.py").write_text(
        f"""
import os, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
"""
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT.parents[2])])}
    process = start("convert", BROKER, "-o", tmp_path / "out.parquet", command=SCRIPT, env=environment)
    out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, out) == (code, ""), err
    assert err.strip() == ("kafkacodec: error: interrupted" if code == INTERRUPTED else "")
    assert {*os.listdir(tmp_path)} - {"__pycache__"} == {"sitecustomize.py"}


def test_an_ignored_interrupt_stays_ignored() -> None:
    """As in a shell's background job."""
    process = subprocess.Popen(
        [*SCRIPT, "dump", "-"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate((BROKER / f"none-0/{0:020d}.log").read_bytes(), timeout=SECONDS)
    assert (process.returncode, err) == (DONE, b"")


@pytest.mark.spark
@pytest.mark.parametrize("seconds", [0.7, 2, 5])
def test_an_interrupted_demo_leaves_no_process(seconds: float) -> None:
    process = start("demo")
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=SECONDS)  # which ends when no child holds the pipes
    assert process.returncode in (DONE, INTERRUPTED, -signal.SIGINT)  # the last: Python itself was still starting
    assert process.returncode != INTERRUPTED or err.strip() == "kafkacodec: error: interrupted"
    deadline = time.monotonic() + SECONDS  # Spark's daemon ends when its pipe is closed, which it has to notice
    while alive(process.pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not alive(process.pid)


def alive(session: int) -> list[str]:
    """Processes of a session that have not ended."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, its_session, *_ = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(its_session) == session and state != "Z":
            found.append((path.parent / "cmdline").read_text())
    return found


# --- where the output goes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [["dump", BROKER, "--json"], ["scan", BROKER], ["--help"]], ids=lambda a: a[0])
def test_a_full_disk(arguments: list[object]) -> None:
    with open("/dev/full", "w") as full:
        finished = subprocess.run([*COMMAND, *map(str, arguments)], stdout=full, stderr=subprocess.PIPE, text=True)
    assert (finished.returncode, finished.stderr) == (
        BAD_INPUT,
        "kafkacodec: error: standard output: No space left on device\n",
    )


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(("arguments", "code"), [(f"scan {BROKER}", DONE), ("scan /nowhere", WRONG_USAGE)])
def test_closed_descriptors(closed: str, arguments: str, code: int) -> None:
    line = f"{sys.executable} -m kafkacodec.cli {arguments} {closed}"
    finished = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
    assert finished.returncode == (BAD_INPUT if " >" in f" {closed}" and code == DONE else code)
    assert "Traceback" not in finished.stderr


@pytest.mark.parametrize("arguments", ["dump", "dump --json", "verify", "scan --json", "topics", "dump -f '%s'"])
def test_what_cannot_be_printed_is_an_error(arguments: str) -> None:
    command, *options = arguments.split()
    line = f"{sys.executable} -m kafkacodec.cli {command} {BROKER} {' '.join(options)} >&-"
    finished = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
    assert (finished.returncode, finished.stderr) == (BAD_INPUT, "kafkacodec: error: standard output is closed\n")


def test_nothing_asked_for_shows_the_help() -> None:
    for arguments in ([], ["message"]):
        finished = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True)
        assert "\nCommands:\n" in finished.stdout + finished.stderr
        assert "\\n" not in finished.stderr


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-16"])
def test_encodings_that_cannot_hold_everything(encoding: str) -> None:
    for arguments in (["dump", BROKER / "mixed-0"], ["dump", BROKER / "mixed-0", "--json"], ["offsets", BROKER]):
        environment = os.environ | {"PYTHONIOENCODING": encoding}
        finished = subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, env=environment)
        assert finished.returncode == DONE, finished.stderr
        assert finished.stdout.decode(encoding)


# --- a terminal -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(len(STRANGE)))
def test_a_terminal_gets_no_escapes_but_our_own(tmp_path: Path, number: int) -> None:
    trees = dict(strange_names(tmp_path))
    commands = [
        ["dump", trees[f"names {number}, a file"]],
        ["scan", trees[f"names {number}, the partition"]],
        ["offsets", trees[f"stored names {number}"]],
        ["metadata", trees[f"stored names {number}"]],
    ]
    for arguments in commands[number % 2 :: 2]:  # a process takes its time; the sweep has the rest
        _, shown = on_a_terminal(*arguments)
        for line in shown.replace("\r\n", "\n").split("\n"):
            assert line.isprintable(), (arguments, line)


def test_a_progress_bar_takes_no_markup(tmp_path: Path) -> None:
    tree = real("v2", tmp_path / "[red]x[/red]")
    shutil.copytree(tree / "zstd-0", tree / "[bold]y[_bold]-0")
    code, shown = on_a_terminal("verify", tree, "--all", columns=120, kind="xterm")
    assert code == DONE
    assert "[bold]y[_bold]-0" in shown
    assert "verifying" in shown


@pytest.mark.parametrize("columns", [20, 80, 200])
def test_tables_fit(columns: int) -> None:
    for arguments in (["scan", BROKER], ["offsets", BROKER], ["dump", BROKER, "-n", "50"]):
        _, shown = on_a_terminal(*arguments, columns=columns)
        table = shown.replace("\r\n", "\n").split("\n")[:10]
        assert all(len(line) <= columns for line in table)


def test_notes_of_scan_are_readable_at_80_columns(tmp_path: Path) -> None:
    log = tmp_path / "orders-0"
    shutil.copytree(BROKER / "txn-0", log)
    damaged = bytearray((log / "00000000000000000000.log").read_bytes())
    damaged[100] ^= 1
    (log / "00000000000000000000.log").write_bytes(damaged)
    for arguments in (["scan", tmp_path], ["scan", log / "00000000000000000000.log"], ["scan", "--batches", tmp_path]):
        code, shown = on_a_terminal(*arguments)
        lines = shown.replace("\r\n", "\n").split("\n")
        assert code == DONE
        # In the line of the segment or below it, and whole: only the starts of names are cut.
        (noted,) = (line for line in lines[1:3] if "wrong checksum" in line)
        assert not any(line.rstrip().endswith("…") for line in lines)
        assert noted.strip().endswith(("wrong checksum", "wrong checksum,"))
        _, wide = on_a_terminal(*arguments, columns=200)
        assert "latest (UTC)" in wide


# --- start ------------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="lists the threads of the process")
@pytest.mark.parametrize(("chosen", "used"), [(None, "1"), ("3", "3")])
def test_numpy_starts_no_threads_unless_told_to(chosen: str | None, used: str) -> None:
    """Starting them takes longer than many commands. numpy starts as many as there are processors, but for one."""
    program = """
import os, sys
from kafkacodec_command import main
sys.argv[1:] = ["topics", sys.argv[1]]
try:
    main()
finally:
    print(os.environ["OPENBLAS_NUM_THREADS"], "numpy" in sys.modules, len(os.listdir("/proc/self/task")))
"""
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    if chosen:
        environment["OPENBLAS_NUM_THREADS"] = chosen
    run = [sys.executable, "-c", program, str(BROKER)]
    done = subprocess.run(run, capture_output=True, text=True, env=environment, timeout=SECONDS, check=False)
    number, loaded, threads = done.stdout.splitlines()[-1].split()
    assert (number, loaded) == (used, "True")
    assert chosen or threads == "1"
