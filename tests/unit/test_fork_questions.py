"""A fork while a thread waits for a schema registry on behalf of an event loop."""

from __future__ import annotations

import pytest

from tests.processes import run_python

# The registry answers the parent's question only after the child has ended: what the child asks, it asks itself.
CODE = """
import asyncio, os, signal, sys, threading, warnings
from kafkacodec.questions import answering
from kafkacodec.values import Encoder, Registry
from tests.registry_server import serving

warnings.simplefilter("ignore", DeprecationWarning)  # of fork with threads, from CPython 3.12 on
PATH = "/subjects/t-value/versions/latest"
SCHEMA = '{"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}'
WANTED = b"\\0\\0\\0\\0\\x07\\x02"
asked, let = threading.Event(), threading.Event()

def held(path, answer):
    if not asked.is_set():
        asked.set()
        assert let.wait(60)
    return answer(path)

def child(encoder, way):
    signal.alarm(60)  # its default action ends the child
    if way == "loop":
        found = asyncio.run(answering(encoder, {"id": 1}))
    else:
        found = encoder({"id": 1})
    os._exit(0 if found == WANTED else 1)

async def work(url, way):
    encoder = Encoder(Registry(url, timeout=60, retries=0), subject="t-value")
    first = asyncio.create_task(answering(encoder, {"id": 1}))
    await asyncio.to_thread(asked.wait, 60)
    forked = os.fork()
    if forked == 0:
        child(encoder, way)
    status = (await asyncio.to_thread(os.waitpid, forked, 0))[1]
    assert status == 0, f"the child ended with {os.waitstatus_to_exitcode(status)}"
    assert not first.done()
    let.set()
    assert await first == WANTED

with serving({PATH: {"subject": "t-value", "version": 1, "id": 7, "schema": SCHEMA, "schemaType": "AVRO"}}) as state:
    answer = state.answer
    state.answer = lambda path: held(path, answer)
    try:
        asyncio.run(work(state.url, sys.argv[1]))
    finally:
        let.set()
    assert [path for path, _ in state.requests] == [PATH] * 2
"""


@pytest.mark.parametrize("way", ["loop", "call"])
def test_a_child_asks_what_a_thread_of_its_parent_waits_for(way: str) -> None:
    done = run_python(CODE, way, seconds=180)
    assert (done.returncode, done.stderr) == (0, "")
