"""The Python of Spark's workers, which is ready: processes are forked that have imported what workers need.

Spark starts a Python for each kind of workers and for each stream, and gives the latter ten seconds to import and to
connect, which is not enough on a busy machine. `use` has a program run in their place that asks a server, which this
file is too, for a fork of itself with the same arguments, variables, directory and open files, and lives as long. It
uses the standard library alone. Without a server, and for all else, it becomes an ordinary Python.

The first of them starts the server, which ends with the process that has called `prepare`.
"""

from __future__ import annotations

# What takes long to import is imported where it is used: there is a program for each worker.
import array
import contextlib
import json
import os
import signal
import socket
import sys
from typing import Any

# Where the server listens, which process it ends with, and the ordinary Python.
_VARIABLE = "KAFKACODEC_READY_PYTHON"
_FORKED = ("pyspark.daemon", "pyspark.sql.streaming.python_streaming_source_runner")
_IMPORTED = (
    "encodings.idna",
    "pandas",
    "pyspark.worker",
    "pyspark.sql.worker.commit_data_source_write",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.worker.python_streaming_sink_runner",
    "pyspark.sql.worker.write_into_data_source",
    "kafkacodec.spark.live.streaming",
    "kafkacodec.spark.live.sink",
    "kafkacodec.spark.live.writing",
    "kafkacodec.spark.reading.streaming",
    "kafkacodec.spark.writing.jobs",
    "kafkacodec.spark.kafkabroker",
    "kafkacodec.spark.kafkalog",
)
_FILES = array.array("i", [0, 1, 2])
_PROGRAM = """#!/bin/sh
case $1,$2 in
    {forked}) exec "{python}" -I -S "{this}" "$@" ;;
    *) exec "{python}" "$@" ;;
esac
"""


def prepare() -> tuple[str, int, str]:
    """One server is for this process and all that it starts; returns what `start` needs."""
    if _VARIABLE not in os.environ:
        os.environ[_VARIABLE] = _prepared(sys.executable)
    place, owner, python = json.loads(os.environ[_VARIABLE])
    return place, owner, python


def use() -> None:
    """Sessions that this process begins take their workers from the server."""
    prepare()
    os.environ.update(_chosen(os.environ[_VARIABLE]))


def variables(python: str) -> dict[str, str]:
    """What `use` sets, for a program of another environment, whose own server has the modules of that."""
    prepared = _prepared(python)
    return {_VARIABLE: prepared, **_chosen(prepared)}


def _prepared(python: str) -> str:
    """The value of the variable, for a server that has not been started."""
    import atexit
    import shutil
    import tempfile

    place = tempfile.mkdtemp(prefix="kafkacodec-python-")
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    program = os.path.join(place, "python")
    forked = "|".join(f"-m,{module}" for module in _FORKED)
    with open(program, "w") as script:
        script.write(_PROGRAM.format(python=python, forked=forked, this=os.path.abspath(__file__)))
    os.chmod(program, 0o755)
    return json.dumps([place, os.getpid(), python])


def _chosen(prepared: str) -> dict[str, str]:
    place, _, _ = json.loads(prepared)
    return dict.fromkeys(("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"), os.path.join(place, "python"))


def ask(place: str, owner: int, python: str, arguments: list[str]) -> int:
    """Have a process forked, and wait for its end; returns its status."""
    with socket.socket(socket.AF_UNIX) as server:
        try:
            server.connect(start(place, owner, python))
        except OSError:  # the server could not start: `errors` says why
            os.execv(python, [python, *arguments])
        socket.send_fds(server, [b"."], _FILES.tolist())
        wanted = json.dumps([arguments, dict(os.environ), os.getcwd()]).encode()
        server.sendall(len(wanted).to_bytes(4, "big") + wanted)
        child = int.from_bytes(server.recv(4), "big")
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda caught, _: _forward(child, caught))
        with open(os.devnull, "r+b") as nothing:  # the files are the child's, whose end their readers have to see
            for number in _FILES:
                os.dup2(nothing.fileno(), number)
        return int.from_bytes(server.recv(1) or b"\1", "big")


def _forward(child: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, number)


def start(place: str, owner: int, python: str) -> str:
    """Where the server listens, which is started if there is none."""
    path = os.path.join(place, "socket")
    if os.path.exists(path):
        return path
    import fcntl
    import subprocess
    import time

    with open(os.path.join(place, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(path):
            clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYSPARK"))}
            # As Spark has it: strings have the same hash in all workers.
            clean |= {"PYTHONHASHSEED": "0", "PYTHONWARNINGS": "ignore", "OPENBLAS_NUM_THREADS": "1"}
            clean["PYTHONPATH"] = os.environ.get("PYTHONPATH", "")
            with open(os.path.join(place, "errors"), "w") as errors:
                started = subprocess.Popen(
                    [python, os.path.abspath(__file__), "serve", place, str(owner)],
                    env=clean,
                    stdin=subprocess.DEVNULL,
                    stdout=errors,
                    stderr=errors,
                    start_new_session=True,
                )
            while not os.path.exists(path) and started.poll() is None:
                time.sleep(0.01)
            started.returncode = 0  # it lives longer than this object, which would warn of that
    return path


def serve(place: str, owner: int) -> None:
    """Fork whenever a program asks, until the owner has ended."""
    import gc
    import importlib
    import select
    import shutil

    sys.path.pop(0)  # the directory of this file
    for name in _IMPORTED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    path = os.path.join(place, "socket")
    with socket.socket(socket.AF_UNIX) as listening, contextlib.suppress(ProcessLookupError):
        end: Any = os.pidfd_open(owner)
        listening.bind(path + ".new")
        listening.listen(64)
        os.rename(path + ".new", path)
        while end not in select.select([listening, end], [], [])[0]:
            asking, _ = listening.accept()
            if os.fork() == 0:
                listening.close()
                os.close(end)
                try:
                    _become(asking)
                finally:
                    os._exit(1)
            asking.close()
    shutil.rmtree(place, ignore_errors=True)


def _become(asking: socket.socket) -> None:
    """Be the process that a program asks for."""
    import runpy

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _name_parent(asking)
    _, files, _, _ = socket.recv_fds(asking, 1, len(_FILES))
    size = int.from_bytes(asking.recv(4, socket.MSG_WAITALL), "big")
    arguments, environment, directory = json.loads(asking.recv(size, socket.MSG_WAITALL))
    for number, file in zip(_FILES, files, strict=True):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(directory)
    given = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:0] = [path for path in (directory, *given) if path not in sys.path]
    sys.argv = arguments[1:]
    asking.sendall(os.getpid().to_bytes(4, "big"))
    status = 0
    try:
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        import traceback

        traceback.print_exc()
        status = 1
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    with contextlib.suppress(OSError):
        asking.sendall(bytes([status & 255]))
    os._exit(status & 255)


def _name_parent(asking: socket.socket) -> None:
    """Jobs belong to the JVM that has started the program which asks: this process comes from the server, whose own
    ancestor is the first JVM of all."""
    import functools
    import struct

    from kafkacodec.spark.writing import owner

    credentials = struct.Struct("3i")
    number, _, _ = credentials.unpack(asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, credentials.size))
    owner.driver = functools.partial(owner.driver, number)


def main(arguments: list[str]) -> None:
    """What Spark starts."""
    if arguments[:1] == ["serve"]:
        serve(arguments[1], int(arguments[2]))
        return
    place, owner, python = json.loads(os.environ[_VARIABLE])
    sys.exit(ask(place, owner, python, arguments))


if __name__ == "__main__":
    main(sys.argv[1:])
