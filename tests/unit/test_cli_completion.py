"""Completions in the shell, asked for as bash does."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.corpus import ROOT

BROKER = ROOT / "logs" / "kraft-4.1.0"
V0 = ROOT / "logs" / "v0-0.9.0.1"


SCRIPT = """
import sys
from kafkacodec_command import main
sys.argv = ["kafkacodec"]
try:
    main()
finally:
    {after}
"""


def completions(line: str, *, after: str = "pass") -> list[str]:
    """What bash would offer for the last word of a command line."""
    words = line.split(" ")
    environment = os.environ | {
        "_KAFKACODEC_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    finished = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(after=after)], env=environment, capture_output=True, text=True, check=False
    )
    assert finished.stderr == ""
    return [item.partition(",")[2] for item in finished.stdout.splitlines() if item.startswith("plain,")]


@pytest.mark.parametrize("command", ["dump", "scan", "convert", "topics", "metadata", "lag"])
def test_topics_of_the_paths_before(command: str) -> None:
    found = completions(f"kafkacodec {command} {BROKER} --topic tiny-")
    assert found == ["tiny-gzip", "tiny-lz4", "tiny-none", "tiny-snappy", "tiny-zstd"]


def test_topics_of_several_paths_and_of_none() -> None:
    assert completions(f"kafkacodec dump {BROKER / 'zstd-0'} {V0} --json --topic ") == sorted(
        {"zstd", *(path.name.rpartition("-")[0] for path in V0.iterdir() if path.is_dir())}
    )
    assert completions("kafkacodec dump /nowhere --topic ") == []
    assert completions("kafkacodec dump - --topic ") == []
    assert completions("kafkacodec dump --topic ") == []


def test_commands_and_options_without_heavy_imports() -> None:
    heavy = "assert not {'numpy', 'pyarrow', 'kafkacodec.log', 'kafkacodec.cli.commands.scan'} & set(sys.modules)"
    assert completions("kafkacodec d", after=heavy) == ["dump", "diff", "demo"]
    assert completions("kafkacodec --ver", after=heavy) == ["--version"]
    assert completions("kafkacodec verify --stri", after=heavy) == ["--strict"]
