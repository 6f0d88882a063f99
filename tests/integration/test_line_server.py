"""``kafkacodec serve --listen line://`` as a process: killed, with a full disk, and twice on one directory."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
from contextlib import closing, contextmanager

from tests.replicas.cluster import Line, parsed


@contextmanager
def serving(data, limit=resource.RLIM_INFINITY, *options):
    """A connection to a server whose files have at most so many bytes, and its process."""
    command = [
        sys.executable,
        "-m",
        "kafkacodec.cli",
        "serve",
        "--data",
        data,
        "--listen",
        "line://127.0.0.1:0",
        *options,
    ]
    limited = [sys.executable, "-c", LIMITED, str(limit), *command]
    process = subprocess.Popen(limited, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        listening = process.stdout.readline()
        assert listening.startswith("listening on line://127.0.0.1:"), process.stderr.read()
        with closing(Line(int(listening.rpartition(":")[2]))) as line:
            yield line, process
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate()


LIMITED = """
import os, resource, sys
if int(sys.argv[1]) >= 0:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
os.execv(sys.argv[2], sys.argv[2:])
"""


def everything(line):
    """All values of the only partition, in order."""
    found = {}
    while messages := parsed(line.ask(f"CONSUME|orders 0 {len(found)}")):
        found |= messages
    assert list(found) == [*range(len(found))]
    return [*found.values()]


def test_what_was_answered_is_there_after_a_kill(tmp_path):
    with serving(tmp_path) as (line, process):
        answers = line.ask_all([f"PRODUCE|orders k:v{i}" for i in range(500)])
        assert line.ask("JOIN|g orders a") == "OK|generation=1 assigned=[0]"
        assert line.ask("COMMIT|g orders a 1 0 400") == "OK|committed=true"
        process.kill()
        process.wait()
    assert all(answer.startswith("OK|") for answer in answers)
    with serving(tmp_path) as (line, _):
        assert everything(line) == [f"v{i}" for i in range(500)]
        assert line.ask("OFFSET|g orders 0") == "OK|offset=400"
        assert line.ask("SYNC|g orders a 1") == "OK|generation=1 assigned=[0]"
        assert line.ask("PRODUCE|orders k:next") == "OK|partition=0 offset=500 hw=501"


def test_a_full_disk_is_told_and_nothing_is_lost(tmp_path):
    """What does not fit is refused; what was there stays, and the server goes on."""
    kept = []
    with serving(tmp_path, 200_000) as (line, _):
        for i in range(1000):
            value = f"{i}-{'x' * 1000}"
            answer = line.ask(f"PRODUCE|orders k:{value}")
            if answer.startswith("ERR|"):
                break
            kept.append(value)
        assert answer.startswith("ERR|STORAGE_ERROR|")
        assert len(kept) > 100
        assert everything(line) == kept
        assert line.ask("PING|") == "OK"
    with serving(tmp_path) as (line, _):
        assert everything(line) == kept
        assert line.ask("PRODUCE|orders k:next") == f"OK|partition=0 offset={len(kept)} hw={len(kept) + 1}"


def test_a_second_server_on_the_directory_is_refused(tmp_path):
    with serving(tmp_path) as (line, _):
        command = [
            sys.executable,
            "-m",
            "kafkacodec.cli",
            "serve",
            "--data",
            tmp_path,
            "--listen",
            "line://127.0.0.1:0",
        ]
        second = subprocess.run(command, capture_output=True, text=True)
        assert second.returncode == 1
        assert second.stdout == ""
        assert "has locked the log directory" in second.stderr
        assert "Traceback" not in second.stderr
        assert line.ask("PING|") == "OK"
