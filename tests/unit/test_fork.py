"""Forks while other threads decode, as in Spark's daemon."""

from __future__ import annotations

import pytest

from tests.processes import run_python

FORKS = 300

# Values of 100 kB, so that the threads are in the allocator most of the time.
CODE = """
import os, signal, sys, threading, warnings
import kafkacodec as kc
from kafkacodec import messages

warnings.simplefilter("ignore", DeprecationWarning)  # of fork with threads, from CPython 3.12 on
DATA = kc.encode([(None, bytes(100_000))] * 4, codec="lz4")
expected = len(kc.decode(DATA))
stop = threading.Event()

def work():
    while not stop.is_set():
        kc.decode(DATA)
        kc.decode(DATA * 4, threads=2)

threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
for i in range(int(sys.argv[1])):
    child = os.fork()
    if child == 0:
        signal.alarm(30)  # its default action ends the child
        good = len(kc.decode(DATA)) == len(list(kc.iter_records(DATA))) == expected
        os._exit(0 if good else 1)
    status = os.waitpid(child, 0)[1]
    assert status == 0, f"child {i} of {sys.argv[1]} ended with {os.waitstatus_to_exitcode(status)}"
stop.set()
for thread in threads:
    thread.join()
"""


@pytest.mark.slow
def test_children_of_a_process_whose_threads_decode() -> None:
    done = run_python(CODE, FORKS, seconds=300)
    assert (done.returncode, done.stderr) == (0, "")
